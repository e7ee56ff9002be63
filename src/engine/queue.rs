//! What may start now, and what every other job waits for: pure, and total over all queued jobs (design §10).

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::job::JobId;
use super::lane::Lane;
use super::phase::Phase;
use super::record::{Known, Record};

/// Why a queued job does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "kebab-case")]
pub enum Wait {
    /// Another job is in that lane.
    Lane { lane: Lane, job: JobId },
    /// A job that is over has left a call behind that does not come back.
    Stuck { lane: Lane, job: JobId, since: Timestamp },
    /// What was interrupted by the last end of the daemon is settled first.
    Settling,
    /// Nothing that was asked of the ledger is answered.
    LedgerSilent { since: Timestamp },
    /// The ledger's disk has no room for the intent.
    LedgerFails { why: String },
    /// The intent is on its way to the disk.
    Starting,
    /// The wall clock is in doubt: nothing is removed by it.
    Clock { seconds: i64, until: Timestamp },
    /// The daemon ends.
    Draining,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::Lane { lane, job } => write!(f, "lane {lane} is taken by job {job}"),
            Wait::Stuck { lane, job, since } => {
                write!(f, "lane {lane} is taken by a call of job {job} that has not come back since {since:.0}")
            }
            Wait::Settling => f.write_str("the stores are read first, to settle what was interrupted"),
            Wait::LedgerSilent { since } => write!(f, "the ledger does not answer since {since:.0}"),
            Wait::LedgerFails { why } => write!(f, "the intent cannot be recorded: {why}"),
            Wait::Starting => f.write_str("its intent is being recorded"),
            Wait::Clock { seconds, until } => {
                write!(
                    f,
                    "the wall clock stepped by {seconds} s: nothing is removed before {until:.0}, unless it steps back"
                )
            }
            Wait::Draining => f.write_str("the daemon is ending"),
        }
    }
}

/// Who is in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Job(JobId),
    Stuck(JobId, Timestamp),
}

/// How the ledger does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerState {
    Good,
    Silent { since: Timestamp },
    Fails { why: String },
}

/// What the decision depends on besides the record.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    pub busy: &'a BTreeMap<Lane, Holder>,
    pub ledger: LedgerState,
    /// Their intents are on their way to the disk; their lanes are taken.
    pub starting: &'a [JobId],
    pub settling: bool,
    pub draining: bool,
    /// Prunes wait until then, because of a step of so many seconds.
    pub clock: Option<(i64, Timestamp)>,
}

/// What may start, in this order, and why the others wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub start: Vec<JobId>,
    pub wait: BTreeMap<JobId, Wait>,
}

