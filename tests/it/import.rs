//! Backups that others made are brought in, verified like our own (promises 1 and 10), and change nothing about what
//! this node knows of its own cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::bed::{Cluster, Fill, Line, Refloat};
use crate::taking::{error_of, files, latest, listed, take, text, why};
use crate::tree::tree;

pub fn path(file: &Path) -> &str {
    file.to_str().expect("an ordinary path")
}

/// `etcdctl snapshot save` of the line itself, with a time of last change.
#[track_caller]
pub fn save(cluster: &Cluster, name: &str) -> PathBuf {
    let file = cluster.dir().join(name);
    cluster.node(0).etcdctl(&["snapshot", "save", path(&file)]).ok();
    date(&file);
    file
}

/// 2026-03-01T12:00:00.123Z
const DATED: Duration = Duration::from_millis(1_772_366_400_123);

pub fn date(file: &Path) {
    let opened = fs::File::options().write(true).open(file).expect("open the file");
    opened.set_modified(SystemTime::UNIX_EPOCH + DATED).expect("set its time");
}

/// A store and a state of its own, far from any cluster.
pub fn away() -> Refloat {
    Refloat::new("http://127.0.0.1:1")
}

#[track_caller]
pub fn import(refloat: &Refloat, file: &Path, more: &[&str]) -> Value {
    refloat.json(&[&["snapshot", "import", path(file)], more].concat())
}

/// The error of an import that is refused with this exit code; the store is as it was.
#[track_caller]
pub fn refused(refloat: &Refloat, args: &[&str], exit: i32) -> Value {
    let before = tree(&refloat.store());
    let output = refloat.run(&[&["-o", "json", "snapshot", "import"], args].concat());
    assert_eq!(output.code, Some(exit), "{output}");
    assert_eq!(tree(&refloat.store()), before, "{args:?}");
    error_of(&output)
}

/// Everything but the locks and the marker, which the first look at an empty store makes.
fn content(refloat: &Refloat) -> (Vec<String>, Option<Vec<u8>>) {
    (files(&refloat.store()), fs::read(refloat.state().join("stores.json")).ok())
}

#[test]
fn files_of_every_line_are_verified_kept_and_given_back_byte_for_byte() {
    for line in [Line::V34, Line::V35, Line::V36, Line::V37] {
        let cluster = Cluster::start(line);
        let fill = Fill::new(&cluster);
        fill.kubernetes(60);
        fill.compact(fill.revision() - 20);
        let (file, live) = (save(&cluster, "snapshot.db"), fill.hash_kv(0));
        let refloat = away();

        let planned = import(&refloat, &file, &["--dry-run"]);
        assert_eq!((&planned["proven"], &planned["already"]), (&json!(true), &json!(false)), "{line}: {planned}");
        assert_eq!(files(&refloat.store()), [""; 0], "{line}: a dry run writes nothing");

        let done = import(&refloat, &file, &["--tag", "old", "--pin"]);
        let snapshot = &done["snapshot"];
        assert_eq!((&snapshot["state"], &done["already"]), (&json!("verified"), &json!(false)), "{line}: {done}");
        assert_eq!((&snapshot["pinned"], &snapshot["tags"]), (&json!(true), &json!(["old"])), "{line}");
        assert_eq!((&snapshot["timeline"], &snapshot["node"]), (&json!("0000-00000000"), &json!("test")), "{line}");
        assert_eq!(snapshot["taken_at"], "2026-03-01T12:00:00.123Z", "{line}");
        assert_eq!(snapshot["imported"]["from"], path(&file), "{line}");
        assert_eq!(snapshot["hash_kv"]["hash"], live.hash, "{line}: the member's own");
        assert_eq!(snapshot["revision"], live.revision, "{line}");
        for field in ["id", "lineage", "revision", "compact_revision"] {
            let found = if planned[field].is_null() { &planned["id"] } else { &planned[field] };
            assert_eq!(found, &snapshot[field], "{line}: {field} as planned");
        }
        assert_eq!(refloat.json(&["snapshot", "verify", "--all"])["ok"], true, "{line}");

        let before = content(&refloat);
        let again = import(&refloat, &file, &["--tag", "old", "--pin"]);
        assert_eq!((&again["already"], &again["stores"]), (&json!(true), &json!([])), "{line}: {again}");
        assert_eq!(again["snapshot"]["id"], snapshot["id"], "{line}");
        assert_eq!(content(&refloat), before, "{line}: nothing is written");

        let back = refloat.dir().join("back.db");
        refloat.run(&["snapshot", "export", text(snapshot, "id"), "--to", path(&back)]).ok();
        assert!(fs::read(&back).expect("read") == fs::read(&file).expect("read"), "{line}: byte for byte");
        let table = refloat.run(&["snapshot", "list"]).ok();
        assert!(table.contains("pinned,imported"), "{line}: {table}");
    }
}

