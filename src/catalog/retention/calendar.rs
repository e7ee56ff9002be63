//! Hours, days, weeks and months of a time zone, each with the newest snapshot that falls into it.

use std::collections::HashMap;

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan};

use super::reason::{Beyond, Keep, Slot};

/// One `keep_hourly`, `keep_daily`, `keep_weekly` or `keep_monthly` while it goes through a timeline, newest first.
pub(super) struct Calendar {
    slot: Slot,
    of: u32,
    /// The newest of each slot, as an index of a candidate; never more than `of`.
    taken: HashMap<Key, usize>,
}

/// When clocks are set back an hour comes twice, and each is an hour of its own; a day stays one day.
type Key = (DateTime, Option<Offset>);

impl Calendar {
    pub fn new(slot: Slot, of: u32) -> Self {
        Calendar { slot, of, taken: HashMap::new() }
    }

    /// Whether this rule holds a candidate; `local` is its time.
    pub fn hold(&mut self, local: Local, index: usize) -> Result<Keep, Beyond> {
        let Calendar { slot, of, .. } = *self;
        let start = slot.start(local.at);
        let key = (start, (slot == Slot::Hour).then_some(local.offset));
        if let Some(by) = self.taken.get(&key) {
            return Err(Beyond::Covered { slot, start, by: *by });
        }
        let nth = u32::try_from(self.taken.len()).unwrap_or(u32::MAX).saturating_add(1);
        if nth > of {
            return Err(Beyond::Calendar { slot, of });
        }
        self.taken.insert(key, index);
        Ok(Keep::Calendar { slot, start, nth, of })
    }
}

/// A time as the clock on the wall shows it.
#[derive(Clone, Copy)]
pub(super) struct Local {
    at: DateTime,
    offset: Offset,
}

impl Local {
    pub fn new(at: Timestamp, timezone: &TimeZone) -> Self {
        let offset = timezone.to_offset(at);
        Local { at: offset.to_datetime(at), offset }
    }
}

impl Slot {
    /// Where the hour, day, ISO week or month begins that `at` lies in.
    pub(super) fn start(self, at: DateTime) -> DateTime {
        let date = at.date();
        let day = |date: Date| date.at(0, 0, 0, 0);
        match self {
            Slot::Hour => date.at(at.hour(), 0, 0, 0),
            Slot::Day => day(date),
            // Before the calendar of the library begins there is no Monday; no id carries such a time.
            Slot::Week => day(date.checked_sub(date.weekday().to_monday_zero_offset().days()).unwrap_or(date)),
            Slot::Month => day(date.first_of_month()),
        }
    }
}
