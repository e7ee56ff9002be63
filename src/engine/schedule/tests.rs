//! Tables for each rule, then a simulation: whatever the clock, the downtime and the runs do, no gap is longer than a
//! period and its shift, and no slot is decided twice.

use proptest::prelude::*;

use super::*;
use crate::config::Schedule;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron(text: &str, zone: &str) -> Timetable {
    let settings = super::super::testing::settings(&format!(
        "[snapshot]\nschedule = \"{text}\"\ntimezone = \"{zone}\"\nshift = \"0s\"\n"
    ));
    super::super::core::timetable(&settings, Timestamp::UNIX_EPOCH)
}

fn every(seconds: u64) -> Timetable {
    Timetable {
        schedule: Schedule::Every(Duration::from_secs(seconds)),
        timezone: TimeZone::UTC,
        window: None,
        shift: Duration::ZERO,
    }
}

fn facts(now: &str) -> Facts {
    Facts { now: at(now), newest: None, busy: None, since_slot: None }
}

fn cursor(slot: &str) -> Cursor {
    Cursor::at(Some(at(slot)))
}

fn slot(slot: &str, act: Act, missed: Option<(u32, &str, &str)>) -> Due {
    let missed = missed.map(|(slots, first, last)| Missed { slots, first: at(first), last: at(last) });
    Due::Slot { slot: at(slot), act, missed }
}

#[test]
fn slots_come_and_missed_ones_make_one_run() {
    let half_hours = cron("*/30 * * * *", "UTC");
    let last = cursor("2026-12-01T12:00:00Z");
    for (now, due) in [
        ("2026-12-01T12:29:59Z", Due::Wait(Some(at("2026-12-01T12:30:00Z")))),
        ("2026-12-01T12:30:00Z", slot("2026-12-01T12:30:00Z", Act::Run, None)),
        ("2026-12-01T12:59:59Z", slot("2026-12-01T12:30:00Z", Act::Run, None)),
        (
            "2026-12-01T13:00:00Z",
            slot("2026-12-01T13:00:00Z", Act::Run, Some((1, "2026-12-01T12:30:00Z", "2026-12-01T12:30:00Z"))),
        ),
        // Three days down.
        (
            "2026-12-04T12:10:00Z",
            slot("2026-12-04T12:00:00Z", Act::Run, Some((143, "2026-12-01T12:30:00Z", "2026-12-04T11:30:00Z"))),
        ),
        // Before the cursor, and nobody knows how long ago that was.
        ("2026-12-01T11:01:00Z", slot("2026-12-01T11:01:00Z", Act::Run, None)),
        // A correction is no step.
        ("2026-12-01T11:59:59Z", Due::Wait(Some(at("2026-12-01T12:30:00Z")))),
    ] {
        assert_eq!(half_hours.decide(Some(&last), facts(now)), due, "{now}");
    }
    // The clock back by 55 minutes, 25 minutes after the slot: the cursor follows, and half an hour after it a run is due.
    let back = Facts { since_slot: Some(SignedDuration::from_mins(25)), ..facts("2026-12-01T11:30:00Z") };
    assert_eq!(half_hours.decide(Some(&last), back), slot("2026-12-01T11:05:00Z", Act::Follow, None));
    let followed = half_hours.decide(Some(&cursor("2026-12-01T11:05:00Z")), back);
    assert_eq!(followed, slot("2026-12-01T11:30:00Z", Act::Run, None));
}

#[test]
fn a_changed_schedule_goes_on_from_the_cursor() {
    let last = cursor("2026-12-01T12:00:00Z");
    for (text, now, due) in [
        ("0 * * * *", "2026-12-01T12:30:00Z", Due::Wait(Some(at("2026-12-01T13:00:00Z")))),
        ("*/10 * * * *", "2026-12-01T12:10:00Z", slot("2026-12-01T12:10:00Z", Act::Run, None)),
        ("0 4 * * *", "2026-12-01T12:30:00Z", Due::Wait(Some(at("2026-12-02T04:00:00Z")))),
    ] {
        assert_eq!(cron(text, "UTC").decide(Some(&last), facts(now)), due, "{text}");
    }
}

