//! The words of a placement: what is known about a new snapshot and about the past, and what comes of it.
//!
//! Everything here is a value; the decision itself is [`place`](super::place()).

use std::fmt;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::history::{Origin, TimelineFile};
use super::value::{Digest, EtcdId, LineageId, TimelineId};

/// What the file says about the UID of the `kube-system` namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UidEvidence {
    /// The UID's text as it stands in the object.
    Readable(String),
    /// The namespace is there, its value is encrypted at rest.
    Encrypted,
    /// No such namespace: no Kubernetes, or another prefix.
    Absent,
}

/// What is known about a new snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    pub uid: UidEvidence,
    pub cluster_id: EtcdId,
    /// Of the file.
    pub revision: i64,
    /// Of the file, the larger of scheduled and finished: up to it, rows may be gone.
    pub compact_revision: i64,
    /// Header revision of a linearizable read under the same cluster id; `None` when there was none.
    ///
    /// It must be read **after** the stores were, or a snapshot that another node publishes in between looks like a
    /// revision that this cluster has lost.
    pub linearizable_revision: Option<i64>,
}

/// Computes the `tail` of a revision: SHA-256 over its rows in order of their keys, each as length of the key (8 bytes,
/// big-endian), key, length of the value (likewise), value. Key and value are those of etcd's `key` bucket, raw.
#[derive(Debug, Clone, Default)]
pub struct TailHasher {
    sha256: Sha256,
    rows: u64,
}

impl TailHasher {
    pub fn row(&mut self, key: &[u8], value: &[u8]) {
        for part in [key, value] {
            self.sha256.update((part.len() as u64).to_be_bytes());
            self.sha256.update(part);
        }
        self.rows += 1;
    }

    /// `None` when there was no row: a revision without rows has no tail.
    pub fn finish(self) -> Option<Digest> {
        (self.rows > 0).then(|| Digest(self.sha256.finalize().into()))
    }
}

/// The rows that the new file has at one revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailAt {
    /// Made by a [`TailHasher`], like `tail` in a manifest.
    Rows(Digest),
    /// At or below the file's compact revision and gone: says nothing.
    Compacted,
    /// Above the compact revision, not above the file's revision, and no row there.
    NoRows,
    /// Could not be read.
    Unknown,
}

/// A verified snapshot of the past, as far as history needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPoint {
    pub revision: i64,
    pub tail: Option<Digest>,
    pub taken_at: Timestamp,
}

/// A timeline that some store knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTimeline {
    pub id: TimelineId,
    /// From the timeline's file, else from its manifests; unknown decides nothing.
    pub cluster_id: Option<EtcdId>,
    /// The timeline's file, where it could be read.
    pub file: Option<TimelineFile>,
    /// Verified snapshots, highest revision first; not all of them, but always the newest.
    pub points: Vec<KnownPoint>,
}

/// A lineage that some store knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLineage {
    pub id: LineageId,
    pub origin: Option<Origin>,
    pub timelines: Vec<KnownTimeline>,
}

/// A word that exists already, or one that this snapshot begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<T> {
    Existing(T),
    New(T),
}

impl<T: Copy> Place<T> {
    pub fn id(&self) -> T {
        match self {
            Place::Existing(id) | Place::New(id) => *id,
        }
    }

    pub fn is_new(&self) -> bool {
        matches!(self, Place::New(_))
    }
}

/// Where a snapshot belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub lineage: Place<LineageId>,
    pub origin: Option<Origin>,
    pub timeline: Place<TimelineId>,
    /// What the timeline's file holds or will hold; absent when an existing one could not be read.
    pub timeline_facts: Option<TimelineFacts>,
    /// A history that began without refloat's doing: a person must look.
    pub alarm: bool,
    /// Never empty.
    pub reasons: Vec<Reason>,
}

/// What a timeline is: its `hex` is made from these, so nodes that saw the same restore compute the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineFacts {
    pub parent: Option<TimelineId>,
    pub cluster_id: EtcdId,
    /// The earliest revision that may belong to this timeline and not to its parent; 1 where nothing shared is known.
    pub first_revision: i64,
}

