//! What the daemon knows: the fold of all events, in their order, and nothing else (law 3).
//!
//! Total: an event that does not fit what is known, which only a damaged ledger can hold, changes nothing.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::event::{End, Event, Missed, Outcome, SnapshotOutcome, Survey, Verdict};
use super::failure::Failure;
use super::job::{Job, JobId, Origin};
use super::phase::{Move, Phase};
use crate::error::Retry;
use crate::ledger;

/// Higher numbers are never reached by counting; after one of them there would be no next.
const LAST_ID: u64 = u64::MAX / 2;
/// Jobs that are over and still shown.
pub const SHOWN: usize = 100;
/// Warnings of a job that are kept.
const WARNINGS: usize = 20;
/// Decisions of a schedule that are kept.
const DECISIONS: usize = 10;
/// How often one job may run; the daemon may be killed again and again by what the job does.
pub const RUNS: u32 = 3;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The highest number that was given.
    pub last_id: u64,
    pub jobs: BTreeMap<JobId, Known>,
    pub schedules: BTreeMap<String, Cursor>,
    pub stores: BTreeMap<String, Surveyed>,
    pub troubles: BTreeMap<String, Trouble>,
    /// The wall clock is in doubt since then.
    pub clock: Option<Stepped>,
    pub last_snapshot: Option<LastSnapshot>,
    pub run: Option<Run>,
}

/// A job with what became of it so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Known {
    pub job: Job,
    pub phase: Phase,
    pub runs: u32,
    pub step: Option<String>,
    pub started_at: Option<Timestamp>,
    pub deadline_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub end: Option<End>,
    pub warnings: Vec<String>,
    /// Who else asked for the same.
    pub joined: Vec<Origin>,
    /// Why it runs again.
    pub again: Option<String>,
}

/// Where a schedule stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The last slot that was decided, without the node's shift. `None`: none yet.
    pub slot: Option<Timestamp>,
    pub paused: Option<Paused>,
    /// The last tries for that slot that failed and may succeed later.
    pub failed: u32,
    pub failed_at: Option<Timestamp>,
    /// Newest last.
    pub decisions: Vec<Decision>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub since: Timestamp,
    /// `None`: until somebody resumes it.
    pub until: Option<Timestamp>,
    pub uid: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub at: Timestamp,
    pub slot: Timestamp,
    pub verdict: Verdict,
    pub missed: Option<Missed>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Surveyed {
    pub at: Timestamp,
    pub seen: Survey,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    pub since: Timestamp,
    pub failure: Failure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stepped {
    pub at: Timestamp,
    pub seconds: i64,
}

/// What the next deadline is measured by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastSnapshot {
    pub job: JobId,
    pub at: Timestamp,
    pub id: String,
    pub db_bytes: u64,
    pub took: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub version: String,
    pub pid: u32,
    pub boot_id: String,
    pub started_at: Timestamp,
}

impl Known {
    fn new(job: Job) -> Known {
        Known {
            job,
            phase: Phase::Queued,
            runs: 0,
            step: None,
            started_at: None,
            deadline_at: None,
            ended_at: None,
            end: None,
            warnings: Vec::new(),
            joined: Vec::new(),
            again: None,
        }
    }

    fn goes(&mut self, happens: Move) -> bool {
        match self.phase.on(happens) {
            Ok(next) => {
                self.phase = next;
                true
            }
            Err(illegal) => {
                tracing::warn!("job {}: {illegal}", self.job.id);
                false
            }
        }
    }

    pub fn failure(&self) -> Option<&Failure> {
        match &self.end {
            Some(End::Failed { failure, .. }) => Some(failure),
            _ => None,
        }
    }

    /// What came of it, complete or in part.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.end {
            Some(End::Succeeded { result }) => Some(result),
            Some(End::Failed { result: Some(result), .. }) => Some(result),
            _ => None,
        }
    }
}

impl Cursor {
    /// One that stands at this slot, of which nothing else is known.
    pub fn at(slot: Option<Timestamp>) -> Cursor {
        Cursor { slot, ..Cursor::new() }
    }

