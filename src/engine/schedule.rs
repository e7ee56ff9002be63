//! When a schedule runs: pure, the cursor and the facts in, a decision with its reason out (design §10).
//!
//! Slots are those of the expression; the node's shift delays what happens at a slot, not the slot itself, so that all
//! control planes do not stream in the same second. The caller records each decision before it acts on it.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::event::{Missed, Skip};
use super::job::JobId;
use super::record::{Cursor, Paused};
use crate::config::{Schedule, Window};

/// A step of the wall clock that is not one: corrections of this size are made all the time.
const SLACK: SignedDuration = SignedDuration::from_secs(2);
/// The first pause before a failed run is tried again.
const FIRST_RETRY: Duration = Duration::from_secs(60);

/// What stays the same while the configuration does.
#[derive(Debug, Clone)]
pub struct Timetable {
    pub schedule: Schedule,
    pub timezone: TimeZone,
    /// Runs only within it.
    pub window: Option<Window>,
    /// Shorter than a period.
    pub shift: Duration,
}

/// What the decision depends on besides.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    pub now: Timestamp,
    /// When the newest verified snapshot was taken; `None`: there is none, or nobody knows.
    pub newest: Option<Timestamp>,
    /// A snapshot that is queued or runs.
    pub busy: Option<JobId>,
    /// How long ago the cursor's slot was, by a clock that nobody sets; `None` where this process has not decided it.
    pub since_slot: Option<SignedDuration>,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Nothing before that time, if the clock does not step.
    Wait(Option<Timestamp>),
    /// Decide this slot, and move the cursor to it.
    Slot { slot: Timestamp, act: Act, missed: Option<Missed> },
    /// The run of the cursor's own slot failed; once more.
    Again { slot: Timestamp, attempt: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Run,
    Skip(Skip),
    /// Begin to count here.
    Begin,
    /// The clock stepped back: so does the cursor, by as much.
    Follow,
}

impl Timetable {
    /// From one slot to the next, as it is after `at`.
    pub fn period(&self, at: Timestamp) -> Duration {
        let next = self.schedule.nth_after(at, 1, &self.timezone);
        let after = self.schedule.nth_after(at, 2, &self.timezone);
        match (next, after) {
            (Some(next), Some(after)) => after.duration_since(next).try_into().unwrap_or(Duration::ZERO),
            _ => Duration::MAX,
        }
    }

    /// When the slot after `slot` is acted on.
    fn after(&self, slot: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let next = self.schedule.nth_after(slot, 1, &self.timezone)?;
        Some((next, next.checked_add(SignedDuration::try_from(self.shift).ok()?).ok()?))
    }

    /// The next `n` times at which something happens, as the cursor stands: slot, and time with the shift.
    pub fn next(&self, cursor: Option<&Cursor>, now: Timestamp, n: usize) -> Vec<(Timestamp, Timestamp)> {
        let mut slot = cursor.and_then(|c| c.slot).filter(|slot| *slot <= now + SLACK).unwrap_or(now);
        let mut found = Vec::new();
        while found.len() < n {
            let Some((next, at)) = self.after(slot) else { break };
            // What is due already comes now.
            found.push((next, at.max(now)));
            slot = if at < now { self.last_due(next, now).0 } else { next };
        }
        found
    }

    /// The last slot that is due, from one that is, and the slots before it.
    fn last_due(&self, first: Timestamp, now: Timestamp) -> (Timestamp, Option<Missed>) {
        let (mut slot, mut missed) = (first, None::<Missed>);
        while let Some((next, at)) = self.after(slot)
            && at <= now
        {
            match &mut missed {
                None => missed = Some(Missed { slots: 1, first: slot, last: slot }),
                Some(m) if m.slots < Missed::COUNTED => (m.slots, m.last) = (m.slots + 1, slot),
                // Long enough: whatever else was missed, one run follows now.
                Some(_) => return (now, missed),
            }
            slot = next;
        }
        (slot, missed)
    }

