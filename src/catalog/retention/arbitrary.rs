//! Test helper: cases of every kind, small enough that rules, clocks and limits meet each other all the time.

use std::collections::HashSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::testing::{Case, HOUR, LINEAGE, at};
use super::*;
use crate::catalog::{LineageId, Node, SnapshotId, State, TimelineId};
use crate::config::{RetentionSettings, Scope};

const OTHER: LineageId = LineageId([2; 8]);

/// Some hours before Berlin's clocks are set back; the cases begin here.
const BEGIN: &str = "2026-10-24T18:00:00Z";

/// With and without limits on space.
pub(super) fn cases() -> impl Strategy<Value = Case> {
    let limits = (prop::option::of(0u64..90), prop::option::of(0u64..30), 0u64..12, 0u64..8);
    (unlimited_cases(), limits).prop_map(|(mut case, (max_bytes, free, reserved, coming))| {
        case.policy.max_bytes = max_bytes;
        let space = &mut case.situation.space;
        (space.free, space.reserved, space.coming, space.coming_free) = (free, reserved, coming, coming + 1);
        case
    })
}

pub(super) fn unlimited_cases() -> impl Strategy<Value = Case> {
    (candidates(), trash(), policies(), situations()).prop_map(|(candidates, trash, policy, mut situation)| {
        // One in so many comes from beyond `now`.
        let times = candidates.iter().map(|c: &Candidate| c.id.taken_at());
        situation.now = times.max().unwrap_or(situation.now) + (situation.now - at(BEGIN));
        let mut case = Case { candidates, trash, policy, situation };
        case.used();
        case
    })
}

fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let one = (
        (prop_oneof![9 => Just(LINEAGE), 1 => Just(OTHER)], nodes(), timelines(), 0i64..60),
        // Minutes by which its time differs from what its revision suggests.
        prop_oneof![12 => -20i64..20, 1 => -4000i64..4000],
        prop_oneof![6 => Just(State::Verified), 1 => Just(State::Unverified), 1 => Just(State::Disputed)],
        (prop::bool::weighted(0.1), prop::bool::weighted(0.07)),
        (prop_oneof![20 => 0i64..120, 1 => -9000i64..0], 0u64..6),
    );
    prop::collection::vec(one, 0..36).prop_map(|all| {
        let mut seen = HashSet::new();
        let all = all.into_iter().map(|((lineage, node, timeline, revision), odd, state, by, (seconds, bytes))| {
            let taken_at = at(BEGIN) + SignedDuration::from_mins(revision * 25 + odd);
            let timeline = if by.1 { TimelineId::IMPORTS } else { timeline };
            Candidate {
                id: SnapshotId::new(timeline.number, revision, taken_at, node).unwrap(),
                lineage,
                timeline,
                state,
                pinned: by.0,
                imported: by.1,
                finished_at: taken_at + SignedDuration::from_secs(seconds),
                bytes,
            }
        });
        all.filter(|c| seen.insert((c.lineage, c.id.clone()))).collect()
    })
}

fn nodes() -> impl Strategy<Value = Node> {
    prop_oneof![4 => Just("cp1"), 1 => Just("cp2")].prop_map(|name| name.parse().unwrap())
}

/// Two of them share a number.
fn timelines() -> impl Strategy<Value = TimelineId> {
    prop_oneof![Just((1, 1)), Just((2, 2)), Just((2, 3))].prop_map(|(number, hex)| TimelineId { number, hex: [hex; 4] })
}

fn trash() -> impl Strategy<Value = Vec<Trashed>> {
    let one = (prop_oneof![5 => Just(LINEAGE), 1 => Just(OTHER)], nodes(), 0i64..3000, 0u64..6);
    prop::collection::vec(one, 0..6).prop_map(|all| {
        let all = all.into_iter().enumerate().map(|(nth, (lineage, node, minutes, bytes))| {
            let revision = 100 + i64::try_from(nth).unwrap();
            let id = SnapshotId::new(1, revision, at(BEGIN), node).unwrap();
            Trashed { id, lineage, at: at(BEGIN) + SignedDuration::from_mins(minutes), bytes }
        });
        all.collect()
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    let zones = prop_oneof![Just("UTC"), Just("Europe/Berlin"), Just("Australia/Lord_Howe"), Just("Asia/Kathmandu")];
    let rules = (0u32..4, 0u32..8, 0u32..5, 0u32..3, 0u32..3, 0u32..3, 0u32..4);
    (zones, rules, any::<bool>(), 0u32..40).prop_map(|(zone, rules, node, grace)| {
        let (keep_last, within, keep_hourly, keep_daily, keep_weekly, keep_monthly, min_keep) = rules;
        let keep_within = HOUR * within / 2;
        let rules =
            RetentionSettings { keep_last, keep_within, keep_hourly, keep_daily, keep_weekly, keep_monthly, min_keep };
        let mut policy = Case::new(rules).policy;
        policy.timezone = TimeZone::get(zone).unwrap();
        policy.scope = if node { Scope::Node } else { Scope::Cluster };
        policy.trash_grace = HOUR * grace;
        policy
    })
}

/// `now` is told as a distance from [`BEGIN`], from the latest snapshot on.
fn situations() -> impl Strategy<Value = Situation> {
    let now = prop_oneof![8 => 0i64..200, 2 => -30i64..0, 1 => -1500i64..0];
    let freeze = prop::option::weighted(0.2, prop::option::of(-500i64..500));
    let jump = prop::option::weighted(0.2, -900i64..900);
    (now, prop::option::weighted(0.2, 0i64..2000), any::<bool>(), freeze, 0u64..9, jump).prop_map(
        |(now, overdue, clock_trusted, freeze, unfinished, clock_jump)| {
            let after = |minutes: i64| -> Timestamp { at(BEGIN) + SignedDuration::from_mins(minutes) };
            Situation {
                now: after(now),
                overdue_at: overdue.map(after),
                clock_jump,
                clock_trusted,
                freeze: freeze.map(|until| Freeze { until: until.map(after), reason: "somebody".into() }),
                space: Space { unfinished, ..Space::default() },
            }
        },
    )
}

/// Far too long for any of the cases.
pub(super) const LONG: Duration = Duration::from_secs(400 * 86_400);