    fn new() -> Cursor {
        Cursor { slot: None, paused: None, failed: 0, failed_at: None, decisions: Vec::new() }
    }
}

impl Record {
    /// All that a ledger holds. What a later version wrote decides nothing here, and is said.
    pub fn of(found: &[ledger::Record]) -> Record {
        let mut record = Record::default();
        for found in found {
            match Event::from_entry(&found.entry) {
                Some(event) => record.apply(&event, found.at),
                None => tracing::warn!("entry {} of the ledger is of another version: it is left out", found.seq),
            }
        }
        record
    }

    /// The number of the next job.
    pub fn next_id(&self) -> JobId {
        JobId(self.last_id + 1)
    }

    /// Not over yet, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Known> {
        self.jobs.values().filter(|known| !known.phase.is_over())
    }

    pub fn phase(&self, id: JobId) -> Option<Phase> {
        self.jobs.get(&id).map(|known| known.phase)
    }

    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::Checkpoint { record } => *self = (**record).clone(),
            Event::Started { version, pid, boot_id } => {
                self.run = Some(Run { version: version.clone(), pid: *pid, boot_id: boot_id.clone(), started_at: at });
            }
            Event::Stopped => self.run = None,
            Event::Configured { stores, .. } => {
                // What a store held that is no longer configured settles nothing any more.
                if let Some(stores) = stores {
                    self.stores.retain(|name, _| stores.contains(name));
                }
                self.troubles.remove(ABOUT_CONFIG);
            }
            Event::ConfigRefused { failure } => self.trouble(ABOUT_CONFIG, failure, at),
            Event::Queued { job } => self.queue(job),
            Event::Coalesced { into, task, origin } => {
                if let Some(known) = self.jobs.get_mut(into).filter(|known| !known.phase.is_over()) {
                    known.job.task = task.clone();
                    known.joined.push(origin.clone());
                }
            }
            Event::Began { job, deadline_at } => {
                if let Some(known) = self.jobs.get_mut(job)
                    && known.goes(Move::Begin)
                {
                    known.runs += 1;
                    known.started_at = Some(at);
                    known.deadline_at = Some(*deadline_at);
                }
            }
            Event::Step { job, step } => {
                if let Some(known) = self.jobs.get_mut(job) {
                    known.step = Some(step.clone());
                }
            }
            Event::Warned { job, text } => {
                if let Some(known) = self.jobs.get_mut(job)
                    && known.warnings.len() < WARNINGS
                {
                    known.warnings.push(text.clone());
                }
            }
            Event::CancelAsked { job, .. } => {
                if let Some(known) = self.jobs.get_mut(job) {
                    known.goes(Move::Cancel);
                    if known.phase.is_over() {
                        known.ended_at = Some(at);
                        known.end = Some(End::Canceled { note: "it had not begun".into() });
                    }
                }
            }
            Event::Ended { job, end } => self.end(*job, end, at),
            Event::Requeued { job, why } => {
                if let Some(known) = self.jobs.get_mut(job)
                    && known.goes(Move::Requeue)
                {
                    (known.step, known.started_at, known.deadline_at, known.ended_at) = (None, None, None, None);
                    (known.end, known.again) = (None, Some(why.clone()));
                }
            }
            Event::Slot { schedule, slot, verdict, missed } => {
                if let Verdict::Run { job } = verdict {
                    self.queue(job);
                }
                let cursor = self.schedules.entry(schedule.clone()).or_insert_with(Cursor::new);
                if cursor.slot != Some(*slot) {
                    (cursor.failed, cursor.failed_at) = (0, None);
                }
                cursor.slot = Some(*slot);
                let (verdict, missed) = (verdict.clone(), missed.clone());
                cursor.decisions.push(Decision { at, slot: *slot, verdict, missed });
                let over = cursor.decisions.len().saturating_sub(DECISIONS);
                cursor.decisions.drain(..over);
            }
            Event::Paused { schedule, until, uid } => {
                let cursor = self.schedules.entry(schedule.clone()).or_insert_with(Cursor::new);
                cursor.paused = Some(Paused { since: at, until: *until, uid: *uid });
            }
            Event::Resumed { schedule, .. } => {
                if let Some(cursor) = self.schedules.get_mut(schedule) {
                    cursor.paused = None;
                }
            }
            Event::Surveyed { store, seen } => {
                self.stores.insert(store.clone(), Surveyed { at, seen: seen.clone() });
            }
            Event::ClockStepped { seconds } => self.clock = Some(Stepped { at, seconds: *seconds }),
            Event::ClockTrusted { .. } => self.clock = None,
            Event::Troubled { about, failure } => self.trouble(about, failure, at),
            Event::Cleared { about } => {
                self.troubles.remove(about);
            }
        }
    }

    fn trouble(&mut self, about: &str, failure: &Failure, at: Timestamp) {
        let trouble =
            self.troubles.entry(about.into()).or_insert_with(|| Trouble { since: at, failure: failure.clone() });
        trouble.failure = failure.clone();
    }

    fn queue(&mut self, job: &Job) {
        if job.id.0 > LAST_ID {
            return tracing::warn!("job {}: nobody gave it this number", job.id);
        }
        self.last_id = self.last_id.max(job.id.0);
        self.jobs.entry(job.id).or_insert_with(|| Known::new(job.clone()));
        // Those that are over go first, the oldest of them.
        let over: Vec<JobId> = self.jobs.values().filter(|k| k.phase.is_over()).map(|k| k.job.id).collect();
        for id in over.iter().take(over.len().saturating_sub(SHOWN)) {
            self.jobs.remove(id);
        }
    }

    fn end(&mut self, id: JobId, end: &End, at: Timestamp) {
        let Some(known) = self.jobs.get_mut(&id) else { return };
        let happens = match end {
            End::Succeeded { .. } => Move::Succeed,
            End::Failed { .. } => Move::Fail,
            End::Canceled { .. } => Move::Stop,
            End::Interrupted { .. } => Move::Interrupt,
        };
        // An interrupted one that nobody wants any more is canceled, not stopped.
        let happens = if known.phase == Phase::Interrupted && happens == Move::Stop { Move::Cancel } else { happens };
        if !known.goes(happens) {
            return;
        }
        known.ended_at = Some(at);
        known.end = Some(match (known.phase, end) {
            (Phase::Canceled, End::Interrupted { why }) => End::Canceled { note: why.clone() },
            (_, end) => end.clone(),
        });
        if let Some(Outcome::Snapshot(made)) = known.outcome() {
            self.last_snapshot = Some(measured(id, at, made));
        }
        if let Origin::Schedule { name, slot, .. } = &known.job.origin
            && let Some(cursor) = self.schedules.get_mut(name).filter(|cursor| cursor.slot == Some(*slot))
        {
            let again = known.failure().is_some_and(|f| f.code().retry() == Retry::Later) && known.outcome().is_none();
            (cursor.failed, cursor.failed_at) = if again { (cursor.failed + 1, Some(at)) } else { (0, None) };
        }
    }
}

/// What trouble with the configuration is filed under.
pub const ABOUT_CONFIG: &str = "configuration";

fn measured(job: JobId, at: Timestamp, made: &SnapshotOutcome) -> LastSnapshot {
    let id = made.manifest.id.to_string();
    LastSnapshot { job, at, id, db_bytes: made.manifest.size.db, took: made.took }
}

#[cfg(test)]
mod tests {
    use super::super::job::Task;
    use super::*;

    #[test]
    fn a_number_that_leaves_no_next_one_changes_nothing() {
        let mut record = Record::default();
        for (id, last) in [(7, 7), (u64::MAX, 7), (8, 8)] {
            let task = Task::Prune { store: "a".into() };
            let job = Job { id: JobId(id), task, origin: Origin::Hand { uid: 0 }, created_at: Timestamp::UNIX_EPOCH };
            record.apply(&Event::Queued { job }, Timestamp::UNIX_EPOCH);
            assert_eq!((record.last_id, record.next_id()), (last, JobId(last + 1)));
        }
        assert_eq!(record.jobs.len(), 2);
    }
}
