//! The loop with fake work: queue, lanes, cancel, a ledger that fails, restarts after a kill at each record.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::command::{Command, Turn};
use super::core::SNAPSHOT;
use super::event::{Event, Survey, Verdict};
use super::job::{JobId, Task};
use super::phase::Phase;
use super::queue::{LedgerState, Wait};
use super::testing::*;
use crate::error::Code;

const NOON: &str = "2026-12-01T12:10:00Z";

fn snapshot() -> Task {
    Task::Snapshot { member: None, tags: vec![], stores: vec![] }
}

fn prune(store: &str) -> Task {
    Task::Prune { store: store.into() }
}

fn verify() -> Task {
    Task::Verify { subject: "all".into(), store: None }
}

/// A store with a snapshot that this node took a minute ago, so that the schedule does not begin with a run.
fn fresh() -> Arc<Fakes> {
    let works = Arc::new(Fakes::default());
    let own = Some(("s".to_string(), "2026-12-01T12:09:00Z".parse().unwrap()));
    let seen = Survey::Good { snapshots: 1, used: 1, free: None, total: None, newest: None, own };
    *works.stores.lock().unwrap() = vec![("local".into(), seen)];
    works
}

fn phase(turn: &Turn, id: u64) -> Option<Phase> {
    turn.record.phase(JobId(id))
}

