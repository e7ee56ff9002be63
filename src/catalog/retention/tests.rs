//! Tables: the faults that retention must survive, each with its whole answer stored under `snapshots/`.
//!
//! A difference fails the test; `INSTA_UPDATE=always` writes the files anew.

use std::time::Duration;

use insta::assert_snapshot;
use jiff::SignedDuration;
use jiff::tz::TimeZone;

use super::testing::{Case, HOUR, MIB, NO_RULES, at, candidate, trashed};
use super::*;
use crate::catalog::{LineageId, State, TimelineId};
use crate::config::{RetentionSettings, Scope};

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn defaults_over_three_days() {
    let mut case = Case::new(RetentionSettings { keep_hourly: 6, ..RetentionSettings::default() });
    case.series(1, 1000, "2026-11-28T06:00:01Z", HOUR * 3, 18);
    case.series(1, 2000, "2026-11-30T11:00:01Z", HOUR / 2, 2);
    assert_snapshot!(case.shown());
}

/// Ages count from the newest verified one, so nothing is old because nothing new came.
#[test]
fn all_older_than_every_rule() {
    let rules = RetentionSettings { keep_last: 1, keep_within: HOUR, min_keep: 3, ..NO_RULES };
    let mut case = Case::new(rules);
    case.series(1, 10, "2024-01-01T00:00:00Z", DAY, 5);
    case.situation.overdue_at = Some(at("2024-01-05T01:00:00Z"));
    let doubtful = case.shown();
    case.situation.clock_trusted = true;
    assert_snapshot!(format!("{doubtful}--- clock trusted\n{}", case.shown()));
}

#[test]
fn newest_is_not_verified() {
    let rules = RetentionSettings { keep_last: 1, keep_within: HOUR * 2, min_keep: 2, ..NO_RULES };
    let mut case = Case::new(rules);
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 6);
    case.candidates[1].state = State::Unverified;
    case.candidates[3].state = State::Disputed;
    case.candidates[4].state = State::Unverified;
    case.candidates[5].state = State::Disputed;
    // Another history, in which nothing is verified.
    case.add(candidate(2, 5, at("2020-01-01T00:00:00Z"), "cp1")).state = State::Disputed;
    assert_snapshot!(case.shown());
}

