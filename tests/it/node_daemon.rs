//! The daemon as systemd runs it: started, asked, reloaded, killed by the watchdog, rebooted.

use serde_json::Value;

use crate::bed::{self, Layout, NodeEtcd, Packages, SystemdNode};
use crate::node_sandbox::{CONFIG, SETUP};

/// Once a minute, for tests that wait for it; never, for those that do not want it.
const EACH_MINUTE: &str = "[snapshot]\nschedule = \"* * * * *\"\n";
const NEVER: &str = "[snapshot]\nschedule = \"0 0 29 2 *\"\n";

/// A node with a member, the package, two stores and a configuration; nothing is started but etcd.
#[track_caller]
pub fn prepared(deb: &std::path::Path, schedule: &str) -> (SystemdNode, NodeEtcd) {
    let node = SystemdNode::boot("cp1");
    node.install(deb);
    let etcd = NodeEtcd::start(&node, Layout::Kubeadm);
    etcd.ctl(&node, &["put", "/registry/a", "b"]).ok();
    for dir in ["/var/lib/refloat", "/srv/backups"] {
        node.run(&["install", "-d", "-o", "refloat", "-m", "0700", dir]).ok();
    }
    node.write("/etc/systemd/system/refloat.service.d/10-setup.conf", "0644", SETUP);
    node.write("/etc/refloat/conf.d/10-discovered.toml", "0644", CONFIG);
    node.write("/etc/refloat/conf.d/20-schedule.toml", "0644", schedule);
    for store in ["local", "second"] {
        node.run(&["refloat", "store", "init", store]).ok();
    }
    node.run(&["systemctl", "daemon-reload"]).ok();
    (node, etcd)
}

pub fn status(node: &SystemdNode) -> Value {
    node.run(&["refloat", "-o", "json", "status"]).document()
}

pub fn snapshots(node: &SystemdNode) -> Vec<String> {
    let listed = node.run(&["refloat", "-o", "json", "snapshot", "list"]).json();
    let list = listed["snapshots"].as_array().expect("a list").iter();
    list.map(|snapshot| snapshot["id"].as_str().expect("an id").to_owned()).collect()
}

/// The newest job of a kind.
pub fn job(node: &SystemdNode, kind: &str) -> Option<Value> {
    let listed = node.run(&["refloat", "-o", "json", "jobs", "list"]).document();
    listed["jobs"].as_array()?.iter().find(|job| job["kind"] == kind).cloned()
}

#[test]
fn it_runs_by_its_schedule_reloads_and_comes_back_after_a_reboot() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let (mut node, _etcd) = prepared(&Packages::find().deb, EACH_MINUTE);
    node.run(&["systemctl", "enable", "--now", "refloat"]).ok();
    node.wait("refloat", "a scheduled snapshot", || (!snapshots(&node).is_empty()).then_some(()));
    // The same sentence everywhere: its age moves on, so both are asked until they meet.
    let sentence = node.wait("refloat", "one sentence in systemd and in status", || {
        let (told, known) = (node.property("refloat", "StatusText"), status(&node));
        (known["summary"] == told.as_str() && told.contains("last verified snapshot")).then_some(told)
    });
    let shown = node.run(&["systemctl", "status", "--no-pager", "refloat"]).ok();
    assert!(
        shown.contains("Active: active (running)") && shown.contains("Status: \"") && !sentence.is_empty(),
        "{shown}"
    );
    node.wait("refloat", "the prune after it", || job(&node, "prune").filter(|job| job["state"] == "succeeded"));

    // A configuration that is wrong later changes nothing but what is said.
    node.write("/etc/refloat/conf.d/30-wrong.toml", "0644", "[snapshot]\nschedul = \"x\"\n");
    let pid = node.property("refloat", "MainPID");
    node.run(&["systemctl", "reload", "refloat"]).ok();
    node.wait("refloat", "the reason in the sentence", || {
        node.property("refloat", "StatusText").contains("schedul").then_some(())
    });
    // It can be asked all the same, which is when people ask.
    assert!(status(&node)["troubles"].to_string().contains("schedul"), "{}", status(&node));
    node.run(&["rm", "/etc/refloat/conf.d/30-wrong.toml"]).ok();
    node.run(&["systemctl", "reload", "refloat"]).ok();
    node.wait("refloat", "no trouble any more", || {
        (!status(&node)["troubles"].to_string().contains("schedul")).then_some(())
    });
    assert_eq!((node.property("refloat", "MainPID"), node.property("refloat", "ActiveState")), (pid, "active".into()));

    let (before, kept) = (status(&node), snapshots(&node));
    let cursor = |status: &Value| status["schedules"][0]["cursor"].as_str().map(str::to_owned).expect("a cursor");
    node.reboot();
    node.wait("refloat", "the daemon answers", || {
        (status(&node)["pid"].is_u64() && cursor(&status(&node)) >= cursor(&before)).then_some(())
    });
    assert!(kept.iter().all(|id| snapshots(&node).contains(id)), "{kept:?}");
    let (old, new) = (before["jobs"][0]["id"].clone(), job(&node, "snapshot").expect("it is remembered")["id"].clone());
    let number = |id: &Value| id.as_str().map_or_else(|| id.as_u64(), |id| id.parse().ok());
    assert!(number(&new) >= number(&before["jobs"].as_array().and_then(|j| j.last()).map_or(old, |j| j["id"].clone())));
    assert_eq!(node.property("refloat", "NRestarts"), "0");
}