/// Each queued job is in the plan once.
pub fn decide(record: &Record, situation: &Situation<'_>) -> Plan {
    let mut queued: Vec<&Known> = record.jobs.values().filter(|known| known.phase == Phase::Queued).collect();
    queued.sort_by_key(|known| (!known.job.by_hand(), known.job.id));
    let mut busy = situation.busy.clone();
    let mut plan = Plan::default();
    for known in queued {
        let (id, task) = (known.job.id, &known.job.task);
        if situation.starting.contains(&id) {
            plan.wait.insert(id, Wait::Starting);
            continue;
        }
        let taken = task.lanes().into_iter().find_map(|lane| busy.get(&lane).map(|holder| (lane, *holder)));
        let wait = match (taken, &situation.ledger) {
            _ if situation.draining => Some(Wait::Draining),
            _ if situation.settling => Some(Wait::Settling),
            (Some((lane, Holder::Job(job))), _) => Some(Wait::Lane { lane, job }),
            (Some((lane, Holder::Stuck(job, since))), _) => Some(Wait::Stuck { lane, job, since }),
            // Nothing tells whether the intent will be there.
            (None, LedgerState::Silent { since }) => Some(Wait::LedgerSilent { since: *since }),
            (None, LedgerState::Fails { why }) if task.needs_intent() => Some(Wait::LedgerFails { why: why.clone() }),
            (None, _) => match (task.removes(), situation.clock) {
                (true, Some((seconds, until))) => Some(Wait::Clock { seconds, until }),
                _ => None,
            },
        };
        match wait {
            Some(wait) => {
                plan.wait.insert(id, wait);
            }
            None => {
                busy.extend(task.lanes().into_iter().map(|lane| (lane, Holder::Job(id))));
                plan.start.push(id);
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::event::Event;
    use super::super::job::{Job, Origin, Task};
    use super::*;

    fn task(kind: u8) -> Task {
        match kind % 5 {
            0 => Task::Snapshot { member: None, tags: vec![], stores: vec![] },
            1 => Task::Snapshot { member: Some("m2".into()), tags: vec![], stores: vec![] },
            2 => Task::Verify { subject: "all".into(), store: None },
            3 => Task::Prune { store: "a".into() },
            _ => Task::Prune { store: "b".into() },
        }
    }

    /// Jobs 1, 2, … of these kinds, each by hand or not.
    fn record(jobs: &[(u8, bool)]) -> Record {
        let mut record = Record::default();
        for (at, (kind, by_hand)) in jobs.iter().enumerate() {
            let origin = match by_hand {
                true => Origin::Hand { uid: 0 },
                false => Origin::After { job: JobId(0) },
            };
            let job = Job { id: JobId(at as u64 + 1), task: task(*kind), origin, created_at: Timestamp::UNIX_EPOCH };
            record.apply(&Event::Queued { job }, Timestamp::UNIX_EPOCH);
        }
        record
    }

    const FREE: Situation<'static> = Situation {
        busy: &BTreeMap::new(),
        ledger: LedgerState::Good,
        starting: &[],
        settling: false,
        draining: false,
        clock: None,
    };

    #[test]
    fn lanes_keep_apart_what_must_not_meet_and_nothing_else() {
        let record = record(&[(0, false), (1, true), (2, false), (3, false), (4, false), (3, false)]);
        let plan = decide(&record, &FREE);
        // By hand first; the other snapshot waits for it; the second prune of store a for the first.
        assert_eq!(plan.start, [JobId(2), JobId(3), JobId(4), JobId(5)]);
        assert_eq!(plan.wait[&JobId(1)], Wait::Lane { lane: Lane::Member, job: JobId(2) });
        assert_eq!(plan.wait[&JobId(6)], Wait::Lane { lane: Lane::Store("a".into()), job: JobId(4) });
        assert_eq!(plan.wait[&JobId(1)].to_string(), "lane member is taken by job 2");
    }

    #[test]
    fn each_reason_is_told() {
        let jobs = [(0, false), (2, false), (3, false)];
        let at = Timestamp::UNIX_EPOCH;
        let stuck = BTreeMap::from([(Lane::Member, Holder::Stuck(JobId(9), at))]);
        let waits = |situation: &Situation<'_>| {
            let plan = decide(&record(&jobs), situation);
            (plan.start, plan.wait.into_values().collect::<Vec<_>>())
        };
        let silent = Wait::LedgerSilent { since: at };
        let fails = || LedgerState::Fails { why: "full".into() };
        for (situation, start, wait) in [
            (Situation { draining: true, ..FREE }, vec![], vec![Wait::Draining; 3]),
            (Situation { settling: true, ..FREE }, vec![], vec![Wait::Settling; 3]),
            (Situation { ledger: LedgerState::Silent { since: at }, ..FREE }, vec![], vec![silent; 3]),
            // What only creates still runs.
            (Situation { ledger: fails(), ..FREE }, vec![1, 2], vec![Wait::LedgerFails { why: "full".into() }]),
            (Situation { clock: Some((3600, at)), ..FREE }, vec![1, 2], vec![Wait::Clock { seconds: 3600, until: at }]),
            (Situation { starting: &[JobId(2)], ..FREE }, vec![1, 3], vec![Wait::Starting]),
            (
                Situation { busy: &stuck, ..FREE },
                vec![2, 3],
                vec![Wait::Stuck { lane: Lane::Member, job: JobId(9), since: at }],
            ),
        ] {
            let start: Vec<JobId> = start.into_iter().map(JobId).collect();
            assert_eq!(waits(&situation), (start, wait), "{situation:?}");
        }
    }

    proptest! {
        #[test]
        fn every_job_starts_or_has_a_reason_and_no_lane_is_shared(
            jobs in proptest::collection::vec((0u8..5, any::<bool>()), 0..12),
            taken in proptest::collection::btree_set(0u8..5, 0..3),
        ) {
            let record = record(&jobs);
            let busy: BTreeMap<Lane, Holder> = taken.iter()
                .flat_map(|kind| task(*kind).lanes())
                .map(|lane| (lane, Holder::Job(JobId(99))))
                .collect();
            let plan = decide(&record, &Situation { busy: &busy, ..FREE });
            prop_assert_eq!(plan.start.len() + plan.wait.len(), jobs.len());
            let mut used = busy;
            for id in &plan.start {
                prop_assert!(!plan.wait.contains_key(id));
                for lane in record.jobs[id].job.task.lanes() {
                    prop_assert!(used.insert(lane, Holder::Job(*id)).is_none());
                }
            }
            // Nobody waits for a lane that nobody has, nor for himself.
            for (id, wait) in &plan.wait {
                let Wait::Lane { lane, job } = wait else { panic!("{wait:?}") };
                prop_assert!(used.contains_key(lane) && job != id);
            }
            // By hand is never passed by what is scheduled and wants the same lane.
            for id in &plan.start {
                let known = &record.jobs[id];
                let passed = plan.wait.iter().filter(|(_, w)| **w == Wait::Lane { lane: known.job.task.lanes()[0].clone(), job: *id });
                for (other, _) in passed {
                    prop_assert!(known.job.by_hand() || !record.jobs[other].job.by_hand());
                }
            }
        }
    }
}
