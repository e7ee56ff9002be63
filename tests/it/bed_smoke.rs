//! The bed itself: each line starts and answers, certificates are right and wrong as they should be, members
//! freeze, die and come back, clusters are rebuilt, restored and falsified.

use std::path::Path;

use crate::bed::pki::Pair;
use crate::bed::{Cluster, Fill, Line, Run, SmallDisk, bbolt, skip_unless_root};

#[test]
fn each_line_serves_and_its_tools_agree_on_the_same_data() {
    let mut hashes = Vec::new();
    for line in Line::ALL {
        let cluster = Cluster::start(line);
        cluster.etcdctl(&["put", "greeting", "hello"]).ok();
        assert_eq!(cluster.etcdctl(&["get", "greeting", "--print-value-only"]).ok(), "hello\n", "{line}");

        let fill = Fill::new(&cluster).seed(7);
        let made = fill.kubernetes(400);
        let live = fill.hash_kv(0);
        assert_eq!(live.revision, made.revision, "{line}");
        hashes.push((live.hash, live.revision, made.kube_system_uid));

        let file = cluster.dir().join("snapshot.db");
        let file = file.to_str().expect("a temporary path is text");
        cluster.node(0).etcdctl(&["snapshot", "save", file]).ok();
        let status = line.etcdutl(&["snapshot", "status", file, "-w", "json"]).json();
        assert_eq!(status["revision"], made.revision, "{line}: {status}");
        assert!(status["totalKey"].as_u64() > Some(300), "{line}: {status}");
        assert_eq!(bbolt(&["check", file]).ok(), "OK\n", "{line}");
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1, "the same writes give the same hash on every line: {hashes:?}");
}

#[test]
fn three_members_with_certificates_and_a_password() {
    let mut cluster = Cluster::builder(Line::V36).members(3).tls(true).auth("root", "secret").start();
    cluster.etcdctl(&["put", "a", "b"]).ok();
    Fill::new(&cluster).kubernetes(100);
    let ids: std::collections::HashSet<u64> = cluster.nodes().iter().map(|n| n.cluster_id()).collect();
    assert_eq!(ids.len(), 1, "one cluster");
    assert_eq!(cluster.followers().len(), 2);

    let pki = cluster.pki().expect("a cluster with certificates").clone();
    let url = cluster.node(0).client_url().to_owned();
    let with = |ca: &Path, pair: &Pair, user: &str, patience: &str| {
        let run = Run::new(Line::V36.etcdctl_program()).args(["--endpoints", &url, "--user", user]);
        let run = run.args(["--command-timeout".as_ref(), patience.as_ref(), "--cacert".as_ref(), ca.as_os_str()]);
        let run = run.args(["--cert".as_ref(), pair.cert.as_os_str(), "--key".as_ref(), pair.key.as_os_str()]);
        run.args(["get", "a"]).run()
    };
    with(&pki.ca, &pki.client, "root:secret", "60s").ok();
    assert!(with(&pki.ca, &pki.client, "root:wrong", "60s").fails().contains("invalid user ID or password"));
    // etcdctl tries again and again where TLS fails, so these use up their time.
    with(&pki.ca, &pki.expired, "root:secret", "1s").fails();
    with(&pki.ca, &pki.foreign, "root:secret", "1s").fails();
    with(&pki.foreign_ca, &pki.client, "root:secret", "1s").fails();

    let learner = cluster.add_learner();
    assert_eq!(cluster.node(learner).metric("etcd_server_is_learner"), Some(1.0));
}

#[test]
fn a_frozen_member_is_silent_and_a_killed_one_comes_back() {
    let mut cluster = Cluster::builder(Line::V36).members(3).start();
    let leader = cluster.leader_index();
    let id = cluster.node(leader).member_id();
    cluster.node(leader).freeze();
    assert!(!cluster.node(leader).healthy());
    let next = cluster.leader_index();
    assert_ne!(next, leader, "the others elect a leader among themselves");
    cluster.node(leader).thaw();
    cluster.node(leader).wait_ready();

    cluster.node_mut(leader).kill();
    cluster.node(next).etcdctl(&["put", "a", "b"]).ok();
    cluster.node_mut(leader).restart();
    assert_eq!(cluster.node(leader).member_id(), id);
    assert_eq!(cluster.node(leader).etcdctl(&["get", "a", "--print-value-only"]).ok(), "b\n");
    cluster.node_mut(leader).terminate();
}

#[test]
fn five_members_serve_without_two() {
    let mut cluster = Cluster::builder(Line::V36).members(5).start();
    assert_eq!(cluster.followers().len(), 4);
    cluster.node_mut(0).kill();
    cluster.node_mut(1).terminate();
    cluster.leader().etcdctl(&["put", "a", "b"]).ok();
    cluster.node_mut(1).restart();
    cluster.node_mut(0).restart();
    assert_eq!(cluster.node(0).etcdctl(&["get", "a", "--print-value-only"]).ok(), "b\n");
}

#[test]
fn a_falsified_member_disagrees_at_the_same_revision() {
    let mut cluster = Cluster::builder(Line::V36).members(3).start();
    cluster.etcdctl(&["put", "word", "the-truth-of-the-matter"]).ok();
    let follower = 1 - cluster.leader_index().min(1);
    cluster.node_mut(follower).falsify("the-truth-of-the-matter", "a-lie-that-is-as-long-!");
    let honest = Fill::new(cluster.leader()).hash_kv(0);
    let lying = Fill::new(cluster.node(follower)).hash_kv(0);
    assert_eq!((lying.revision, lying.compact_revision), (honest.revision, honest.compact_revision));
    assert_ne!(lying.hash, honest.hash);
}

#[test]
fn a_rebuilt_cluster_has_the_same_id_and_a_restored_one_an_older_revision() {
    for line in Line::ALL {
        let mut cluster = Cluster::builder(line).members(3).token("same").start();
        let id = cluster.node(0).cluster_id();
        let fill = Fill::new(&cluster);
        let made = fill.kubernetes(50);
        let file = cluster.dir().join("older.db");
        cluster.node(0).etcdctl(&["snapshot", "save", file.to_str().expect("text")]).ok();
        assert!(fill.put("later", "than the snapshot") > made.revision);

        cluster.restore(&file, &["--initial-cluster-token=same"]);
        assert_eq!(cluster.node(0).cluster_id(), id, "{line}: same names, URLs and token");
        assert_eq!(Fill::new(&cluster).revision(), made.revision, "{line}");
        cluster.restore(&file, &["--initial-cluster-token=other"]);
        assert_ne!(cluster.node(0).cluster_id(), id, "{line}: another token");

        cluster.rebuild();
        assert_eq!(cluster.node(0).cluster_id(), id, "{line}: same names, URLs and token");
        assert_eq!(Fill::new(&cluster).revision(), 1, "{line}: empty");
    }
}

#[test]
fn a_small_disk_is_full_when_it_should_be() {
    if skip_unless_root("mounts a tmpfs") {
        return;
    }
    let disk = SmallDisk::new(1 << 20);
    let error = std::fs::write(disk.path().join("file"), vec![0u8; 2 << 20]).expect_err("it has 1 MiB");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}
