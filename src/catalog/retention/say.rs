//! The reasons in words, as `refloat prune --dry-run` prints them: each is understood without any other line, and names
//! the key of the configuration that it comes from.

use std::fmt::{self, Display, Formatter};

use jiff::civil::DateTime;

use super::input::Candidate;
use super::reason::{Beyond, Conflict, Emptying, Hold, Keep, Remove, Slot};
use crate::config::{format_duration, format_size, rounded_size};

/// What a value says about candidates that it knows by index only.
struct Said<'a, T> {
    what: &'a T,
    candidates: &'a [Candidate],
}

impl Remove {
    /// `candidates`: the slice that was decided about.
    pub fn say<'a>(&'a self, candidates: &'a [Candidate]) -> impl Display + 'a {
        Said { what: self, candidates }
    }
}

impl Beyond {
    /// `candidates`: the slice that was decided about.
    pub fn say<'a>(&'a self, candidates: &'a [Candidate]) -> impl Display + 'a {
        Said { what: self, candidates }
    }
}

impl Hold {
    /// `candidates`: the slice that was decided about.
    pub fn say<'a>(&'a self, candidates: &'a [Candidate]) -> impl Display + 'a {
        Said { what: self, candidates }
    }
}

impl Hold {
    /// What ends it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Hold::ClockJumped { .. } => "see that the clock is right, then take a snapshot: from then on it counts",
            Hold::ClockBehind { .. } => {
                "set the clock; if it is right, and was wrong when that snapshot was taken: --trust-clock"
            }
            Hold::Overdue { .. } => "take a snapshot; if the clock is right and none can be taken: --trust-clock",
            Hold::TimesRunBackwards { .. } => {
                "see that the clock is right, then take a snapshot: a later time settles it"
            }
            Hold::NothingVerified => "take a snapshot",
            Hold::Frozen { .. } => "wait until it ends, or remove that freeze.json once what it protects is over",
        }
    }
}

impl Display for Slot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Slot::Hour => "hour",
            Slot::Day => "day",
            Slot::Week => "week",
            Slot::Month => "month",
        })
    }
}

impl Slot {
    /// The key of the configuration that counts it.
    fn key(self) -> &'static str {
        match self {
            Slot::Hour => "keep_hourly",
            Slot::Day => "keep_daily",
            Slot::Week => "keep_weekly",
            Slot::Month => "keep_monthly",
        }
    }
}

/// `hour 2026-11-30 10:00`, `day 2026-11-30`, `week from 2026-11-30`, `month 2026-11`.
struct Named(Slot, DateTime);

impl Display for Named {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Named(slot, start) = self;
        let date = start.date();
        match slot {
            Slot::Hour => write!(f, "hour {date} {:02}:00", start.hour()),
            Slot::Day => write!(f, "day {date}"),
            Slot::Week => write!(f, "week from {date}"),
            Slot::Month => write!(f, "month {:04}-{:02}", date.year(), date.month()),
        }
    }
}

impl Display for Keep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Keep::NewestVerified => f.write_str("the newest verified of its timeline, which always stays"),
            Keep::Last { of: 1, .. } => f.write_str("the newest verified of its timeline (keep_last)"),
            Keep::Last { nth, of } => write!(f, "number {nth} of the {of} newest verified of its timeline (keep_last)"),
            Keep::Within(span) => {
                write!(f, "not more than {} older than the newest verified (keep_within)", format_duration(*span))
            }
            Keep::Calendar { slot, start, nth, of } => {
                write!(f, "newest of its {}, {slot} {nth} of {of} ({})", Named(*slot, *start), slot.key())
            }
            Keep::Floor { of: 1, .. } => f.write_str("the newest verified of all, which always stays (min_keep)"),
            Keep::Floor { nth, of } => {
                write!(f, "number {nth} of the {of} newest verified of all, which always stay (min_keep)")
            }
            Keep::Pinned => f.write_str("pinned"),
            Keep::Imported => f.write_str("imported: only `refloat store retire` removes it"),
            Keep::NothingVerifiedIsNewer => f.write_str("not verified, but nothing verified in its timeline is newer"),
            Keep::FromTheFuture => f.write_str("its time is still to come, so its age is unknown"),
            Keep::TimesContradict => f.write_str("it ended before it began, so its age is unknown"),
            Keep::NothingVerified => f.write_str("nothing in its timeline is verified"),
            Keep::NoRule => f.write_str("no keep_ rule is switched on"),
        }
    }
}

