//! Lineages and timelines of real clusters (design §7): rebuilt ones, restored ones, and members that lag.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bed::run::until;
use crate::bed::{Cluster, Fill, Liar, Lie, Line, Output, Refloat, Target};
use crate::taking::{files, latest, listed, take, text as field};

/// One member with a token of its own, so that the id can be the same again.
fn cluster(line: Line, token: &str) -> Cluster {
    Cluster::builder(line).token(token).start()
}

/// What fills a cluster: with a kube-system namespace, or without Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Data {
    Kubernetes(&'static str),
    Plain(&'static str),
}

impl Data {
    /// Writes until the revision is above 30.
    fn fill(self, cluster: &Cluster) {
        let fill = Fill::new(cluster);
        match self {
            Data::Kubernetes(uid) => {
                fill.kube_system(uid).kubernetes(40);
            }
            Data::Plain(value) => (0..40).for_each(|i| {
                fill.put(&format!("/plain/{i}"), value);
            }),
        }
    }
}

/// Some writes that no other history has.
fn write(to: impl Into<Target>, word: &str, count: usize) {
    let fill = Fill::new(to);
    (0..count).for_each(|i| {
        fill.put(&format!("/written/{word}/{i}"), word);
    });
}

fn revision(snapshot: &Value) -> i64 {
    snapshot["revision"].as_i64().unwrap_or_else(|| panic!("a revision in {snapshot}"))
}

fn number(snapshot: &Value) -> String {
    field(snapshot, "id")[..4].to_owned()
}

/// Take with text output, for what is said on standard error; then the newest snapshot.
fn take_and_hear(refloat: &Refloat) -> (Value, Output) {
    let output = refloat.command(&["-o", "json", "snapshot", "take"]).run();
    assert_eq!(output.code, Some(0), "{output}");
    let document: Value = serde_json::from_str(&output.stdout).expect("a document");
    (document["snapshot"].clone(), output)
}

fn alarmed(output: &Output) -> bool {
    output.stderr.contains("this history is not the one before")
}

#[track_caller]
fn export(refloat: &Refloat, id: &str) -> PathBuf {
    let to = refloat.dir().join(format!("{id}.db"));
    refloat.run(&["snapshot", "export", id, "--to", to.to_str().expect("text")]).ok();
    to
}

#[test]
fn a_rebuilt_cluster_is_another_lineage_under_the_same_cluster_id() {
    for (first, second) in [
        (
            Data::Kubernetes("11111111-1111-4111-8111-111111111111"),
            Data::Kubernetes("22222222-2222-4222-8222-222222222222"),
        ),
        (Data::Plain("before"), Data::Plain("after")),
        (Data::Plain("before"), Data::Kubernetes("22222222-2222-4222-8222-222222222222")),
    ] {
        let what = format!("{first:?} then {second:?}");
        let mut cluster = cluster(Line::V36, "same");
        let refloat = Refloat::new(&cluster);
        first.fill(&cluster);
        write(&cluster, "old", 200);
        let old = take(&refloat);
        assert_eq!(listed(&refloat, &[]), [field(&old, "id")], "{what}");

        cluster.rebuild();
        second.fill(&cluster);
        let (new, said) = take_and_hear(&refloat);
        assert_eq!(new["cluster_id"], old["cluster_id"], "{what}: that is the trap");
        assert!(revision(&new) < revision(&old), "{what}");
        assert_ne!(new["lineage"], old["lineage"], "{what}");
        assert_eq!(number(&new), "0001", "{what}: its first timeline");
        assert!(!alarmed(&said), "{what}: {said}");
        let (old_id, new_id) = (field(&old, "id"), field(&new, "id"));

        assert_eq!(latest(&refloat), new_id, "{what}");
        assert_eq!(listed(&refloat, &[]), [new_id], "{what}");
        let list = refloat.json(&["snapshot", "list"]);
        let others = list["other_lineages"].as_array().expect("a list");
        assert_eq!(others.len(), 1, "{what}: {list}");
        assert_eq!((&others[0]["lineage"], &others[0]["snapshots"]), (&old["lineage"], &1.into()), "{what}");
        assert!(others[0]["stored"].as_u64() > Some(0), "{what}: {list}");
        assert!(refloat.run(&["snapshot", "list"]).ok().contains("--all-lineages"), "{what}");
        assert_eq!(listed(&refloat, &["--all-lineages"]).len(), 2, "{what}");
        // Nothing is mixed: each in its own folder, and the old ones are as good as ever.
        let lineage = field(&old, "lineage");
        assert!(files(&refloat.store()).iter().any(|f| f.starts_with(lineage) && f.contains(old_id)), "{what}");
        assert!(!files(&refloat.store()).iter().any(|f| f.starts_with(lineage) && f.contains(new_id)), "{what}");
        refloat.run(&["snapshot", "verify", old_id]).ok();
        export(&refloat, old_id);
        // The next one goes on where the new one stands, also once it is past the old revision.
        write(&cluster, "new", 300);
        let next = take(&refloat);
        assert!(revision(&next) > revision(&old), "{what}");
        assert_eq!((&next["lineage"], &next["timeline"]), (&new["lineage"], &new["timeline"]), "{what}");
    }
}

#[test]
fn a_restored_cluster_is_a_new_timeline_with_an_alarm() {
    for line in Line::in_full() {
        for data in [Data::Kubernetes("11111111-1111-4111-8111-111111111111"), Data::Plain("value")] {
            for token in ["same", "other"] {
                for writes in [0, 30] {
                    restored(line, data, token, writes);
                }
            }
        }
    }
}

/// Restores to the first of two snapshots; `writes` more than were lost come before the next one is taken.
fn restored(line: Line, data: Data, token: &str, writes: usize) {
    let what = format!("{line}, {data:?}, token {token}, {writes} writes");
    let mut cluster = cluster(line, "same");
    let refloat = Refloat::new(&cluster);
    data.fill(&cluster);
    let first = take(&refloat);
    write(&cluster, "lost", 10);
    let second = take(&refloat);
    assert_eq!(second["timeline"], first["timeline"], "{what}");
    let file = export(&refloat, field(&first, "id"));

    cluster.restore(&file, &[&format!("--initial-cluster-token={token}")]);
    write(&cluster, "since", writes);
    let (third, said) = take_and_hear(&refloat);
    assert_eq!(third["cluster_id"] == first["cluster_id"], token == "same", "{what}");
    assert_eq!(revision(&third) > revision(&second), writes > 10, "{what}");
    assert_eq!(third["lineage"], first["lineage"], "{what}: {said}");
    assert_eq!((number(&second).as_str(), number(&third).as_str()), ("0001", "0002"), "{what}: {said}");
    assert!(alarmed(&said), "{what}: {said}");

    // The newest history counts, whatever its revision; the other is kept and as good as before.
    let ids = [&third, &second, &first].map(|s| field(s, "id"));
    assert_eq!(latest(&refloat), ids[0], "{what}");
    assert_eq!(listed(&refloat, &[]), ids, "{what}");
    refloat.run(&["snapshot", "verify", "--all"]).ok();
    export(&refloat, ids[1]);
    // It goes on there, and says no more.
    write(&cluster, "more", 15);
    let (fourth, said) = take_and_hear(&refloat);
    assert_eq!(fourth["timeline"], third["timeline"], "{what}");
    assert!(!alarmed(&said), "{what}: {said}");
}

/// Bytes of a file for the liar.
fn leaked(file: &Path) -> &'static [u8] {
    Box::leak(std::fs::read(file).expect("read a file").into_boxed_slice())
}

