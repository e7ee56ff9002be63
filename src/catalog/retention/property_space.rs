//! The limits on space and the trash, for cases of every kind.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::arbitrary::cases;
use super::model::{in_reach, is_backup, reaches};
use super::testing::Case;
use super::*;
use crate::catalog::State;

/// What is missing to both limits, with these bytes gone; positive: missing.
fn missing(case: &Case, gone: i128) -> i128 {
    let space = case.situation.space;
    let over = case.policy.max_bytes.map(|max| i128::from(space.used + space.coming) - i128::from(max));
    let short = space.free.map(|free| i128::from(space.reserved + space.coming_free) - i128::from(free));
    over.into_iter().chain(short).max().map_or(i128::MIN, |most| most - gone)
}

fn removed_backups(case: &Case) -> BTreeSet<String> {
    let removed = case.decide().remove.into_iter().map(|removal| &case.candidates[removal.candidate]);
    removed.filter(|c| is_backup(c)).map(|c| format!("{:?} {} {}", c.lineage, c.timeline, c.id)).collect()
}

/// In which turn it goes for want of space: rules, not verified, verified.
fn turn(case: &Case, removal: &Removal) -> u8 {
    let by_limit = removal.reasons.iter().any(|r| matches!(r, Remove::MaxBytes { .. } | Remove::MinFree { .. }));
    match (by_limit, is_backup(&case.candidates[removal.candidate])) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    }
}

/// Bytes that are no ground for removing what is verified, after the removals of the first two turns.
fn aside(case: &Case, decisions: &Decisions) -> i128 {
    let kept = decisions.keep.iter().map(|kept| &case.candidates[kept.candidate]);
    let unverified = kept.filter(|c| c.state != State::Verified).map(|c| i128::from(c.bytes)).sum::<i128>();
    unverified + i128::from(case.situation.space.unfinished)
}

