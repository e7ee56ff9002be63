//! Cron expressions of five fields, checked to the point where they are known to fire.

use std::cmp::Ordering;

use croner::parser::{CronParser, Seconds, Year};
use croner::{CivilDate, CivilDateTime, CivilTime, Cron, CronDateTime, Resolution, Weekday, errors::CronError};
use jiff::ToSpan;
use jiff::civil::DateTime;

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
        let small = |n: u32| i8::try_from(n).map_err(|_| CronError::InvalidDate);
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        DateTime::new(
            year,
            small(civil.month())?,
            small(civil.day())?,
            small(civil.hour())?,
            small(civil.minute())?,
            small(civil.second())?,
            0,
        )
        .map(|t| Resolution::Single(Civil(t)))
        .map_err(|_| CronError::InvalidDate)
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(seconds.seconds()).ok().map(Civil)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
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