#[test]
fn a_member_that_lags_keeps_its_timeline() {
    for data in [Data::Kubernetes("11111111-1111-4111-8111-111111111111"), Data::Plain("value")] {
        let cluster = cluster(Line::V36, "same");
        let liar = Liar::start(cluster.node(0).client_url());
        let refloat = Refloat::new(liar.url());
        data.fill(&cluster);
        let first = take(&refloat);
        let behind = leaked(&export(&refloat, field(&first, "id")));
        write(&cluster, "more", 10);
        let second = take(&refloat);
        // The stream is that of a member which has not got the last writes; the cluster has them.
        liar.lie(Lie::Instead(behind));
        let (third, said) = take_and_hear(&refloat);
        assert_eq!(revision(&third), revision(&first), "{data:?}");
        assert_eq!((&third["lineage"], &third["timeline"]), (&second["lineage"], &second["timeline"]), "{data:?}");
        assert!(!alarmed(&said), "{data:?}: {said}");
        liar.be_honest();
        assert_eq!(take(&refloat)["timeline"], first["timeline"], "{data:?}");
    }
}

#[test]
fn a_member_left_behind_without_quorum_begins_no_history() {
    let mut cluster = Cluster::builder(Line::V36).members(3).start();
    Data::Kubernetes("11111111-1111-4111-8111-111111111111").fill(&cluster);
    let own = cluster.leader_index();
    let liar = Liar::start(cluster.node(own).client_url());
    let refloat = Refloat::new(liar.url());
    let first = take(&refloat);
    let behind = leaked(&export(&refloat, field(&first, "id")));
    write(&cluster, "more", 10);
    let second = take(&refloat);
    assert!(revision(&second) > revision(&first));
    // Now it is alone, its stream is behind, and it can ask nobody.
    (0..3).filter(|i| *i != own).for_each(|i| cluster.node_mut(i).kill());
    let alone = || (cluster.node(own).metric("etcd_server_has_leader") == Some(0.0)).then_some(());
    until(Instant::now() + Duration::from_secs(60), alone).expect("a leader without followers steps down");
    liar.lie(Lie::Instead(behind));
    let (third, said) = take_and_hear(&refloat);
    assert_eq!(revision(&third), revision(&first), "{said}");
    assert_eq!((&third["lineage"], &third["timeline"]), (&first["lineage"], &first["timeline"]), "{said}");
    assert!(!alarmed(&said), "{said}");
    assert!(said.stderr.contains("knows no leader"), "{said}");
}

#[test]
fn a_namespace_that_is_encrypted_at_rest_gives_a_local_lineage() {
    let cluster = cluster(Line::V36, "same");
    let refloat = Refloat::new(&cluster);
    let fill = Fill::new(&cluster);
    let secret = "5".repeat(200);
    fill.put("/registry/namespaces/kube-system", &format!("k8s:enc:aescbc:v1:key1:{secret}"));
    let first = take(&refloat);
    let lineage = field(&first, "lineage");
    let evidence = std::fs::read_to_string(refloat.store().join(lineage).join("lineage.json")).expect("evidence");
    assert_eq!(serde_json::from_str::<Value>(&evidence).expect("JSON")["origin"], "local");
    // Encrypted anew with another key: the same cluster all the same.
    fill.put("/registry/namespaces/kube-system", &format!("k8s:enc:aesgcm:v1:key2:{secret}"));
    let second = take(&refloat);
    assert_eq!((&second["lineage"], &second["timeline"]), (&first["lineage"], &first["timeline"]));
    assert_eq!(listed(&refloat, &[]).len(), 2);
}