#[test]
fn clocks_that_are_set_forward_and_back_make_no_gap_and_no_double_run() {
    let berlin = cron("*/30 * * * *", "Europe/Berlin");
    // Twice a year, over both nights: each half hour of real time is one slot.
    for night in ["2026-03-28T23:30:00Z", "2026-10-24T23:30:00Z"] {
        let mut slot = at(night);
        for _ in 0..10 {
            let known = Cursor::at(Some(slot));
            let due = berlin.decide(Some(&known), Facts { now: slot, newest: None, busy: None, since_slot: None });
            let Due::Wait(Some(next)) = due else { panic!("{due:?}") };
            assert_eq!(next.duration_since(slot).as_secs(), 1800, "{slot}");
            slot = next;
        }
    }
    let daily = cron("30 2 * * *", "Europe/Berlin");
    let known = cursor("2026-10-24T00:30:00Z");
    let first = daily.decide(Some(&known), facts("2026-10-25T00:30:00Z"));
    assert_eq!(first, slot("2026-10-25T00:30:00Z", Act::Run, None));
    let known = cursor("2026-10-25T00:30:00Z");
    let second = daily.decide(Some(&known), facts("2026-10-25T01:30:00Z"));
    assert_eq!(second, Due::Wait(Some(at("2026-10-26T01:30:00Z"))));
}

#[test]
fn the_first_decision_depends_on_the_newest_snapshot() {
    let now = "2026-12-01T12:10:00Z";
    let with = |newest: Option<&str>| Facts { newest: newest.map(at), ..facts(now) };
    for (timetable, newest, due) in [
        (cron("*/30 * * * *", "UTC"), None, slot(now, Act::Run, None)),
        (cron("*/30 * * * *", "UTC"), Some("2026-12-01T11:40:00Z"), slot(now, Act::Run, None)),
        (cron("*/30 * * * *", "UTC"), Some("2026-12-01T11:40:01Z"), slot(now, Act::Begin, None)),
        // From the future: how old it is nobody knows.
        (cron("*/30 * * * *", "UTC"), Some("2026-12-01T13:00:00Z"), slot(now, Act::Run, None)),
        // A period counts from the snapshot, so that the gap is one period.
        (every(1800), Some("2026-12-01T12:00:00Z"), slot("2026-12-01T12:00:00Z", Act::Begin, None)),
        (every(1800), None, slot(now, Act::Run, None)),
    ] {
        assert_eq!(timetable.decide(None, with(newest)), due, "{newest:?}");
    }
    let busy = Facts { busy: Some(JobId(3)), ..facts(now) };
    assert_eq!(every(60).decide(None, busy), slot(now, Act::Begin, None));
}

#[test]
fn skipped_with_the_reason() {
    let half_hours = cron("*/30 * * * *", "UTC");
    let last = cursor("2026-12-01T12:00:00Z");
    let now = "2026-12-01T12:30:00Z";
    let busy = Facts { busy: Some(JobId(7)), ..facts(now) };
    assert_eq!(half_hours.decide(Some(&last), busy), slot(now, Act::Skip(Skip::Busy { job: JobId(7) }), None));
    let since = at("2026-12-01T11:00:00Z");
    for (until, act) in [
        (None, Act::Skip(Skip::Paused)),
        (Some(at("2026-12-01T12:30:01Z")), Act::Skip(Skip::Paused)),
        // Over: the schedule goes on by itself.
        (Some(at(now)), Act::Run),
    ] {
        let paused = Cursor { paused: Some(Paused { since, until, uid: 0 }), ..last.clone() };
        assert_eq!(half_hours.decide(Some(&paused), facts(now)), slot(now, act, None), "{until:?}");
    }
    let settings = super::super::testing::settings("[snapshot]\nwindow = \"22:00-06:00\"\n");
    let nights = super::super::core::timetable(&settings, at(now));
    let due = nights.decide(Some(&last), facts("2026-12-01T12:40:00Z"));
    assert_eq!(due, slot(now, Act::Skip(Skip::Window), None));
}

