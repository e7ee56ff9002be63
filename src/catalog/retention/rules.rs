//! The `keep_…` rules, timeline by timeline.
//!
//! They count only backups with a time that means something. Whatever is not verified only profits from `keep_within`.

use jiff::Timestamp;

use super::calendar::{Calendar, Local};
use super::decide::Verdict;
use super::history::{Entry, History, Timeline, earlier};
use super::input::Policy;
use super::reason::{Beyond, Keep, Remove, Slot};

pub(super) fn apply(history: &History<'_>, policy: &Policy, verdicts: &mut [Verdict]) {
    for timeline in history.timelines.values() {
        // Without one nothing here is verified, and all of it stays already.
        let Some(reference) = timeline.reference else { continue };
        counted(history, timeline, reference, policy, verdicts);
        others(history, timeline, reference, policy, verdicts);
    }
}

fn counted(
    history: &History<'_>,
    timeline: &Timeline,
    reference: Timestamp,
    policy: &Policy,
    verdicts: &mut [Verdict],
) {
    let rules = &policy.rules;
    let mut calendars: Vec<Calendar> = [
        (Slot::Hour, rules.keep_hourly),
        (Slot::Day, rules.keep_daily),
        (Slot::Week, rules.keep_weekly),
        (Slot::Month, rules.keep_monthly),
    ]
    .into_iter()
    .filter(|(_, of)| *of > 0)
    .map(|(slot, of)| Calendar::new(slot, of))
    .collect();
    let mut against: Vec<Beyond> = Vec::new();
    let mut nth = 0u32;
    for &position in timeline.members.iter().rev() {
        let (Some(entry), Some(verdict)) = (history.entries.get(position), verdicts.get_mut(position)) else {
            continue;
        };
        if !entry.counts() {
            continue;
        }
        nth = nth.saturating_add(1);
        against.clear();
        let mut rule = |held: Result<Keep, Beyond>| match held {
            Ok(reason) => verdict.keep.push(reason),
            Err(reason) => against.push(reason),
        };
        let of = rules.keep_last;
        if of > 0 {
            rule(if nth <= of { Ok(Keep::Last { nth, of }) } else { Err(Beyond::Last { of }) });
        }
        if let Some(held) = within(entry, reference, policy) {
            rule(held);
        }
        if !calendars.is_empty() {
            let local = Local::new(entry.is.id.taken_at(), &policy.timezone);
            calendars.iter_mut().for_each(|calendar| rule(calendar.hold(local, entry.index)));
        }
        if verdict.keep.is_empty() && against.is_empty() {
            // A configuration like that is refused; but if one comes, no wish to remove can be read from it.
            verdict.keep.push(Keep::NoRule);
        }
        if verdict.keep.is_empty() {
            verdict.remove = against.iter().copied().map(Remove::Beyond).collect();
        }
    }
}

/// Unverified and disputed ones.
fn others(history: &History<'_>, timeline: &Timeline, reference: Timestamp, policy: &Policy, verdicts: &mut [Verdict]) {
    for &position in &timeline.members {
        let (Some(entry), Some(verdict)) = (history.entries.get(position), verdicts.get_mut(position)) else {
            continue;
        };
        // An import stays for a reason of its own, and its time is that of a file.
        if entry.is_backup() || entry.is.imported {
            continue;
        }
        if let Some(Ok(reason)) = within(entry, reference, policy) {
            verdict.keep.push(reason);
        }
        if verdict.keep.is_empty() {
            verdict.remove = vec![Remove::NotVerified];
        }
    }
}

/// `keep_within`; `None` when it is switched off.
fn within(entry: &Entry<'_>, reference: Timestamp, policy: &Policy) -> Option<Result<Keep, Beyond>> {
    let span = policy.rules.keep_within;
    let held = entry.is.id.taken_at() >= earlier(reference, span);
    (!span.is_zero()).then_some(if held { Ok(Keep::Within(span)) } else { Err(Beyond::Within(span)) })
}
