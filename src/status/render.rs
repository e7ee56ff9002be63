//! The fold itself: pure.

use jiff::Timestamp;

use super::document::*;
use super::facts::Facts;
use super::jobs::jobs;
use super::summary::summary;
use crate::config::{Schedule as Configured, Settings, format_duration};
use crate::engine::command::Turn;
use crate::engine::core::{SNAPSHOT, timetable};
use crate::engine::event::{Newest as Seen, Skip, Survey, Verdict};
use crate::engine::queue::LedgerState;
use crate::engine::record::Decision;
use crate::engine::schedule::is_paused;

/// Jobs that are over and part of the status; `refloat jobs list` has more.
const OVER: usize = 5;

/// What is so at `now`, by the engine's last turn, in the light of `facts`.
pub fn render(turn: &Turn, facts: &Facts, settings: &Settings, now: Timestamp) -> Status {
    let record = &turn.record;
    let stores: Vec<Store> = settings.stores.iter().map(|s| store(turn, &s.name)).collect();
    let newest = newest(turn, settings);
    let revision = facts.member.as_ref().and_then(|m| m.answer.as_ref().ok()).map(|answer| answer.revision);
    let point = |newest: Option<(Timestamp, i64)>| StorePoint {
        seconds: newest.map(|(at, _)| now.duration_since(at).as_secs().max(0)),
        revisions: newest.and_then(|(_, of)| Some((revision? - of).max(0))),
    };
    let by_store = stores.iter().map(|s| (s.name.clone(), point(s.newest.as_ref().map(|n| (n.taken_at, n.revision)))));
    let best = point(newest.map(|n| (n.taken_at, n.revision)));
    let mut all = jobs(turn);
    let open = all.iter().filter(|job| !job.state.is_over()).count();
    all.truncate(open + OVER);
    let mut status = Status {
        schema: 1,
        at: now,
        node: settings.node.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        pid: record.run.as_ref().map(|run| run.pid),
        started_at: record.run.as_ref().map(|run| run.started_at),
        lineage: newest.map(|n| n.lineage.clone()),
        timeline: newest.map(|n| n.timeline.clone()),
        cluster_id: newest.and_then(|n| n.cluster_id.clone()),
        summary: String::new(),
        recovery_point: RecoveryPoint {
            seconds: best.seconds,
            revisions: best.revisions,
            by_store: by_store.collect(),
        },
        last_verified: newest.map(|n| n.id.clone()),
        next_run: turn.next.get(SNAPSHOT).copied().flatten(),
        jobs: all,
        holes: Vec::new(),
        stores,
        restore_ready: None,
        health: facts.health.clone(),
        fence: None,
        schedules: vec![schedule(turn, settings, now)],
        troubles: troubles(turn, facts),
        member: facts.member.as_ref().map(|member| {
            let answer = member.answer.as_ref().ok();
            Member {
                url: member.url.clone(),
                at: member.at,
                name: answer.map(|a| a.name.clone()),
                version: answer.map(|a| a.version.clone()),
                revision: answer.map(|a| a.revision),
                db_size: answer.map(|a| a.db_size),
                error: member.answer.as_ref().err().cloned(),
            }
        }),
        units: facts.units.values().filter(|unit| unit.load != "not-found").map(unit).collect(),
        ledger: ledger(&turn.ledger),
        draining: turn.draining,
    };
    status.summary = summary(&status, turn);
    status
}

/// The newest verified snapshot in any store that is configured.
fn newest<'t>(turn: &'t Turn, settings: &Settings) -> Option<&'t Seen> {
    let seen = settings.stores.iter().filter_map(|s| match &turn.record.stores.get(&s.name)?.seen {
        Survey::Good { newest, .. } => newest.as_ref(),
        Survey::Failed { .. } => None,
    });
    seen.max_by_key(|newest| newest.taken_at)
}

