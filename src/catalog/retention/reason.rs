//! The answer: every snapshot once, with all its reasons as data.
//!
//! `Display` of each reason is what `refloat prune --dry-run` prints, so it must be understood without any other line.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::catalog::{LineageId, Node};

/// Everything that was decided. Indexes point into the slices that were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Newest first: by timeline, revision, time, node.
    pub keep: Vec<Kept>,
    /// Oldest first, in the order in which they are to go.
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
    /// Its time lies beyond `now`.
    FromTheFuture,
    /// It ended before it began: a clock was changed, its age means nothing.
    TimesContradict,
    /// No snapshot of its timeline is verified, so nothing there can replace it.
    NothingVerified,
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
    /// `now` lies before the newest verified snapshot (tolerance: five minutes).
    ClockBehind {
        newest: Timestamp,
    },
    /// The newest verified snapshot is older than two periods: either the clock is wrong, or nothing is being taken.
    Overdue {
        newest: Timestamp,
        since: Timestamp,
    },
    /// A snapshot of an earlier revision carries a later time (tolerance: five minutes).
    TimesRunBackwards {
        older: usize,
        newer: usize,
    },
    /// Nothing in scope is verified.
    NothingVerified,
    Frozen {
        until: Option<Timestamp>,
        reason: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// After everything that may go is gone, so much is still used.
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
