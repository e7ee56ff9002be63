//! What a job is: what is to be done, who wanted it, and how it is told apart.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Counts up for the life of a state directory. In documents it is a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for JobId {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(JobId)
    }
}

impl std::str::FromStr for JobId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(JobId)
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Task {
    Snapshot {
        /// Another member than the own one: name, id or client URL.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
        /// Empty: all that are configured.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stores: Vec<String>,
    },
    /// Reads what is stored, again.
    Verify {
        /// An id, `latest`, or `all`.
        subject: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        store: Option<String>,
    },
    /// By the rules of that store.
    Prune { store: String },
    /// The own member, by the rules of maintenance.
    Defrag {
        /// Also where it frees little.
        #[serde(default)]
        anyway: bool,
    },
}

impl Task {
    pub fn kind(&self) -> &'static str {
        match self {
            Task::Snapshot { .. } => "snapshot",
            Task::Verify { .. } => "verify",
            Task::Prune { .. } => "prune",
            Task::Defrag { .. } => "defrag",
        }
    }

    /// One task that answers both, where there is one: neither has begun.
    pub fn joined(&self, other: &Task) -> Option<Task> {
        match (self, other) {
            (
                Task::Snapshot { member, tags, stores },
                Task::Snapshot { member: wanted, tags: more_tags, stores: more_stores },
            ) if member == wanted => {
                let stores =
                    if stores.is_empty() || more_stores.is_empty() { Vec::new() } else { union(stores, more_stores) };
                Some(Task::Snapshot { member: member.clone(), tags: union(tags, more_tags), stores })
            }
            (a, b) if a == b => Some(a.clone()),
            _ => None,
        }
    }

    /// Whether this one, which is under way, does all that the other wants.
    pub fn covers(&self, other: &Task) -> bool {
        self.joined(other).as_ref() == Some(self)
    }

    /// Whether something may be gone after it.
    pub fn removes(&self) -> bool {
        matches!(self, Task::Prune { .. })
    }

    /// Whether it must not run without its intent on the disk. What only creates, under names of its own by which it is
    /// found again, may.
    pub fn needs_intent(&self) -> bool {
        self.removes() || matches!(self, Task::Defrag { .. })
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Task::Snapshot { member: Some(member), .. } => write!(f, "snapshot of {member}"),
            Task::Snapshot { .. } => f.write_str("snapshot"),
            Task::Verify { subject, .. } => write!(f, "verify {subject}"),
            Task::Prune { store } => write!(f, "prune store {store}"),
            Task::Defrag { .. } => f.write_str("defragmentation"),
        }
    }
}

fn union(a: &[String], b: &[String]) -> Vec<String> {
    let mut all = a.to_vec();
    all.extend(b.iter().filter(|x| !a.contains(x)).cloned());
    all
}

/// Who wanted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Over the control socket.
    Hand { uid: u32 },
    Schedule {
        name: String,
        slot: Timestamp,
        /// 1 for the first try of this slot.
        attempt: u32,
    },
    /// That job's success called for it.
    After { job: JobId },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Hand { uid: 0 } => f.write_str("by hand (root)"),
            Origin::Hand { uid } => write!(f, "by hand (uid {uid})"),
            Origin::Schedule { name, slot, attempt: 0 | 1 } => write!(f, "schedule {name}, slot {slot:.0}"),
            Origin::Schedule { name, slot, attempt } => write!(f, "schedule {name}, slot {slot:.0}, try {attempt}"),
            Origin::After { job } => write!(f, "after job {job}"),
        }
    }
}

/// As it was queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    pub task: Task,
    pub origin: Origin,
    pub created_at: Timestamp,
}

impl Job {
    pub fn by_hand(&self) -> bool {
        matches!(self.origin, Origin::Hand { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(tags: &[&str], stores: &[&str]) -> Task {
        let list = |l: &[&str]| l.iter().map(|s| s.to_string()).collect();
        Task::Snapshot { member: None, tags: list(tags), stores: list(stores) }
    }

    #[test]
    fn what_joins_and_what_covers() {
        let other_member = Task::Snapshot { member: Some("m2".into()), tags: vec![], stores: vec![] };
        let verify = |s: &str| Task::Verify { subject: s.into(), store: None };
        let prune = |s: &str| Task::Prune { store: s.into() };
        for (a, b, joined, covers) in [
            (snapshot(&[], &[]), snapshot(&[], &[]), Some(snapshot(&[], &[])), true),
            (snapshot(&[], &[]), snapshot(&["t"], &[]), Some(snapshot(&["t"], &[])), false),
            (snapshot(&["t"], &[]), snapshot(&[], &[]), Some(snapshot(&["t"], &[])), true),
            (snapshot(&[], &[]), snapshot(&[], &["a"]), Some(snapshot(&[], &[])), true),
            (snapshot(&[], &["a"]), snapshot(&[], &["b"]), Some(snapshot(&[], &["a", "b"])), false),
            (snapshot(&[], &["a"]), snapshot(&[], &[]), Some(snapshot(&[], &[])), false),
            (snapshot(&[], &[]), other_member, None, false),
            (verify("all"), verify("all"), Some(verify("all")), true),
            (verify("all"), verify("latest"), None, false),
            (prune("a"), prune("a"), Some(prune("a")), true),
            (prune("a"), prune("b"), None, false),
            (snapshot(&[], &[]), prune("a"), None, false),
        ] {
            assert_eq!(a.joined(&b), joined, "{a:?} {b:?}");
            assert_eq!(a.covers(&b), covers, "{a:?} {b:?}");
        }
    }

    #[test]
    fn in_documents_an_id_is_a_string() {
        assert_eq!(serde_json::to_string(&JobId(17)).unwrap(), "\"17\"");
        assert_eq!(serde_json::from_str::<JobId>("\"17\"").unwrap(), JobId(17));
        assert!(serde_json::from_str::<JobId>("\"x\"").is_err());
    }
}
