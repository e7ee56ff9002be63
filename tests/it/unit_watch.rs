//! Units watched and driven over the D-Bus of a real systemd.

use std::time::Duration;

use refloat::error::Code;
use refloat::host::control::Control;
use refloat::host::units::{UnitFacts, UnitReport, watch};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use crate::bed::{SystemdNode, skip_unless_root};

const DEADLINE: Duration = Duration::from_secs(90);
const UNIT: &str = "bed-sleep@a-1.service";

/// The next report of this unit that fits, whatever was reported meanwhile.
async fn until(reports: &mut Receiver<UnitReport>, what: &str, fits: impl Fn(&UnitFacts) -> bool) -> UnitFacts {
    let mut seen = Vec::new();
    loop {
        match tokio::time::timeout(DEADLINE, reports.recv()).await {
            Ok(Some(UnitReport::Unit(facts))) if facts.name == UNIT && fits(&facts) => return facts,
            Ok(Some(other)) => seen.push(other),
            ended => panic!("never {what}: {ended:?} after {seen:#?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_systemd() {
    if skip_unless_root("boots a node with systemd") {
        return;
    }
    let node = tokio::task::spawn_blocking(|| SystemdNode::boot("cp1")).await.expect("boot");
    let (changed, mut reports) = tokio::sync::mpsc::channel(64);
    let cancel = CancellationToken::new();
    let units = vec![UNIT.to_owned(), "none.service".to_owned()];
    let watching = tokio::spawn(watch(units, Some(node.bus()), changed, cancel.clone()));
    until(&mut reports, "missing at first", |unit| unit.load == "not-found" && unit.active == "inactive").await;

    // It appears with a reload, comes up, is restarted after a kill, and is stopped.
    let text = "[Service]\nExecStart=/bin/sleep infinity\nRestart=on-failure\nRestartSec=200ms\n\
        [Install]\nWantedBy=multi-user.target\n";
    node.write("/etc/systemd/system/bed-sleep@.service", "0644", text);
    let control = Control::connect(Some(&node.bus()), DEADLINE).await.expect("connect");
    control.reload_daemon(DEADLINE).await.expect("reload");
    until(&mut reports, "loaded", |unit| unit.load == "loaded").await;
    control.start_unit(UNIT, DEADLINE).await.expect("start");
    let up = until(&mut reports, "running", |unit| unit.sub == "running").await;
    assert!(up.main_pid > 0 && up.restarts == 0 && up.since.is_some(), "{up:?}");
    assert_eq!(up.main_pid.to_string(), node.property(UNIT, "MainPID"));
    node.run(&["systemctl", "kill", "--signal=KILL", UNIT]).ok();
    let again = until(&mut reports, "restarted", |unit| unit.restarts == 1 && unit.sub == "running").await;
    assert_ne!(again.main_pid, up.main_pid);
    // A systemd that executes itself anew is followed on.
    node.run(&["systemctl", "daemon-reexec"]).ok();
    control.restart_unit(UNIT, DEADLINE).await.expect("restart");
    until(&mut reports, "restarted by hand", |unit| unit.sub == "running" && unit.main_pid != again.main_pid).await;
    control.stop_unit(UNIT, DEADLINE).await.expect("stop");
    let down = until(&mut reports, "stopped", |unit| unit.active == "inactive").await;
    assert_eq!(down.main_pid, 0);

    let links = control.enable_units(&[UNIT], DEADLINE).await.expect("enable");
    assert_eq!(links, [format!("/etc/systemd/system/multi-user.target.wants/{UNIT}")]);
    assert_eq!(node.property(UNIT, "UnitFileState"), "enabled");

    let err = control.start_unit("none.service", DEADLINE).await.expect_err("no such unit");
    assert_eq!(err.code(), Code::NotFound, "{}", err.line());
    node.write("/etc/systemd/system/bed-bad.service", "0644", "[Service]\nType=oneshot\nExecStart=/bin/false\n");
    control.reload_daemon(DEADLINE).await.expect("reload");
    let err = control.start_unit("bed-bad.service", DEADLINE).await.expect_err("it fails");
    assert_eq!(err.code(), Code::UnitFailed);
    assert!(err.line().contains("failed"), "{}", err.line());

    cancel.cancel();
    watching.await.expect("watcher");
}
