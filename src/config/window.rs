//! A part of the day, `22:00-06:00`, on the wall clock of a zone.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

/// From the first minute up to the last, which is outside; over midnight when it ends before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    from: Time,
    to: Time,
}

impl Window {
    /// `HH:MM-HH:MM`, not empty.
    pub(super) fn parse(text: &str) -> Option<Window> {
        let time = |part: &str| -> Option<Time> {
            let (hour, minute) = part.split_once(':')?;
            let digits = |text: &str| {
                let whole = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
                whole.then(|| text.parse::<i8>().ok()).flatten()
            };
            Time::new(digits(hour)?, digits(minute)?, 0, 0).ok()
        };
        let (from, to) = text.split_once('-')?;
        let window = Window { from: time(from.trim())?, to: time(to.trim())? };
        (window.from != window.to).then_some(window)
    }

    pub fn holds(&self, at: Timestamp, timezone: &TimeZone) -> bool {
        let time = timezone.to_datetime(at).time();
        if self.from < self.to { self.from <= time && time < self.to } else { self.from <= time || time < self.to }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        write!(f, "{:02}:{:02}-{:02}:{:02}", from.hour(), from.minute(), to.hour(), to.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_within_and_over_midnight() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        for (window, at, inside) in [
            ("08:00-18:00", "2026-12-01T07:00:00Z", true),
            ("08:00-18:00", "2026-12-01T06:59:59Z", false),
            ("08:00-18:00", "2026-12-01T17:00:00Z", false),
            ("22:00-06:00", "2026-12-01T21:00:00Z", true),
            ("22:00-06:00", "2026-12-01T04:59:59Z", true),
            ("22:00-06:00", "2026-12-01T05:00:00Z", false),
        ] {
            assert_eq!(Window::parse(window).unwrap().holds(at.parse().unwrap(), &berlin), inside, "{window} {at}");
        }
    }

    #[test]
    fn only_whole_windows_are_read() {
        for text in
            ["", "22:00", "22:00-22:00", "24:00-01:00", "2:00-3:00", "22:60-23:00", "a-b", "22-23", "+1:00-02:00"]
        {
            assert_eq!(Window::parse(text), None, "{text}");
        }
        assert_eq!(Window::parse("22:00 - 06:30").unwrap().to_string(), "22:00-06:30");
    }
}
