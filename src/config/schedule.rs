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
}
