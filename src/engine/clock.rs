//! The two clocks, as an argument: the wall clock, which people set, and the time since boot, which nobody sets.

use std::time::Duration;

use jiff::Timestamp;

use crate::fs::BootTime;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Counts while the machine sleeps; `None` where it cannot be told.
    fn since_boot(&self) -> Option<Duration>;
}

/// This machine's.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn since_boot(&self) -> Option<Duration> {
        BootTime::now().map(|boot| boot.since)
    }
}

/// A difference that nobody made on purpose: the clock is disciplined all the time.
pub const STEP: i64 = 300;
/// After so long what was said at the new time counts.
pub const DOUBT: i64 = 24 * 3600;

/// Sees when the wall clock leaves the time since boot.
#[derive(Debug, Default)]
pub struct Watch {
    last: Option<(Timestamp, Duration)>,
}

impl Watch {
    /// By how many seconds the wall clock stepped since it was last looked at; 0 for what is no step.
    pub fn look(&mut self, now: Timestamp, since_boot: Option<Duration>) -> i64 {
        let Some(since_boot) = since_boot else { return 0 };
        let (before, boot_before) = *self.last.get_or_insert((now, since_boot));
        let step = now.duration_since(before).as_secs() - since_boot.saturating_sub(boot_before).as_secs() as i64;
        // Slow corrections do not add up to a step: each look is against the last one.
        self.last = Some((now, since_boot));
        if step.abs() > STEP { step } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_from_time_that_passes() {
        let at = |s: i64| Timestamp::from_second(s).unwrap();
        let mut watch = Watch::default();
        for (wall, boot, step) in [
            (1000, 10, 0),
            (1010, 20, 0),
            // Asleep, or the process was stopped.
            (9010, 8020, 0),
            (9310, 8030, 0),
            (12_920, 8040, 3600),
            (12_930, 8050, 0),
            (9330, 8050, -3600),
            (9640, 8060, 0),
        ] {
            assert_eq!(watch.look(at(wall), Some(Duration::from_secs(boot))), step, "{wall} {boot}");
        }
        assert_eq!(watch.look(at(99_999), None), 0);
    }
}
