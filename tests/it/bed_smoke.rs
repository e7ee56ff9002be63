//! The bed itself: each line starts and answers, certificates are right and wrong as they should be, members
//! freeze, die and come back, and the liar lies only when told.

use std::path::Path;

use sha2::Digest;

use crate::bed::pki::Pair;
use crate::bed::{Cluster, Fill, Liar, Lie, Line, Run, SmallDisk, Target, bbolt, block_on, skip_unless_root};

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

/// What came of a snapshot: the bytes, and the error that ended the stream.
fn snapshot(url: &str) -> (Vec<u8>, Option<etcd_client::Error>) {
    let target = Target::from(url);
    block_on(async {
        let mut bytes = Vec::new();
        let mut stream = match target.connect().await.snapshot().await {
            Ok(stream) => stream,
            Err(e) => return (bytes, Some(e)),
        };
        loop {
            match stream.message().await {
                Ok(Some(message)) => bytes.extend_from_slice(message.blob()),
                Ok(None) => return (bytes, None),
                Err(e) => return (bytes, Some(e)),
            }
        }
    })
}

/// How many bytes of the trailer differ from the hash of what is before it. Two snapshots of an idle member are not
/// the same bytes, each commit changes a meta page, so a snapshot is held against itself.
fn wrong_hash_bytes(snapshot: &[u8]) -> usize {
    let (database, trailer) = snapshot.split_at(snapshot.len() - 32);
    sha2::Sha256::digest(database).iter().zip(trailer).filter(|(a, b)| a != b).count()
}

#[test]
fn the_liar_lies_only_when_told() {
    let cluster = Cluster::start(Line::V36);
    let node = cluster.node(0);
    Fill::new(node).kubernetes(300);
    let liar = Liar::start(node.client_url());
    let through = Fill::new(liar.url());
    through.put("through", "the liar");
    assert_eq!(through.hash_kv(0), Fill::new(node).hash_kv(0));
    let watch = through.target().etcdctl(Line::V36).args(["watch", "through", "--rev=1"]);
    let seen = watch.timeout(std::time::Duration::from_secs(2)).run();
    assert!(seen.stdout.contains("the liar"), "streams in both directions pass: {seen}");

    let (honest, error) = snapshot(&liar.url());
    assert!(error.is_none(), "{error:?}");
    assert_eq!(honest.len() % 512, 32, "pages and a trailer");
    assert_eq!(wrong_hash_bytes(&honest), 0);
    let (cut, end) = (20_000, honest.len());
    for (lie, length, fails) in [
        (Lie::CutOk { after: cut }, 20_000, false),
        (Lie::CutError { after: cut, status: 14 }, 20_000, true),
        (Lie::Drop { after: cut }, 20_000, true),
        (Lie::Reset { after: cut }, 20_000, true),
        (Lie::WrongTrailer, end, false),
        (Lie::NoTrailer, end - 32, false),
        (Lie::Flip { at: cut }, end, false),
        (Lie::Remaining(1 << 60), end, false),
        (Lie::TooLong { extra: 100_000 }, end + 100_000, false),
    ] {
        liar.lie(lie);
        let (told, error) = snapshot(&liar.url());
        assert_eq!(error.is_some(), fails, "{lie:?}: {error:?}");
        // What was under way when a connection or a stream breaks may be lost, by the rules of HTTP/2.
        let broken = matches!(lie, Lie::Drop { .. } | Lie::Reset { .. });
        assert!(told.len() == length || (broken && told.len() < length), "{lie:?}: {}", told.len());
        match lie {
            Lie::WrongTrailer => assert_eq!(wrong_hash_bytes(&told), 1, "the database is right, its hash is not"),
            Lie::Flip { .. } => assert!(wrong_hash_bytes(&told) > 16, "the hash is right, the database is not"),
            Lie::Remaining(_) => assert_eq!(wrong_hash_bytes(&told), 0),
            Lie::TooLong { .. } => assert_eq!(wrong_hash_bytes(&told[..end]), 0),
            _ => {}
        }
    }

    let before = through.hash_kv(0).hash;
    liar.lie(Lie::WrongHash);
    assert_ne!(through.hash_kv(0).hash, before);
    liar.be_honest();
    assert_eq!(through.hash_kv(0).hash, before);
    assert_eq!(liar.calls("Snapshot"), 10);
}
