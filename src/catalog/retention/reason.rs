//! The answer: every snapshot once, with all its reasons as data.
//!
//! How each reason reads for people is in `say`; `word()` is its stable name in JSON.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::catalog::{LineageId, Node};

/// Everything that was decided. Indexes point into the slices that were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Newest first: by timeline, revision, time, node.
    pub keep: Vec<Kept>,
    /// Oldest first, which is the order in which they are to go.
    pub remove: Vec<Removal>,
    /// In the order in which they are to go; always before any removal `at_once`.
    pub empty: Vec<Emptied>,
    /// Why nothing at all may be done now, although the lists above say what would be. Empty: go ahead.
    pub hold: Vec<Hold>,
    /// Limits that cannot be met, with the numbers.
    pub conflicts: Vec<Conflict>,
    /// Not this node's business: counted, never judged. Not in `keep`.
    pub out_of_reach: Vec<OutOfReach>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub candidate: usize,
    pub reasons: Vec<Keep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub candidate: usize,
    pub reasons: Vec<Remove>,
    /// Its space is needed now: not by way of the trash.
    pub at_once: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emptied {
    pub trashed: usize,
    pub reason: Emptying,
}

/// A stretch of the calendar in the policy's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    Hour,
    Day,
    Week,
    Month,
}

/// Why one stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The newest verified one of its timeline.
    NewestVerified,
    /// `nth` newest of `of`.
    Last {
        nth: u32,
        of: u32,
    },
    /// Not older than this before the newest verified one.
    Within(Duration),
    /// The newest of its hour, day, week or month, which begins at `start`; the `nth` such of `of`.
    Calendar {
        slot: Slot,
        start: DateTime,
        nth: u32,
        of: u32,
    },
    /// One of the verified ones that no rule and no limit takes away.
    Floor {
        nth: u32,
        of: u32,
    },
    Pinned,
    Imported,
    /// Not verified, but newer than everything verified in its timeline: perhaps all that there is.
    NothingVerifiedIsNewer,
    /// Its time lies beyond `now` (tolerance: five minutes).
    FromTheFuture,
    /// It ended before it began: a clock was changed, its age means nothing.
    TimesContradict,
    /// No snapshot of its timeline is verified, so nothing there can replace it.
    NothingVerified,
    /// No `keep_…` rule is switched on, so none was asked to let anything go.
    NoRule,
}

/// Why one goes. Those that a rule would have kept, had there been room, say so with their limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remove {
    /// A rule that does not hold it; all rules that are switched on are listed.
    Beyond(Beyond),
    /// Not verified, and the newest verified one of its timeline is newer.
    NotVerified,
    /// Over `max_bytes` by so many bytes when it was its turn.
    MaxBytes { over: u64 },
    /// Short of free space by so many bytes when it was its turn.
    MinFree { short: u64 },
}

