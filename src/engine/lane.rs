//! What may run at the same time: each job takes lanes, and nobody else runs in them meanwhile (law 10, design §10).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::job::Task;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String")]
#[serde(from = "String")]
pub enum Lane {
    /// The own member: whatever streams from it or rewrites it.
    Member,
    /// Whatever removes from that store.
    Store(String),
    /// Whatever reads whole snapshots to check them.
    Check,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::Member => f.write_str("member"),
            Lane::Store(name) => write!(f, "store {name}"),
            Lane::Check => f.write_str("check"),
        }
    }
}

impl From<Lane> for String {
    fn from(lane: Lane) -> String {
        lane.to_string()
    }
}

impl From<String> for Lane {
    fn from(text: String) -> Lane {
        match (text.as_str(), text.strip_prefix("store ")) {
            ("member", _) => Lane::Member,
            (_, Some(name)) => Lane::Store(name.into()),
            _ => Lane::Check,
        }
    }
}

impl Task {
    pub fn lanes(&self) -> Vec<Lane> {
        match self {
            // They exclude each other: a snapshot's read transaction holds a defragmentation, and that everybody else.
            Task::Snapshot { .. } | Task::Defrag { .. } => vec![Lane::Member],
            Task::Verify { .. } => vec![Lane::Check],
            Task::Prune { store } => vec![Lane::Store(store.clone())],
        }
    }
}
