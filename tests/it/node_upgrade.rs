//! The package is upgraded and removed while a job runs: the job ends at a point from which nothing is lost.

use std::thread;

use crate::bed::{self, Output, Packages, SystemdNode};
use crate::node_daemon::{job, prepared, snapshots, status};

const HOLD: &str = "/run/hold";

/// Whose snapshot it is.
#[derive(PartialEq)]
enum By {
    /// A daemon without any history takes one at once; another one by hand would come too late to be joined to it.
    Schedule,
    Hand,
}

/// Puts the program with failpoints in the place of the installed one and has it stand still within a snapshot.
#[track_caller]
fn held(node: &SystemdNode, by: By) {
    node.run(&["install", SystemdNode::FAILPOINTS, "/usr/bin/refloat"]).ok();
    let environment = format!("[Service]\nEnvironment=FAILPOINTS=take::verified=return({HOLD})\n");
    node.write("/etc/systemd/system/refloat.service.d/90-test.conf", "0644", environment);
    node.run(&["systemctl", "daemon-reload"]).ok();
    node.run(&["systemctl", "restart", "refloat"]).ok();
    if by == By::Hand {
        node.run(&["refloat", "snapshot", "take", "--no-wait"]).ok();
    }
    node.wait("refloat", "a snapshot under way", || job(node, "snapshot").filter(|job| job["state"] == "running"));
}

/// Runs dpkg meanwhile, and lets the job go on once the daemon was asked to end.
#[track_caller]
fn during(node: &SystemdNode, args: &[&str]) -> Output {
    thread::scope(|scope| {
        let dpkg = scope.spawn(|| node.run(args));
        node.wait("refloat", "the daemon was asked to end", || {
            (node.property("refloat", "ActiveState") == "deactivating").then_some(())
        });
        // Opening waits until the job is there.
        node.run(&["sh", "-c", &format!(": >{HOLD}")]).ok();
        dpkg.join().expect("dpkg was run")
    })
}

#[test]
fn a_running_job_ends_before_the_program_is_exchanged_or_removed() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let packages = Packages::find();
    let (node, _etcd) = prepared(&packages.previous_deb, "[snapshot]\nschedule = \"0 0 29 2 *\"\n");
    node.run(&["mkfifo", HOLD]).ok();
    node.copy_in(&packages.deb, "/var/tmp/new.deb", "0644");

    held(&node, By::Schedule);
    during(&node, &["dpkg", "--install", "/var/tmp/new.deb"]).ok();
    node.run(&["dpkg", "--verify", "refloat"]).ok();
    let version = node.run(&["dpkg-query", "--show", "--showformat=${Version}", "refloat"]).ok();
    assert_eq!(version, format!("{}-1", env!("CARGO_PKG_VERSION")));
    node.wait("refloat", "the new one answers", || status(&node)["pid"].is_u64().then_some(()));
    assert_eq!(
        (snapshots(&node).len(), job(&node, "snapshot").expect("a job")["state"].as_str()),
        (1, Some("succeeded"))
    );

    held(&node, By::Hand);
    let kept = snapshots(&node);
    during(&node, &["dpkg", "--remove", "refloat"]).ok();
    assert!(!node.exists("/usr/bin/refloat") && node.property("refloat", "ActiveState") != "active");
    let found = |name: &str| node.run(&["find", "/var/lib/refloat/store", "-name", name]).ok().lines().count();
    assert_eq!((kept.len(), found("*-cp1.json"), found("*.db.zst"), found(".refloat-tmp-*")), (1, 2, 2, 0));
    node.install(&packages.deb);
    assert_eq!(snapshots(&node).len(), 2);
}
