//! The invariants of design §7, for cases of every kind.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use proptest::prelude::*;

use super::arbitrary::{LONG, cases, unlimited_cases};
use super::model::{self, in_future, in_reach, is_backup};
use super::testing::{Case, candidate};
use super::*;
use crate::catalog::{LineageId, State};
use crate::config::Scope;

fn kept(case: &Case) -> BTreeSet<usize> {
    case.decide().keep.iter().map(|kept| kept.candidate).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Without limits on space: every decision and all its reasons, against the model.
    #[test]
    fn rules_are_those_of_the_model(case in unlimited_cases()) {
        let decisions = case.decide();
        let mut found = BTreeMap::new();
        for Kept { candidate, reasons } in &decisions.keep {
            found.insert(*candidate, (true, reasons.iter().map(Keep::word).collect::<BTreeSet<_>>()));
        }
        for Removal { candidate, reasons, at_once } in &decisions.remove {
            prop_assert!(!at_once);
            found.insert(*candidate, (false, reasons.iter().map(Remove::word).collect()));
        }
        prop_assert_eq!(found, model::words(&case));
        prop_assert!(decisions.conflicts.is_empty());
    }

    /// Each candidate once, with at least one reason and none twice; in the order of history.
    #[test]
    fn everything_is_decided_once(case in cases()) {
        let decisions = case.decide();
        let newest_first: Vec<_> = decisions.keep.iter().map(|k| &case.candidates[k.candidate].id).collect();
        prop_assert!(newest_first.is_sorted_by(|a, b| a >= b));
        let oldest_first: Vec<_> = decisions.remove.iter().map(|r| &case.candidates[r.candidate].id).collect();
        prop_assert!(oldest_first.is_sorted());
        for Kept { reasons, .. } in &decisions.keep {
            let words: BTreeSet<_> = reasons.iter().map(Keep::word).collect();
            prop_assert!(!words.is_empty() && words.len() == reasons.len(), "{reasons:?}");
        }
        for Removal { reasons, .. } in &decisions.remove {
            let words: BTreeSet<_> = reasons.iter().map(Remove::word).collect();
            prop_assert!(!words.is_empty() && words.len() == reasons.len(), "{reasons:?}");
        }
        let decided: Vec<_> = decisions.keep.iter().map(|k| k.candidate)
            .chain(decisions.remove.iter().map(|r| r.candidate)).collect();
        let within_reach: BTreeSet<_> = (0..case.candidates.len()).filter(|i| in_reach(&case, &case.candidates[*i])).collect();
        prop_assert_eq!(decided.len(), within_reach.len());
        prop_assert_eq!(decided.into_iter().collect::<BTreeSet<_>>(), within_reach);
        let beyond = case.candidates.iter().filter(|c| !in_reach(&case, c));
        let (count, bytes) = beyond.fold((0, 0), |(n, bytes), c| (n + 1, bytes + c.bytes));
        let sums = decisions.out_of_reach.iter().fold((0, 0), |(n, b), o| (n + o.snapshots, b + o.bytes));
        prop_assert_eq!(sums, (count, bytes));
    }

    /// Whatever the limits: the newest verified of each timeline, `min_keep` verified ones, pinned and imported ones,
    /// those whose age is unknown, and those that nothing can replace.
    #[test]
    fn what_always_stays_stays(case in cases()) {
        let kept = kept(&case);
        let within_reach = || case.candidates.iter().enumerate().filter(|(_, c)| in_reach(&case, c));
        for (index, c) in within_reach() {
            let timeline = || within_reach().filter(|(_, o)| o.timeline == c.timeline && is_backup(o));
            let is_newest = is_backup(c) && timeline().all(|(_, o)| o.id <= c.id);
            let unknown_age = in_future(&case, c) || c.finished_at < c.id.taken_at();
            let irreplaceable = c.state != State::Verified && timeline().all(|(_, o)| o.id < c.id);
            if is_newest || unknown_age || irreplaceable || c.pinned || c.imported {
                prop_assert!(kept.contains(&index), "{c:?}");
            }
        }
        let backups = within_reach().filter(|(_, c)| is_backup(c)).count();
        let stay = kept.iter().filter(|i| is_backup(&case.candidates[**i])).count();
        prop_assert!(stay >= backups.min(case.policy.rules.min_keep as usize));
    }

    #[test]
    fn order_of_the_input_does_not_matter(case in cases(), turn in 0usize..40, back in any::<bool>()) {
        let mut other = case.clone();
        if back {
            other.candidates.reverse();
            other.trash.reverse();
        }
        let (candidates, trash) = (other.candidates.len().max(1), other.trash.len().max(1));
        other.candidates.rotate_left(turn % candidates);
        other.trash.rotate_left(turn % trash);
        prop_assert_eq!(case.shown(), other.shown());
    }

    /// Snapshots and trash of others change nothing, and are never named.
    #[test]
    fn others_are_out_of_reach(case in cases(), revision in 0i64..100, verified in any::<bool>()) {
        let mut case = case;
        case.policy.scope = Scope::Node;
        let before = case.decide();
        let at = case.situation.now - SignedDuration::from_hours(30);
        for (node, lineage) in [("cp2", case.policy.lineage), ("cp1", LineageId([7; 8]))] {
            let other = Candidate {
                state: if verified { State::Verified } else { State::Unverified },
                lineage,
                ..candidate(1, 1000 + revision, at, node)
            };
            case.trash.push(Trashed { id: other.id.clone(), lineage, at, bytes: other.bytes });
            case.candidates.push(other);
        }
        let after = case.decide();
        let count = |decisions: &Decisions| decisions.out_of_reach.iter().map(|o| o.snapshots).sum::<u64>();
        prop_assert_eq!(count(&after), count(&before) + 2);
        prop_assert_eq!(Decisions { out_of_reach: Vec::new(), ..after }, Decisions { out_of_reach: Vec::new(), ..before });
    }

    /// Nothing ages because time goes by: only new snapshots push old ones out.
    #[test]
    fn age_does_not_count_from_now(case in unlimited_cases()) {
        let mut case = case;
        let times = case.candidates.iter().map(|c| c.id.taken_at());
        case.situation.now = times.chain([case.situation.now]).max().unwrap();
        let mut later = case.clone();
        later.situation.now = case.situation.now + SignedDuration::try_from(LONG).unwrap();
        let (now, then) = (case.decide(), later.decide());
        prop_assert_eq!((now.keep, now.remove), (then.keep, then.remove));
    }

    /// What is held, and that each hold stands for what it says.
    #[test]
    fn a_clock_in_doubt_holds(case in cases()) {
        let Situation { now, overdue_at, clock_jump, clock_trusted, ref freeze, .. } = case.situation;
        let holds = case.decide().hold;
        let has = |word: &str| holds.iter().any(|hold| hold.word() == word);
        let backups: Vec<_> = case.candidates.iter().filter(|c| in_reach(&case, c) && is_backup(c)).collect();
        prop_assert_eq!(has("nothing-verified"), backups.is_empty());
        let ahead = backups.iter().any(|c| in_future(&case, c));
        let jumped = clock_jump.is_some_and(|seconds| !(-300..=300).contains(&seconds));
        prop_assert_eq!(has("clock-jumped"), jumped && !clock_trusted);
        prop_assert_eq!(has("clock-behind"), ahead && !clock_trusted);
        let overdue = overdue_at.is_some_and(|at| at <= now);
        prop_assert_eq!(has("overdue"), overdue && !clock_trusted && !backups.is_empty());
        let proof = |c: &&&Candidate| !clock_trusted || !in_future(&case, c);
        let backwards = backups.iter().filter(proof).any(|newest| {
            let timeline = || backups.iter().filter(proof).filter(|o| o.timeline == newest.timeline);
            let late = |o: &&&Candidate| o.id.taken_at() - newest.id.taken_at() > SignedDuration::from_mins(5);
            timeline().all(|o| o.id <= newest.id)
                && timeline().filter(late).any(|o| o.id.revision() < newest.id.revision())
        });
        prop_assert_eq!(has("times-run-backwards"), backwards);
        let others = holds.iter().filter(|hold| hold.word() != "frozen").count();
        let frozen = freeze.as_ref().is_some_and(|f| others > 0 || f.until.is_none_or(|until| until > now));
        prop_assert_eq!(has("frozen"), frozen);
    }

    /// Trusting the clock changes no list, only what is held.
    #[test]
    fn lists_do_not_depend_on_holds(case in cases()) {
        let mut other = case.clone();
        other.situation.clock_trusted = !case.situation.clock_trusted;
        other.situation.freeze = None;
        other.situation.overdue_at = None;
        let bare = |case: &Case| Decisions { hold: Vec::new(), ..case.decide() };
        prop_assert_eq!(bare(&case), bare(&other));
    }
}
