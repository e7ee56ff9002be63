//! What the engine needs to have done, without knowing how: the daemon passes the real work, tests another.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::event::{Outcome, Survey};
use super::job::{JobId, Task};
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::snapshot::progress::Progress;

/// Each call runs on a thread of its own, and may block: when it does not end, the engine goes on without it.
pub trait Works: Send + Sync + 'static {
    /// Does the task to its end, or until it is asked to stop.
    fn run(
        &self,
        settings: &Settings,
        task: &Task,
        progress: Arc<dyn Progress>,
        cancel: &CancellationToken,
    ) -> std::result::Result<Outcome, Undone>;

    /// Reads all configured stores; what each holds, or why it cannot be read.
    fn survey(&self, settings: &Settings) -> Vec<(String, Survey)>;

    /// By how many seconds the wall clock left the time since boot since the last snapshot.
    fn clock_jump(&self, settings: &Settings, now: Timestamp) -> Result<Option<i64>>;
}

/// A job that failed, with what there is all the same.
#[derive(Debug)]
pub struct Undone {
    pub error: Error,
    pub outcome: Option<Box<Outcome>>,
}

impl From<Error> for Undone {
    fn from(error: Error) -> Self {
        Undone { error, outcome: None }
    }
}

/// What a thread tells the engine.
#[derive(Debug)]
pub enum Report {
    Step { job: JobId, step: String },
    Warned { job: JobId, text: String },
    Done { job: JobId, done: std::result::Result<Outcome, Undone> },
    Surveyed { stores: Vec<(String, Survey)>, jump: Option<i64> },
}

/// How far a running job is. Read by whoever shows it; the engine is not woken for it.
pub struct Live {
    job: JobId,
    reports: UnboundedSender<Report>,
    far: Mutex<Option<Far>>,
}

/// Within the step.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Far {
    pub done: u64,
    pub total: Option<u64>,
    /// "B" for bytes.
    pub unit: String,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("job", &self.job).field("far", &self.far()).finish_non_exhaustive()
    }
}

impl Live {
    pub fn new(job: JobId, reports: UnboundedSender<Report>) -> Live {
        Live { job, reports, far: Mutex::new(None) }
    }

    pub fn far(&self) -> Option<Far> {
        self.far.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, far: Option<Far>) {
        *self.far.lock().unwrap_or_else(PoisonError::into_inner) = far;
    }
}

impl Progress for Live {
    fn step(&self, step: &str) {
        self.set(None);
        // The engine is gone when the process ends: then nobody listens.
        let _ = self.reports.send(Report::Step { job: self.job, step: step.into() });
    }

    fn bytes(&self, done: u64, total: Option<u64>, unit: &str) {
        self.set(Some(Far { done, total, unit: unit.into() }));
    }

    fn warn(&self, message: &str) {
        let _ = self.reports.send(Report::Warned { job: self.job, text: message.into() });
    }
}