#[test]
fn a_file_of_the_own_cluster_joins_its_lineage_and_is_never_the_newest() {
    let cluster = Cluster::start(Line::V36);
    let fill = Fill::new(&cluster);
    fill.kubernetes(50);
    let refloat = Refloat::new(cluster.node(0));
    let own = take(&refloat);
    fill.small(20);
    let file = save(&cluster, "snapshot.db");
    let state = || fs::read(refloat.state().join("stores.json")).expect("read");
    let timelines = || {
        let mut names = files(&refloat.store());
        names.retain(|n| n.contains("/timelines/") || n.ends_with("lineage.json"));
        names
    };
    let (known, history) = (state(), timelines());

    let output = refloat.run(&["-o", "json", "snapshot", "import", path(&file)]);
    assert!(!output.stderr.contains("lineage"), "no alarm: {output}");
    let imported = output.json()["snapshot"].clone();
    assert_eq!(imported["lineage"], own["lineage"]);
    assert!(imported["revision"].as_i64() > own["revision"].as_i64());
    assert_eq!((state(), timelines()), (known, history), "it neither closes nor begins anything");
    assert_eq!(latest(&refloat), text(&own, "id"));
    assert_eq!(listed(&refloat, &[]), [text(&own, "id"), text(&imported, "id")]);
    assert_eq!(refloat.json(&["snapshot", "list"])["other_lineages"], json!([]));

    // What comes next goes on with the same history.
    let output = refloat.run(&["-o", "json", "snapshot", "take"]);
    assert!(!output.stderr.contains("history") && !output.stderr.contains("lineage"), "{output}");
    let next = output.json()["snapshot"].clone();
    assert_eq!((&next["lineage"], &next["timeline"]), (&own["lineage"], &own["timeline"]));
    assert_eq!(latest(&refloat), text(&next, "id"));

    // Our own, exported, is there already.
    let export = refloat.dir().join("export.db");
    refloat.run(&["snapshot", "export", text(&own, "id"), "--to", path(&export)]).ok();
    let again = import(&refloat, &export, &[]);
    assert_eq!((&again["already"], &again["snapshot"]["id"]), (&json!(true), &own["id"]));
    // The lineage that the file names is the one that counts.
    let error = refused(&refloat, &[path(&file), "--lineage", "0123456789abcdef"], 64);
    assert_eq!(error["code"], "usage");
    import(&refloat, &file, &["--lineage", text(&own, "lineage")]);
}

#[test]
fn every_form_that_is_a_database_is_read_and_every_other_is_named() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let file = save(&cluster, "snapshot.db");
    let plain = fs::read(&file).expect("read");
    let first = away();
    let id = import(&first, &file, &[])["snapshot"]["id"].clone();
    let stored = files(&first.store()).into_iter().find(|n| n.ends_with(".db.zst")).expect("an object");
    let write = |name: &str, bytes: &[u8]| {
        let file = first.dir().join(name);
        fs::write(&file, bytes).expect("write");
        date(&file);
        file
    };
    let object = write("object.db.zst", &fs::read(first.store().join(stored)).expect("read"));
    let streamed = write("streamed.zst", &zstd::stream::encode_all(&plain[..], 1).expect("compress"));
    for file in [&object, &streamed] {
        let refloat = away();
        let done = import(&refloat, file, &[]);
        assert_eq!((&done["snapshot"]["state"], &done["snapshot"]["id"]), (&json!("verified"), &id));
        assert_eq!(import(&first, file, &[])["already"], true, "the same bytes in another form");
    }
    for (bytes, word, remedy) in [
        (&b"PK\x03\x04\x14\0\x08\0"[..], "RKE2", "unzip"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "gzip", "gzip -dk"),
        (b"age-encryption.org/v1\n", "age", "age -d"),
    ] {
        let error = refused(&first, &[path(&write("packed", bytes))], 65);
        assert_eq!(error["code"], "data-invalid");
        assert!(why(&error).contains(word) && text(&error, "remedy").contains(remedy), "{error}");
    }
    let missing = refused(&first, &["/no/such/file"], 66);
    assert_eq!(missing["code"], "not-found");
    refused(&first, &[path(first.dir())], 65);
}

