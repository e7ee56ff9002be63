//! One record, one status: what the sentence, the recovery point and the jobs say of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::*;
use crate::config::{self, Settings, Surroundings};
use crate::engine::command::Turn;
use crate::engine::event::{End, Event, Newest as Seen, Survey};
use crate::engine::failure::Failure;
use crate::engine::job::{Job as Queued, JobId, Origin, Task};
use crate::engine::lane::Lane;
use crate::engine::phase::Phase;
use crate::engine::queue::{LedgerState, Wait};
use crate::engine::record::Record;

const NOW: &str = "2026-12-01T12:10:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn settings() -> Settings {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("refloat.toml");
    let text =
        "node = \"cp1\"\n[[store]]\nname = \"a\"\nurl = \"file:///a\"\n[[store]]\nname = \"b\"\nurl = \"file:///b\"\n";
    std::fs::write(&file, text).unwrap();
    let surroundings = Surroundings { root: "/".into(), host_name: "cp1".into(), credentials: None };
    config::load(&surroundings, Some(&file)).unwrap().settings
}

fn failure(code: &str) -> Failure {
    Failure { code: code.into(), what: "act".into(), on: "it".into(), why: vec!["so".into()], remedy: None }
}

fn store(id: &str, taken: &str, revision: i64) -> Survey {
    let newest = Seen {
        id: id.into(),
        taken_at: at(taken),
        revision,
        lineage: "l".into(),
        timeline: "t".into(),
        cluster_id: Some("c".into()),
        node: "cp1".into(),
    };
    Survey::Good { snapshots: 2, used: 10, free: Some(5), total: Some(20), newest: Some(newest), own: None }
}

fn record(events: &[Event]) -> Record {
    let mut record = Record::default();
    events.iter().for_each(|event| record.apply(event, at("2026-12-01T12:00:00Z")));
    record
}

fn turn(record: Record) -> Turn {
    Turn {
        at: at(NOW),
        record: Arc::new(record),
        live: BTreeMap::new(),
        waits: BTreeMap::new(),
        stuck: Vec::new(),
        ledger: LedgerState::Good,
        next: BTreeMap::from([("snapshot".to_string(), Some(at("2026-12-01T12:30:13Z")))]),
        draining: false,
        ready: true,
    }
}

fn job(id: u64, task: Task) -> Event {
    Event::Queued { job: Queued { id: JobId(id), task, origin: Origin::Hand { uid: 0 }, created_at: at(NOW) } }
}

fn snapshot() -> Task {
    Task::Snapshot { member: None, tags: vec![], stores: vec![] }
}

fn shown(turn: &Turn, facts: &Facts) -> Status {
    render(turn, facts, &settings(), at(NOW))
}

fn surveyed(name: &str, seen: Survey) -> Event {
    Event::Surveyed { store: name.into(), seen }
}

#[test]
fn the_recovery_point_is_that_of_the_best_store() {
    let events = [
        surveyed("a", store("old", "2026-12-01T11:00:00Z", 50)),
        surveyed("b", store("new", "2026-12-01T12:00:00Z", 80)),
        // Not configured any more.
        surveyed("gone", store("newest", "2026-12-01T12:09:00Z", 90)),
    ];
    let answer = Answer { name: "m".into(), version: "3.6.16".into(), revision: 100, db_size: 7 };
    let member = MemberFact { at: at(NOW), url: "http://m".into(), answer: Ok(answer) };
    let facts = Facts { member: Some(member), ..Facts::default() };
    let status = shown(&turn(record(&events)), &facts);
    assert_eq!((status.recovery_point.seconds, status.recovery_point.revisions), (Some(600), Some(20)));
    assert_eq!(status.last_verified.as_deref(), Some("new"));
    let points: Vec<_> =
        status.recovery_point.by_store.iter().map(|(n, p)| (n.as_str(), p.seconds, p.revisions)).collect();
    assert_eq!(points, [("a", Some(4200), Some(50)), ("b", Some(600), Some(20))]);
    assert_eq!(status.summary, "last verified snapshot 10 min old; next 12:30 UTC");
    // A member that does not answer: how far it is ahead is unknown, not nothing.
    let status = shown(&turn(record(&events)), &Facts::default());
    assert_eq!((status.recovery_point.seconds, status.recovery_point.revisions), (Some(600), None));
}

