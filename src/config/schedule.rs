//! When snapshots are due: cron expressions of five fields, checked to the point where they are known to fire, and
//! plain periods.
//!
//! Pure: a time in, a time out.

use std::cmp::Ordering;

use croner::parser::{CronParser, Seconds, Year};
use croner::{CivilDate, CivilDateTime, CivilTime, Cron, CronDateTime, Resolution, Weekday, errors::CronError};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::settings::Schedule;

impl Schedule {
    /// The time of the `n`th slot after `after`, which is not a slot itself; `after` for 0.
    ///
    /// A cron expression is read on the wall clock of `timezone`. When clocks are set forward, one with a single time
    /// of day that does not exist fires at the end of the gap, one with several leaves that slot out. When clocks are
    /// set back, one with a single time of day fires once, at the earlier of the two, all others fire in both hours.
    /// A period counts from `after`.
    ///
    /// `None` beyond the end of the calendar, in the year 9999.
    pub fn nth_after(&self, after: Timestamp, n: u32, timezone: &TimeZone) -> Option<Timestamp> {
        match self {
            Schedule::Cron(cron) => (0..n).try_fold(after, |at, _| next(cron, at, timezone)),
            Schedule::Every(period) => after.checked_add(SignedDuration::try_from(period.checked_mul(n)?).ok()?).ok(),
        }
    }
}

fn next(cron: &Cron, after: Timestamp, timezone: &TimeZone) -> Option<Timestamp> {
    let found = |from: Timestamp, inclusive| {
        let from = Instant { at: from, timezone };
        cron.find_next_occurrence(&from, inclusive).ok().map(|found| found.at)
    };
    // The search gives up in a gap of more than two hours (Samoa left out a whole day): go on behind it.
    found(after, false)
        .or_else(|| timezone.following(after).find_map(|change| found(change.timestamp(), true)))
        .filter(|at| *at > after)
}

/// A time in a zone, for the search.
#[derive(Clone)]
struct Instant<'a> {
    at: Timestamp,
    timezone: &'a TimeZone,
}

impl CronDateTime for Instant<'_> {
    fn to_civil(&self) -> CivilDateTime {
        Civil(self.timezone.to_datetime(self.at)).to_civil()
    }

    fn civil_weekday(&self) -> Weekday {
        Civil(self.timezone.to_datetime(self.at)).civil_weekday()
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let datetime = to_datetime(civil)?;
        let at = |offset: jiff::tz::Offset| {
            let at = offset.to_timestamp(datetime).map_err(|_| CronError::InvalidTime)?;
            Ok(Instant { at, timezone: self.timezone })
        };
        Ok(match self.timezone.to_ambiguous_timestamp(datetime).offset() {
            AmbiguousOffset::Unambiguous { offset } => Resolution::Single(at(offset)?),
            AmbiguousOffset::Fold { before, after } => Resolution::Ambiguous(at(before)?, at(after)?),
            AmbiguousOffset::Gap { .. } => Resolution::Gap,
        })
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        let at = self.at.checked_add(seconds.seconds()).ok()?;
        Some(Instant { at, timezone: self.timezone })
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }
}

