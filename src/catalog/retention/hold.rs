//! Why nothing at all may be removed now: a clock in doubt, a freeze, or nothing to fall back on.

use jiff::Timestamp;

use super::history::{Entry, History, TOLERANCE, Timeline, later};
use super::input::{Freeze, Situation};
use super::reason::Hold;

/// All of them, the gravest first; none: go ahead.
///
/// A person's word about the clock (`clock_trusted`) lifts what only compares `now` with snapshots. Snapshots from the
/// future are then known to carry a wrong time and prove nothing any more. It does not lift
/// [`Hold::TimesRunBackwards`] between two snapshots of the past: that clock was wrong when it wrote, whatever it
/// shows now.
pub(super) fn holds(history: &History<'_>, situation: &Situation) -> Vec<Hold> {
    let mut holds = Vec::new();
    let Situation { now, overdue_at, clock_jump, clock_trusted, .. } = *situation;
    holds.extend(jumped(clock_jump).filter(|_| !clock_trusted));
    let newest_by_time = history.backups().map(|(_, entry)| entry.is.id.taken_at()).max();
    match newest_by_time {
        None => holds.push(Hold::NothingVerified),
        Some(_) if clock_trusted => {}
        Some(newest) => {
            if newest > later(now, TOLERANCE) {
                holds.push(Hold::ClockBehind { newest });
            }
            if let Some(since) = overdue_at.filter(|at| now >= *at) {
                holds.push(Hold::Overdue { newest, since });
            }
        }
    }
    holds.extend(history.timelines.values().filter_map(|timeline| backwards(history, timeline, clock_trusted)));
    let doubt = !holds.is_empty();
    holds.extend(situation.freeze.as_ref().and_then(|freeze| frozen(freeze, now, doubt)));
    holds
}

/// What holds also what a person has named: a clock that was set, and a freeze.
pub fn holds_always(clock_jump: Option<i64>, freeze: Option<&Freeze>, now: Timestamp) -> Vec<Hold> {
    let mut holds: Vec<Hold> = jumped(clock_jump).into_iter().collect();
    let doubt = !holds.is_empty();
    holds.extend(freeze.and_then(|freeze| frozen(freeze, now, doubt)));
    holds
}

fn jumped(clock_jump: Option<i64>) -> Option<Hold> {
    let seconds = clock_jump.filter(|jump| jump.unsigned_abs() > TOLERANCE.as_secs())?;
    Some(Hold::ClockJumped { seconds })
}

/// A clock in doubt ends no freeze, and any other hold is doubt enough.
fn frozen(freeze: &Freeze, now: Timestamp, doubt: bool) -> Option<Hold> {
    let expired = freeze.until.is_some_and(|until| until <= now);
    (!expired || doubt).then(|| Hold::Frozen { until: freeze.until, reason: freeze.reason.clone(), expired })
}

/// The backup of a timeline with the latest time, where that is later than the newest one's.
fn backwards(history: &History<'_>, timeline: &Timeline, clock_trusted: bool) -> Option<Hold> {
    let at = |entry: &Entry<'_>| entry.is.id.taken_at();
    let mut entries = timeline
        .members
        .iter()
        .rev()
        .filter_map(|position| history.entries.get(*position))
        .filter(|entry| entry.is_backup() && !(clock_trusted && entry.from_the_future));
    let newest = entries.next()?;
    // Ids of one revision are in the order of their times, so a later time means a lower revision here.
    let older = entries.max_by(|a, b| at(a).cmp(&at(b)).then_with(|| a.is.id.cmp(&b.is.id)))?;
    let wrong = at(older) > later(at(newest), TOLERANCE);
    wrong.then_some(Hold::TimesRunBackwards { older: older.index, newer: newest.index })
}