/// Which rule does not hold a snapshot, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// `of` newer ones there are.
    Last { of: u32 },
    /// Older than this before the newest verified one.
    Within(Duration),
    /// Its hour, day … has a newer one (candidate `by`), which stands for it.
    Covered { slot: Slot, start: DateTime, by: usize },
    /// `of` newer hours, days … have one.
    Calendar { slot: Slot, of: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptying {
    /// `trash_grace` has passed.
    GraceOver(Duration),
    MaxBytes {
        over: u64,
    },
    MinFree {
        short: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// The wall clock left the time since boot by so many seconds (tolerance: five minutes); negative is backwards.
    ClockJumped { seconds: i64 },
    /// `now` lies before the newest verified snapshot (tolerance: five minutes).
    ClockBehind { newest: Timestamp },
    /// The newest verified snapshot is older than two periods: either the clock is wrong, or nothing is being taken.
    Overdue { newest: Timestamp, since: Timestamp },
    /// A snapshot of an earlier revision carries a later time (tolerance: five minutes).
    TimesRunBackwards { older: usize, newer: usize },
    /// Nothing in scope is verified.
    NothingVerified,
    Frozen {
        until: Option<Timestamp>,
        reason: String,
        /// By the clock it has expired, but another hold stands, and a clock in doubt ends no freeze.
        expired: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// After everything that may go is gone, `left` would be used, with what is to come.
    MaxBytes { max: u64, left: u64 },
    /// After everything that may go is gone, so much is still missing.
    MinFree { reserved: u64, short: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfReach {
    pub lineage: LineageId,
    /// Another lineage is told as a whole.
    pub node: Option<Node>,
    pub snapshots: u64,
    pub bytes: u64,
}

// A hundred thousand snapshots have up to a dozen reasons each.
const _: () = assert!(size_of::<Keep>() <= 32 && size_of::<Remove>() <= 32);

impl Keep {
    /// A wish of the configuration, which `max_bytes` and `min_free` may overrule.
    pub(super) fn is_rule(&self) -> bool {
        matches!(self, Keep::Last { .. } | Keep::Within(_) | Keep::Calendar { .. } | Keep::NoRule)
    }

    /// Its name in JSON; never changes.
    pub fn word(&self) -> &'static str {
        match self {
            Keep::NewestVerified => "newest-verified",
            Keep::Last { .. } => "keep-last",
            Keep::Within(_) => "keep-within",
            Keep::Calendar { slot: Slot::Hour, .. } => "keep-hourly",
            Keep::Calendar { slot: Slot::Day, .. } => "keep-daily",
            Keep::Calendar { slot: Slot::Week, .. } => "keep-weekly",
            Keep::Calendar { slot: Slot::Month, .. } => "keep-monthly",
            Keep::Floor { .. } => "min-keep",
            Keep::Pinned => "pinned",
            Keep::Imported => "imported",
            Keep::NothingVerifiedIsNewer => "nothing-verified-is-newer",
            Keep::FromTheFuture => "from-the-future",
            Keep::TimesContradict => "times-contradict",
            Keep::NothingVerified => "nothing-verified",
            Keep::NoRule => "no-rule",
        }
    }
}

impl Remove {
    /// Its name in JSON; never changes.
    pub fn word(&self) -> &'static str {
        match self {
            Remove::Beyond(beyond) => beyond.word(),
            Remove::NotVerified => "not-verified",
            Remove::MaxBytes { .. } => "max-bytes",
            Remove::MinFree { .. } => "min-free",
        }
    }
}

impl Beyond {
    /// Its name in JSON; never changes. `covered-…`: another of the same hour, day … stands for it.
    pub fn word(&self) -> &'static str {
        match self {
            Beyond::Last { .. } => "beyond-last",
            Beyond::Within(_) => "beyond-within",
            Beyond::Covered { slot: Slot::Hour, .. } => "covered-hourly",
            Beyond::Covered { slot: Slot::Day, .. } => "covered-daily",
            Beyond::Covered { slot: Slot::Week, .. } => "covered-weekly",
            Beyond::Covered { slot: Slot::Month, .. } => "covered-monthly",
            Beyond::Calendar { slot: Slot::Hour, .. } => "beyond-hourly",
            Beyond::Calendar { slot: Slot::Day, .. } => "beyond-daily",
            Beyond::Calendar { slot: Slot::Week, .. } => "beyond-weekly",
            Beyond::Calendar { slot: Slot::Month, .. } => "beyond-monthly",
        }
    }
}

impl Emptying {
    /// Its name in JSON; never changes.
    pub fn word(&self) -> &'static str {
        match self {
            Emptying::GraceOver(_) => "grace-over",
            Emptying::MaxBytes { .. } => "max-bytes",
            Emptying::MinFree { .. } => "min-free",
        }
    }
}

impl Hold {
    /// Its name in JSON; never changes.
    pub fn word(&self) -> &'static str {
        match self {
            Hold::ClockJumped { .. } => "clock-jumped",
            Hold::ClockBehind { .. } => "clock-behind",
            Hold::Overdue { .. } => "overdue",
            Hold::TimesRunBackwards { .. } => "times-run-backwards",
            Hold::NothingVerified => "nothing-verified",
            Hold::Frozen { .. } => "frozen",
        }
    }
}

impl Conflict {
    /// Its name in JSON; never changes.
    pub fn word(&self) -> &'static str {
        match self {
            Conflict::MaxBytes { .. } => "max-bytes",
            Conflict::MinFree { .. } => "min-free",
        }
    }
}