impl TimelineFacts {
    /// First 4 bytes of SHA-256 over the ASCII text `refloat timeline <parent or -> <cluster id> <first revision>`.
    pub fn hex(&self) -> [u8; 4] {
        let parent = self.parent.map_or_else(|| "-".to_string(), |p| p.to_string());
        let text = format!("refloat timeline {parent} {} {}", self.cluster_id, self.first_revision);
        first_bytes(&Sha256::digest(text.as_bytes()))
    }
}

/// First 8 bytes of SHA-256 over `refloat lineage` and the UID, nothing between them.
pub fn lineage_of_uid(uid: &str) -> LineageId {
    LineageId(first_bytes(&Sha256::new().chain_update("refloat lineage").chain_update(uid).finalize()))
}

fn first_bytes<const N: usize>(digest: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.iter_mut().zip(digest).for_each(|(o, d)| *o = *d);
    out
}

/// One step of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// No store knows this cluster yet.
    FirstSnapshot,
    /// The lineage follows from the UID of the kube-system namespace.
    Uid,
    /// No UID can be read, so the lineage is a local one.
    NoUid,
    /// The same cluster id belongs to another lineage: a rebuilt cluster, or one that had no readable UID before.
    SameClusterIdElsewhere(LineageId),
    /// The rows of a known snapshot are in this file.
    RowsFound { revision: i64 },
    /// Same cluster id, nothing contradicts: what could be compared is compacted.
    NothingContradicts,
    /// The member is behind; the cluster is not.
    Lag { revision: i64, newest: i64 },
    /// The file is behind the store and no linearizable read says whether the cluster is too.
    BehindWithoutProof { revision: i64, newest: i64 },
    /// An old member without quorum: its own older timeline goes on.
    OlderTimeline { newest: TimelineId },
    /// Another cluster id with the same UID, or with known rows.
    OtherClusterId { was: EtcdId, now: EtcdId },
    /// A linearizable read stands below the newest snapshot.
    RevisionBelow { linearizable: i64, newest: i64 },
    /// The rows of one revision differ from those that a snapshot has recorded.
    RowsDiffer { revision: i64 },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::FirstSnapshot => write!(f, "no store knows this cluster yet"),
            Reason::Uid => write!(f, "lineage from the UID of the kube-system namespace"),
            Reason::NoUid => write!(f, "no UID of a kube-system namespace can be read"),
            Reason::SameClusterIdElsewhere(l) => write!(f, "the same cluster id belongs to lineage {l} as well"),
            Reason::RowsFound { revision } => write!(f, "the rows of the snapshot at revision {revision} are in it"),
            Reason::NothingContradicts => write!(f, "same cluster id, and nothing contradicts"),
            Reason::Lag { revision, newest } => {
                write!(f, "the member lags at revision {revision}, the cluster has reached the store's {newest}")
            }
            Reason::BehindWithoutProof { revision, newest } => write!(
                f,
                "revision {revision} is below the store's {newest}, and without a linearizable read this may be lag"
            ),
            Reason::OlderTimeline { newest } => {
                write!(f, "without a linearizable read it goes on with its own timeline, although {newest} is newer")
            }
            Reason::OtherClusterId { was, now } => write!(f, "the cluster id changed from {was} to {now}"),
            Reason::RevisionBelow { linearizable, newest } => {
                write!(f, "the cluster stands at revision {linearizable}, below the store's {newest}")
            }
            Reason::RowsDiffer { revision } => write!(f, "revision {revision} holds other rows than were recorded"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_is_as_documented() {
        assert_eq!(TailHasher::default().finish(), None);
        let mut tail = TailHasher::default();
        tail.row(b"k", b"value");
        let by_hand = [&1u64.to_be_bytes()[..], b"k", &5u64.to_be_bytes(), b"value"].concat();
        assert_eq!(tail.clone().finish(), Some(Digest(Sha256::digest(&by_hand).into())));
        // Lengths keep rows apart that would be the same when run together.
        let mut other = TailHasher::default();
        other.row(b"kv", b"alue");
        assert_ne!(tail.finish(), other.finish());
    }
}
