//! Room: the trash, and what goes so that `max_bytes` and `min_free` are met.
//!
//! In this order, each only as far as needed: trash whose time is over (that goes anyway), more trash, what the rules
//! take anyway (now at once, since moving to the trash frees nothing), what is not verified and only `keep_within`
//! holds, and last what only rules hold. Oldest first in each; what [`super::always`] holds never goes.

use super::decide::Verdict;
use super::history::{History, later};
use super::input::{Policy, Situation, Trashed};
use super::reason::{Conflict, Emptied, Emptying, Keep, Remove};

pub(super) struct Thinned {
    pub empty: Vec<Emptied>,
    pub conflicts: Vec<Conflict>,
}

pub(super) fn apply(
    history: &History<'_>,
    trash: &[Trashed],
    trash_within_reach: &[usize],
    policy: &Policy,
    situation: &Situation,
    verdicts: &mut [Verdict],
) -> Thinned {
    let mut need = Need::now(policy, situation);
    let empty = empty_trash(trash, trash_within_reach, policy, situation, &mut need);
    let bytes = |position: usize| history.entries.get(position).map_or(0, |entry| entry.is.bytes);
    let is_backup = |position: usize| history.entries.get(position).is_some_and(|entry| entry.is_backup());
    for (position, verdict) in verdicts.iter_mut().enumerate().filter(|(_, verdict)| verdict.keep.is_empty()) {
        if !need.any() {
            break;
        }
        verdict.at_once = need.take(bytes(position));
    }
    for (position, verdict) in verdicts.iter_mut().enumerate().filter(|(position, _)| !is_backup(*position)) {
        thin(verdict, bytes(position), &mut need);
    }
    // What is not verified never makes a verified one go: from here on its bytes are no ground.
    let entries = history.entries.iter().zip(verdicts.iter());
    let unverified = entries.filter(|(entry, verdict)| !entry.is_verified() && !verdict.keep.is_empty());
    let aside =
        unverified.map(|(entry, _)| i128::from(entry.is.bytes)).sum::<i128>() + i128::from(situation.space.unfinished);
    need.add(-aside);
    for (position, verdict) in verdicts.iter_mut().enumerate().filter(|(position, _)| is_backup(*position)) {
        thin(verdict, bytes(position), &mut need);
    }
    need.add(aside);
    Thinned { empty, conflicts: need.conflicts(policy, situation) }
}

/// Takes one away that only rules hold, if there is need.
fn thin(verdict: &mut Verdict, bytes: u64, need: &mut Need) {
    let only_rules = !verdict.keep.is_empty() && verdict.keep.iter().all(Keep::is_rule);
    if only_rules && need.any() {
        let reasons = need.reasons();
        if need.take(bytes) {
            *verdict = Verdict { keep: Vec::new(), remove: reasons, at_once: true };
        }
    }
}

fn empty_trash(
    trash: &[Trashed],
    within_reach: &[usize],
    policy: &Policy,
    situation: &Situation,
    need: &mut Need,
) -> Vec<Emptied> {
    let mut waiting: Vec<(usize, &Trashed)> =
        within_reach.iter().filter_map(|index| trash.get(*index).map(|t| (*index, t))).collect();
    waiting.sort_unstable_by(|(_, a), (_, b)| (a.at, &a.id).cmp(&(b.at, &b.id)));
    // All of one grace, so those that are over stand first.
    let over = waiting.iter().take_while(|(_, t)| situation.now >= later(t.at, policy.trash_grace)).count();
    let mut empty = Vec::with_capacity(over);
    for (nth, (trashed, t)) in waiting.into_iter().enumerate() {
        let reason = if nth < over {
            need.take(t.bytes);
            Some(Emptying::GraceOver(policy.trash_grace))
        } else {
            need.emptying().filter(|_| need.take(t.bytes))
        };
        empty.extend(reason.map(|reason| Emptied { trashed, reason }));
    }
    empty
}

/// Bytes that are missing. Signed and wide, so that figures that do not fit together cannot wrap.
struct Need {
    /// Above `max_bytes`, where there is one.
    over: Option<i128>,
    /// Below `min_free`, where that can be known.
    short: Option<i128>,
}

impl Need {
    fn now(policy: &Policy, situation: &Situation) -> Need {
        let space = &situation.space;
        let sum = |a: u64, b: u64| i128::from(a) + i128::from(b);
        Need {
            over: policy.max_bytes.map(|max| sum(space.used, space.coming) - i128::from(max)),
            short: space.free.map(|free| sum(space.reserved, space.coming_free) - i128::from(free)),
        }
    }

    fn add(&mut self, bytes: i128) {
        [&mut self.over, &mut self.short].into_iter().flatten().for_each(|missing| *missing += bytes);
    }

    /// Counts bytes as gone; `false` where there are none, so that nothing goes for nothing.
    fn take(&mut self, bytes: u64) -> bool {
        self.add(-i128::from(bytes));
        bytes > 0
    }

    fn any(&self) -> bool {
        [self.over, self.short].into_iter().flatten().any(|missing| missing > 0)
    }

    fn reasons(&self) -> Vec<Remove> {
        let over = missing(self.over).map(|over| Remove::MaxBytes { over });
        over.into_iter().chain(missing(self.short).map(|short| Remove::MinFree { short })).collect()
    }

    fn emptying(&self) -> Option<Emptying> {
        let over = missing(self.over).map(|over| Emptying::MaxBytes { over });
        over.or_else(|| missing(self.short).map(|short| Emptying::MinFree { short }))
    }

    fn conflicts(&self, policy: &Policy, situation: &Situation) -> Vec<Conflict> {
        let over = missing(self.over).zip(policy.max_bytes);
        let over = over.map(|(over, max)| Conflict::MaxBytes { max, left: max.saturating_add(over) });
        let reserved = situation.space.reserved;
        let short = missing(self.short).map(|short| Conflict::MinFree { reserved, short });
        over.into_iter().chain(short).collect()
    }
}

/// The amount, where anything is missing.
fn missing(bytes: Option<i128>) -> Option<u64> {
    bytes.filter(|bytes| *bytes > 0).map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
}