/// The state of affairs once everything in the answer was done.
fn acted(case: &Case) -> Case {
    let decisions = case.decide();
    let mut after = case.clone();
    let gone: BTreeSet<_> = decisions.remove.iter().map(|r| r.candidate).collect();
    let emptied: BTreeSet<_> = decisions.empty.iter().map(|e| e.trashed).collect();
    let mut freed: u64 = emptied.iter().map(|i| case.trash[*i].bytes).sum();
    after.trash = case.trash.iter().enumerate().filter(|(i, _)| !emptied.contains(i)).map(|(_, t)| t.clone()).collect();
    after.candidates =
        case.candidates.iter().enumerate().filter(|(i, _)| !gone.contains(i)).map(|(_, c)| c.clone()).collect();
    for removal in &decisions.remove {
        let c = &case.candidates[removal.candidate];
        if removal.at_once {
            freed += c.bytes;
        } else {
            let (id, at) = (c.id.clone(), case.situation.now);
            after.trash.push(Trashed { id, lineage: c.lineage, at, bytes: c.bytes });
        }
    }
    let space = &mut after.situation.space;
    (space.used, space.free) = (space.used - freed, space.free.map(|free| free + freed));
    after
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// With or without everything unverified and unfinished, the same verified ones go.
    #[test]
    fn the_unverified_never_make_a_verified_one_go(case in cases()) {
        let mut without = case.clone();
        without.candidates.retain(|c| c.state == State::Verified || !in_reach(&case, c));
        let bytes = |case: &Case| case.candidates.iter().map(|c| c.bytes).sum::<u64>();
        let gone = bytes(&case) - bytes(&without) + case.situation.space.unfinished;
        let space = &mut without.situation.space;
        *space = Space { used: space.used - gone, unfinished: 0, free: space.free.map(|free| free + gone), ..*space };
        prop_assert_eq!(removed_backups(&case), removed_backups(&without));
    }

    /// Enough goes, and where it does not, that is said with the right numbers and nothing that may go is left.
    #[test]
    fn limits_are_met_or_the_conflict_is_named(case in cases()) {
        let decisions = case.decide();
        let emptied: u64 = decisions.empty.iter().map(|e| case.trash[e.trashed].bytes).sum();
        let at_once = decisions.remove.iter().filter(|r| r.at_once);
        let gone = emptied + at_once.map(|r| case.candidates[r.candidate].bytes).sum::<u64>();
        let left = missing(&case, gone.into());
        prop_assert_eq!(left > 0, !decisions.conflicts.is_empty());
        let Space { used, coming, free, reserved, coming_free, .. } = case.situation.space;
        for conflict in &decisions.conflicts {
            match *conflict {
                Conflict::MaxBytes { max, left } => {
                    prop_assert_eq!(Some(max), case.policy.max_bytes);
                    prop_assert_eq!(left, used + coming - gone);
                }
                Conflict::MinFree { reserved: told, short } => {
                    prop_assert_eq!(told, reserved);
                    prop_assert_eq!(short + free.unwrap() + gone, reserved + coming_free);
                }
            }
        }
        if left > 0 {
            let aside = aside(&case, &decisions);
            for Kept { candidate, reasons } in &decisions.keep {
                let c = &case.candidates[*candidate];
                let thinnable = c.bytes > 0 && reasons.iter().all(Keep::is_rule);
                prop_assert!(!thinnable || (is_backup(c) && left <= aside), "{c:?}");
            }
            prop_assert!(decisions.remove.iter().all(|r| r.at_once || case.candidates[r.candidate].bytes == 0));
            for (index, t) in case.trash.iter().enumerate().filter(|(_, t)| t.bytes > 0) {
                let emptied = decisions.empty.iter().any(|e| e.trashed == index);
                prop_assert_eq!(emptied, reaches(&case, t.lineage, &t.id));
            }
        }
    }

    /// Nothing goes for want of space that did not have to: before each, something was missing; each turn only after
    /// the one before it was used up; oldest first in each.
    #[test]
    fn no_more_goes_than_needed(case in cases()) {
        let decisions = case.decide();
        let mut gone = 0i128;
        for Emptied { trashed, reason } in &decisions.empty {
            let t = &case.trash[*trashed];
            match reason {
                Emptying::GraceOver(_) => prop_assert!(case.situation.now >= t.at + case.policy.trash_grace),
                _ => prop_assert!(missing(&case, gone) > 0 && case.situation.now < t.at + case.policy.trash_grace),
            }
            gone += i128::from(t.bytes);
        }
        let aside = aside(&case, &decisions);
        for now in 0..3 {
            let of_turn = decisions.remove.iter().filter(|r| turn(&case, r) == now && r.at_once);
            let allowed = if now == 2 { aside } else { 0 };
            for removal in of_turn {
                let c = &case.candidates[removal.candidate];
                prop_assert!(missing(&case, gone + allowed) > 0, "{c:?} in turn {now}");
                gone += i128::from(c.bytes);
                // Everything older of the same kind is gone as well, or could not go.
                for Kept { candidate, reasons } in &decisions.keep {
                    let o = &case.candidates[*candidate];
                    let same = is_backup(o) == is_backup(c) && reasons.iter().all(Keep::is_rule);
                    prop_assert!(now == 0 || !same || o.id >= c.id || o.bytes == 0);
                }
            }
        }
    }

    /// More room never costs a snapshot.
    #[test]
    fn more_room_removes_no_more(case in cases(), more in 0u64..40) {
        let mut roomy = case.clone();
        roomy.policy.max_bytes = case.policy.max_bytes.map(|max| max + more);
        roomy.situation.space.free = case.situation.space.free.map(|free| free + more);
        let gone = |case: &Case| case.decide().remove.iter().map(|r| r.candidate).collect::<BTreeSet<_>>();
        prop_assert!(gone(&roomy).is_subset(&gone(&case)));
    }

    /// Once done, there is nothing left to do: a second prune at the same moment finds its work done.
    #[test]
    fn deciding_again_finds_nothing(case in cases()) {
        let mut case = case;
        // An empty object does not exist; if it did, it would outlive what its age counts from.
        case.candidates.iter_mut().for_each(|c| c.bytes = c.bytes.max(1));
        case.used();
        let after = acted(&case);
        let again = after.decide();
        prop_assert_eq!(again.remove, vec![]);
        let fresh = |e: &Emptied| after.trash[e.trashed].at == case.situation.now && case.policy.trash_grace.is_zero();
        prop_assert!(again.empty.iter().all(fresh), "{:?}", again.empty);
        prop_assert_eq!(again.conflicts, case.decide().conflicts);
    }

    /// Trash waits for its whole grace, unless space is short.
    #[test]
    fn trash_waits(case in cases()) {
        let mut case = case;
        (case.policy.max_bytes, case.situation.space.free) = (None, None);
        let emptied: BTreeSet<_> = case.decide().empty.iter().map(|e| e.trashed).collect();
        for (index, t) in case.trash.iter().enumerate() {
            let over = case.situation.now - t.at >= SignedDuration::try_from(case.policy.trash_grace).unwrap();
            let own = reaches(&case, t.lineage, &t.id);
            prop_assert_eq!(emptied.contains(&index), own && over);
        }
    }
}
