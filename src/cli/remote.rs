//! The daemon of this node, if it runs, and what it knew when it ran.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::context::{Context, aside};
use super::output::{Document, SCHEMA};
use crate::config::PathSettings;
use crate::engine::command::Turn;
use crate::engine::job::{JobId, Task};
use crate::engine::queue::LedgerState;
use crate::engine::record::Record;
use crate::engine::settle::found_open;
use crate::error::{Code, Error, Result};
use crate::fs::Dir;
use crate::http::SOCKET;
use crate::http::api::{Done, Queued};
use crate::http::client::Client;
use crate::status::{Facts, Job, Status, render};

/// The daemon whose state directory is the configured one. `None` when none runs.
pub(super) async fn daemon(context: &Context) -> Result<Option<Client>> {
    let paths = match context.settings() {
        Ok(settings) => &settings.paths,
        Err(error) => return daemon_in_spite_of(error, context).await,
    };
    let found = match Client::connect(&paths.runtime.join(SOCKET)).await {
        // Whoever owns the state directory may ask its daemon: this socket is another one's.
        Err(error) if error.code() == Code::Permission && is_own(&paths.state) => None,
        found => found?,
    };
    // Another one's: this configuration has a state directory of its own.
    Ok(found.filter(|(_, daemon)| std::path::Path::new(&daemon.state) == paths.state).map(|(client, _)| client))
}

/// A broken configuration keeps nobody from asking the daemon, which goes on with the one before; that is when people ask.
async fn daemon_in_spite_of(error: Error, context: &Context) -> Result<Option<Client>> {
    // A file that was named may mean another one.
    if context.has_own_file() {
        return Err(error);
    }
    match Client::connect(&PathSettings::default().runtime.join(SOCKET)).await {
        Ok(Some((client, _))) => {
            context.progress.warn(&error.line());
            Ok(Some(client))
        }
        Ok(None) | Err(_) => Err(error),
    }
}

fn is_own(state: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(state).is_ok_and(|meta| meta.uid() == nix::unistd::geteuid().as_raw())
}

/// The daemon, or why it is needed.
pub(super) async fn needed(context: &Context, what: &str) -> Result<Client> {
    daemon(context).await?.ok_or_else(|| {
        let socket = context.settings().map(|s| s.paths.runtime.join(SOCKET).display().to_string()).unwrap_or_default();
        Error::new(Code::MemberGone, what, "")
            .because(format!("the daemon does not run: nobody listens on {socket}"))
            .remedy("start it: `systemctl start refloat`")
    })
}

/// What the daemon knew when it ended, from its ledger.
pub(super) async fn without_daemon(context: &Context) -> Result<Turn> {
    let settings = context.settings()?.clone();
    let records = aside(move || match Dir::open(&settings.paths.state) {
        Ok(state) => crate::ledger::read(&state),
        Err(e) if e.code() == Code::NotFound => Ok(Vec::new()),
        Err(e) => Err(e.remedy("be root, or the owner of the state directory")),
    });
    let mut record = Record::of(&records.await?);
    let at = Timestamp::now();
    // Nothing runs without it.
    for event in found_open(&record) {
        record.apply(&event, at);
    }
    record.run = None;
    Ok(Turn {
        at,
        record: Arc::new(record),
        live: Default::default(),
        waits: Default::default(),
        stuck: Vec::new(),
        ledger: LedgerState::Good,
        next: Default::default(),
        draining: false,
        ready: true,
    })
}

/// The status, and whether the daemon runs.
pub(super) async fn status(context: &Context) -> Result<(Status, bool)> {
    match daemon(context).await? {
        Some(client) => Ok((client.get("/v1/status").await?, true)),
        None => {
            let turn = without_daemon(context).await?;
            let mut status = render(&turn, &Facts::default(), context.settings()?, turn.at);
            status.summary = format!("the daemon does not run; {}", status.summary);
            Ok((status, false))
        }
    }
}

/// A job that was queued and not waited for.
#[derive(Debug, Serialize)]
pub struct QueuedDocument {
    pub schema: u32,
    pub job: JobId,
    /// It was joined to that job, which was there.
    pub coalesced: bool,
}

