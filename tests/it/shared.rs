//! One store for several clusters, processes and copies: each sees its own, and nobody takes another's work for a
//! leftover.

use std::fs::{self, File};

use serde_json::Value;

use crate::bed::{Cluster, Fill, Line, Refloat};
use crate::stores::edit;
use crate::taking::{error_of, files, take, why};

/// A node of the same name for another cluster or another process, with the first one's store and a state of its own.
fn beside(first: &Refloat, cluster: &Cluster) -> Refloat {
    let other = Refloat::new(cluster);
    edit(&other, &other.store().display().to_string(), &first.store().display().to_string());
    other
}

fn cluster_of(document: &Value) -> &str {
    document["cluster_id"].as_str().expect("a cluster id")
}

#[test]
fn two_clusters_with_the_same_node_name_share_a_store() {
    let (one, two) = (Cluster::start(Line::V36), Cluster::start(Line::V36));
    // Without Kubernetes nothing but the state tells which cluster a node belongs to.
    Fill::new(&one).put("a", "1");
    Fill::new(&two).put("b", "2");
    let first = Refloat::new(&one);
    let second = beside(&first, &two);
    let (a, b) = (take(&first), take(&second));
    assert_ne!(cluster_of(&a), cluster_of(&b));
    for (refloat, own) in [(&first, &a), (&second, &b)] {
        assert_eq!(cluster_of(&refloat.json(&["snapshot", "show", "latest"])), cluster_of(own));
        let list = refloat.json(&["snapshot", "list"]);
        assert_eq!(list["snapshots"].as_array().expect("a list").len(), 1);
        assert_eq!(cluster_of(&list["snapshots"][0]), cluster_of(own));
        assert_eq!(list["other_lineages"].as_array().expect("a list").len(), 1);
        assert_eq!(refloat.json(&["snapshot", "verify", "--all"])["results"].as_array().expect("a list").len(), 1);
        let file = refloat.dir().join("export.db");
        refloat.run(&["snapshot", "export", "latest", "--to", &file.display().to_string()]).ok();
        let keys = refloat.run(&["db", "keys", &file.display().to_string()]).ok();
        assert_eq!(keys.trim(), if own == &a { "a" } else { "b" });
    }
    // A node that has taken none is told that there are several.
    let third = beside(&first, &one);
    let output = third.run(&["snapshot", "list"]);
    assert!(output.stderr.contains("several clusters"), "{output}");
}

#[test]
fn a_member_of_another_cluster_is_refused() {
    let (one, two) = (Cluster::builder(Line::V36).members(3).start(), Cluster::start(Line::V36));
    Fill::new(&one).put("a", "1");
    Fill::new(&two).put("b", "2");
    let refloat = Refloat::new(&one).member(one.node(0).name());
    let output = refloat.run(&["-o", "json", "snapshot", "take", "--member", two.node(0).client_url()]);
    let error = error_of(&output);
    assert_eq!((output.code, &error["code"]), (Some(78), &"config".into()), "{output}");
    assert!(why(&error).contains("cluster"), "{error}");
    assert_eq!(refloat.json(&["snapshot", "list"])["snapshots"], serde_json::json!([]));
}

#[test]
fn data_of_a_writer_that_lives_is_no_leftover() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).put("a", "1");
    let refloat = Refloat::new(&cluster);
    let id = take(&refloat)["id"].as_str().expect("an id").to_owned();
    // What another process of the same node name has written, short of its manifest.
    let data = files(&refloat.store()).into_iter().find(|name| name.ends_with(".db.zst")).expect("data");
    let (before, after) = id.split_once('T').expect("a time in the id");
    let half = data.replace(&id, &format!("{}20200101T{after}", &before[..before.len() - 8]));
    fs::copy(refloat.store().join(&data), refloat.store().join(&half)).expect("copy the data");

    let writer = File::open(refloat.store()).expect("open the store");
    writer.lock_shared().expect("write as others do");
    take(&refloat);
    assert!(refloat.store().join(&half).exists(), "the data of a living writer is gone");
    drop(writer);
    let output = refloat.run(&["snapshot", "take"]);
    assert!(output.stderr.contains("leftover"), "{output}");
    assert!(!refloat.store().join(&half).exists());
}

#[test]
fn verify_all_leaves_nothing_out_and_export_takes_the_good_copy() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let spare = tempfile::tempdir().expect("a directory");
    let second =
        format!("[[store]]\nname = \"usb\"\nurl = \"file://{}\"\nmin_free = \"16MiB\"\n", spare.path().display());
    let refloat = Refloat::new(&cluster).config(&second);
    let snapshots = [take(&refloat), take(&refloat), take(&refloat)];
    let data = |n: usize| {
        let id = snapshots[n]["id"].as_str().expect("an id");
        let name = files(&refloat.store()).into_iter().find(|name| name.contains(id) && name.ends_with(".db.zst"));
        refloat.store().join(name.expect("data"))
    };
    // One byte of the newest is flipped in the first store: the export comes from the second.
    let newest = data(2);
    let mut bytes = fs::read(&newest).expect("read the data");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&newest, &bytes).expect("damage the data");
    let file = refloat.dir().join("export.db").display().to_string();
    let output = refloat.run(&["snapshot", "export", "latest", "--to", &file]);
    assert!(output.success() && output.stderr.contains("store local is not sound"), "{output}");
    refloat.run(&["snapshot", "verify", &file]).ok();

    // Cut and gone, in both stores: named by `--all`, which does not end well.
    for root in [refloat.store(), spare.path().to_path_buf()] {
        let at = |path: std::path::PathBuf| root.join(path.strip_prefix(refloat.store()).expect("below the store"));
        let cut = File::options().write(true).open(at(data(1))).expect("open the data");
        cut.set_len(100).expect("cut it");
        if root != refloat.store() {
            fs::remove_file(at(data(0))).expect("remove the data");
        }
    }
    fs::remove_file(data(0)).expect("remove the data");
    let output = refloat.run(&["-o", "json", "snapshot", "verify", "--all"]);
    assert_eq!(output.code, Some(65), "{output}");
    let all: Value = serde_json::from_str(&output.stdout).expect("a document");
    assert_eq!(all["ok"], false);
    for snapshot in &snapshots {
        let id = snapshot["id"].as_str().expect("an id");
        let results = all["results"].as_array().expect("a list");
        let bad = results.iter().any(|r| r["ok"] == false && r["subject"].as_str().is_some_and(|s| s.contains(id)));
        assert!(bad, "{id} in {all}");
    }
}

#[test]
fn latest_is_never_a_file_and_a_whole_name_never_a_path() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).put("a", "1");
    let refloat = Refloat::new(&cluster);
    let taken = take(&refloat);
    fs::write(refloat.dir().join("latest"), "junk").expect("write a file");
    let here = |args: &[&str]| refloat.command(args).dir(refloat.dir()).run();
    here(&["snapshot", "verify", "latest"]).ok();
    let whole = format!("{}/{}", taken["lineage"].as_str().expect("text"), taken["id"].as_str().expect("text"));
    here(&["snapshot", "verify", &whole]).ok();
    assert_eq!(here(&["snapshot", "verify", "./latest"]).code, Some(65));
    let shown = here(&["-o", "jsonl", "snapshot", "show", "latest"]).ok();
    assert_eq!(shown.matches("\"schema\":").count(), 1, "{shown}");
    // The file of a member that runs may change under the reader: that is said.
    let live = here(&["db", "check", &cluster.node(0).db_file().display().to_string()]);
    assert!(live.stdout.contains("another process holds the file"), "{live}");
}
