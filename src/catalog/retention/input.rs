//! What the decision is made from.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::catalog::{LineageId, Node, SnapshotId, State, TimelineId};
use crate::config::{RetentionSettings, Scope};

/// One snapshot in one store: manifest read, data there with the right size. What cannot be read is no candidate.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub id: SnapshotId,
    pub lineage: LineageId,
    pub timeline: TimelineId,
    /// What the copy in this store is worth.
    pub state: State,
    /// In whatever store the pin was seen.
    pub pinned: bool,
    pub imported: bool,
    /// When its stream had ended and was checked; before `id.taken_at()` only if a clock was changed meanwhile.
    pub finished_at: Timestamp,
    /// Of the data object.
    pub bytes: u64,
}

/// A removed snapshot that waits in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    pub id: SnapshotId,
    pub lineage: LineageId,
    /// When it was put there.
    pub at: Timestamp,
    pub bytes: u64,
}

/// What is wanted, from the configuration.
#[derive(Debug, Clone)]
pub struct Policy {
    pub rules: RetentionSettings,
    /// For hours, days, weeks and months.
    pub timezone: TimeZone,
    pub scope: Scope,
    /// This node.
    pub node: Node,
    /// The lineage that this is about; all others are out of reach.
    pub lineage: LineageId,
    pub max_bytes: Option<u64>,
    pub trash_grace: std::time::Duration,
}

/// What is so at this moment.
#[derive(Debug, Clone)]
pub struct Situation {
    pub now: Timestamp,
    /// From here on the newest verified snapshot is older than two periods of the schedule; `None`: never.
    pub overdue_at: Option<Timestamp>,
    /// By how many seconds the wall clock left the time since boot, from this node's last snapshot until now; negative
    /// is backwards. `None`: not known, as after a boot.
    pub clock_jump: Option<i64>,
    /// A person says that the clock is right, although snapshots are overdue.
    pub clock_trusted: bool,
    /// A freeze marker that was found, also one that has expired; `until: None` is one that cannot be read.
    pub freeze: Option<Freeze>,
    pub space: Space,
}

/// Nothing is removed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freeze {
    pub until: Option<Timestamp>,
    /// Who and why, or why it cannot be read.
    pub reason: String,
}

/// Figures in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Space {
    /// What counts for `max_bytes`: all data objects in scope, whole or unfinished, and the trash.
    pub used: u64,
    /// Of `used`: uploads that are not whole, running or left behind. They never cost a verified snapshot its place.
    pub unfinished: u64,
    /// Free on the file system; `None` where the backend has no such notion.
    pub free: Option<u64>,
    /// What must stay free for others (`min_free`).
    pub reserved: u64,
    /// What a snapshot that is about to be taken will store (counts for `max_bytes`) ...
    pub coming: u64,
    /// ... and what it needs on the file system meanwhile (counts for `min_free`).
    pub coming_free: u64,
}
