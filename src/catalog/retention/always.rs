//! What no rule and no limit takes away.

use super::decide::Verdict;
use super::history::History;
use super::input::Policy;
use super::reason::Keep;

pub(super) fn apply(history: &History<'_>, policy: &Policy, verdicts: &mut [Verdict]) {
    let mut give = |position: usize, reason: Keep| {
        if let Some(verdict) = verdicts.get_mut(position) {
            verdict.keep.push(reason);
        }
    };
    for newest in history.timelines.values().filter_map(|timeline| timeline.newest) {
        give(newest, Keep::NewestVerified);
    }
    let of = policy.rules.min_keep;
    for (nth, (position, _)) in (1..=of).zip(history.backups()) {
        give(position, Keep::Floor { nth, of });
    }
    for (position, entry) in history.entries.iter().enumerate() {
        let own = [
            (entry.is.pinned, Keep::Pinned),
            (entry.is.imported, Keep::Imported),
            (entry.from_the_future, Keep::FromTheFuture),
            (entry.times_contradict, Keep::TimesContradict),
        ];
        own.into_iter().filter(|(holds, _)| *holds).for_each(|(_, reason)| give(position, reason));
    }
    for timeline in history.timelines.values() {
        for &position in &timeline.members {
            // Those that are neither verified nor imported; a verified one is at most as new as the newest.
            let waits = history.entries.get(position).is_some_and(|entry| !entry.is_backup() && !entry.is.imported);
            match timeline.newest {
                _ if !waits => {}
                None => give(position, Keep::NothingVerified),
                Some(newest) if position > newest => give(position, Keep::NothingVerifiedIsNewer),
                Some(_) => {}
            }
        }
    }
}
