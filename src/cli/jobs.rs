//! `refloat jobs`.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::context::{Context, Ending};
use super::output::{Document, SCHEMA, fields, table};
use super::remote;
use crate::engine::job::JobId;
use crate::error::{Code, Error, Result};
use crate::http::api::{Done, Jobs};
use crate::status::{Job, jobs};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// What runs, what waits and why, and how the last ones ended
    #[command(after_help = "\
Examples:
  refloat jobs list
  refloat jobs list -o json")]
    List(ListArgs),
    /// Everything known about one job
    #[command(after_help = "Example:\n  refloat jobs show 17")]
    Show(OneArgs),
    /// Wait until a job is over; its exit code is this command's
    #[command(after_help = "Example:\n  refloat jobs wait 17")]
    Wait(OneArgs),
    /// Stop a job: it ends within five seconds, at any step
    #[command(after_help = "\
Example:
  refloat jobs cancel 17

What it had not published does not exist. A call to a dead disk that does not come back is abandoned; `jobs list` names the
lane that it still takes.")]
    Cancel(OneArgs),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only those that are not over
    #[arg(long)]
    pub open: bool,
}

#[derive(Debug, Args)]
pub struct OneArgs {
    /// The number of the job
    #[arg(value_name = "ID")]
    pub id: JobId,
}

pub async fn run(command: Command, context: &Context) -> Result<Ending> {
    match command {
        Command::List(args) => list(args, context).await,
        Command::Show(args) => show(args.id, context).await,
        Command::Wait(args) => {
            let client = remote::needed(context, "wait for job").await?;
            let waited = remote::wait(&client, args.id, context);
            let job = tokio::select! {
                job = waited => job?,
                () = context.cancel.cancelled() => {
                    return Err(Error::new(Code::Canceled, "wait for job", args.id.to_string()).because("the job goes on"));
                }
            };
            context.output.document(&JobDocument { schema: SCHEMA, job: &job })?;
            remote::failure(&job).map_or(Ok(Ending::Good), Err)
        }
        Command::Cancel(args) => {
            let client = remote::needed(context, "cancel job").await?;
            client.delete::<Done>(&format!("/v1/jobs/{}", args.id)).await?;
            let job = remote::wait(&client, args.id, context).await?;
            context.output.document(&JobDocument { schema: SCHEMA, job: &job })?;
            Ok(Ending::Good)
        }
    }
}

async fn all(context: &Context) -> Result<Vec<Job>> {
    match remote::daemon(context).await? {
        Some(client) => Ok(client.get::<Jobs>("/v1/jobs").await?.jobs),
        None => {
            context.progress.warn("the daemon does not run: this is what it knew when it ended");
            Ok(jobs(&remote::without_daemon(context).await?))
        }
    }
}

async fn list(args: ListArgs, context: &Context) -> Result<Ending> {
    let mut jobs = all(context).await?;
    if args.open {
        jobs.retain(|job| !job.state.is_over());
    }
    context.output.document(&JobsDocument { schema: SCHEMA, jobs })?;
    Ok(Ending::Good)
}

async fn show(id: JobId, context: &Context) -> Result<Ending> {
    let job =
        match remote::daemon(context).await? {
            Some(client) => client.get::<Job>(&format!("/v1/jobs/{id}")).await?,
            None => all(context).await?.into_iter().find(|job| job.id == id).ok_or_else(|| {
                Error::new(Code::NotFound, "find job", id.to_string()).because("no job has this number")
            })?,
        };
    context.output.document(&JobDocument { schema: SCHEMA, job: &job })?;
    Ok(Ending::Good)
}

#[derive(Debug, Serialize)]
struct JobsDocument {
    schema: u32,
    jobs: Vec<Job>,
}

#[derive(Debug, Serialize)]
struct JobDocument<'a> {
    schema: u32,
    job: &'a Job,
}

impl Document for JobsDocument {
    fn table(&self) -> String {
        if self.jobs.is_empty() {
            return "no jobs\n".into();
        }
        job_table(&self.jobs)
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.jobs.iter().map(serde_json::to_string).collect()
    }
}

/// One line a job.
pub(super) fn job_table(jobs: &[Job]) -> String {
    let rows = jobs.iter().map(|job| {
        let far = job.progress.as_ref().and_then(|far| Some(far.done * 100 / far.total.filter(|t| *t > 0)?));
        let step = match (&job.step, far) {
            (Some(step), Some(percent)) if !job.state.is_over() => format!("{step} {percent} %"),
            (Some(step), None) if !job.state.is_over() => step.clone(),
            _ => String::new(),
        };
        let said = job.outcome.clone().or_else(|| job.reason.clone()).unwrap_or_default();
        let at = job.ended_at.or(job.started_at).unwrap_or(job.created_at);
        vec![
            job.id.to_string(),
            job.what.clone(),
            job.state.word().into(),
            at.strftime("%F %T").to_string(),
            job.origin.clone(),
            if step.is_empty() { said } else { step },
        ]
    });
    table(&["ID", "JOB", "STATE", "SINCE (UTC)", "BY", "DETAIL"], &["ID"], rows)
}

impl Document for JobDocument<'_> {
    fn table(&self) -> String {
        let job = self.job;
        let time = |at: Option<jiff::Timestamp>| at.map(|at| format!("{at:.0}")).unwrap_or_default();
        let mut text = fields(&[
            ("job", job.id.to_string()),
            ("what", job.what.clone()),
            ("state", job.state.word().into()),
            ("by", job.origin.clone()),
            ("reason", job.reason.clone().unwrap_or_default()),
            ("step", job.step.clone().unwrap_or_default()),
            ("lanes", job.lanes.join(", ")),
            ("queued", time(Some(job.created_at))),
            ("began", time(job.started_at)),
            ("deadline", time(job.deadline_at)),
            ("ended", time(job.ended_at)),
            ("outcome", job.outcome.clone().unwrap_or_default()),
            ("code", job.code.clone().unwrap_or_default()),
            ("try", job.error.as_ref().and_then(|e| e.remedy.clone()).unwrap_or_default()),
        ]);
        for warning in &job.warnings {
            text.push_str(&format!("warning: {}\n", super::output::printable(warning)));
        }
        text
    }
}