fn store(turn: &Turn, name: &str) -> Store {
    let surveyed = turn.record.stores.get(name);
    let mut store = Store {
        name: name.into(),
        state: "unknown".into(),
        read_at: surveyed.map(|s| s.at),
        free: None,
        total: None,
        used: None,
        snapshots: None,
        newest: None,
        error: None,
    };
    match surveyed.map(|s| &s.seen) {
        None => {}
        Some(Survey::Failed { failure }) => {
            store.state = "failed".into();
            store.error = Some(failure.clone());
        }
        Some(Survey::Good { snapshots, used, free, total, newest, own: _ }) => {
            store.state = "good".into();
            (store.free, store.total) = (*free, *total);
            (store.used, store.snapshots) = (Some(*used), Some(*snapshots));
            store.newest =
                newest.as_ref().map(|n| Newest { id: n.id.clone(), taken_at: n.taken_at, revision: n.revision });
        }
    }
    store
}

fn schedule(turn: &Turn, settings: &Settings, now: Timestamp) -> Schedule {
    let cursor = turn.record.schedules.get(SNAPSHOT);
    let paused = cursor.and_then(|c| c.paused.as_ref()).filter(|paused| is_paused(paused, now));
    let snapshot = &settings.snapshot;
    Schedule {
        name: SNAPSHOT.into(),
        expression: match &snapshot.schedule {
            Configured::Cron(cron) => cron.as_str().into(),
            Configured::Every(period) => format!("every {}", format_duration(*period)),
        },
        timezone: snapshot.timezone.iana_name().unwrap_or("UTC").into(),
        window: snapshot.window.map(|window| window.to_string()),
        shift: timetable(settings, now).shift.as_secs(),
        cursor: cursor.and_then(|c| c.slot),
        next_run: turn.next.get(SNAPSHOT).copied().flatten(),
        paused: paused.is_some(),
        paused_until: paused.and_then(|p| p.until),
        last: cursor.map(|c| c.decisions.iter().rev().map(decision).collect()).unwrap_or_default(),
    }
}

fn decision(decision: &Decision) -> ScheduleDecision {
    let (verdict, reason, job) = match &decision.verdict {
        Verdict::Run { job } => ("run", None, Some(job.id.to_string())),
        Verdict::Skipped { why: Skip::Busy { job } } => {
            ("skipped", Some(format!("job {job} takes one already")), Some(job.to_string()))
        }
        Verdict::Skipped { why: Skip::Paused } => ("skipped", Some("it is paused".into()), None),
        Verdict::Skipped { why: Skip::Window } => ("skipped", Some("outside of its window".into()), None),
        Verdict::Begin => ("begin", Some("the schedule counts from here".into()), None),
        Verdict::Follow => ("follow", Some("the wall clock stepped back".into()), None),
    };
    ScheduleDecision {
        at: decision.at,
        slot: decision.slot,
        verdict: verdict.into(),
        reason,
        job,
        missed: decision.missed.as_ref().map_or(0, |missed| missed.slots),
    }
}

/// Those that were recorded; the member's own word is newer than any record.
fn troubles(turn: &Turn, facts: &Facts) -> Vec<Trouble> {
    let recorded = turn.record.troubles.iter().map(|(about, trouble)| Trouble {
        about: about.clone(),
        since: trouble.since,
        error: trouble.failure.clone(),
    });
    let mut all: Vec<Trouble> = recorded.collect();
    if let Some(why) = &facts.no_bus {
        all.push(Trouble {
            about: "systemd".into(),
            since: turn.at,
            error: crate::engine::failure::Failure {
                code: "member-gone".into(),
                what: "watch the units of etcd, kubelet and the container runtime".into(),
                on: String::new(),
                why: vec![why.clone()],
                remedy: Some("nothing is lost by it: only their state is not shown".into()),
            },
        });
    }
    all
}

fn unit(unit: &crate::host::units::UnitFacts) -> Unit {
    Unit {
        name: unit.name.clone(),
        active: unit.active.clone(),
        sub: unit.sub.clone(),
        restarts: unit.restarts,
        main_pid: unit.main_pid,
        since: unit.since,
    }
}

fn ledger(state: &LedgerState) -> LedgerWord {
    match state {
        LedgerState::Good => LedgerWord { state: "good".into(), why: None },
        LedgerState::Silent { since } => {
            LedgerWord { state: "silent".into(), why: Some(format!("no answer since {since:.0}")) }
        }
        LedgerState::Fails { why } => LedgerWord { state: "failing".into(), why: Some(why.clone()) },
    }
}