#[test]
fn a_failure_that_may_pass_is_tried_again_until_the_next_slot() {
    let half_hours = cron("*/30 * * * *", "UTC");
    let failed = |failed, at_: &str| Cursor { failed, failed_at: Some(at(at_)), ..cursor("2026-12-01T12:00:00Z") };
    let again = |attempt| Due::Again { slot: at("2026-12-01T12:00:00Z"), attempt };
    for (cursor, now, due) in [
        (failed(1, "2026-12-01T12:00:10Z"), "2026-12-01T12:01:09Z", Due::Wait(Some(at("2026-12-01T12:01:10Z")))),
        (failed(1, "2026-12-01T12:00:10Z"), "2026-12-01T12:01:10Z", again(2)),
        (failed(3, "2026-12-01T12:05:00Z"), "2026-12-01T12:09:00Z", again(4)),
        // Half a period is the most.
        (failed(9, "2026-12-01T12:14:00Z"), "2026-12-01T12:29:00Z", again(10)),
        (failed(9, "2026-12-01T12:16:00Z"), "2026-12-01T12:29:59Z", Due::Wait(Some(at("2026-12-01T12:30:00Z")))),
        (failed(9, "2026-12-01T12:16:00Z"), "2026-12-01T12:30:00Z", slot("2026-12-01T12:30:00Z", Act::Run, None)),
    ] {
        assert_eq!(half_hours.decide(Some(&cursor), facts(now)), due, "{now}");
        let busy = Facts { busy: Some(JobId(1)), ..facts(now) };
        assert!(!matches!(half_hours.decide(Some(&cursor), busy), Due::Again { .. }), "{now}");
    }
}

#[test]
fn the_shift_delays_what_happens_not_the_slot() {
    let shifted = Timetable { shift: Duration::from_secs(90), ..cron("*/30 * * * *", "UTC") };
    let last = cursor("2026-12-01T12:00:00Z");
    assert_eq!(shifted.decide(Some(&last), facts("2026-12-01T12:31:29Z")), Due::Wait(Some(at("2026-12-01T12:31:30Z"))));
    let due = shifted.decide(Some(&last), facts("2026-12-01T12:31:30Z"));
    assert_eq!(due, slot("2026-12-01T12:30:00Z", Act::Run, None));
    let next = shifted.next(Some(&last), at("2026-12-01T12:40:00Z"), 3);
    let times: Vec<String> = next.iter().map(|(slot, at)| format!("{slot} {at}")).collect();
    assert_eq!(
        times,
        [
            "2026-12-01T12:30:00Z 2026-12-01T12:40:00Z",
            "2026-12-01T13:00:00Z 2026-12-01T13:01:30Z",
            "2026-12-01T13:30:00Z 2026-12-01T13:31:30Z"
        ]
    );
}

#[test]
fn nodes_are_spread_and_stay_where_they_are() {
    let period = Duration::from_secs(1800);
    let shifts: Vec<u64> =
        ["cp1", "cp2", "cp3", "a.b", "node-17"].iter().map(|n| shift_of(n, period).as_secs()).collect();
    assert!(shifts.iter().all(|s| *s < 180));
    let mut different = shifts.clone();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() >= 4, "{shifts:?}");
    assert_eq!(shifts[0], 13);
    assert_eq!(shift_of("cp1", Duration::from_secs(5)), Duration::ZERO);
    assert!(shift_of("cp1", Duration::MAX) < Duration::from_secs(300));
}

#[test]
fn years_of_missed_slots_are_counted_up_to_a_bound() {
    let due = every(10).decide(Some(&cursor("2016-12-01T12:00:00Z")), facts("2026-12-01T12:00:00Z"));
    let Due::Slot { slot, act: Act::Run, missed: Some(missed) } = due else { panic!("{due:?}") };
    assert_eq!((missed.slots, slot), (Missed::COUNTED, at("2026-12-01T12:00:00Z")));
}