/// Refuses also what is well formed and never comes, such as 30 February.
pub(super) fn parse(expression: &str) -> Result<Cron, String> {
    match expression.split_whitespace().count() {
        5 => {}
        // croner also takes nicknames such as `@daily`: a second way to write the same thing.
        n => return Err(format!("it has {n} fields")),
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let cron = parser.parse(expression).map_err(|e| e.to_string())?;
    cron.find_next_occurrence(&Civil(START), false).map_err(|_| "it never comes".to_string())?;
    Ok(cron)
}

/// Any day will do: the search reaches further than the calendar repeats.
const START: DateTime = DateTime::constant(2024, 1, 1, 0, 0, 0, 0);

/// A wall clock without a zone: whether a date exists does not depend on one.
#[derive(Clone)]
struct Civil(DateTime);

impl CronDateTime for Civil {
    fn to_civil(&self) -> CivilDateTime {
        let t = self.0;
        // All parts come from a valid date, so they are in range and never negative.
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(
                i32::from(t.year()),
                t.month().unsigned_abs().into(),
                t.day().unsigned_abs().into(),
            ),
            CivilTime::from_parts_unchecked(
                t.hour().unsigned_abs().into(),
                t.minute().unsigned_abs().into(),
                t.second().unsigned_abs().into(),
            ),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(self.0.weekday().to_sunday_zero_offset().unsigned_abs().into())
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        to_datetime(civil).map(|t| Resolution::Single(Civil(t)))
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(seconds.seconds()).ok().map(Civil)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

fn to_datetime(civil: CivilDateTime) -> Result<DateTime, CronError> {
    let small = |n: u32| i8::try_from(n).map_err(|_| CronError::InvalidDate);
    let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
    let (month, day) = (small(civil.month())?, small(civil.day())?);
    let (hour, minute, second) = (small(civil.hour())?, small(civil.minute())?, small(civil.second())?);
    DateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| CronError::InvalidDate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn five_fields_that_fire() {
        for text in ["*/30 * * * *", "0 3 * * 1-5", "15 2 1 JAN,JUL *", "0 0 29 2 *", "0 0 * * SUN"] {
            assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, part) in [
            ("", "0 fields"),
            ("* * * *", "4 fields"),
            ("0 */30 * * * *", "6 fields"),
            ("0 0 30 2 *", "never comes"),
            ("@daily", "1 fields"),
            ("61 * * * *", ""),
            ("*/0 * * * *", ""),
            ("half past two daily please", ""),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part) && !error.is_empty(), "{text}: {error}");
        }
    }

    fn slots(text: &str, zone: &str, after: &str, n: u32) -> Vec<String> {
        let timezone = TimeZone::get(zone).unwrap();
        let schedule = Schedule::Cron(Box::new(parse(text).unwrap()));
        let after = after.parse().unwrap();
        (1..=n).map(|n| schedule.nth_after(after, n, &timezone).unwrap().to_string()).collect()
    }

    #[test]
    fn slots_after_a_time() {
        let half_hours = slots("*/30 * * * *", "UTC", "2026-11-30T10:00:00Z", 3);
        assert_eq!(half_hours, ["2026-11-30T10:30:00Z", "2026-11-30T11:00:00Z", "2026-11-30T11:30:00Z"]);
        assert_eq!(slots("*/30 * * * *", "UTC", "2026-11-30T10:29:59.999Z", 1), ["2026-11-30T10:30:00Z"]);
        let nightly = slots("0 3 * * 1-5", "Asia/Kathmandu", "2026-11-27T00:00:00Z", 2);
        assert_eq!(nightly, ["2026-11-29T21:15:00Z", "2026-11-30T21:15:00Z"]);
        assert_eq!(slots("0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", 1), ["2104-02-29T00:00:00Z"]);
    }

    /// In Berlin 02:00 to 03:00 is missing on 29 March 2026 and comes twice on 25 October 2026.
    #[test]
    fn clocks_that_are_set_forward_and_back() {
        for (text, after, expected) in [
            // The missing half past two fires when the gap ends, at three.
            ("30 2 * * *", "2026-03-28T12:00:00Z", ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
            ("0 4 * * *", "2026-03-28T12:00:00Z", ["2026-03-29T02:00:00Z", "2026-03-30T02:00:00Z"]),
            ("*/30 * * * *", "2026-03-29T00:30:00Z", ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]),
            // Once, in summer time; from within the second hour the next day.
            ("30 2 * * *", "2026-10-24T12:00:00Z", ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
            ("30 2 * * *", "2026-10-25T01:10:00Z", ["2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z"]),
            // In both hours.
            ("*/30 * * * *", "2026-10-25T00:30:00Z", ["2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"]),
            ("45 * * * *", "2026-10-25T00:45:00.5Z", ["2026-10-25T01:45:00Z", "2026-10-25T02:45:00Z"]),
        ] {
            assert_eq!(slots(text, "Europe/Berlin", after, 2), expected, "{text} after {after}");
        }
    }

    /// Samoa left out 30 December 2011.
    #[test]
    fn a_gap_of_a_day() {
        let slots = slots("0 3 * * *", "Pacific/Apia", "2011-12-29T14:00:00Z", 2);
        assert_eq!(slots, ["2011-12-30T13:00:00Z", "2011-12-31T13:00:00Z"]);
    }

    #[test]
    fn periods() {
        let every = |text: &str, n| {
            let period = super::super::units::parse_duration(text).unwrap();
            Schedule::Every(period).nth_after("2026-10-25T00:10:00Z".parse().unwrap(), n, &TimeZone::UTC)
        };
        assert_eq!(every("90m", 2).unwrap().to_string(), "2026-10-25T03:10:00Z");
        assert_eq!(every("90m", 0).unwrap().to_string(), "2026-10-25T00:10:00Z");
        assert_eq!(every("5200w", u32::MAX), None);
    }

    #[test]
    fn the_calendar_ends() {
        let cron = Schedule::Cron(Box::new(parse("0 0 1 1 *").unwrap()));
        for zone in ["UTC", "Europe/Berlin"] {
            let timezone = TimeZone::get(zone).unwrap();
            assert_eq!(cron.nth_after(Timestamp::MAX, 1, &timezone), None);
            assert!(cron.nth_after(Timestamp::MIN, 1, &timezone).is_some());
            assert_eq!(cron.nth_after("9999-06-01T00:00:00Z".parse().unwrap(), 1, &timezone), None);
        }
    }

    proptest! {
        /// Against a walk through the minutes: expressions with several times a day fire whenever the wall clock fits.
        #[test]
        fn fires_when_the_wall_clock_fits(
            zone in prop_oneof![Just("UTC"), Just("Europe/Berlin"), Just("Australia/Lord_Howe"), Just("America/New_York")],
            minutes in prop_oneof![Just("*/7"), Just("0,30"), Just("5-9"), Just("15")],
            hours in prop_oneof![Just("*"), Just("1-3"), Just("*/2"), Just("1,2,3,23")],
            change in prop_oneof![Just("2026-03-08"), Just("2026-03-29"), Just("2026-04-05"), Just("2026-10-04"),
                Just("2026-10-25"), Just("2026-11-01"), Just("2026-12-31")],
            start in -86_400i64..86_400,
        ) {
            let timezone = TimeZone::get(zone).unwrap();
            let cron = parse(&format!("{minutes} {hours} * * *")).unwrap();
            let after: Timestamp = format!("{change}T00:00:00Z").parse().unwrap();
            let after = after + start.seconds();
            let mut minute = after - (after.as_second().rem_euclid(60)).seconds();
            let mut expected = Vec::new();
            while expected.len() < 3 {
                minute += 1.minute();
                let wall = Civil(timezone.to_datetime(minute));
                if cron.is_time_matching(&wall).unwrap() {
                    expected.push(minute);
                }
            }
            let schedule = Schedule::Cron(Box::new(cron));
            let found: Vec<_> = (1..=3).map(|n| schedule.nth_after(after, n, &timezone).unwrap()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
