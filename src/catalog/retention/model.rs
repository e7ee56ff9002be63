//! Test helper: the rules once more, as slowly and plainly as they are written in the design.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp, ZonedDateTime};

use super::testing::Case;
use super::*;
use crate::catalog::{LineageId, SnapshotId, State};
use crate::config::Scope;

pub(super) fn in_reach(case: &Case, c: &Candidate) -> bool {
    reaches(case, c.lineage, &c.id)
}

pub(super) fn reaches(case: &Case, lineage: LineageId, id: &SnapshotId) -> bool {
    lineage == case.policy.lineage && (case.policy.scope == Scope::Cluster || *id.node() == case.policy.node)
}

pub(super) fn is_backup(c: &Candidate) -> bool {
    c.state == State::Verified && !c.imported
}

pub(super) fn in_future(case: &Case, c: &Candidate) -> bool {
    c.id.taken_at() - case.situation.now > SignedDuration::from_mins(5)
}

fn counts(case: &Case, c: &Candidate) -> bool {
    is_backup(c) && !in_future(case, c) && c.finished_at >= c.id.taken_at()
}

/// The others in reach that are newer in history, and for which `what` holds.
fn newer<'a>(
    case: &'a Case,
    c: &'a Candidate,
    what: impl Fn(&Candidate) -> bool + 'a,
) -> impl Iterator<Item = &'a Candidate> + 'a {
    let all = case.candidates.iter().filter(|o| in_reach(case, o));
    all.filter(move |o| (&o.id, o.timeline) > (&c.id, c.timeline) && what(o))
}

/// For each candidate in reach the words of its decision, as no limit on space knows them.
pub(super) fn words(case: &Case) -> BTreeMap<usize, (bool, BTreeSet<&'static str>)> {
    let within_reach = case.candidates.iter().enumerate().filter(|(_, c)| in_reach(case, c));
    within_reach
        .map(|(index, c)| {
            let (keep, remove) = reasons(case, c);
            if keep.is_empty() { (index, (false, remove)) } else { (index, (true, keep)) }
        })
        .collect()
}

fn reasons(case: &Case, c: &Candidate) -> (BTreeSet<&'static str>, BTreeSet<&'static str>) {
    let rules = &case.policy.rules;
    let (mut keep, mut remove) = (BTreeSet::new(), BTreeSet::new());
    let timeline: Vec<&Candidate> =
        case.candidates.iter().filter(|o| in_reach(case, o) && o.timeline == c.timeline).collect();
    let newest = timeline.iter().filter(|o| is_backup(o)).max_by_key(|o| &o.id);
    let mut always = |holds: bool, word| {
        if holds {
            keep.insert(word);
        }
    };
    always(c.pinned, "pinned");
    always(c.imported, "imported");
    always(in_future(case, c), "from-the-future");
    always(c.finished_at < c.id.taken_at(), "times-contradict");
    always(newest.is_some_and(|n| n.id == c.id), "newest-verified");
    let floor = newer(case, c, is_backup).count() < rules.min_keep as usize;
    always(is_backup(c) && floor, "min-keep");
    always(newest.is_none() && !c.imported, "nothing-verified");
    let unverified = !is_backup(c) && !c.imported;
    always(unverified && newest.is_some_and(|n| n.id < c.id), "nothing-verified-is-newer");
    let Some(newest) = newest else { return (keep, remove) };

    let dated = timeline.iter().filter(|o| counts(case, o)).max_by_key(|o| &o.id).map(|o| o.id.taken_at());
    let reference = dated.unwrap_or(newest.id.taken_at().min(newest.finished_at).min(case.situation.now));
    let age = reference - c.id.taken_at();
    let within = age <= SignedDuration::try_from(rules.keep_within).unwrap();
    if unverified {
        if within && !rules.keep_within.is_zero() {
            keep.insert("keep-within");
        }
        return (keep, BTreeSet::from(["not-verified"]));
    }
    if !counts(case, c) {
        return (keep, remove);
    }
    let mut rule = |on: bool, holds: bool, kept, gone| {
        if on && holds {
            keep.insert(kept);
        } else if on {
            remove.insert(gone);
        }
    };
    let same = |o: &Candidate| o.timeline == c.timeline && counts(case, o);
    let place = newer(case, c, same).count();
    rule(rules.keep_last > 0, place < rules.keep_last as usize, "keep-last", "beyond-last");
    rule(!rules.keep_within.is_zero(), within, "keep-within", "beyond-within");
    for (of, format, kept, covered, beyond) in [
        (rules.keep_hourly, "%Y-%m-%d %H %z", "keep-hourly", "covered-hourly", "beyond-hourly"),
        (rules.keep_daily, "%Y-%m-%d", "keep-daily", "covered-daily", "beyond-daily"),
        (rules.keep_weekly, "%G-%V", "keep-weekly", "covered-weekly", "beyond-weekly"),
        (rules.keep_monthly, "%Y-%m", "keep-monthly", "covered-monthly", "beyond-monthly"),
    ] {
        let slot = |at: Timestamp| ZonedDateTime::new(at, case.policy.timezone.clone()).strftime(format).to_string();
        let own = slot(c.id.taken_at());
        let mut all: Vec<&Candidate> = timeline.iter().copied().filter(|o| counts(case, o)).collect();
        all.sort_by(|a, b| b.id.cmp(&a.id));
        let mut slots: Vec<String> = Vec::new();
        for slot in all.iter().map(|o| slot(o.id.taken_at())) {
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        let first = all.iter().find(|o| slot(o.id.taken_at()) == own).is_some_and(|o| o.id == c.id);
        let wanted = slots.iter().position(|s| *s == own).is_some_and(|rank| rank < of as usize);
        rule(of > 0, first && wanted, kept, if wanted { covered } else { beyond });
    }
    if keep.is_empty() && remove.is_empty() {
        keep.insert("no-rule");
    }
    (keep, remove)
}