impl Document for QueuedDocument {
    fn table(&self) -> String {
        let QueuedDocument { job, coalesced, .. } = self;
        let how = if *coalesced { "joined to job" } else { "queued as job" };
        format!("{how} {job}: see `refloat jobs show {job}`, wait with `refloat jobs wait {job}`\n")
    }
}

/// Queues it, and prints where.
pub(super) async fn queue(client: &Client, task: &Task, context: &Context) -> Result<()> {
    let Queued { job, coalesced, .. } = client.post("/v1/jobs", task).await?;
    context.output.document(&QueuedDocument { schema: SCHEMA, job, coalesced })
}

/// Queues it and waits for its end, showing how far it is. When this command is told to stop, so is the job, unless
/// somebody else wanted it too.
pub(super) async fn run(client: &Client, task: &Task, context: &Context) -> Result<Job> {
    let Queued { job, coalesced, .. } = client.post("/v1/jobs", task).await?;
    if coalesced {
        context.progress.warn(&format!("joined to job {job}, which was there already"));
    }
    let waiting = wait(client, job, context);
    tokio::pin!(waiting);
    tokio::select! {
        ended = &mut waiting => return ended,
        () = context.cancel.cancelled() => {}
    }
    let canceled = || Error::new(Code::Canceled, "wait for job", job.to_string());
    // Others may have joined it since, the schedule too.
    if coalesced || client.get::<Job>(&format!("/v1/jobs/{job}")).await.is_ok_and(|job| job.joined > 0) {
        return Err(canceled().because("the job itself goes on: somebody else wanted it too"));
    }
    match client.delete::<Done>(&format!("/v1/jobs/{job}")).await {
        Ok(_) => waiting.await,
        // It ended in the same moment.
        Err(error) if error.code() == Code::NotFound => waiting.await,
        Err(error) => Err(error),
    }
}

/// Waits for the end of a job.
pub(super) async fn wait(client: &Client, id: JobId, context: &Context) -> Result<Job> {
    let mut follow = client.follow(&format!("/v1/jobs/{id}/follow")).await?;
    let (mut last, mut shown) = (None::<Job>, Shown::default());
    while let Some(job) = follow.next::<Job>().await? {
        shown.show(&job, context);
        last = Some(job);
    }
    match last {
        Some(job) if job.state.is_over() => Ok(job),
        _ => Err(Error::new(Code::Interrupted, "wait for job", id.to_string())
            .because("the daemon ended before the job did")
            .remedy("it goes on when the daemon runs again: see `refloat jobs list`")),
    }
}

/// What was told of a job already.
#[derive(Default)]
struct Shown {
    step: Option<String>,
    reason: Option<String>,
    warnings: usize,
}

impl Shown {
    fn show(&mut self, job: &Job, context: &Context) {
        let progress = &context.progress;
        if job.state == crate::engine::phase::Phase::Queued && job.reason != self.reason {
            let why = job.reason.as_deref().unwrap_or_default();
            // The intent of each job is on its way for a moment.
            if !why.starts_with("its intent") && !why.starts_with("the daemon has not") {
                progress.step(&format!("waiting: {why}"));
            }
            self.reason.clone_from(&job.reason);
        }
        if job.step != self.step {
            self.step.clone_from(&job.step);
            if let Some(step) = &job.step {
                progress.step(step);
            }
        }
        if let Some(far) = &job.progress {
            progress.bytes(far.done, far.total, &far.unit);
        }
        job.warnings.iter().skip(self.warnings).for_each(|warning| progress.warn(warning));
        self.warnings = self.warnings.max(job.warnings.len());
    }
}

/// What a job that is over means for whoever waited: its error.
pub(super) fn failure(job: &Job) -> Option<Error> {
    use crate::engine::phase::Phase;
    match job.state {
        Phase::Failed => job.error.as_ref().map(|failure| failure.to_error()),
        Phase::Canceled => Some(
            Error::new(Code::Canceled, "finish job", job.id.to_string())
                .because(job.reason.clone().unwrap_or_else(|| "it was canceled".into())),
        ),
        _ => None,
    }
}