#[test]
fn a_copied_database_without_a_trailer_stays_unverified() {
    let mut cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let refloat = away();
    refloat.run(&["store", "init", "local"]).ok();
    let live = cluster.node(0).db_file();
    let error = refused(&refloat, &[path(&live), "--allow-unproven"], 65);
    assert!(why(&error).contains("running etcd"), "{error}");

    cluster.node_mut(0).terminate();
    let copy = refloat.dir().join("db");
    fs::copy(&live, &copy).expect("copy");
    let error = refused(&refloat, &[path(&copy)], 65);
    assert_eq!(error["code"], "cannot-be-proven");
    assert!(text(&error, "remedy").contains("--allow-unproven"), "{error}");

    let done = import(&refloat, &copy, &["--allow-unproven"]);
    let id = text(&done["snapshot"], "id");
    assert_eq!((&done["snapshot"]["state"], &done["already"]), (&json!("unverified"), &json!(false)));
    assert_eq!(done["snapshot"]["not_checked"][0]["check"], "trailer");
    assert_eq!(import(&refloat, &copy, &["--allow-unproven"])["already"], true);
    // Sound as it is, no later look proves it.
    assert_eq!(refloat.json(&["snapshot", "verify", id])["ok"], true);
    assert_eq!(refloat.json(&["snapshot", "show", id])["state"], "unverified");
    let back = refloat.dir().join("back.db");
    let output = refloat.run(&["snapshot", "export", id, "--to", path(&back)]);
    assert!(output.stderr.contains("--skip-hash-check"), "{output}");
    assert!(fs::read(&back).expect("read") == fs::read(&copy).expect("read"));
}

#[test]
fn a_file_of_unknown_origin_gets_a_lineage_of_its_own_or_the_one_that_is_named() {
    let cluster = Cluster::start(Line::V36);
    let fill = Fill::new(&cluster);
    fill.small(30);
    let first = save(&cluster, "first.db");
    fill.small(30);
    let second = save(&cluster, "second.db");
    fill.put("x", "y");
    let third = save(&cluster, "third.db");
    let refloat = away();
    let planned = import(&refloat, &first, &["--dry-run"]);
    assert_eq!(
        (&planned["lineage"], &planned["new_lineage"]),
        (&Value::Null, &json!(true)),
        "not one that is not kept"
    );
    let output = refloat.run(&["-o", "json", "snapshot", "import", path(&first)]);
    assert!(output.stderr.contains("--lineage"), "the way to put more beside it: {output}");
    let one = output.json()["snapshot"].clone();
    let lineage = text(&one, "lineage");
    let file = fs::read(refloat.store().join(lineage).join("lineage.json")).expect("read");
    assert_eq!(serde_json::from_slice::<Value>(&file).expect("JSON")["origin"], "foreign-origin");
    assert_eq!(import(&refloat, &first, &[])["already"], true);

    let two = import(&refloat, &second, &["--lineage", lineage])["snapshot"].clone();
    assert_eq!(two["lineage"], one["lineage"]);
    let three = import(&refloat, &third, &[])["snapshot"].clone();
    assert_ne!(three["lineage"], one["lineage"]);
    let error = refused(&refloat, &[path(&third), "--lineage", "0123456789abcdef"], 66);
    assert_eq!(error["code"], "not-found");

    // No import is ever the newest, also where there is nothing else.
    assert_eq!(refloat.run(&["snapshot", "show", "latest"]).code, Some(66));
    assert_eq!(listed(&refloat, &["--all-lineages"]).len(), 3);
    assert_eq!(refloat.json(&["snapshot", "verify", "--all"])["ok"], true);
}
