//! The decision, put together from its parts.

use super::history::History;
use super::input::{Candidate, Policy, Situation, Trashed};
use super::reach::Reach;
use super::reason::{Decisions, Keep, Kept, Removal, Remove};
use super::{always, hold, rules, thinning};

/// What is held for and against one [entry](super::history::Entry), at the same position. It stays while `keep` has a
/// reason.
#[derive(Default)]
pub(super) struct Verdict {
    pub keep: Vec<Keep>,
    pub remove: Vec<Remove>,
    pub at_once: bool,
}

/// Decides about every candidate and everything in the trash.
///
/// The answer does not depend on the order of the slices, apart from the indexes in it. Snapshot ids must be unique
/// within a lineage, as names in a store are.
pub fn decide(candidates: &[Candidate], trash: &[Trashed], policy: &Policy, situation: &Situation) -> Decisions {
    let reach = Reach::of(candidates, trash, policy);
    let history = History::of(candidates, &reach.candidates, situation.now);
    let mut verdicts: Vec<Verdict> = history.entries.iter().map(|_| Verdict::default()).collect();
    always::apply(&history, policy, &mut verdicts);
    rules::apply(&history, policy, &mut verdicts);
    let thinned = thinning::apply(&history, trash, &reach.trash, policy, situation, &mut verdicts);
    let stay = verdicts.iter().filter(|verdict| !verdict.keep.is_empty()).count();
    let (mut keep, mut remove) = (Vec::with_capacity(stay), Vec::with_capacity(verdicts.len() - stay));
    for (entry, verdict) in history.entries.iter().zip(verdicts) {
        let Verdict { keep: reasons, remove: against, at_once } = verdict;
        if reasons.is_empty() {
            remove.push(Removal { candidate: entry.index, reasons: against, at_once });
        } else {
            keep.push(Kept { candidate: entry.index, reasons });
        }
    }
    keep.reverse();
    Decisions {
        keep,
        remove,
        empty: thinned.empty,
        hold: hold::holds(&history, situation),
        conflicts: thinned.conflicts,
        out_of_reach: reach.beyond,
    }
}
