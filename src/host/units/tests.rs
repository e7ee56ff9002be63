//! Against a systemd of our own on a bus of our own.

use super::super::fake::{Bus, DEADLINE, Fake, Systemd};
use super::*;

struct Watching {
    reports: mpsc::Receiver<UnitReport>,
    cancel: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Watching {
    fn start(address: &str, units: &[&str]) -> Watching {
        let (changed, reports) = mpsc::channel(16);
        let cancel = CancellationToken::new();
        let units = units.iter().map(|unit| unit.to_string()).collect();
        let task = tokio::spawn(watch(units, Some(address.into()), changed, cancel.clone()));
        Watching { reports, cancel, task }
    }

    async fn next(&mut self) -> UnitReport {
        tokio::time::timeout(DEADLINE, self.reports.recv()).await.unwrap().unwrap()
    }

    async fn unit(&mut self) -> UnitFacts {
        match self.next().await {
            UnitReport::Unit(facts) => facts,
            absent => panic!("{absent:?}"),
        }
    }

    /// Ends, and has nothing more to say.
    async fn end(mut self) {
        self.cancel.cancel();
        tokio::time::timeout(DEADLINE, self.task).await.unwrap().unwrap();
        assert_eq!(self.reports.recv().await, None);
    }
}

fn running(name: &str) -> UnitFacts {
    UnitFacts {
        name: name.into(),
        load: "loaded".into(),
        active: "active".into(),
        sub: "running".into(),
        main_pid: 4711,
        restarts: 0,
        since: Some(Timestamp::from_second(1_700_000_000).unwrap()),
        result: "success".into(),
    }
}

fn missing(name: &str) -> UnitFacts {
    let (load, active, sub) = ("not-found".into(), "inactive".into(), "dead".into());
    UnitFacts { name: name.into(), load, active, sub, main_pid: 0, restarts: 0, since: None, result: String::new() }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_unit_is_told_once_and_again_when_it_differs() {
    let Some(bus) = Bus::start() else { return };
    let systemd = Systemd::start(&bus, &[("etcd.service", Fake::RUNNING), ("other.service", Fake::RUNNING)]).await;
    let mut watching = Watching::start(&bus.address(), &["etcd.service", "kubelet.service"]);
    assert_eq!(watching.unit().await, running("etcd.service"));
    assert_eq!(watching.unit().await, missing("kubelet.service"));

    // Restarted by systemd: another process, one more restart.
    systemd.change("etcd.service", |unit| (unit.pid, unit.restarts) = (4712, 1)).await;
    let restarted = UnitFacts { main_pid: 4712, restarts: 1, ..running("etcd.service") };
    assert_eq!(watching.unit().await, restarted);
    // Neither another unit nor a signal without a difference is told.
    systemd.change("other.service", |unit| unit.pid = 1).await;
    systemd.change("etcd.service", |_| {}).await;
    systemd.reloading(false).await;
    systemd
        .change("etcd.service", |unit| {
            *unit = Fake { active: "failed", sub: "failed", pid: 0, result: "exit-code", changed: 0, ..unit.clone() };
        })
        .await;
    let failed = UnitFacts {
        active: "failed".into(),
        sub: "failed".into(),
        main_pid: 0,
        since: None,
        result: "exit-code".into(),
        ..restarted
    };
    assert_eq!(watching.unit().await, failed);
    watching.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_dies_and_returns() {
    let Some(mut bus) = Bus::start() else { return };
    let first = Systemd::start(&bus, &[("etcd.service", Fake::RUNNING)]).await;
    let mut watching = Watching::start(&bus.address(), &["etcd.service"]);
    assert_eq!(watching.unit().await, running("etcd.service"));
    bus.stop();
    assert!(matches!(watching.next().await, UnitReport::Absent { .. }));
    drop(first);
    bus.restart();
    let systemd = Systemd::start(&bus, &[("etcd.service", Fake::RUNNING)]).await;
    // Told anew, though it is as it was, and followed again.
    assert_eq!(watching.unit().await, running("etcd.service"));
    systemd.change("etcd.service", |unit| unit.pid = 5).await;
    assert_eq!(watching.unit().await.main_pid, 5);
    watching.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_leaves_the_bus_and_returns() {
    let Some(bus) = Bus::start() else { return };
    let first = Systemd::start(&bus, &[("etcd.service", Fake::RUNNING)]).await;
    let mut watching = Watching::start(&bus.address(), &["etcd.service"]);
    assert_eq!(watching.unit().await, running("etcd.service"));
    first.connection.close().await.unwrap();
    let UnitReport::Absent { why } = watching.next().await else { panic!("it is gone") };
    assert!(why.contains("systemd has left the bus"), "{why}");
    let fake = Fake { pid: 6, ..Fake::RUNNING };
    let _second = Systemd::start(&bus, &[("etcd.service", fake)]).await;
    assert_eq!(watching.unit().await.main_pid, 6);
    watching.end().await;
}

#[tokio::test]
async fn without_a_bus_it_says_so_once() {
    let tmp = tempfile::tempdir().unwrap();
    let address = format!("unix:path={}", tmp.path().join("none").display());
    let mut watching = Watching::start(&address, &["etcd.service"]);
    let UnitReport::Absent { why } = watching.next().await else { panic!("there is no bus") };
    assert!(!why.is_empty());
    watching.end().await;
}

#[tokio::test]
async fn nothing_to_watch_or_nobody_to_tell_ends_it() {
    let mut watching = Watching::start("unix:path=/nowhere", &[]);
    assert_eq!(tokio::time::timeout(DEADLINE, watching.reports.recv()).await.unwrap(), None);
    watching.end().await;
    let Watching { reports, task, .. } = Watching::start("unix:path=/nowhere", &["x"]);
    drop(reports);
    tokio::time::timeout(DEADLINE, task).await.unwrap().unwrap();
}
