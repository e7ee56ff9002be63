//! `refloat defrag` on real clusters: only when it pays, one member after the other, the leader last.

use serde_json::Value;

use crate::bed::{Cluster, Daemon, Fill, Line, Node, Output, Refloat, until};
use crate::taking::{error_of, why};

/// Small databases: what would never pay in earnest pays here.
const RULES: &str = "[snapshot]\nschedule = \"0 0 1 1 *\"\n[maintain]\nmin_gain = \"4MiB\"\nmin_gain_percent = 20\n";

/// refloat on the node of that member.
fn on(cluster: &Cluster, node: &Node) -> Refloat {
    let refloat = Refloat::new(cluster).member(node.name()).config(RULES);
    let text = std::fs::read_to_string(refloat.config_file()).expect("read the configuration");
    let text = text.replace("[etcd]\n", &format!("[etcd]\ndata_dir = {:?}\n", node.data_dir()));
    std::fs::write(refloat.config_file(), text).expect("write the configuration");
    refloat
}

/// Leaves every member with many free pages.
fn hollow(cluster: &Cluster) {
    let fill = Fill::new(cluster);
    fill.kubernetes(50);
    fill.large(400, 64 << 10);
    let gone = cluster.etcdctl(&["del", "--prefix", "/large/"]);
    assert!(gone.success(), "{gone}");
    fill.compact(fill.revision());
    // Compaction goes on behind its answer.
    for node in cluster.nodes() {
        // Pages count as free once something else was written.
        let hollow = || {
            fill.put("/registry/tick", "x");
            (node.metric("etcd_mvcc_db_total_size_in_use_in_bytes")? < 8e6).then_some(())
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        assert!(until(deadline, hollow).is_some(), "{} is not compacted", node.name());
    }
}

fn plan(refloat: &Refloat) -> (Option<i32>, Value) {
    let output = refloat.run(&["-o", "json", "defrag", "--dry-run"]);
    (output.code, output.document()["plan"].clone())
}

fn reasons(plan: &Value) -> Vec<&str> {
    plan["refused"].as_array().expect("a list").iter().filter_map(|r| r["reason"].as_str()).collect()
}

fn run(refloat: &Refloat) -> Output {
    refloat.run(&["-o", "json", "defrag", "--yes"])
}

fn size(node: &Node) -> u64 {
    node.metric("etcd_mvcc_db_total_size_in_bytes").expect("a size") as u64
}

#[test]
fn one_after_the_other_and_the_leader_last() {
    let cluster = Cluster::builder(Line::V36).members(3).start();
    hollow(&cluster);
    let leader = cluster.leader().name().to_string();
    let before = cluster.etcdctl(&["endpoint", "hashkv", "--cluster", "-w", "json"]).ok();

    // The leader waits for the others.
    let first = on(&cluster, cluster.leader());
    let (code, waits) = plan(&first);
    assert_eq!((code, reasons(&waits)), (Some(0), vec!["leader-last"]), "{waits}");
    let refused = run(&first);
    assert_eq!(refused.code, Some(75), "{refused}");
    assert_eq!(error_of(&refused)["code"], "not-now");

    for node in cluster.followers() {
        let refloat = on(&cluster, node);
        let (code, goes) = plan(&refloat);
        assert_eq!((code, reasons(&goes).len()), (Some(2), 0), "{goes}");
        assert!(size(node) > 20_000_000, "a dry run changes nothing");
        let done = run(&refloat);
        assert!(done.success(), "{done}");
        let done = done.document();
        assert!(done["after"].as_u64() < Some(10_000_000) && done["before"].as_u64() > Some(20_000_000), "{done}");
        assert!(size(node) < 10_000_000 && done["leader_moved_to"].is_null(), "{done}");
        // Again it frees nothing.
        let (code, nothing) = plan(&refloat);
        assert_eq!((code, reasons(&nothing)), (Some(0), vec!["not-worth"]), "{nothing}");
    }
    assert_eq!(cluster.leader().name(), leader);
    let done = run(&first);
    assert!(done.success(), "{done}");
    let moved = done.document()["leader_moved_to"].as_str().map(String::from);
    assert!(moved.is_some() && cluster.leader().name() != leader, "{moved:?}");
    assert_eq!(Some(cluster.leader().name()), moved.as_deref());
    // Nothing of the lock is left, and nothing else has changed.
    assert_eq!(cluster.etcdctl(&["get", "--prefix", "refloat/", "--keys-only"]).ok().trim(), "");
    let hashes = |text: &str| -> Vec<u64> {
        let all: Value = serde_json::from_str(text).expect("JSON");
        all.as_array().expect("a list").iter().filter_map(|one| one["HashKV"]["hash"].as_u64()).collect()
    };
    let (before, after) =
        (hashes(&before), hashes(&cluster.etcdctl(&["endpoint", "hashkv", "--cluster", "-w", "json"]).ok()));
    assert!(
        before.len() == 3 && after.len() == 3 && after.iter().all(|hash| *hash == after[0]),
        "{before:?} {after:?}"
    );
}

#[test]
fn a_member_that_is_not_well_or_a_lock_that_is_held_stops_it() {
    let cluster = Cluster::builder(Line::V36).members(3).start();
    hollow(&cluster);
    let own = cluster.followers()[0];
    let other = cluster.followers()[1];
    let refloat = on(&cluster, own);
    other.freeze();
    let (code, stopped) = plan(&refloat);
    assert_eq!((code, reasons(&stopped)), (Some(0), vec!["unhealthy"]), "{stopped}");
    assert_eq!(run(&refloat).code, Some(75));
    other.thaw();

    // Another node's daemon is at it.
    let held = cluster.etcdctl(&["put", "refloat/lock/defrag", "cp9"]);
    assert!(held.success(), "{held}");
    let waits = run(&refloat);
    assert_eq!(waits.code, Some(75), "{waits}");
    assert!(why(&error_of(&waits)).contains("cp9"), "{waits}");
    assert!(cluster.etcdctl(&["lease", "list"]).ok().contains("found 0 leases"), "a lease is left behind");
    assert!(cluster.etcdctl(&["del", "refloat/lock/defrag"]).success());

    // No room for the copy; where the database lies is not known.
    let text = std::fs::read_to_string(refloat.config_file()).expect("read it");
    let without: String = text.lines().filter(|line| !line.starts_with("data_dir")).map(|l| format!("{l}\n")).collect();
    std::fs::write(refloat.config_file(), without).expect("write it");
    assert_eq!(reasons(&plan(&refloat).1), ["space-unknown"]);
    std::fs::write(refloat.config_file(), text).expect("write it");
    assert!(run(&refloat).success());
}

#[test]
fn the_daemon_runs_it_beside_no_snapshot() {
    let cluster = Cluster::start(Line::V36);
    hollow(&cluster);
    let refloat = on(&cluster, cluster.node(0));
    let daemon = Daemon::start(&refloat);
    let done = run(&refloat);
    assert!(done.success(), "{done}");
    let done = done.document();
    assert!(done["job"].is_string() && done["after"].as_u64() < Some(10_000_000), "{done}");
    let job = daemon.job_when(done["job"].as_str().expect("an id"), "it is over", |job| job["state"] == "succeeded");
    assert_eq!((&job["kind"], &job["lanes"][0]), (&"defrag".into(), &"member".into()), "{job}");
    // Alone it is the whole cluster, and that is said.
    assert!(job["warnings"].to_string().contains("no quorum"), "{job}");
    let refused = run(&refloat);
    assert_eq!((refused.code, &error_of(&refused)["code"]), (Some(75), &"not-now".into()), "{refused}");
    daemon.stop();
}
