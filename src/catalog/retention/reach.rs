//! Whose snapshots this node may judge at all: its lineage's, and in `node` scope only its own.

use std::collections::BTreeMap;

use super::input::{Candidate, Policy, Trashed};
use super::reason::OutOfReach;
use crate::catalog::{LineageId, SnapshotId};
use crate::config::Scope;

/// Indexes of what is within reach, and the rest in sums.
pub(super) struct Reach {
    pub candidates: Vec<usize>,
    pub trash: Vec<usize>,
    /// By lineage, then node.
    pub beyond: Vec<OutOfReach>,
}

impl Reach {
    pub fn of(candidates: &[Candidate], trash: &[Trashed], policy: &Policy) -> Reach {
        let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        let mut within = Vec::with_capacity(candidates.len());
        for (index, candidate) in candidates.iter().enumerate() {
            if reaches(policy, candidate.lineage, &candidate.id) {
                within.push(index);
                continue;
            }
            let node = (candidate.lineage == policy.lineage).then(|| candidate.id.node());
            let (snapshots, bytes) = sums.entry((candidate.lineage, node)).or_default();
            *snapshots += 1;
            *bytes = bytes.saturating_add(candidate.bytes);
        }
        let trash = trash.iter().enumerate().filter(|(_, t)| reaches(policy, t.lineage, &t.id));
        let beyond = sums.into_iter().map(|((lineage, node), (snapshots, bytes))| OutOfReach {
            lineage,
            node: node.cloned(),
            snapshots,
            bytes,
        });
        Reach { candidates: within, trash: trash.map(|(index, _)| index).collect(), beyond: beyond.collect() }
    }
}

fn reaches(policy: &Policy, lineage: LineageId, id: &SnapshotId) -> bool {
    lineage == policy.lineage
        && match policy.scope {
            Scope::Node => *id.node() == policy.node,
            Scope::Cluster => true,
        }
}