impl Display for Said<'_, Remove> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.what {
            Remove::Beyond(what) => Said { what, candidates: self.candidates }.fmt(f),
            Remove::NotVerified => f.write_str("not verified, and its timeline has a newer one that is"),
            Remove::MaxBytes { over } => {
                f.write_str("the rules would keep it, but ")?;
                over_max_bytes(f, *over)
            }
            Remove::MinFree { short } => {
                f.write_str("the rules would keep it, but ")?;
                short_of_min_free(f, *short)
            }
        }
    }
}

impl Display for Said<'_, Beyond> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.what {
            Beyond::Last { of: 1 } => f.write_str("not the newest verified of its timeline (keep_last)"),
            Beyond::Last { of } => write!(f, "not among the {of} newest verified of its timeline (keep_last)"),
            Beyond::Within(span) => {
                write!(f, "more than {} older than the newest verified (keep_within)", format_duration(*span))
            }
            Beyond::Covered { slot, start, by } => {
                write!(f, "its {} has a newer one ({}): ", Named(*slot, *start), slot.key())?;
                name(f, self.candidates, *by)
            }
            Beyond::Calendar { slot, of: 1 } => write!(f, "a newer {slot} has a verified one ({})", slot.key()),
            Beyond::Calendar { slot, of } => {
                write!(f, "{of} newer {slot}s have a verified one ({})", slot.key())
            }
        }
    }
}

impl Display for Emptying {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Emptying::GraceOver(grace) => {
                write!(f, "in the trash for at least {} (trash_grace)", format_duration(*grace))
            }
            Emptying::MaxBytes { over } => over_max_bytes(f, *over),
            Emptying::MinFree { short } => short_of_min_free(f, *short),
        }
    }
}

impl Display for Said<'_, Hold> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.what {
            Hold::ClockJumped { seconds } => {
                let span = format_duration(std::time::Duration::from_secs(seconds.unsigned_abs()));
                let way = if *seconds < 0 { "back" } else { "forward" };
                write!(f, "the clock is in doubt: it was set {way} by {span} since this node's last snapshot")
            }
            Hold::ClockBehind { newest } => {
                write!(f, "the clock is in doubt: the newest verified snapshot is of {newest}, which is still to come")
            }
            Hold::Overdue { newest, since } => write!(
                f,
                "the newest verified snapshot is of {newest}, and two more were due by {since}: \
                 either none succeeds, or the clock is wrong"
            ),
            Hold::TimesRunBackwards { older, newer } => {
                f.write_str("a clock was wrong: ")?;
                name(f, self.candidates, *older)?;
                f.write_str(" has a lower revision and yet a later time than ")?;
                name(f, self.candidates, *newer)
            }
            Hold::NothingVerified => f.write_str("there is no verified snapshot here that counts (imports do not)"),
            Hold::Frozen { until: None, reason, .. } => write!(f, "frozen: {reason}"),
            Hold::Frozen { until: Some(until), reason, expired: false } => write!(f, "frozen until {until}: {reason}"),
            Hold::Frozen { until: Some(until), reason, expired: true } => {
                write!(f, "frozen until {until}, which only counts as past once nothing else is in doubt: {reason}")
            }
        }
    }
}

impl Display for Conflict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Conflict::MaxBytes { max, left } => write!(
                f,
                "max_bytes = {} cannot be met: with everything gone that may go, {} would be in use",
                format_size(*max),
                rounded_size(*left)
            ),
            Conflict::MinFree { reserved, short } => write!(
                f,
                "min_free = {} cannot be met: with everything gone that may go, {} would be missing",
                rounded_size(*reserved),
                rounded_size(*short)
            ),
        }
    }
}

fn over_max_bytes(f: &mut Formatter<'_>, over: u64) -> fmt::Result {
    write!(f, "max_bytes is exceeded by {}, and the oldest go first", rounded_size(over))
}

fn short_of_min_free(f: &mut Formatter<'_>, short: u64) -> fmt::Result {
    write!(f, "min_free lacks {}, and the oldest go first", rounded_size(short))
}

fn name(f: &mut Formatter<'_>, candidates: &[Candidate], index: usize) -> fmt::Result {
    match candidates.get(index) {
        Some(candidate) => candidate.id.fmt(f),
        // Only with another slice than the one that was decided about.
        None => write!(f, "number {index}"),
    }
}
