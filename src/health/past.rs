//! What the answers of one target told beside being good or not: the histories that verdicts need. Bounded, and without
//! allocation while answers look as the last one did.

use std::time::Duration;

use super::model::{Gauges, Mono, Planned, Reading, Status};

/// How many changes of the term are kept.
const CHANGES: usize = 16;
/// How many measurements of free space are kept: half a minute.
const LEVELS: usize = 32;

/// The numbers of the last Status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers {
    pub at: Mono,
    pub member_id: u64,
    pub leader: u64,
    pub term: u64,
    pub revision: i64,
    pub index: u64,
    pub applied: u64,
    pub db_size: u64,
    pub db_in_use: u64,
    pub quota: Option<u64>,
}

#[derive(Debug, Clone, Default)]
pub struct Past {
    pub status: Option<Numbers>,
    /// When the applied index was last seen to grow.
    pub applied_moved: Option<Mono>,
    /// How often in a row the applied index was far behind the committed one.
    pub lagging: u8,
    /// The newest revision in any header, and when it was asked.
    pub revision: Option<(Mono, i64)>,
    /// Alarms of the cluster as this member lists them, and when it was asked.
    pub alarms: Option<(Mono, Vec<(String, u64)>)>,
    /// Seconds since the epoch.
    pub certificate_end: Option<i64>,
    /// A1: when asked, `/readyz`, `/livez`, failing checks.
    pub checks: Option<(Mono, bool, bool, Vec<String>)>,
    /// When its port last refused.
    pub refused: Option<Mono>,
    pub gauges: Option<Gauges>,
    pub planned: Option<Planned>,
}

impl Past {
    /// Gives the term that the answer told, if it told one.
    pub fn read(&mut self, asked: Mono, reading: &Reading, lag: u64) -> Option<u64> {
        match reading {
            Reading::Nothing | Reading::Lease { .. } => None,
            Reading::Certificate { not_after } => {
                self.certificate_end = Some(*not_after);
                None
            }
            Reading::Header { revision, term } => {
                self.revise(asked, *revision);
                Some(*term)
            }
            Reading::Alarms { revision, term, alarms } => {
                self.revise(asked, *revision);
                match &mut self.alarms {
                    Some((at, list)) if list == alarms => *at = asked,
                    slot => *slot = Some((asked, alarms.clone())),
                }
                Some(*term)
            }
            Reading::Status(status) => {
                self.status(asked, status, lag);
                Some(status.term)
            }
            Reading::Checks { ready, live, failing } => {
                match &mut self.checks {
                    Some((at, was_ready, was_live, list)) if list == failing => {
                        (*at, *was_ready, *was_live) = (asked, *ready, *live);
                    }
                    slot => *slot = Some((asked, *ready, *live, failing.clone())),
                }
                None
            }
        }
    }

    fn revise(&mut self, asked: Mono, revision: i64) {
        if self.revision.is_none_or(|(_, before)| revision >= before) {
            self.revision = Some((asked, revision));
        }
    }

    fn status(&mut self, asked: Mono, status: &Status, lag: u64) {
        self.revise(asked, status.revision);
        if self.status.is_some_and(|before| status.applied > before.applied) {
            self.applied_moved = Some(asked);
        }
        let behind = status.index.saturating_sub(status.applied) > lag;
        self.lagging = if behind { self.lagging.saturating_add(1) } else { 0 };
        self.status = Some(Numbers {
            at: asked,
            member_id: status.member_id,
            leader: status.leader,
            term: status.term,
            revision: status.revision,
            index: status.index,
            applied: status.applied,
            db_size: status.db_size,
            db_in_use: status.db_in_use,
            quota: status.quota,
        });
    }
}

/// When the cluster's term grew: each time is an election that somebody won.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub last: u64,
    changes: [Option<Mono>; CHANGES],
    next: usize,
}

impl Terms {
    pub fn read(&mut self, at: Mono, term: u64) {
        if term <= self.last {
            return;
        }
        // The first one seen is no change.
        if self.last > 0 {
            self.changes[self.next] = Some(at);
            self.next = (self.next + 1) % CHANGES;
        }
        self.last = term;
    }

    pub fn changes(&self, now: Mono, within: Duration) -> usize {
        self.changes.iter().flatten().filter(|at| now.since(**at) <= within).count()
    }
}

/// Free space of the own member's file system over the last half minute.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    at: [(Mono, u64); LEVELS],
    next: usize,
    len: usize,
}

impl Levels {
    pub fn read(&mut self, at: Mono, free: u64) {
        self.at[self.next] = (at, free);
        self.next = (self.next + 1) % LEVELS;
        self.len = (self.len + 1).min(LEVELS);
    }

    /// By how many bytes it fell at most in the last ten seconds, or since `then` where that is later; one level before that
    /// counts. A copy that was removed since counts too.
    pub fn fell(&self, then: Mono, now: Mono) -> u64 {
        let from = then.max(Mono(now.0.saturating_sub(10_000)));
        let levels = || self.at.iter().take(self.len);
        let before = levels().filter(|(at, _)| *at <= from).max_by_key(|(at, _)| *at);
        let first = before.or_else(|| levels().min_by_key(|(at, _)| *at));
        let lowest = levels().filter(|(at, _)| *at > from).map(|(_, free)| *free).min();
        first.zip(lowest).map_or(0, |((_, first), lowest)| first.saturating_sub(lowest))
    }
}