    /// Decides what is due at `facts.now`.
    pub fn decide(&self, cursor: Option<&Cursor>, facts: Facts) -> Due {
        let now = facts.now;
        let paused = cursor.and_then(|c| c.paused.as_ref()).filter(|p| is_paused(p, now));
        let Some(slot) = cursor.and_then(|c| c.slot) else { return self.first(facts, paused.is_some()) };
        // Less time has passed by the wall clock than by the other: it stepped back.
        if let Some(since) = facts.since_slot
            && now.duration_since(slot) < since - SLACK
            && let Ok(same) = now.checked_sub(since)
        {
            // The same moment by the new time: the next slot is then no further away than it was.
            return Due::Slot { slot: same, act: Act::Follow, missed: None };
        }
        if slot > now + SLACK {
            // How long ago that was nobody knows: perhaps too long.
            return Due::Slot { slot: now, act: self.act(paused.is_some(), facts), missed: None };
        }
        let Some((next, at)) = self.after(slot) else { return Due::Wait(None) };
        if at > now {
            return self.again(cursor, slot, at, facts, paused.is_some());
        }
        let (slot, missed) = self.last_due(next, now);
        Due::Slot { slot, act: self.act(paused.is_some(), facts), missed }
    }

    /// What is done with a slot that is due.
    fn act(&self, paused: bool, facts: Facts) -> Act {
        match (paused, facts.busy, self.within(facts.now)) {
            (true, ..) => Act::Skip(Skip::Paused),
            (false, _, false) => Act::Skip(Skip::Window),
            (false, Some(job), true) => Act::Skip(Skip::Busy { job }),
            (false, None, true) => Act::Run,
        }
    }

    /// Nothing was ever decided: at once where there is no young snapshot.
    fn first(&self, facts: Facts, paused: bool) -> Due {
        let period = SignedDuration::try_from(self.period(facts.now)).unwrap_or(SignedDuration::MAX);
        // One from the future says nothing about its age.
        let young = facts.newest.filter(|at| *at <= facts.now && facts.now.duration_since(*at) < period);
        let run = young.is_none() && facts.busy.is_none() && !paused && self.within(facts.now);
        let slot = match (run, young, &self.schedule) {
            // A period counts from the snapshot that is there.
            (false, Some(at), Schedule::Every(_)) => at,
            _ => facts.now,
        };
        Due::Slot { slot, act: if run { Act::Run } else { Act::Begin }, missed: None }
    }

    fn again(&self, cursor: Option<&Cursor>, slot: Timestamp, next: Timestamp, facts: Facts, paused: bool) -> Due {
        let failed = cursor.and_then(|c| c.failed_at.map(|at| (at, c.failed)));
        let Some((failed_at, failures)) = failed.filter(|_| !paused) else { return Due::Wait(Some(next)) };
        let pause = FIRST_RETRY.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let pause = pause.min(self.period(slot) / 2);
        let at = SignedDuration::try_from(pause).ok().and_then(|pause| failed_at.checked_add(pause).ok());
        match at {
            // A failure from the future: the clock stepped, and nobody knows how long ago it was.
            Some(at) if at <= facts.now || failed_at > facts.now + SLACK => match facts.busy {
                None if self.within(facts.now) => Due::Again { slot, attempt: failures + 1 },
                _ => Due::Wait(Some(next)),
            },
            Some(at) if at < next => Due::Wait(Some(at)),
            _ => Due::Wait(Some(next)),
        }
    }

    fn within(&self, now: Timestamp) -> bool {
        self.window.as_ref().is_none_or(|window| window.holds(now, &self.timezone))
    }
}

/// Whether a pause still stands.
pub fn is_paused(paused: &Paused, now: Timestamp) -> bool {
    paused.until.is_none_or(|until| now < until)
}

/// How far this node is behind the slots: the same at each start, spread over nodes, at most a tenth of a period and
/// five minutes.
pub fn shift_of(node: &str, period: Duration) -> Duration {
    const MOST: Duration = Duration::from_secs(300);
    let room = (period / 10).min(MOST).as_secs();
    // FNV-1a: a spread, not a secret, and stable for ever.
    let hash = node.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    Duration::from_secs(if room == 0 { 0 } else { hash % room })
}

#[cfg(test)]
mod tests;
