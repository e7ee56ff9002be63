//! The names of the status document (design §15); more may be added, none changes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::health::HealthWord;
use super::jobs::Job;
use crate::engine::failure::Failure;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub schema: u32,
    pub at: Timestamp,
    pub node: String,
    pub version: String,
    pub pid: Option<u32>,
    pub started_at: Option<Timestamp>,
    pub lineage: Option<String>,
    pub timeline: Option<String>,
    /// Hex.
    pub cluster_id: Option<String>,
    /// One sentence.
    pub summary: String,
    pub recovery_point: RecoveryPoint,
    /// A snapshot id.
    pub last_verified: Option<String>,
    pub next_run: Option<Timestamp>,
    /// Those that are not over, then the last that are, newest first.
    pub jobs: Vec<Job>,
    /// Comes with the change log.
    pub holes: Vec<()>,
    pub stores: Vec<Store>,
    /// Comes with restore.
    pub restore_ready: Option<()>,
    /// `None`: it is switched off, or was not asked yet.
    pub health: Option<HealthWord>,
    pub fence: Option<()>,
    pub schedules: Vec<Schedule>,
    pub troubles: Vec<Trouble>,
    pub member: Option<Member>,
    pub units: Vec<Unit>,
    pub ledger: LedgerWord,
    pub draining: bool,
}

/// What would be lost now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryPoint {
    /// Since the newest verified snapshot; `None`: there is none, or no store could be read.
    pub seconds: Option<i64>,
    /// By which the member is ahead of it; `None` where the member does not answer.
    pub revisions: Option<i64>,
    pub by_store: BTreeMap<String, StorePoint>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorePoint {
    pub seconds: Option<i64>,
    pub revisions: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Store {
    pub name: String,
    /// `good`, `failed`, or `unknown` until it was read.
    pub state: String,
    pub read_at: Option<Timestamp>,
    /// Bytes of the file system.
    pub free: Option<u64>,
    pub total: Option<u64>,
    /// Bytes of backups.
    pub used: Option<u64>,
    pub snapshots: Option<u64>,
    pub newest: Option<Newest>,
    pub error: Option<Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest {
    pub id: String,
    pub taken_at: Timestamp,
    pub revision: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub name: String,
    /// The expression, or `every 30m`.
    pub expression: String,
    pub timezone: String,
    pub window: Option<String>,
    /// Seconds by which this node is behind the slots.
    pub shift: u64,
    /// The last slot that was decided.
    pub cursor: Option<Timestamp>,
    pub next_run: Option<Timestamp>,
    pub paused: bool,
    pub paused_until: Option<Timestamp>,
    pub last: Vec<ScheduleDecision>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleDecision {
    pub at: Timestamp,
    pub slot: Timestamp,
    /// `run`, `skipped`, `begin` or `follow`.
    pub verdict: String,
    pub reason: Option<String>,
    pub job: Option<String>,
    pub missed: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    pub about: String,
    pub since: Timestamp,
    pub error: Failure,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub url: String,
    pub at: Timestamp,
    pub name: Option<String>,
    pub version: Option<String>,
    pub revision: Option<i64>,
    pub db_size: Option<u64>,
    pub error: Option<Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    pub name: String,
    pub active: String,
    pub sub: String,
    pub restarts: u32,
    pub main_pid: u32,
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerWord {
    /// `good`, `silent` or `failing`.
    pub state: String,
    pub why: Option<String>,
}