#[tokio::test]
async fn a_hung_snapshot_holds_nobody_else_and_is_canceled_within_five_seconds() {
    let bench = start(Disk::default(), fresh(), NOON, "");
    bench.works.set("snapshot", Goes::Hangs);
    let hung = bench.handle.submit(snapshot(), 0).await.unwrap();
    assert_eq!(hung, (JobId(1), false));
    bench.until("it streams", |t| t.record.jobs[&JobId(1)].step.as_deref() == Some("stream")).await;
    for (task, id) in [(verify(), 2), (prune("a"), 3), (snapshot(), 4), (snapshot(), 4)] {
        assert_eq!(bench.handle.submit(task, 0).await.unwrap().0, JobId(id));
    }
    let turn = bench
        .until("the others ended", |t| phase(t, 2) == Some(Phase::Succeeded) && phase(t, 3) == Some(Phase::Succeeded));
    let turn = turn.await;
    let wait = Wait::Lane { lane: super::lane::Lane::Member, job: JobId(1) };
    assert_eq!(turn.waits.get(&JobId(4)), Some(&wait));
    assert!(turn.live[&JobId(1)].far().is_some());

    bench.handle.cancel(JobId(1), 0).await.unwrap();
    bench.until("it is canceled", |t| phase(t, 1) == Some(Phase::Canceled)).await;
    bench.works.set("snapshot", Goes::Well);
    bench.until("the next one ran", |t| phase(t, 4) == Some(Phase::Succeeded)).await;
    assert_eq!(bench.handle.cancel(JobId(1), 0).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(bench.handle.cancel(JobId(99), 0).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn a_call_that_never_returns_is_given_up_and_its_lane_named() {
    let bench = start(Disk::default(), fresh(), NOON, "");
    bench.works.set("snapshot", Goes::Stuck);
    bench.handle.submit(snapshot(), 0).await.unwrap();
    bench.until("it runs", |t| phase(t, 1) == Some(Phase::Running)).await;
    let asked = std::time::Instant::now();
    bench.handle.cancel(JobId(1), 0).await.unwrap();
    bench.handle.submit(snapshot(), 0).await.unwrap();
    let turn = bench.until("it is given up", |t| phase(t, 1) == Some(Phase::Canceled)).await;
    assert!(asked.elapsed() < std::time::Duration::from_secs(5));
    assert_eq!(turn.stuck.len(), 1);
    let turn =
        bench.until("the next waits for it", |t| matches!(t.waits.get(&JobId(2)), Some(Wait::Stuck { .. }))).await;
    assert!(turn.waits[&JobId(2)].to_string().contains("call of job 1"));
    // It comes back after all.
    bench.works.set("snapshot", Goes::Well);
    let turn = bench.until("the next ran", |t| phase(t, 2) == Some(Phase::Succeeded)).await;
    assert_eq!((turn.stuck.len(), phase(&turn, 1)), (0, Some(Phase::Canceled)));
}

#[tokio::test]
async fn a_queued_job_is_canceled_at_once() {
    let bench = start(Disk::default(), fresh(), NOON, "");
    bench.works.set("verify", Goes::Hangs);
    bench.handle.submit(verify(), 0).await.unwrap();
    bench.until("it runs", |t| phase(t, 1) == Some(Phase::Running)).await;
    let other = Task::Verify { subject: "latest".into(), store: None };
    bench.handle.submit(other, 0).await.unwrap();
    bench.handle.cancel(JobId(2), 7).await.unwrap();
    bench.until("it is over", |t| phase(t, 2) == Some(Phase::Canceled)).await;
    while bench.works.ran().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(bench.works.ran(), ["verify all"]);
}

#[tokio::test]
async fn a_full_disk_stops_what_removes_and_nothing_else() {
    let disk = Disk::default();
    let bench = start(disk.clone(), fresh(), NOON, "");
    bench.until("it is ready", |t| t.ready).await;
    *disk.breaks.lock().unwrap() = Break::Full;
    let mut asking = Vec::new();
    let mut submit = |task| {
        let (reply, answer) = tokio::sync::oneshot::channel();
        asking.push(answer);
        bench.handle.tell(Command::Submit { task, origin: super::job::Origin::Hand { uid: 0 }, reply })
    };
    submit(prune("a")).await;
    submit(snapshot()).await;
    let turn = bench.until("the ledger fails", |t| matches!(t.ledger, LedgerState::Fails { .. })).await;
    assert!(turn.record.jobs.len() >= 2);
    // The pause after a failure is by the clock of the engine.
    let ran = |t: &Turn| phase(t, 2) == Some(Phase::Succeeded);
    for _ in 0..20 {
        bench.advance(11, 11);
        bench.nudge().await;
        if ran(&bench.handle.turn()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let turn = bench.until("the snapshot ran", ran).await;
    assert_eq!(phase(&turn, 1), Some(Phase::Queued));
    assert_eq!(bench.works.ran(), ["snapshot [\"ledger-full\"]"]);
    *disk.breaks.lock().unwrap() = Break::No;
    for _ in 0..3 {
        bench.advance(11, 11);
        bench.nudge().await;
    }
    bench.until("the prune ran", |t| phase(t, 1) == Some(Phase::Succeeded)).await;
    // Nothing that happened meanwhile is lost.
    bench.handle.tell(Command::Drain { grace: std::time::Duration::ZERO }).await;
    bench.task.await.unwrap();
    let record = disk.record();
    assert_eq!((record.phase(JobId(1)), record.phase(JobId(2))), (Some(Phase::Succeeded), Some(Phase::Succeeded)));
    assert_eq!(disk.events().last(), Some(&Event::Stopped));
}

#[tokio::test]
async fn a_silent_ledger_is_named_and_the_loop_goes_on() {
    let disk = Disk::default();
    let bench = start(disk.clone(), fresh(), NOON, "");
    bench.until("it is ready", |t| t.ready && t.ledger == LedgerState::Good).await;
    *disk.breaks.lock().unwrap() = Break::Silent;
    let (reply, _answer) = tokio::sync::oneshot::channel();
    let origin = super::job::Origin::Hand { uid: 0 };
    bench.handle.tell(Command::Submit { task: verify(), origin, reply }).await;
    let turn = bench.until("it is silent", |t| matches!(t.ledger, LedgerState::Silent { .. })).await;
    assert_eq!(phase(&turn, 1), Some(Phase::Queued));
    // Nothing can be recorded, so the end does not wait for it either.
    bench.handle.tell(Command::Drain { grace: std::time::Duration::ZERO }).await;
    bench.task.await.unwrap();
}

#[tokio::test]
async fn ended_by_a_drain_it_runs_again_after_the_start() {
    let disk = Disk::default();
    let bench = start(disk.clone(), fresh(), NOON, "");
    bench.works.set("snapshot", Goes::Hangs);
    bench.handle.submit(snapshot(), 0).await.unwrap();
    bench.until("it runs", |t| phase(t, 1) == Some(Phase::Running)).await;
    bench.handle.tell(Command::Drain { grace: std::time::Duration::ZERO }).await;
    bench.task.await.unwrap();
    assert_eq!(disk.record().phase(JobId(1)), Some(Phase::Interrupted));
    assert!(bench.handle.submit(snapshot(), 0).await.is_err());

    let again = start(disk, fresh(), NOON, "");
    let turn = again.until("it ran again", |t| phase(t, 1) == Some(Phase::Succeeded)).await;
    assert_eq!(turn.record.jobs[&JobId(1)].runs, 2);
}

/// Whatever prefix of the records is on the disk, the next start loses no job and runs none twice at once.
#[tokio::test]
async fn killed_after_any_record_no_job_is_lost() {
    let disk = Disk::default();
    let bench = start(disk.clone(), Arc::default(), NOON, "");
    bench.until("the scheduled one ran", |t| phase(t, 1) == Some(Phase::Succeeded)).await;
    bench.handle.submit(prune("a"), 0).await.unwrap();
    bench.until("so did the prune", |t| phase(t, 2) == Some(Phase::Succeeded)).await;
    bench.handle.tell(Command::Drain { grace: std::time::Duration::ZERO }).await;
    bench.task.await.unwrap();
    let all = disk.entries.lock().unwrap().clone();
    assert!(all.len() > 8, "{all:#?}");
    for len in 0..=all.len() {
        let cut = Disk::default();
        *cut.entries.lock().unwrap() = all[..len].to_vec();
        let before = cut.record();
        let bench = start(cut.clone(), Arc::default(), NOON, "");
        let known: Vec<JobId> = before.jobs.keys().copied().collect();
        let turn = bench
            .until("all is over", |t| {
                t.ready
                    && t.record.open().next().is_none()
                    && t.ledger == LedgerState::Good
                    && t.record.schedules.contains_key(SNAPSHOT)
            })
            .await;
        for id in &known {
            assert!(turn.record.jobs.contains_key(id), "{len}: job {id} is lost");
        }
        // One slot was decided, and one job came of it, whenever the end came.
        let runs = |t: &Turn| {
            let decided = t.record.schedules[SNAPSHOT].decisions.iter();
            decided.filter(|d| matches!(d.verdict, Verdict::Run { .. })).count()
        };
        assert!(runs(&turn) <= 1, "{len}");
        let over: Vec<&str> = turn.record.jobs.values().map(|k| k.job.task.kind()).collect();
        assert!(over.iter().filter(|kind| **kind == "snapshot").count() <= 1, "{len}: {over:?}");
        // What the record says is what the disk says.
        bench.handle.tell(Command::Drain { grace: std::time::Duration::ZERO }).await;
        bench.task.await.unwrap();
        let mut last = bench.handle.turn().record.as_ref().clone();
        last.run = None;
        assert_eq!(cut.record(), last, "{len}");
    }
}

#[tokio::test]
async fn a_slot_that_comes_while_one_runs_is_skipped_with_the_reason() {
    let bench = start(Disk::default(), fresh(), "2026-12-01T12:10:00Z", "[snapshot]\nshift = \"0s\"\n");
    bench.works.set("snapshot", Goes::Hangs);
    bench.until("it is ready", |t| t.ready && t.record.schedules.contains_key(SNAPSHOT)).await;
    bench.handle.submit(snapshot(), 0).await.unwrap();
    bench.until("it runs", |t| phase(t, 1) == Some(Phase::Running)).await;
    bench.advance(20 * 60, 20 * 60);
    bench.nudge().await;
    let turn = bench.until("the slot is decided", |t| t.record.schedules[SNAPSHOT].decisions.len() == 2).await;
    let decided = &turn.record.schedules[SNAPSHOT].decisions[1];
    assert_eq!(decided.slot.to_string(), "2026-12-01T12:30:00Z");
    assert_eq!(decided.verdict, Verdict::Skipped { why: super::event::Skip::Busy { job: JobId(1) } });
    assert_eq!(turn.record.jobs.len(), 1);
}

#[tokio::test]
async fn a_step_of_the_clock_holds_prunes_until_it_is_undone() {
    let bench = start(Disk::default(), fresh(), NOON, "");
    bench.until("it is ready", |t| t.ready && t.record.schedules.contains_key(SNAPSHOT)).await;
    bench.advance(86_400, 1);
    bench.nudge().await;
    let turn = bench.until("the step is seen", |t| t.record.clock.is_some()).await;
    assert_eq!(turn.record.clock.unwrap().seconds, 86_399);
    // One run for all that were missed.
    bench.until("it ran", |t| phase(t, 1) == Some(Phase::Succeeded)).await;
    let turn = bench.handle.turn();
    let missed = turn.record.schedules[SNAPSHOT].decisions.last().unwrap().missed.clone().unwrap();
    assert_eq!((missed.slots, turn.record.jobs.len()), (47, 1));
    bench.handle.submit(prune("local"), 0).await.unwrap();
    bench.until("it waits", |t| matches!(t.waits.get(&JobId(2)), Some(Wait::Clock { .. }))).await;
    bench.advance(-86_400, 1);
    bench.nudge().await;
    bench.until("it ran", |t| phase(t, 2) == Some(Phase::Succeeded)).await;
    assert_eq!(bench.handle.turn().record.clock, None);
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let bench = start(Disk::default(), Arc::default(), NOON, "[snapshot]\nshift = \"0s\"\n");
    bench.works.set("snapshot", Goes::Fails(Code::MemberGone));
    bench.until("it failed", |t| phase(t, 1) == Some(Phase::Failed)).await;
    bench.works.set("snapshot", Goes::Well);
    bench.advance(61, 61);
    bench.nudge().await;
    let turn = bench.until("it ran", |t| phase(t, 2) == Some(Phase::Succeeded)).await;
    let origin = turn.record.jobs[&JobId(2)].job.origin.to_string();
    assert!(origin.ends_with("try 2"), "{origin}");
    assert_eq!(turn.record.schedules[SNAPSHOT].failed, 0);
}

#[tokio::test]
async fn a_failure_calls_for_no_prune() {
    let bench = start(Disk::default(), fresh(), NOON, "");
    bench.until("it is ready", |t| t.ready).await;
    bench.works.set("snapshot", Goes::Fails(Code::Io));
    bench.handle.submit(snapshot(), 0).await.unwrap();
    let turn = bench.until("it failed", |t| phase(t, 1) == Some(Phase::Failed)).await;
    assert_eq!(turn.record.jobs.len(), 1);
}

/// Three days down, with a slot each half hour: one run, at once, and nothing is pruned before it.
#[tokio::test]
async fn after_three_days_one_run_follows() {
    let disk = Disk::default();
    let bench = start(disk.clone(), Arc::default(), NOON, "[snapshot]\nshift = \"0s\"\n");
    bench.until("the first ran", |t| phase(t, 1) == Some(Phase::Succeeded)).await;
    bench.handle.tell(Command::Drain { grace: std::time::Duration::ZERO }).await;
    bench.task.await.unwrap();
    // Also with another schedule than before.
    for config in ["[snapshot]\nshift = \"0s\"\n", "[snapshot]\nevery = \"1h\"\nshift = \"0s\"\n"] {
        let copy = Disk::default();
        *copy.entries.lock().unwrap() = disk.entries.lock().unwrap().clone();
        let bench = start(copy, Arc::default(), "2026-12-04T12:10:00Z", config);
        let turn = bench.until("one more ran", |t| phase(t, 2) == Some(Phase::Succeeded)).await;
        let decided = turn.record.schedules[SNAPSHOT].decisions.last().unwrap();
        assert!(decided.missed.as_ref().is_some_and(|missed| missed.slots > 70), "{decided:?}");
        bench.nudge().await;
        let turn = bench.until("it looked again", |t| t.waits.is_empty() && t.live.is_empty()).await;
        assert_eq!((turn.record.jobs.len(), bench.works.ran()), (2, vec!["snapshot".to_string()]));
    }
}

/// What retention cannot read, and whatever else a prune meets, moves no cursor.
#[tokio::test]
async fn a_prune_that_fails_touches_no_cursor() {
    let bench = start(Disk::default(), fresh(), NOON, "");
    let turn = bench.until("it is ready", |t| t.ready && t.record.schedules.contains_key(SNAPSHOT)).await;
    let before = turn.record.schedules[SNAPSHOT].clone();
    bench.works.set("prune", Goes::Fails(Code::ListingInDoubt));
    bench.handle.submit(prune("local"), 0).await.unwrap();
    let turn = bench.until("it failed", |t| phase(t, 1) == Some(Phase::Failed)).await;
    assert_eq!(turn.record.schedules[SNAPSHOT], before);
    assert_eq!(turn.record.jobs[&JobId(1)].failure().unwrap().code, "listing-in-doubt");
}

#[tokio::test]
async fn a_long_ledger_on_a_full_disk_is_not_begun_anew_at_each_turn() {
    let disk = Disk::default();
    let bench = start(disk.clone(), fresh(), NOON, "");
    bench.until("it is ready", |t| t.ready).await;
    let turns = async |n: usize| {
        for _ in 0..n {
            assert!(bench.handle.cancel(JobId(99), 0).await.is_err());
            // Lets the loop take the answer of the disk.
            bench.nudge().await;
        }
        disk.rotations.swap(0, Ordering::SeqCst)
    };
    disk.size.store(5 << 20, Ordering::SeqCst);
    *disk.breaks.lock().unwrap() = Break::Full;
    assert_eq!(turns(50).await, 1);
    bench.advance(11, 11);
    assert_eq!(turns(50).await, 1, "it is tried again after a while");
    *disk.breaks.lock().unwrap() = Break::No;
    bench.advance(11, 11);
    // What is known alone is more than a file should hold: a new one would not be shorter.
    assert_eq!(turns(50).await, 1);
    disk.size.store(11 << 20, Ordering::SeqCst);
    assert_eq!(turns(1).await, 1);
}

#[tokio::test]
async fn a_slot_that_is_due_does_not_keep_a_drain_turning() {
    let bench = start(Disk::default(), fresh(), NOON, "[snapshot]\nshift = \"0s\"\n");
    bench.works.set("snapshot", Goes::Hangs);
    bench.handle.submit(snapshot(), 0).await.unwrap();
    bench.until("it streams", |t| t.record.jobs[&JobId(1)].step.as_deref() == Some("stream")).await;
    bench.handle.tell(Command::Drain { grace: std::time::Duration::from_secs(3600) }).await;
    bench.advance(1300, 1300);
    bench.nudge().await;
    bench.until("it drains", |t| t.draining).await;
    let before = bench.turned.load(Ordering::SeqCst);
    let busy = async {
        while bench.turned.load(Ordering::SeqCst) < before + 50 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    // Nothing happens: the loop turns for nobody.
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), busy).await.is_err());
    bench.task.abort();
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_not_done() {
    let bench = start(Disk::default(), fresh(), NOON, "");
    bench.until("it is ready", |t| t.ready).await;
    let (reply, answer) = tokio::sync::oneshot::channel();
    drop(answer);
    let origin = super::job::Origin::Hand { uid: 0 };
    bench.handle.tell(Command::Submit { task: snapshot(), origin, reply }).await;
    // Whoever asked was told that it failed, and asks again.
    assert_eq!(bench.handle.submit(verify(), 0).await.unwrap(), (JobId(1), false));
}
