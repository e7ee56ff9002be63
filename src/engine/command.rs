//! What others may ask of the engine, and the handle to ask with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use super::failure::Failure;
use super::job::{JobId, Origin, Task};
use super::lane::Lane;
use super::queue::{LedgerState, Wait};
use super::record::Record;
use super::work::Live;
use crate::config::Settings;
use crate::error::{Code, Error, Result};

/// How long an answer may take: the engine answers at once, the ledger may not.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub enum Command {
    Submit {
        task: Task,
        origin: Origin,
        reply: oneshot::Sender<Result<Submitted>>,
    },
    Cancel {
        job: JobId,
        uid: u32,
        reply: oneshot::Sender<Result<()>>,
    },
    Pause {
        schedule: String,
        until: Option<Timestamp>,
        uid: u32,
        reply: oneshot::Sender<Result<()>>,
    },
    Resume {
        schedule: String,
        uid: u32,
        reply: oneshot::Sender<Result<()>>,
    },
    /// New settings, or why those on the disk are refused.
    Reload {
        settings: std::result::Result<(Arc<Settings>, Vec<String>), Failure>,
        reply: oneshot::Sender<()>,
    },
    /// Something is wrong, or well again.
    Trouble {
        about: String,
        failure: Option<Failure>,
    },
    /// What is known of the own member's database size: for deadlines.
    Size {
        db_bytes: u64,
    },
    /// No new work; what runs may go on for so long.
    Drain {
        grace: Duration,
    },
}

impl Command {
    /// Whether whoever asked does not wait for the answer any more.
    pub(super) fn is_given_up(&self) -> bool {
        match self {
            Command::Submit { reply, .. } => reply.is_closed(),
            Command::Cancel { reply, .. } | Command::Pause { reply, .. } | Command::Resume { reply, .. } => {
                reply.is_closed()
            }
            // The settings are in force already, for all others.
            Command::Reload { .. } => false,
            Command::Trouble { .. } | Command::Size { .. } | Command::Drain { .. } => false,
        }
    }
}

/// Where a request went.
#[derive(Debug)]
pub struct Submitted {
    pub job: JobId,
    /// It was joined to a job that was there.
    pub coalesced: bool,
    /// Fires once it is durable.
    pub durable: oneshot::Receiver<()>,
}

/// The state after one turn of the engine: all that anybody sees of it.
#[derive(Debug, Clone)]
pub struct Turn {
    pub at: Timestamp,
    pub record: Arc<Record>,
    /// Running jobs.
    pub live: BTreeMap<JobId, Arc<Live>>,
    /// Why each queued job waits.
    pub waits: BTreeMap<JobId, Wait>,
    /// Calls of jobs that are over that have not come back, since when.
    pub stuck: Vec<(Lane, JobId, Timestamp)>,
    pub ledger: LedgerState,
    /// Schedules with their next time: with the node's shift.
    pub next: BTreeMap<String, Option<Timestamp>>,
    pub draining: bool,
    /// The ledger is read, the stores too.
    pub ready: bool,
}

/// Asks the engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) turns: watch::Receiver<Arc<Turn>>,
}

impl Handle {
    pub fn turn(&self) -> Arc<Turn> {
        self.turns.borrow().clone()
    }

    pub fn turns(&self) -> watch::Receiver<Arc<Turn>> {
        self.turns.clone()
    }

    /// Queues it, durably where the ledger answers in time.
    pub async fn submit(&self, task: Task, uid: u32) -> Result<(JobId, bool)> {
        let what = format!("queue {task}");
        let made = self.ask(&what, |reply| Command::Submit { task, origin: Origin::Hand { uid }, reply }).await??;
        // When it does not become durable, the job says so itself.
        let _ = tokio::time::timeout(PATIENCE, made.durable).await;
        Ok((made.job, made.coalesced))
    }

    pub async fn cancel(&self, job: JobId, uid: u32) -> Result<()> {
        self.ask("cancel job", |reply| Command::Cancel { job, uid, reply }).await?
    }

    pub async fn pause(&self, schedule: String, until: Option<Timestamp>, uid: u32) -> Result<()> {
        self.ask("pause schedule", |reply| Command::Pause { schedule, until, uid, reply }).await?
    }

    pub async fn resume(&self, schedule: String, uid: u32) -> Result<()> {
        self.ask("resume schedule", |reply| Command::Resume { schedule, uid, reply }).await?
    }

    pub async fn reload(&self, settings: std::result::Result<(Arc<Settings>, Vec<String>), Failure>) -> Result<()> {
        self.ask("reload", |reply| Command::Reload { settings, reply }).await
    }

    /// Tells what no answer is needed for; given up when the engine does not take it.
    pub async fn tell(&self, command: Command) {
        let _ = tokio::time::timeout(PATIENCE, self.commands.send(command)).await;
    }

    async fn ask<T>(&self, what: &str, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.commands.send(command(reply)).await.ok()?;
            answer.await.ok()
        };
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(Error::new(Code::Interrupted, what, "").because("the daemon is ending")),
            Err(_) => Err(Error::new(Code::LockHeld, what, "")
                .because("the daemon has not answered for ten seconds")
                .remedy("look at `systemctl status refloat`")),
        }
    }
}
