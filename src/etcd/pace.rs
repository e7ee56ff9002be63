//! Is a stream still making progress? Decided on bytes and on the time spent waiting for them.
//!
//! Only waiting counts: when the reader is slow (its disk is busy), the server is held back by flow control and
//! is not to blame. Messages without bytes are no progress, however many arrive (a server whose read fails can
//! send empty ones for ever).

use std::fmt;
use std::time::Duration;

/// The rules and the state of one stream.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    stall: Duration,
    floor: u64,
    since_byte: Duration,
    window: Duration,
    window_bytes: u64,
}

/// Which rule was broken, with its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slow {
    /// No byte for this long.
    Silent(Duration),
    /// So few bytes in this time.
    Trickle { bytes: u64, within: Duration, floor: u64 },
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slow::Silent(time) => write!(f, "no bytes for {time:.1?}"),
            Slow::Trickle { bytes, within, floor } => {
                write!(f, "only {bytes} bytes in {within:.1?}, at least {floor} are expected")
            }
        }
    }
}

impl Pace {
    /// No byte for `stall` fails; so do fewer than `floor` bytes in a window of `stall`.
    pub(super) fn new(stall: Duration, floor: u64) -> Pace {
        Pace { stall, floor, since_byte: Duration::ZERO, window: Duration::ZERO, window_bytes: 0 }
    }

    /// How long the next wait may last before [`Pace::waited`] has to judge.
    pub(super) fn patience(&self) -> Duration {
        self.stall.saturating_sub(self.since_byte.max(self.window))
    }

    /// Another wait ended after `time` with `bytes` (0 also when nothing came at all).
    pub(super) fn waited(&mut self, time: Duration, bytes: u64) -> Result<(), Slow> {
        self.since_byte = if bytes > 0 { Duration::ZERO } else { self.since_byte + time };
        self.window += time;
        self.window_bytes += bytes;
        if self.since_byte >= self.stall {
            return Err(Slow::Silent(self.since_byte));
        }
        if self.window >= self.stall {
            if self.window_bytes < self.floor {
                return Err(Slow::Trickle { bytes: self.window_bytes, within: self.window, floor: self.floor });
            }
            self.window = Duration::ZERO;
            self.window_bytes = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STALL: Duration = Duration::from_secs(30);
    const FLOOR: u64 = 64 << 10;

    /// Plays waits of (seconds, bytes) until a rule breaks; says after how many seconds of waiting.
    fn play(waits: impl IntoIterator<Item = (u64, u64)>) -> Result<(), (u64, Slow)> {
        let mut pace = Pace::new(STALL, FLOOR);
        let mut clock = 0;
        for (seconds, bytes) in waits {
            clock += seconds;
            pace.waited(Duration::from_secs(seconds), bytes).map_err(|slow| (clock, slow))?;
        }
        Ok(())
    }

    #[test]
    fn faults_are_found_in_time() {
        let silent = |s| Slow::Silent(Duration::from_secs(s));
        // Nothing at all, and empty messages for ever.
        assert_eq!(play([(30, 0)]), Err((30, silent(30))));
        assert_eq!(play(std::iter::repeat_n((1, 0), 100)), Err((30, silent(30))));
        // One byte per second.
        let trickle = Slow::Trickle { bytes: 30, within: STALL, floor: FLOOR };
        assert_eq!(play(std::iter::repeat_n((1, 1), 100)), Err((30, trickle)));
        // A good start does not buy time: silence counts from the last byte, a trickle from its window.
        assert_eq!(play([(1, 1 << 30), (29, 0), (1, 0)]), Err((31, silent(30))));
        let late = play(std::iter::once((1, 1 << 30)).chain(std::iter::repeat_n((1, 1), 100)));
        assert_eq!(late, Err((60, trickle)));
    }

    #[test]
    fn slow_is_not_a_failure() {
        // 3 KiB/s for an hour.
        assert_eq!(play(std::iter::repeat_n((1, 3 << 10), 3600)), Ok(()));
        // Bursts with pauses just below the limit.
        assert_eq!(play(std::iter::repeat_n((29, 1 << 20), 100)), Ok(()));
        // Blobs that are there at once, for a reader that is slow itself.
        assert_eq!(play(std::iter::repeat_n((0, 1), 100)), Ok(()));
    }

    proptest! {
        /// Whatever comes, a stream that lives has brought `floor` bytes in each full window, and patience
        /// never lets a wait overshoot a rule.
        #[test]
        fn a_live_stream_has_its_rate(waits in prop::collection::vec((0u64..1000, 0u64..3000), 1..400)) {
            let mut pace = Pace::new(Duration::from_millis(500), 2000);
            let (mut total, mut clock) = (0u64, Duration::ZERO);
            for (millis, bytes) in waits {
                let asked = Duration::from_millis(millis);
                let patience = pace.patience();
                prop_assert!(patience > Duration::ZERO);
                let (time, bytes) = if asked >= patience { (patience, 0) } else { (asked, bytes) };
                let verdict = pace.waited(time, bytes);
                clock += time;
                total += bytes;
                if verdict.is_err() { break }
                let windows = (clock.as_millis() / 500) as u64;
                // Windows end on the dot, since no wait passes their end.
                prop_assert!(total >= windows.saturating_sub(1) * 2000);
            }
        }
    }
}
