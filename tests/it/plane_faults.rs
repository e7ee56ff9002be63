//! Every fault of the bed does what it says, in the eyes of etcd's own tools and of plain HTTP, and is gone afterwards.

use std::time::Duration;

use serde_json::json;

use crate::bed::plane::{Fault, Identity, PATIENCE, PlaneNode, Trouble};
use crate::bed::{ControlPlane, skip_unless_root};

/// Longer than any answer of a plane that is well, on a busy machine.
const LIMIT: &str = "--command-timeout=5s";

fn put(node: &PlaneNode, value: &str) -> bool {
    node.etcdctl(&[LIMIT, "put", "bed", value]).run().success()
}

/// What this member alone knows.
fn local_read(node: &PlaneNode) -> bool {
    node.etcdctl(&[LIMIT, "get", "--consistency=s", "bed"]).run().success()
}

#[track_caller]
fn serves(plane: &ControlPlane, node: usize) {
    plane.wait("a member that serves again", || put(plane.node(node), "after").then_some(()));
}

/// A follower and the leader.
fn roles(plane: &ControlPlane) -> (usize, usize) {
    let leader = plane.leader();
    ((leader + 1) % plane.nodes().len(), leader)
}

#[test]
fn members_that_hang_and_disks_that_hang() {
    if skip_unless_root("freezes file systems") {
        return;
    }
    let plane = ControlPlane::builder(3).own_wal_disk().without_apiservers().start();
    plane.etcdctl(&[0, 1, 2], &["put", "bed", "before"]).ok();
    let (at, leader) = roles(&plane);
    let node = plane.node(at);

    let fault = node.hang_member();
    assert_eq!(node.metrics("/livez"), None);
    assert!(!local_read(node) && put(plane.node(leader), "others go on"));
    let open = node.command("bash").args(["-c", "exec 3<>/dev/tcp/127.0.0.1/2379"]).run();
    assert!(open.success(), "the port of a member that hangs is open: {open}");
    fault.heal();
    serves(&plane, at);

    // The log alone: reads are fine, also by etcd's own word, and writes are not.
    let fault = node.freeze_wal();
    assert!(local_read(node));
    assert!(!put(node, "never"), "a write goes through the log of the member that is asked");
    assert!(local_read(node));
    assert_eq!(node.metrics("/livez").as_deref(), Some("ok\n"));
    fault.heal();
    serves(&plane, at);

    // The database: its next commit holds up reads as well.
    let fault = node.freeze_data();
    plane.wait("reads that wait for the database", || {
        put(plane.node(leader), "on its way to all");
        (!local_read(node)).then_some(())
    });
    fault.heal();
    serves(&plane, at);

    let (_, leader) = roles(&plane);
    let fault = plane.node(leader).hang_member();
    let others: Vec<usize> = (0..3).filter(|i| *i != leader).collect();
    plane.wait("another leader", || others.iter().find(|i| plane.node(**i).leads()).copied());
    fault.heal();
    serves(&plane, leader);
}

#[test]
fn packets_that_are_lost() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let plane = ControlPlane::builder(3).without_apiservers().start();
    plane.etcdctl(&[0, 1, 2], &["put", "bed", "before"]).ok();
    let (at, leader) = roles(&plane);
    let node = plane.node(at);
    let others: Vec<usize> = (0..3).filter(|i| *i != at).collect();
    let third = (0..3).find(|i| *i != at && *i != leader).unwrap();
    let from_leader = |path: &str| {
        let url = format!("http://{}:2381{path}", node.address());
        plane.node(leader).get(&url, Duration::from_secs(4))
    };
    let sees_leader = |node: &PlaneNode| node.metric("etcd_server_has_leader");

    // Its port for clients is reached, and itself finds nobody.
    let fault = plane.partition_members(&[at], &others);
    plane.wait("a member without leader", || (sees_leader(node) == Some(0.0)).then_some(()));
    assert!(fault.lost() > 0 && from_leader("/health").is_ok());
    assert!(put(plane.node(leader), "majority") && !put(node, "minority") && local_read(node));
    fault.heal();
    serves(&plane, at);

    let fault = plane.isolate(at);
    assert!(from_leader("/health").is_err(), "nothing comes through");
    plane.wait("a member without leader", || (sees_leader(node) == Some(0.0)).then_some(()));
    assert!(fault.lost() > 0);
    fault.heal();
    serves(&plane, at);

    // A short answer comes through, a long one does not; a third one is reached by both.
    let (_, leader) = roles(&plane);
    let at = (0..3).find(|i| *i != leader && *i != third).unwrap_or(at);
    let node = plane.node(at);
    let from = |node: &PlaneNode, to: &PlaneNode, path: &str| {
        node.get(&format!("http://{}:2381{path}", to.address()), Duration::from_secs(4)).map(|(_, body)| body.len())
    };
    let fault = plane.lose_large_packets(leader, at);
    assert_eq!(fault.lost(), 0, "what members say to each other at rest is short");
    let short = from(plane.node(leader), node, "/health").unwrap();
    assert!(short < 200, "{short}");
    let long = from(plane.node(leader), node, "/metrics");
    assert!(long.is_err() && fault.lost() > 0, "{long:?}");
    let elsewhere = (0..3).find(|i| *i != leader && *i != at).unwrap();
    assert!(from(plane.node(leader), plane.node(elsewhere), "/metrics").unwrap() > 10_000);
    // So it goes to entries of the log: the follower stays behind and still has its leader.
    assert!(put(plane.node(leader), &"x".repeat(5_000)));
    let behind = || {
        let revision = |node: &PlaneNode| node.metric("etcd_debugging_mvcc_current_revision");
        (revision(node)? < revision(plane.node(leader))?).then_some(())
    };
    assert!(behind().is_some() && sees_leader(node) == Some(1.0));
    fault.heal();
    plane.wait("a follower that has caught up", || behind().is_none().then_some(()));
}