#[test]
fn unknown_is_not_empty_and_failed_is_not_unknown() {
    let events = [surveyed("b", Survey::Failed { failure: failure("store-missing") })];
    let status = shown(&turn(record(&events)), &Facts::default());
    let stores: Vec<_> = status.stores.iter().map(|s| (s.name.as_str(), s.state.as_str(), s.snapshots)).collect();
    assert_eq!(stores, [("a", "unknown", None), ("b", "failed", None)]);
    assert_eq!(status.recovery_point.seconds, None);
    assert_eq!(status.summary, "store b cannot be read; no verified snapshot; next 12:30 UTC");
}

#[test]
fn the_sentence_says_what_is_wrong_first() {
    let trouble = |about: &str| Event::Troubled { about: about.into(), failure: failure("member-gone") };
    let failed = Event::Ended { job: JobId(1), end: End::Failed { failure: failure("io"), result: None } };
    let began = |id| Event::Began { job: JobId(id), deadline_at: at(NOW) };
    let step = Event::Step { job: JobId(2), step: "stream".into() };
    let events = [
        trouble("etcd"),
        job(1, snapshot()),
        began(1),
        failed,
        job(2, snapshot()),
        began(2),
        step,
        job(3, Task::Verify { subject: "all".into(), store: None }),
    ];
    let mut turn = turn(record(&events));
    turn.waits.insert(JobId(3), Wait::Lane { lane: Lane::Check, job: JobId(9) });
    let status = shown(&turn, &Facts::default());
    assert_eq!(
        status.summary,
        "etcd: act it: so; the last snapshot failed (io); snapshot (stream); 1 queued; no verified snapshot; next 12:30 UTC"
    );
    let jobs: Vec<_> = status.jobs.iter().map(|j| (j.id.0, j.state, j.reason.as_deref())).collect();
    assert_eq!(
        jobs,
        [
            (2, Phase::Running, None),
            (3, Phase::Queued, Some("lane check is taken by job 9")),
            (1, Phase::Failed, Some("act it: so")),
        ]
    );
    // Later versions add names; these are an interface.
    let document = serde_json::to_value(&status).unwrap();
    for name in [
        "schema",
        "node",
        "lineage",
        "timeline",
        "cluster_id",
        "summary",
        "recovery_point",
        "last_verified",
        "next_run",
        "jobs",
        "holes",
        "stores",
        "restore_ready",
        "health",
        "fence",
    ] {
        assert!(document.get(name).is_some(), "{name}");
    }
    for name in [
        "id",
        "kind",
        "state",
        "reason",
        "step",
        "progress",
        "lanes",
        "created_at",
        "started_at",
        "deadline_at",
        "ended_at",
        "outcome",
        "code",
    ] {
        assert!(document["jobs"][0].get(name).is_some(), "{name}");
    }
    assert_eq!((&document["jobs"][0]["id"], &document["jobs"][0]["state"]), (&"2".into(), &"running".into()));
    let back: Status = serde_json::from_value(document).unwrap();
    assert_eq!(back, status);
}

#[test]
fn a_pause_a_drain_and_a_silent_ledger_are_said() {
    let paused = Event::Paused { schedule: "snapshot".into(), until: Some(at("2026-12-01T15:00:00Z")), uid: 0 };
    let mut turn = turn(record(&[paused]));
    assert_eq!(shown(&turn, &Facts::default()).summary, "no verified snapshot; paused until 15:00 UTC");
    turn.draining = true;
    turn.ledger = LedgerState::Silent { since: at(NOW) };
    let status = shown(&turn, &Facts::default());
    assert_eq!(status.summary, "ending; the ledger is silent; no verified snapshot; paused until 15:00 UTC");
    assert_eq!(status.ledger.why.as_deref(), Some("no answer since 2026-12-01T12:10:00Z"));
    assert!(status.schedules[0].paused);
}

#[test]
fn ages() {
    for (seconds, text) in [
        (0, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 days"),
    ] {
        assert_eq!(ago(seconds), text);
    }
}
