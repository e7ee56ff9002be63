//! Everything that the daemon records: the words of the ledger (law 2). What it knows after a restart is the fold of
//! these, see [`super::record`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::job::{Job, JobId, Origin, Task};
use super::record::Record;
use crate::catalog::Manifest;
use crate::error::{Code, Error, Result};
use crate::ledger::Entry;
use crate::maintain::defrag::Defragmented;

/// Of the entries that this version writes.
const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The daemon runs.
    Started {
        version: String,
        pid: u32,
        boot_id: String,
    },
    /// It ended on request, with nothing left running.
    Stopped,
    /// Settings are in force, at start or after a reload.
    Configured {
        files: Vec<String>,
        /// Names of all stores. Older entries have none of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stores: Option<Vec<String>>,
    },
    /// A reload was refused; what was in force stays so.
    ConfigRefused {
        failure: Failure,
    },
    Queued {
        job: Job,
    },
    /// A request that `into` answers too; its task is now `task`.
    Coalesced {
        into: JobId,
        task: Task,
        origin: Origin,
    },
    /// The intent: durable before the work begins.
    Began {
        job: JobId,
        deadline_at: Timestamp,
    },
    Step {
        job: JobId,
        step: String,
    },
    Warned {
        job: JobId,
        text: String,
    },
    CancelAsked {
        job: JobId,
        uid: u32,
    },
    Ended {
        job: JobId,
        end: End,
    },
    /// It was found interrupted, and runs again.
    Requeued {
        job: JobId,
        why: String,
    },
    /// A slot of a schedule was decided: the only thing that moves its cursor.
    Slot {
        schedule: String,
        slot: Timestamp,
        verdict: Verdict,
        missed: Option<Missed>,
    },
    Paused {
        schedule: String,
        until: Option<Timestamp>,
        uid: u32,
    },
    Resumed {
        schedule: String,
        uid: u32,
    },
    /// A store was read.
    Surveyed {
        store: String,
        seen: Survey,
    },
    /// The wall clock left the time since boot.
    ClockStepped {
        seconds: i64,
    },
    /// It is back, or enough time has passed.
    ClockTrusted {
        why: String,
    },
    /// Something is wrong that is no job's failure.
    Troubled {
        about: String,
        failure: Failure,
    },
    /// It is well again.
    Cleared {
        about: String,
    },
    /// All of the above so far, at the beginning of a new file.
    Checkpoint {
        record: Box<Record>,
    },
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum End {
    Succeeded {
        result: Outcome,
    },
    Failed {
        failure: Failure,
        /// What there is all the same: a snapshot that some stores have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Box<Outcome>>,
    },
    Canceled {
        note: String,
    },
    Interrupted {
        why: String,
    },
}

/// What came of a job that did its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum Outcome {
    Snapshot(Box<SnapshotOutcome>),
    /// A snapshot that was found published after the daemon had ended.
    Found {
        snapshot: String,
    },
    Verify {
        checked: u64,
        damaged: Vec<String>,
        failed: Vec<String>,
    },
    Prune {
        removed: u64,
        to_trash: u64,
        freed: u64,
        kept: u64,
        foreign: u64,
    },
    Defrag(Defragmented),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotOutcome {
    pub manifest: Manifest,
    pub stores: Vec<StoreResult>,
    /// Seconds from the first byte to the last manifest.
    pub took: f64,
}

/// What became of a snapshot in one store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreResult {
    pub name: String,
    /// `None`: it is there.
    pub failure: Option<Failure>,
}

/// What was decided about a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum Verdict {
    /// This job is queued with it, in one record: neither is there without the other.
    Run {
        job: Job,
    },
    Skipped {
        why: Skip,
    },
    /// No slot was reached; the schedule begins to count here.
    Begin,
    /// The wall clock stepped back; the cursor follows.
    Follow,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "lowercase")]
pub enum Skip {
    /// A snapshot is queued or running.
    Busy {
        job: JobId,
    },
    Paused,
    Window,
}

/// Slots that passed undecided, one or more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// As far as they were counted: at most [`Missed::COUNTED`].
    pub slots: u32,
    pub first: Timestamp,
    pub last: Timestamp,
}

impl Missed {
    /// More are not worth the time: it is known since when.
    pub const COUNTED: u32 = 10_000;
}

/// What reading a store has told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Survey {
    Good {
        /// Of this node's lineage.
        snapshots: u64,
        /// Bytes of snapshots and trash.
        used: u64,
        /// Of the file system; unknown for stores that have none.
        free: Option<u64>,
        total: Option<u64>,
        newest: Option<Newest>,
        /// The newest verified one that this node took: id and time.
        own: Option<(String, Timestamp)>,
    },
    Failed {
        failure: Failure,
    },
}

/// The newest verified snapshot of a store, of this node's lineage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest {
    pub id: String,
    pub taken_at: Timestamp,
    pub revision: i64,
    pub lineage: String,
    pub timeline: String,
    pub cluster_id: Option<String>,
    pub node: String,
}

impl Event {
    /// As it stands in the ledger.
    pub fn to_entry(&self) -> Result<Entry> {
        let bytes = serde_json::to_vec(self).map_err(|e| Error::new(Code::Internal, "write event", "").because(e))?;
        Ok(Entry { kind: "engine".into(), schema: SCHEMA, bytes })
    }

    /// `None` for what a later version wrote and this one does not know: it decides nothing then.
    pub fn from_entry(entry: &Entry) -> Option<Event> {
        serde_json::from_slice(&entry.bytes).ok()
    }
}