/// What happens to a daemon.
#[derive(Debug, Clone)]
enum Happens {
    /// It looks, after so many seconds.
    Look(u32),
    /// It does not run for so long.
    Down(u32),
    /// The wall clock steps.
    Step(i32),
    /// From now on a run takes so long.
    Takes(u32),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        8 => (1u32..900).prop_map(Happens::Look),
        1 => (1u32..400_000).prop_map(Happens::Down),
        1 => prop_oneof![Just(-3600), Just(86_400), Just(-86_400), -10_000i32..10_000].prop_map(Happens::Step),
        1 => (0u32..4000).prop_map(Happens::Takes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Runs are never further apart, in time that really passes while the daemon runs and looks, than a period, its
    /// shift, the time between two looks and the run itself; and a slot is run once.
    #[test]
    fn no_gap_and_no_double_run(
        period in prop_oneof![Just(600u64), Just(1800), Just(3600)],
        shift in 0u64..60,
        story in proptest::collection::vec(happens(), 1..200),
    ) {
        let timetable = Timetable { shift: Duration::from_secs(shift), ..every(period) };
        let mut cursor: Option<Cursor> = None;
        let (mut wall, mut real) = (at("2026-12-01T00:00:00Z"), 0u64);
        let (mut takes, mut until) = (0u64, 0u64);
        let mut last_end: Option<u64> = None;
        let mut slot_real: Option<i64> = None;
        for what in story {
            let looked = match what {
                Happens::Look(s) => { real += u64::from(s); wall += SignedDuration::from_secs(i64::from(s)); u64::from(s) }
                Happens::Down(s) => { real += u64::from(s); wall += SignedDuration::from_secs(i64::from(s)); (last_end, slot_real) = (None, None); u64::from(s) }
                Happens::Step(s) => { wall += SignedDuration::from_secs(i64::from(s)); 0 }
                Happens::Takes(s) => { takes = u64::from(s); 0 }
            };
            let busy = (real < until).then_some(JobId(1));
            let since_slot = slot_real.map(|slot| SignedDuration::from_secs(real as i64 - slot));
            let mut due = timetable.decide(cursor.as_ref(), Facts { now: wall, newest: None, busy, since_slot });
            if let Due::Slot { slot, act: Act::Follow, .. } = due {
                prop_assert!(slot <= wall && since_slot.is_some());
                cursor = Some(Cursor::at(Some(slot)));
                due = timetable.decide(cursor.as_ref(), Facts { now: wall, newest: None, busy, since_slot });
            }
            match due {
                Due::Slot { slot, act, missed } => {
                    // Forward only, but for a clock that stepped back while nobody looked.
                    if let Some(before) = cursor.as_ref().and_then(|c| c.slot) {
                        prop_assert!(slot > before || slot_real.is_none(), "{slot} after {before}");
                    }
                    if let Some(missed) = &missed {
                        prop_assert!(missed.last < slot && missed.first <= missed.last && missed.slots > 0);
                    }
                    prop_assert!(slot <= wall && act != Act::Follow);
                    slot_real = Some(real as i64 - wall.duration_since(slot).as_secs());
                    if act == Act::Run {
                        prop_assert!(busy.is_none());
                        if let Some(end) = last_end {
                            let gap = real - end;
                            prop_assert!(gap <= period + shift + looked.max(takes + 900), "gap {gap} with period {period}");
                        }
                        until = real + takes;
                        last_end = Some(until);
                    }
                    cursor = Some(Cursor::at(Some(slot)));
                    // Decided once: the same look decides nothing more.
                    let again = timetable.decide(cursor.as_ref(), Facts { now: wall, newest: None, busy: Some(JobId(1)), since_slot: None });
                    prop_assert!(matches!(again, Due::Wait(_)), "{again:?}");
                }
                Due::Wait(next) => {
                    let next = next.expect("a period has a next slot");
                    prop_assert!(next > wall);
                    prop_assert!(next.duration_since(wall).as_secs() as u64 <= period + shift + 2, "{next} from {wall}");
                }
                Due::Again { .. } => prop_assert!(false, "nothing failed"),
            }
        }
    }
}
