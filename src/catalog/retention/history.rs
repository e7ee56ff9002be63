//! The candidates within reach in the order of history, and what is known of each timeline.
//!
//! History is ordered by timeline number, revision, time and node, as ids are: a revision cannot be set wrong, a clock
//! can. So "newest" always means history here; times only measure ages.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::input::Candidate;
use crate::catalog::{State, TimelineId};

/// What two clocks may differ by before one of them is in doubt.
pub(super) const TOLERANCE: Duration = Duration::from_secs(300);

pub(super) struct History<'a> {
    /// Oldest first. A *position* is an index into this.
    pub entries: Vec<Entry<'a>>,
    pub timelines: BTreeMap<TimelineId, Timeline>,
}

/// One candidate within reach.
pub(super) struct Entry<'a> {
    /// Into the slice that was given.
    pub index: usize,
    pub is: &'a Candidate,
    /// Its time lies beyond `now` by more than the tolerance.
    pub from_the_future: bool,
    /// It ended before it began.
    pub times_contradict: bool,
}

#[derive(Default)]
pub(super) struct Timeline {
    /// Positions, oldest first.
    pub members: Vec<usize>,
    /// Position of the newest [backup](Entry::is_backup).
    pub newest: Option<usize>,
    /// From which the ages in this timeline count. There is one where there is a newest backup.
    pub reference: Option<Timestamp>,
}

impl Entry<'_> {
    pub fn is_verified(&self) -> bool {
        self.is.state == State::Verified
    }

    /// Verified, and this cluster's own: imports are somebody's files, they replace nothing and count for nothing.
    pub fn is_backup(&self) -> bool {
        self.is_verified() && !self.is.imported
    }

    /// A backup with a time that means something: what the rules count.
    pub fn counts(&self) -> bool {
        self.is_backup() && !self.from_the_future && !self.times_contradict
    }
}

impl<'a> History<'a> {
    pub fn of(candidates: &'a [Candidate], within_reach: &[usize], now: Timestamp) -> History<'a> {
        let mut entries: Vec<Entry<'a>> = within_reach
            .iter()
            .filter_map(|index| candidates.get(*index).map(|is| (*index, is)))
            .map(|(index, is)| Entry {
                index,
                is,
                from_the_future: is.id.taken_at() > later(now, TOLERANCE),
                times_contradict: is.finished_at < is.id.taken_at(),
            })
            .collect();
        entries.sort_unstable_by(|a, b| (&a.is.id, a.is.timeline).cmp(&(&b.is.id, b.is.timeline)));
        let mut timelines: BTreeMap<TimelineId, Timeline> = BTreeMap::new();
        for (position, entry) in entries.iter().enumerate() {
            let timeline = timelines.entry(entry.is.timeline).or_default();
            timeline.members.push(position);
            if entry.is_backup() {
                timeline.newest = Some(position);
            }
            if entry.counts() {
                timeline.reference = Some(entry.is.id.taken_at());
            }
        }
        for timeline in timelines.values_mut() {
            // None of its backups has a time that can be trusted. The earliest of those at hand keeps most.
            let newest = timeline.newest.and_then(|position| entries.get(position));
            if let (None, Some(newest)) = (timeline.reference, newest) {
                timeline.reference = Some(newest.is.id.taken_at().min(newest.is.finished_at).min(now));
            }
        }
        History { entries, timelines }
    }

    /// Every backup with its position, newest first.
    pub fn backups(&self) -> impl Iterator<Item = (usize, &Entry<'a>)> {
        self.entries.iter().enumerate().rev().filter(|(_, entry)| entry.is_backup())
    }
}

/// `at + by`, or the end of time.
pub(super) fn later(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

/// `at - by`, or the beginning of time.
pub(super) fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_sub(by).ok()).unwrap_or(Timestamp::MIN)
}