#[test]
fn nothing_is_verified() {
    let mut case = Case::new(RetentionSettings { keep_last: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 2);
    case.candidates.iter_mut().for_each(|c| c.state = State::Unverified);
    case.add(candidate(0, 900, at("2026-11-30T07:00:00Z"), "cp1")).imported = true;
    case.trash.push(trashed(1, "2026-11-01T00:00:00Z"));
    case.situation.overdue_at = Some(at("2026-11-30T08:00:00Z"));
    assert_snapshot!(case.shown());
}

#[test]
fn clock_back_a_year() {
    let mut case = Case::new(RetentionSettings { keep_last: 1, min_keep: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 3);
    case.trash.push(trashed(1, "2026-11-01T00:00:00Z"));
    case.situation.now = at("2025-11-30T12:00:00Z");
    assert_snapshot!(case.shown());
}

#[test]
fn clock_forward_a_year() {
    let mut case = Case::new(RetentionSettings { keep_last: 1, min_keep: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 3);
    case.trash.push(trashed(1, "2026-11-30T06:00:00Z"));
    case.situation.now = at("2027-11-30T12:00:00Z");
    case.situation.overdue_at = Some(at("2026-11-30T09:00:00Z"));
    case.situation.freeze = Some(Freeze { until: Some(at("2026-12-24T00:00:00Z")), reason: "audit (ops)".into() });
    assert_snapshot!(case.shown());
}

/// A clock went a year ahead for one snapshot and was set right again.
#[test]
fn one_snapshot_from_the_future() {
    let rules = RetentionSettings { keep_last: 2, keep_within: HOUR, min_keep: 1, ..NO_RULES };
    let mut case = Case::new(rules);
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 4);
    case.add(candidate(1, 45, at("2027-11-30T10:00:00Z"), "cp1"));
    let newest = case.shown();
    case.series(1, 50, "2026-11-30T10:30:00Z", HOUR, 2);
    let followed = case.shown();
    case.situation.clock_trusted = true;
    assert_snapshot!(format!("{newest}--- newer ones followed\n{followed}--- clock trusted\n{}", case.shown()));
}

#[test]
fn times_run_backwards() {
    let mut case = Case::new(RetentionSettings { keep_last: 1, min_keep: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 3);
    // Four minutes are the tolerance of two clocks, six are not.
    let mut near = case.clone();
    near.add(candidate(1, 100, at("2026-11-30T07:56:00Z"), "cp1"));
    case.add(candidate(1, 100, at("2026-11-30T07:54:00Z"), "cp1"));
    case.situation.clock_trusted = true;
    assert_snapshot!(format!("{}--- four minutes\n{}", case.shown(), near.shown()));
}

#[test]
fn times_contradict() {
    let mut case = Case::new(RetentionSettings { keep_last: 1, min_keep: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 3);
    case.candidates[0].finished_at = at("2026-11-30T05:59:59Z");
    assert_snapshot!(case.shown());
}

/// Berlin leaves out 02:00 to 03:00 on 29 March 2026.
#[test]
fn clocks_set_forward() {
    let mut case = Case::new(RetentionSettings { keep_hourly: 4, keep_daily: 2, ..NO_RULES });
    case.policy.timezone = TimeZone::get("Europe/Berlin").unwrap();
    case.series(1, 10, "2026-03-28T22:15:00Z", HOUR / 2, 9);
    assert_snapshot!(case.shown());
}

/// Berlin has 02:00 to 03:00 twice on 25 October 2026, and a day of 25 hours.
#[test]
fn clocks_set_back() {
    let mut case = Case::new(RetentionSettings { keep_hourly: 4, keep_daily: 2, ..NO_RULES });
    case.policy.timezone = TimeZone::get("Europe/Berlin").unwrap();
    case.series(1, 10, "2026-10-24T21:15:00Z", HOUR / 2, 11);
    assert_snapshot!(case.shown());
}

#[test]
fn weeks_and_months() {
    let mut case = Case::new(RetentionSettings { keep_weekly: 3, keep_monthly: 3, ..NO_RULES });
    case.situation.now = at("2027-01-06T12:00:00Z");
    case.series(1, 10, "2026-10-30T12:00:00Z", DAY * 4, 18);
    assert_snapshot!(case.shown());
}

#[test]
fn two_in_one_second() {
    let mut case = Case::new(RetentionSettings { keep_last: 2, keep_hourly: 1, min_keep: 1, ..NO_RULES });
    case.policy.scope = Scope::Cluster;
    // The same revision, 200 ms apart; then another node in the same millisecond; then a higher revision before all.
    case.add(candidate(1, 7, at("2026-11-30T10:00:00.100Z"), "cp1"));
    case.add(candidate(1, 7, at("2026-11-30T10:00:00.300Z"), "cp1"));
    case.add(candidate(1, 7, at("2026-11-30T10:00:00.300Z"), "cp2"));
    case.add(candidate(1, 8, at("2026-11-30T10:00:00.000Z"), "cp1"));
    assert_snapshot!(case.shown());
}

#[test]
fn three_timelines() {
    let mut case = Case::new(RetentionSettings { keep_last: 2, min_keep: 4, ..NO_RULES });
    case.series(1, 9000, "2026-11-01T00:00:00Z", DAY, 4);
    case.series(2, 500, "2026-11-10T00:00:00Z", DAY, 3);
    case.series(3, 700, "2026-11-20T00:00:00Z", DAY, 1);
    // Two restores that did not know of each other took the same number.
    case.add(candidate(3, 650, at("2026-11-19T00:00:00Z"), "cp1")).timeline = TimelineId { number: 3, hex: [9; 4] };
    assert_snapshot!(case.shown());
}

#[test]
fn max_bytes_below_what_the_rules_keep() {
    let mut case = Case::new(RetentionSettings { keep_last: 4, keep_daily: 5, min_keep: 2, ..NO_RULES });
    case.series(1, 10, "2026-11-25T12:00:00Z", DAY / 2, 10);
    case.candidates[2].pinned = true;
    case.trash.push(trashed(1, "2026-11-28T00:00:00Z"));
    case.trash.push(trashed(2, "2026-11-30T00:00:00Z"));
    case.used();
    case.situation.space.coming = MIB;
    let mut text = String::new();
    for max in [13, 11, 8, 5, 4, 3] {
        case.policy.max_bytes = Some(max * MIB);
        text.push_str(&format!("--- max_bytes = {max}MiB, 12 MiB used, 1 MiB to come\n{}", case.shown()));
    }
    assert_snapshot!(text);
}

#[test]
fn min_free() {
    let mut case = Case::new(RetentionSettings { keep_last: 4, min_keep: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 6);
    case.trash.push(trashed(1, "2026-11-30T00:00:00Z"));
    case.used();
    case.situation.space = Space { reserved: 10 * MIB, coming_free: 3 * MIB, ..case.situation.space };
    let mut text = String::new();
    for free in [13, 12, 11, 8, 1] {
        case.situation.space.free = Some(free * MIB);
        text.push_str(&format!("--- {free} MiB free of 10 MiB reserved and 3 MiB to come\n{}", case.shown()));
    }
    case.situation.space.free = None;
    text.push_str(&format!("--- unknown\n{}", case.shown()));
    assert_snapshot!(text);
}

#[test]
fn newest_is_oversize() {
    let mut case = Case::new(RetentionSettings { keep_last: 4, min_keep: 2, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 4);
    case.candidates[3].bytes = 5000 * MIB;
    case.policy.max_bytes = Some(100 * MIB);
    case.used();
    assert_snapshot!(case.shown());
}

/// Their bytes are no ground to remove what is verified; the limit is then missed, and that is said.
#[test]
fn unverified_and_unfinished_take_no_room_from_verified() {
    let mut case = Case::new(RetentionSettings { keep_last: 4, keep_within: HOUR, min_keep: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 4);
    let older = case.add(candidate(1, 39, at("2026-11-30T08:30:00Z"), "cp1"));
    (older.state, older.bytes) = (State::Unverified, 20 * MIB);
    let newer = case.add(candidate(1, 99, at("2026-11-30T10:00:00Z"), "cp1"));
    (newer.state, newer.bytes) = (State::Disputed, 50 * MIB);
    case.situation.space.unfinished = 30 * MIB;
    case.used();
    let mut text = String::new();
    // Without them 4 MiB are used.
    for max in [84, 83, 4, 3] {
        case.policy.max_bytes = Some(max * MIB);
        text.push_str(&format!("--- max_bytes = {max}MiB\n{}", case.shown()));
    }
    assert_snapshot!(text);
}

#[test]
fn pinned_and_imported() {
    let mut case = Case::new(RetentionSettings { keep_last: 1, min_keep: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 4);
    case.candidates[0].pinned = true;
    case.candidates[1].state = State::Unverified;
    case.candidates[1].pinned = true;
    case.add(candidate(0, 99_999, at("2026-11-30T11:59:00Z"), "cp1")).imported = true;
    case.add(candidate(0, 99_998, at("2031-01-01T00:00:00Z"), "cp1")).imported = true;
    case.policy.max_bytes = Some(1);
    case.used();
    assert_snapshot!(case.shown());
}

#[test]
fn scopes() {
    let mut case = Case::new(RetentionSettings { keep_last: 1, min_keep: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 2);
    case.add(candidate(1, 25, at("2026-11-30T08:00:00Z"), "cp2"));
    case.add(candidate(1, 26, at("2026-11-30T09:00:00Z"), "cp2"));
    case.add(candidate(1, 5, at("2026-11-30T05:00:00Z"), "old-name"));
    case.add(candidate(1, 1, at("2026-11-30T05:00:00Z"), "cp1")).lineage = LineageId([7; 8]);
    case.add(candidate(1, 2, at("2026-11-30T05:00:00Z"), "cp9")).lineage = LineageId([7; 8]);
    case.trash.push(trashed(1, "2026-11-01T00:00:00Z"));
    case.trash.push(Trashed { lineage: LineageId([7; 8]), ..trashed(2, "2026-11-01T00:00:00Z") });
    case.trash.push(Trashed { id: case.candidates[2].id.clone(), ..trashed(3, "2026-11-01T00:00:00Z") });
    let node = case.shown();
    case.policy.scope = Scope::Cluster;
    assert_snapshot!(format!("--- node\n{node}--- cluster\n{}", case.shown()));
}

#[test]
fn trash() {
    let mut case = Case::new(RetentionSettings { keep_last: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 2);
    for (revision, put) in [
        (1, "2026-11-29T12:00:00Z"),
        (2, "2026-11-29T12:00:00.001Z"),
        (3, "2026-11-30T11:00:00Z"),
        // A clock was wrong: its day is never over by itself.
        (4, "2028-01-01T00:00:00Z"),
    ] {
        case.trash.push(trashed(revision, put));
    }
    case.used();
    let mut text = String::new();
    for max in [6, 4, 1] {
        case.policy.max_bytes = Some(max * MIB);
        text.push_str(&format!("--- max_bytes = {max}MiB\n{}", case.shown()));
    }
    assert_snapshot!(text);
}

#[test]
fn freezes() {
    let mut case = Case::new(RetentionSettings { keep_last: 1, min_keep: 1, ..NO_RULES });
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 2);
    let mut text = String::new();
    for (what, until, overdue) in [
        ("stands", Some("2026-11-30T12:00:01Z"), None),
        ("is over", Some("2026-11-30T12:00:00Z"), None),
        ("is over by a clock in doubt", Some("2026-11-30T12:00:00Z"), Some("2026-11-30T12:00:00Z")),
        ("cannot be read", None, None),
    ] {
        case.situation.freeze = Some(Freeze { until: until.map(at), reason: "restore drill (anna)".into() });
        case.situation.overdue_at = overdue.map(at);
        text.push_str(&format!("--- {what}\n{}", case.shown()));
    }
    assert_snapshot!(text);
}

/// Configuration refuses this; if it came all the same, nothing goes because of it.
#[test]
fn no_rule_at_all() {
    let mut case = Case::new(NO_RULES);
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 3);
    assert_snapshot!(case.shown());
}

/// The names in JSON, which never change, and how each reason reads.
#[test]
fn words() {
    use std::fmt::Write as _;
    let mut case = Case::new(NO_RULES);
    case.series(1, 10, "2026-11-30T06:00:00Z", HOUR, 2);
    let mut text = String::new();
    let start = jiff::civil::date(2026, 11, 30).at(10, 0, 0, 0);
    let slots = [Slot::Hour, Slot::Day, Slot::Week, Slot::Month];
    let keep = [
        Keep::NewestVerified,
        Keep::Last { nth: 2, of: 4 },
        Keep::Within(HOUR * 6),
        Keep::Floor { nth: 1, of: 1 },
        Keep::Floor { nth: 2, of: 3 },
        Keep::Pinned,
        Keep::Imported,
        Keep::NothingVerifiedIsNewer,
        Keep::FromTheFuture,
        Keep::TimesContradict,
        Keep::NothingVerified,
        Keep::NoRule,
    ];
    for reason in keep.into_iter().chain(slots.map(|slot| Keep::Calendar { slot, start, nth: 3, of: 24 })) {
        writeln!(text, "keep {}: {reason}", reason.word()).unwrap();
    }
    let beyond = [Beyond::Last { of: 1 }, Beyond::Last { of: 4 }, Beyond::Within(HOUR * 6)].into_iter();
    let beyond = beyond.chain(slots.map(|slot| Beyond::Covered { slot, start, by: 1 }));
    let beyond = beyond.chain(slots.map(|slot| Beyond::Calendar { slot, of: 12 }));
    let beyond = beyond.chain([Beyond::Calendar { slot: Slot::Day, of: 1 }]);
    let others = [Remove::NotVerified, Remove::MaxBytes { over: 3 * MIB / 2 }, Remove::MinFree { short: 700 }];
    for reason in beyond.map(Remove::Beyond).chain(others) {
        writeln!(text, "remove {}: {}", reason.word(), reason.say(&case.candidates)).unwrap();
    }
    for reason in
        [Emptying::GraceOver(HOUR * 36), Emptying::MaxBytes { over: 3 * MIB / 2 }, Emptying::MinFree { short: 700 }]
    {
        writeln!(text, "empty {}: {reason}", reason.word()).unwrap();
    }
    let (newest, since, reason) = (at("2026-11-30T07:00:00Z"), at("2026-11-30T08:00:00Z"), "drill (anna)");
    let frozen = |until, expired| Hold::Frozen { until, reason: reason.into(), expired };
    for hold in [
        Hold::ClockJumped { seconds: -3600 },
        Hold::ClockJumped { seconds: 86_400 },
        Hold::ClockBehind { newest },
        Hold::Overdue { newest, since },
        Hold::TimesRunBackwards { older: 0, newer: 1 },
        Hold::NothingVerified,
        frozen(None, false),
        frozen(Some(since), false),
        frozen(Some(since), true),
    ] {
        writeln!(text, "hold {}: {}", hold.word(), hold.say(&case.candidates)).unwrap();
    }
    for conflict in [
        Conflict::MaxBytes { max: 20 << 30, left: 25_000_000_000 },
        Conflict::MinFree { reserved: 2 << 30, short: 5000 },
    ] {
        writeln!(text, "conflict {}: {conflict}", conflict.word()).unwrap();
    }
    assert_snapshot!(text);
}

/// Two years of a snapshot every ten minutes, of which a limit leaves a few.
#[test]
fn a_hundred_thousand() {
    let mut case = Case::new(RetentionSettings { keep_weekly: 10, keep_monthly: 1000, ..RetentionSettings::default() });
    case.policy.timezone = TimeZone::get("Europe/Berlin").unwrap();
    case.series(1, 10, "2025-01-04T17:20:00Z", HOUR / 6, 100_000);
    case.used();
    let decisions = case.decide();
    assert_eq!(decisions.hold, []);
    assert_eq!(decisions.keep.len() + decisions.remove.len(), 100_000);
    assert_eq!(decisions.remove.iter().filter(|r| r.reasons.len() == 6).count(), decisions.remove.len());
    drop(decisions);
    case.policy.max_bytes = Some(5 * MIB);
    let decisions = case.decide();
    assert_eq!((decisions.keep.len(), decisions.conflicts.len()), (5, 0));
}

/// A doubtful figure may not wrap, and ends of time may not panic.
#[test]
fn extremes() {
    let mut case = Case::new(RetentionSettings { keep_within: Duration::MAX, keep_weekly: 9, ..NO_RULES });
    for (revision, taken) in [(1, "0000-01-01T00:00:00Z"), (2, "2026-11-30T06:00:00Z"), (3, "9999-12-30T00:00:00Z")] {
        let one = case.add(candidate(1, revision, at(taken), "cp1"));
        one.finished_at = one.id.taken_at() + SignedDuration::from_secs(1);
        one.bytes = u64::MAX;
    }
    case.trash.push(Trashed { bytes: u64::MAX, ..trashed(1, "0000-01-01T00:00:00Z") });
    case.policy.trash_grace = Duration::MAX;
    case.policy.max_bytes = Some(0);
    let space = Space { used: u64::MAX, unfinished: 0, free: Some(0), reserved: u64::MAX, ..Space::default() };
    case.situation.space = Space { coming: u64::MAX, coming_free: u64::MAX, ..space };
    assert_snapshot!(case.shown());
}
