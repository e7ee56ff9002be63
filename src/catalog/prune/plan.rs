//! What would be done in one store, as a value.

use sha2::{Digest as _, Sha256};

use super::found::{Found, Leftover};
use crate::catalog::retention::{Decisions, Policy, Situation, decide};
use crate::catalog::{Digest, Name};
use crate::store::Store;

/// The plan for one store.
#[derive(Debug)]
pub struct Plan {
    pub store: String,
    pub found: Found,
    pub decisions: Decisions,
    /// Of the store's id and of everything that would go, in order: two plans with one hash remove the same.
    pub hash: Digest,
}

/// Decides purely from what was found.
pub fn plan(store: &dyn Store, mut found: Found, policy: &Policy, situation: &Situation) -> Plan {
    let mut decisions = decide(&found.candidates, &found.trash, policy, situation);
    follow(&mut found, &decisions);
    if policy.trash_grace.is_zero() || !store.renames() {
        decisions.remove.iter_mut().for_each(|removal| removal.at_once = true);
    }
    let hash = hash(store.id(), &found, &decisions);
    Plan { store: store.name().into(), found, decisions, hash }
}

/// What a removal that was cut short has left shares the lot of its manifest in the trash.
fn follow(found: &mut Found, decisions: &Decisions) {
    let Found { leftovers, trash, .. } = found;
    for leftover in leftovers {
        if let Leftover::Half {
            name: Name::Data(lineage, id, _) | Name::Note(lineage, id, ..),
            removed_at,
            at_once,
            ..
        } = leftover
        {
            let mut emptied = decisions.empty.iter().filter_map(|e| trash.get(e.trashed));
            *at_once = emptied.any(|t| (t.lineage, &t.id, t.at) == (*lineage, id, *removed_at));
        }
    }
}

impl Plan {
    /// Whether anything would go or move.
    pub fn changes(&self) -> bool {
        let Decisions { remove, empty, .. } = &self.decisions;
        !remove.is_empty() || !empty.is_empty() || !self.found.leftovers.is_empty()
    }

    /// Whether it must not be done now, although it can be shown.
    pub fn held(&self) -> bool {
        !self.decisions.hold.is_empty()
    }

    /// Bytes of the snapshots that would go: by way of the trash, and at once.
    pub fn removed_bytes(&self) -> (u64, u64) {
        let mut sums = (0u64, 0u64);
        for removal in &self.decisions.remove {
            let bytes = self.found.candidates.get(removal.candidate).map_or(0, |c| c.bytes);
            let sum = if removal.at_once { &mut sums.1 } else { &mut sums.0 };
            *sum = sum.saturating_add(bytes);
        }
        sums
    }

    /// Bytes of the trash that would be emptied.
    pub fn emptied_bytes(&self) -> u64 {
        let emptied = self.decisions.empty.iter().filter_map(|e| self.found.trash.get(e.trashed));
        emptied.map(|t| t.bytes).fold(0, u64::saturating_add)
    }
}

fn hash(store_id: &str, found: &Found, decisions: &Decisions) -> Digest {
    let mut hasher = Sha256::new();
    let mut line = |text: String| hasher.update(text.as_bytes());
    line(format!("refloat prune 1\nstore {store_id}\n"));
    for leftover in &found.leftovers {
        line(format!("leftover {}\n", leftover.name()));
    }
    for trashed in decisions.empty.iter().filter_map(|e| found.trash.get(e.trashed)) {
        line(format!("empty {}/{} {}\n", trashed.lineage, trashed.id, trashed.at));
    }
    for removal in &decisions.remove {
        if let Some(candidate) = found.candidates.get(removal.candidate) {
            let how = if removal.at_once { "delete" } else { "trash" };
            line(format!("{how} {}/{}\n", candidate.lineage, candidate.id));
        }
    }
    Digest(hasher.finalize().into())
}