#[test]
fn the_watchdog_restarts_an_engine_that_does_not_turn_and_nothing_is_lost() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let (node, _etcd) = prepared(&Packages::find().deb, NEVER);
    node.run(&["install", SystemdNode::FAILPOINTS, "/usr/bin/refloat"]).ok();
    let environment = "[Service]\nWatchdogSec=3\nRestartSec=1\nEnvironmentFile=-/run/failpoints.env\n";
    node.write("/etc/systemd/system/refloat.service.d/90-test.conf", "0644", environment);
    node.run(&["systemctl", "daemon-reload"]).ok();
    node.run(&["systemctl", "start", "refloat"]).ok();
    // The first one comes by itself, and the prune after it.
    node.wait("refloat", "the first snapshot", || job(&node, "prune").filter(|job| job["state"] == "succeeded"));
    let (kept, last) = (snapshots(&node), job(&node, "snapshot").expect("a job"));
    assert_eq!(kept.len(), 1);

    // Nobody ever writes into it: the engine stands there as it would before a call that never returns.
    node.run(&["mkfifo", "/run/hold"]).ok();
    node.write("/run/failpoints.env", "0644", "FAILPOINTS=engine::turn=return(/run/hold)\n");
    node.run(&["systemctl", "restart", "refloat"]).ok();
    node.run(&["rm", "/run/failpoints.env"]).ok();
    node.wait("refloat", "a restart by the watchdog", || {
        let restarted =
            node.property("refloat", "NRestarts") == "1" && node.property("refloat", "SubState") == "running";
        (restarted && status(&node)["pid"].is_u64()).then_some(())
    });
    assert!(node.journal("refloat").contains("Watchdog timeout"), "{}", node.journal("refloat"));
    assert_eq!(
        (snapshots(&node), job(&node, "snapshot").map(|job| job["id"].clone())),
        (kept, Some(last["id"].clone()))
    );
    node.run(&["refloat", "snapshot", "take"]).ok();
    assert_eq!(snapshots(&node).len(), 2);
}

#[test]
fn without_dbus_etcd_and_certificates_it_stays_up_says_so_and_recovers() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let (node, etcd) = prepared(&Packages::find().deb, NEVER);
    node.run(&["systemctl", "stop", etcd.unit()]).ok();
    node.run(&["systemctl", "stop", "dbus.socket", "dbus.service"]).ok();
    node.run(&["systemctl", "start", "refloat"]).ok();
    node.wait("refloat", "what is wrong, in the sentence", || {
        node.property("refloat", "StatusText").contains("etcd").then_some(())
    });
    let troubles = status(&node)["troubles"].to_string();
    assert!(troubles.contains("\"etcd\""), "{troubles}");
    node.run(&["systemctl", "start", etcd.unit()]).ok();
    node.wait("refloat", "etcd is no trouble any more", || {
        let status = status(&node);
        (!status["troubles"].to_string().contains("\"etcd\"") && status["member"]["name"] == "cp1").then_some(())
    });
    node.run(&["refloat", "snapshot", "take"]).ok();
    assert_eq!((snapshots(&node).len(), node.property("refloat", "NRestarts").as_str()), (1, "0"));
}
