//! What became of the jobs that ran when the daemon ended: decided from what the stores hold, before anything new begins
//! (law 4).

use jiff::Timestamp;

use super::event::{End, Event, Outcome, Survey};
use super::failure::Failure;
use super::job::Task;
use super::phase::Phase;
use super::record::{Known, RUNS, Record};
use crate::error::Code;

/// At once, when the ledger was read: what ran is interrupted. Nothing of it runs any more.
pub fn found_open(record: &Record) -> Vec<Event> {
    let why = "the daemon ended while it ran";
    let running = record.open().filter(|known| matches!(known.phase, Phase::Running | Phase::Canceling));
    running.map(|known| Event::Ended { job: known.job.id, end: End::Interrupted { why: why.into() } }).collect()
}

/// Whether the stores must be read first.
pub fn needs_survey(record: &Record) -> bool {
    record.open().any(|known| known.phase == Phase::Interrupted && matches!(known.job.task, Task::Snapshot { .. }))
}

/// Once the stores were read: what an interrupted job has left, or that it runs again.
pub fn settle(record: &Record) -> Vec<Event> {
    let interrupted = record.open().filter(|known| known.phase == Phase::Interrupted);
    interrupted.map(|known| decide(record, known)).collect()
}

fn decide(record: &Record, known: &Known) -> Event {
    let (job, task) = (known.job.id, &known.job.task);
    if let (Task::Snapshot { stores, .. }, Some(started)) = (task, known.started_at)
        && let Some(snapshot) = published(record, stores, started)
    {
        return Event::Ended { job, end: End::Succeeded { result: Outcome::Found { snapshot } } };
    }
    if known.runs >= RUNS {
        let failure = Failure {
            code: Code::Interrupted.word().into(),
            what: "finish".into(),
            on: task.to_string(),
            why: vec![format!("the daemon ended {} times while it ran", known.runs)],
            remedy: Some("see in `journalctl -u refloat` what ended the daemon, then queue it again".into()),
        };
        return Event::Ended { job, end: End::Failed { failure, result: None } };
    }
    Event::Requeued { job, why: "the daemon ended while it ran".into() }
}

/// The snapshot that this node took since then, if each store that was meant and can be read has it. In some of them
/// alone it is not what was asked for.
fn published(record: &Record, meant: &[String], started: Timestamp) -> Option<String> {
    let meant = record.stores.iter().filter(|(name, _)| meant.is_empty() || meant.contains(name));
    let mut found = None::<&String>;
    for (_, surveyed) in meant {
        let Survey::Good { own, .. } = &surveyed.seen else { continue };
        match (own, found) {
            (Some((id, taken_at)), None) if *taken_at >= started => found = Some(id),
            (Some((id, _)), Some(other)) if id == other => {}
            _ => return None,
        }
    }
    found.cloned()
}

#[cfg(test)]
mod tests {
    use super::super::job::{Job, JobId, Origin};
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Job 1 began at second 100 and is interrupted; stores with what this node took there, `None`: cannot be read.
    fn record(task: Task, runs: u32, stores: &[(&str, Option<Option<i64>>)]) -> Record {
        let mut record = Record::default();
        let id = JobId(1);
        let job = Job { id, task, origin: Origin::Hand { uid: 0 }, created_at: at(50) };
        record.apply(&Event::Queued { job }, at(50));
        for run in 0..runs {
            if run > 0 {
                record.apply(&Event::Requeued { job: id, why: String::new() }, at(99));
            }
            record.apply(&Event::Began { job: id, deadline_at: at(999) }, at(100));
            let open = found_open(&record);
            assert_eq!(open.len(), 1);
            record.apply(&open[0], at(200));
        }
        for (name, own) in stores {
            let seen = match own {
                Some(own) => Survey::Good {
                    snapshots: 1,
                    used: 1,
                    free: None,
                    total: None,
                    newest: None,
                    own: own.map(|second| (format!("s{second}"), at(second))),
                },
                None => Survey::Failed {
                    failure: Failure {
                        code: "io".into(),
                        what: String::new(),
                        on: String::new(),
                        why: vec![],
                        remedy: None,
                    },
                },
            };
            record.apply(&Event::Surveyed { store: name.to_string(), seen }, at(201));
        }
        record
    }

    #[test]
    fn what_is_there_has_succeeded_and_the_rest_runs_again() {
        let snapshot = |stores: &[&str]| Task::Snapshot {
            member: None,
            tags: vec![],
            stores: stores.iter().map(|s| s.to_string()).collect(),
        };
        let prune = Task::Prune { store: "a".into() };
        for (task, runs, stores, phase) in [
            (snapshot(&[]), 1, &[("a", Some(Some(100)))][..], Phase::Succeeded),
            // Taken before: it is not this job's.
            (snapshot(&[]), 1, &[("a", Some(Some(99)))], Phase::Queued),
            (snapshot(&[]), 1, &[("a", Some(None))], Phase::Queued),
            (snapshot(&[]), 1, &[("a", Some(Some(150))), ("b", Some(Some(150)))], Phase::Succeeded),
            (snapshot(&[]), 1, &[("a", Some(Some(150))), ("b", Some(Some(40)))], Phase::Queued),
            (snapshot(&["a"]), 1, &[("a", Some(Some(150))), ("b", Some(Some(40)))], Phase::Succeeded),
            (snapshot(&[]), 1, &[("a", Some(Some(150))), ("b", None)], Phase::Succeeded),
            (snapshot(&[]), 1, &[("a", None)], Phase::Queued),
            (snapshot(&[]), 1, &[], Phase::Queued),
            (snapshot(&[]), 3, &[("a", Some(Some(150)))], Phase::Succeeded),
            (snapshot(&[]), 3, &[("a", Some(None))], Phase::Failed),
            (prune.clone(), 1, &[("a", Some(Some(150)))], Phase::Queued),
            (prune, 3, &[], Phase::Failed),
        ] {
            let mut record = record(task.clone(), runs, stores);
            let events = settle(&record);
            assert_eq!(events.len(), 1, "{task:?}");
            record.apply(&events[0], at(300));
            assert_eq!(record.phase(JobId(1)), Some(phase), "{task:?} {runs} {stores:?}");
            assert!(settle(&record).is_empty() && found_open(&record).is_empty());
        }
    }

    #[test]
    fn what_was_being_canceled_is_canceled() {
        let mut record = record(Task::Verify { subject: "all".into(), store: None }, 0, &[]);
        record.apply(&Event::Began { job: JobId(1), deadline_at: at(999) }, at(100));
        record.apply(&Event::CancelAsked { job: JobId(1), uid: 0 }, at(101));
        for event in found_open(&record) {
            record.apply(&event, at(200));
        }
        assert_eq!(record.phase(JobId(1)), Some(Phase::Canceled));
        assert!(!needs_survey(&record));
    }
}