#[test]
fn large_packets_between_apiserver_and_etcd_and_apiservers_that_hang() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let plane = ControlPlane::builder(2).start();
    let map = |name: &str, size: usize| {
        let data = json!({ "a": "x".repeat(size) });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
    };
    let path = "/api/v1/namespaces/default/configmaps";
    let write = |node: usize, name: &str, size: usize, limit: Duration| {
        plane.client(node, Identity::Admin).post(path, &map(name, size), limit).map(|reply| reply.status)
    };
    let five = Duration::from_secs(5);
    assert_eq!(write(0, "before", 10, PATIENCE), Ok(201));

    let fault = plane.node(0).lose_large_packets_to_etcd();
    assert_eq!(write(0, "small", 10, five), Ok(201), "a small object needs small packets");
    assert_eq!(write(0, "large", 5_000, five), Err(Trouble::TimedOut));
    assert!(fault.lost() > 0);
    assert_eq!(write(1, "elsewhere", 5_000, PATIENCE), Ok(201));
    fault.heal();
    plane.wait("writes again", || (write(0, "after", 5_000, five) == Ok(201)).then_some(()));

    let fault = plane.node(0).hang_apiserver();
    assert_eq!(write(0, "hangs", 10, five), Err(Trouble::TimedOut));
    let open = plane.node(1).command("bash").args(["-c", "exec 3<>/dev/tcp/10.77.0.11/6443"]).run();
    assert!(open.success() && plane.node(0).member_health() && plane.node(1).readyz().is_ok(), "{open}");
    fault.heal();
    plane.wait("an apiserver that answers again", || plane.node(0).readyz().is_ok().then_some(()));

    // Its member hangs, and with two of them the other one has no quorum either: both say so, each of its own member.
    let fault = plane.node(0).hang_member();
    for node in plane.nodes() {
        // What was found a moment ago may be answered once more.
        let said = plane.wait("an apiserver that is not ready", || node.readyz().err());
        assert!(said.contains("[-]etcd"), "{}: {said}", node.name());
    }
    fault.heal();
    for node in plane.nodes() {
        plane.wait("an apiserver that is ready again", || node.readyz().ok());
    }
}

#[test]
fn an_apiserver_that_no_event_reaches_serves_stale_objects() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let plane = ControlPlane::builder(2).deceive(0).start();
    let path = "/api/v1/namespaces/default/configmaps";
    let map = |value: &str| {
        let data = json!({ "value": value });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one" }, "data": data })
    };
    // What the cache of an apiserver has, and what etcd has.
    let read = |node: usize, query: &str| {
        let reply = plane.client(node, Identity::Admin).get(&format!("{path}/one{query}"), PATIENCE).ok()?;
        (reply.status == 200).then(|| reply.json()["data"]["value"].as_str().map(str::to_owned)).flatten()
    };
    let cached = |node| read(node, "?resourceVersion=0");
    assert_eq!(plane.client(0, Identity::Admin).post(path, &map("first"), PATIENCE).unwrap().status, 201);
    for node in [0, 1] {
        plane.wait("the object in the cache", || (cached(node).as_deref() == Some("first")).then_some(()));
    }

    let fault = plane.node(0).silence_watches();
    let own = format!("{path}/one");
    assert_eq!(plane.client(0, Identity::Admin).put(&own, &map("second"), PATIENCE).unwrap().status, 200);
    plane.wait("the other cache", || (cached(1).as_deref() == Some("second")).then_some(()));
    assert_eq!(read(0, "").as_deref(), Some("second"), "it writes, and reads what it wrote");
    assert_eq!(cached(0).as_deref(), Some("first"), "and its cache is stale");
    fault.heal();
    plane.wait("the cache to catch up", || (cached(0).as_deref() == Some("second")).then_some(()));
}

#[test]
fn a_burner_burns_and_a_small_quota_is_used_up() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let plane = ControlPlane::builder(1).without_apiservers().quota(4 << 20).start();
    let node = plane.node(0);
    let fault: Fault = node.burn(2);
    let used = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(11)?.parse::<u64>().ok())
    };
    // In hundredths of a second.
    plane.wait("burners that have used the processor", || {
        fault.pids().iter().all(|pid| used(pid).is_some_and(|used| used > 20)).then_some(())
    });
    fault.heal();

    let value = "x".repeat(100_000);
    let full = plane.wait("a full database", || {
        let written = node.etcdctl(&["put", "filler", "--", &value]).run();
        (!written.success()).then_some(written.stderr)
    });
    assert!(full.contains("database space exceeded"), "{full}");
    assert!(node.etcdctl(&["alarm", "list"]).run().ok().contains("NOSPACE"));
}
