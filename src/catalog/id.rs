//! The name of a snapshot: `<timeline, 4>-<revision, 20>-<UTC yyyymmddThhmmssmmmZ>-<node>`.
//!
//! The parts have fixed widths and stand in the order of history, so sorting the texts sorts the snapshots of a
//! lineage: by timeline, then revision, then start of the stream, then node. Grammar: docs/formats.md.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::time::{self, COMPACT_LEN};
use super::value::Node;

/// Where the node begins: 4 + 1 + 20 + 1 + 19 + 1.
const NODE_AT: usize = 46;

/// Why a text is no id, or why parts make none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("{0:?} is no snapshot id: <timeline>-<revision>-<time>-<node>")]
    Shape(String),
    #[error("timeline number {0} is above 9999")]
    Timeline(u16),
    #[error("revision {0} is negative")]
    Revision(i64),
    #[error("time {0} does not fit into four digits of a year")]
    Time(Timestamp),
}

/// An id with its parts; order and equality are those of its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId {
    timeline: u16,
    revision: i64,
    taken_at: Timestamp,
    node: Node,
}

impl SnapshotId {
    /// `taken_at` is the start of the stream; it is cut down to milliseconds.
    pub fn new(timeline: u16, revision: i64, taken_at: Timestamp, node: Node) -> Result<Self, IdError> {
        if timeline > super::value::TimelineId::MAX_NUMBER {
            return Err(IdError::Timeline(timeline));
        }
        if revision < 0 {
            return Err(IdError::Revision(revision));
        }
        if time::compact(taken_at).is_none() {
            return Err(IdError::Time(taken_at));
        }
        Ok(SnapshotId { timeline, revision, taken_at: time::to_millis(taken_at), node })
    }

    /// The timeline's number; 0 is an import.
    pub fn timeline(&self) -> u16 {
        self.timeline
    }

    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Start of the stream, in whole milliseconds.
    pub fn taken_at(&self) -> Timestamp {
        self.taken_at
    }

    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Shares the text of an equal node, so that a hundred thousand ids of five nodes hold five names.
    pub(crate) fn with_node(mut self, node: &Node) -> Self {
        self.node = node.clone();
        self
    }
}

impl FromStr for SnapshotId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let fixed = text.get(..NODE_AT)?;
            let b = fixed.as_bytes();
            if b[4] != b'-' || b[25] != b'-' || b[26 + COMPACT_LEN] != b'-' {
                return None;
            }
            let digits = |t: &str| t.bytes().all(|c| c.is_ascii_digit());
            let (timeline, revision) = (fixed.get(..4)?, fixed.get(5..25)?);
            if !digits(timeline) || !digits(revision) {
                return None;
            }
            Some(SnapshotId {
                timeline: timeline.parse().ok()?,
                revision: revision.parse().ok()?,
                taken_at: time::parse_compact(fixed.get(26..26 + COMPACT_LEN)?)?,
                node: text.get(NODE_AT..)?.parse().ok()?,
            })
        };
        parse().ok_or_else(|| IdError::Shape(text.chars().take(128).collect()))
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A time that no name can carry never gets into an id.
        let at = time::compact(self.taken_at).unwrap_or_default();
        write!(f, "{:04}-{:020}-{at}-{}", self.timeline, self.revision, self.node)
    }
}

impl fmt::Debug for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for SnapshotId {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SnapshotId {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_as_documented() {
        let at = "2026-11-30T14:30:00.5Z".parse().unwrap();
        let id = SnapshotId::new(1, 4711, at, "cp1".parse().unwrap()).unwrap();
        assert_eq!(id.to_string(), "0001-00000000000000004711-20261130T143000500Z-cp1");
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn parts_that_make_no_id_are_refused() {
        let at: Timestamp = "2026-11-30T14:30:00Z".parse().unwrap();
        let node: Node = "n".parse().unwrap();
        assert_eq!(SnapshotId::new(10_000, 1, at, node.clone()), Err(IdError::Timeline(10_000)));
        assert_eq!(SnapshotId::new(1, -1, at, node.clone()), Err(IdError::Revision(-1)));
        assert!(matches!(SnapshotId::new(1, 1, Timestamp::MIN, node), Err(IdError::Time(_))));
    }

    #[test]
    fn near_misses_are_refused() {
        for text in [
            "0001-00000000000000004711-20261130T143000500Z-",
            "0001-00000000000000004711-20261130T143000500Z",
            "001-00000000000000004711-20261130T143000500Z-cp1",
            "0001-99999999999999999999-20261130T143000500Z-cp1",
            "0001-+0000000000000004711-20261130T143000500Z-cp1",
            "0001-00000000000000004711-20261130T143000500Z-..",
            "0001-00000000000000004711-20261130T143000500Z-cp1/x",
            "0001_00000000000000004711-20261130T143000500Z-cp1",
        ] {
            assert!(text.parse::<SnapshotId>().is_err(), "{text}");
        }
    }

    fn ids() -> impl Strategy<Value = SnapshotId> {
        (0u16..=9999, 0i64..=i64::MAX, 0i64..253_402_207_200_000, "[a-z0-9][a-z0-9.-]{0,62}").prop_map(
            |(t, r, ms, n)| {
                SnapshotId::new(t, r, Timestamp::from_millisecond(ms).unwrap(), n.parse().unwrap()).unwrap()
            },
        )
    }

    proptest! {
        #[test]
        fn round_trip_and_order(a in ids(), b in ids()) {
            prop_assert_eq!(a.to_string().parse(), Ok(a.clone()));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }

        #[test]
        fn hostile_names_never_panic(text in "\\PC{0,80}", cut in 0usize..60) {
            let _ = text.parse::<SnapshotId>();
            let good = "0001-00000000000000004711-20261130T143000500Z-cp1";
            let mixed = format!("{}{text}", &good[..cut.min(good.len())]);
            if let Ok(id) = mixed.parse::<SnapshotId>() {
                prop_assert_eq!(id.to_string(), mixed);
            }
        }
    }
}
