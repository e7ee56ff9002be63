//! Lists of very many snapshots: memory stays that of the names, and everything in a store is accounted for.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bed::Refloat;
use crate::import::away;
use crate::many_keys::Peak;
use crate::stores::edit;

/// Design §7 and the issue: whatever lies there.
const BOUND: u64 = 64 << 20;
const LINEAGE: &str = "aaaaaaaaaaaaaaaa";
const OTHER: &str = "bbbbbbbbbbbbbbbb";

/// The id and the manifest of the nth snapshot, one a minute.
pub fn snapshot(lineage: &str, n: u64) -> (String, Value) {
    let at = jiff::Timestamp::from_second(1_700_000_000 + 60 * n as i64).expect("a time");
    let node = format!("cp{}", n % 3 + 1);
    let id = format!("0001-{n:020}-{}-{node}", at.strftime("%Y%m%dT%H%M%S000Z"));
    let manifest = json!({
        "schema": 1, "id": id, "lineage": lineage, "timeline": "0001-475752fa", "cluster_id": "cafe", "node": node,
        "member_id": "8e9e05c52164694d", "member_name": node, "revision": n, "compact_revision": 0,
        "taken_at": at.to_string(), "finished_at": at.to_string(),
        "size": {"db": 8192, "in_use": 4096, "stored": 1}, "sha256": {"db": "01".repeat(32), "stored": "02".repeat(32)},
        "codec": "zstd", "hash_kv": {"hash": 5, "revision": n, "compact_revision": 0},
        "agreement": [{"with": "member cp2 (8e9e05c52164694d)", "result": "skipped", "reason": "it leads"}],
        "tail": "03".repeat(32), "etcd_version": "3.6.16", "storage_version": "3.6.0", "cluster_version": "3.6.0",
        "raft_term": 2, "raft_index": n, "keys": 1, "leases": 0, "alarms": [], "not_checked": [], "tags": [],
        "checks": ["stored", "trailer", "tree", "rows", "hash_kv"],
    });
    (id, manifest)
}

fn fill(store: &Path, lineage: &str, count: u64) {
    let dir = store.join(lineage).join("snapshots");
    fs::create_dir_all(&dir).expect("make a directory");
    for n in 1..=count {
        let (id, manifest) = snapshot(lineage, n);
        fs::write(dir.join(format!("{id}.json")), manifest.to_string()).expect("write a manifest");
        fs::write(dir.join(format!("{id}.db.zst")), "x").expect("write data");
    }
}

/// A store with so many snapshots of one lineage, and a little of everything else; in memory where there is such a
/// place, because a disk takes minutes to make and remove the files.
fn filled(count: u64) -> (Refloat, TempDir) {
    let refloat = away();
    let memory = Some(Path::new("/dev/shm")).filter(|shm| shm.is_dir()).map(Path::to_path_buf);
    let place = tempfile::tempdir_in(memory.unwrap_or_else(std::env::temp_dir)).expect("make a directory");
    edit(&refloat, &refloat.store().display().to_string(), &place.path().display().to_string());
    refloat.run(&["store", "init", "local"]).ok();
    let store = place.path();
    fill(store, LINEAGE, count);
    fill(store, OTHER, 3);
    // This node's own decide which lineage is meant.
    fs::write(refloat.state().join("stores.json"), json!({"schema": 1, "lineage": LINEAGE, "stores": []}).to_string())
        .expect("write the state");
    fs::write(store.join("notes.txt"), "x").expect("write");
    let dir = store.join(LINEAGE).join("snapshots");
    let (unfinished, _) = snapshot(LINEAGE, count + 1);
    fs::write(dir.join(format!("{unfinished}.db.zst")), "abc").expect("write");
    let (unreadable, _) = snapshot(LINEAGE, count + 2);
    fs::write(dir.join(format!("{unreadable}.json")), "{").expect("write");
    (refloat, place)
}

#[track_caller]
fn listed_within_the_bound(count: u64) {
    let (refloat, _place) = filled(count);
    let measured = |args: &[&str], code: i32, bound: u64| {
        let peak = Peak::default();
        let watch = peak.watcher();
        let output = refloat.command(args).timeout(Duration::from_secs(300)).meanwhile(watch).run();
        let bytes = peak.bytes();
        assert!(bytes > 1 << 20, "{args:?}: the peak was not seen");
        assert!(bytes <= bound, "{args:?}: {bytes} bytes resident, the bound is {bound}");
        eprintln!("{count} snapshots, {args:?}: {} KiB resident, {:?}", bytes >> 10, output.took);
        assert_eq!(output.code, Some(code), "{args:?}: {}", output.stderr);
        output.stdout
    };
    let run = |args: &[&str]| measured(args, 0, BOUND);
    let id = |n: u64| snapshot(LINEAGE, n).0;

    let document: Value = serde_json::from_str(&run(&["-o", "json", "snapshot", "list", "--foreign"])).expect("JSON");
    let snapshots = document["snapshots"].as_array().expect("a list");
    assert_eq!(snapshots.len() as u64, count);
    for (at, shown) in snapshots.iter().enumerate() {
        assert_eq!(shown["id"], id(count - at as u64), "newest first, each once");
    }
    let rest = |document: &Value| {
        assert_eq!((&document["foreign"], &document["foreign_names"]), (&json!(1), &json!(["notes.txt"])));
        assert_eq!(document["other_lineages"], json!([{"lineage": OTHER, "snapshots": 3, "stored": 3}]));
        let dir = format!("{LINEAGE}/snapshots");
        assert_eq!(document["unfinished"], json!([format!("{dir}/{}.db.zst", id(count + 1))]));
        assert_eq!(document["unreadable"], json!([format!("{dir}/{}.json", id(count + 2))]));
    };
    rest(&document);

    let lines = run(&["-o", "jsonl", "snapshot", "list", "--foreign"]);
    assert_eq!(lines.lines().count() as u64, count + 1);
    rest(&serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON"));

    let table = run(&["snapshot", "list"]);
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("0001-")).collect();
    assert_eq!(rows.len() as u64, count);
    let columns = |row: &str| row.find("verified");
    assert!(columns(rows[0]).is_some());
    for row in &rows {
        assert_eq!(columns(row), columns(rows[0]), "{row}");
    }
    for line in ["1 unfinished", "1 unreadable", "1 foreign", "3 snapshots of another cluster, 3 B stored"] {
        assert!(table.contains(line), "{line}");
    }

    let limited = run(&["-o", "json", "snapshot", "list", "--limit", "5", "--node", "cp2"]);
    let limited: Value = serde_json::from_str(&limited).expect("JSON");
    let snapshots = limited["snapshots"].as_array().expect("a list");
    assert!(snapshots.len() == 5 && snapshots.iter().all(|s| s["node"] == "cp2"), "{limited}");
    let of_node = (1..=count).filter(|n| n % 3 == 1).count() as u64;
    assert_eq!(limited["omitted"], of_node - 5);
    let all = run(&["-o", "json", "snapshot", "list", "--all-lineages", "--limit", "1"]);
    let all: Value = serde_json::from_str(&all).expect("JSON");
    assert_eq!(
        (&all["other_lineages"], &all["omitted"]),
        (&json!([]), &json!(count + 2)),
        "the unreadable one was read"
    );

    // The plan of a prune over all of them, and the prune itself, which also keeps what it did.
    edit(&refloat, "name = \"local\"\n", "name = \"local\"\nscope = \"cluster\"\n");
    let plan = measured(&["-o", "json", "prune", "--dry-run", "--trust-clock"], 2, BOUND);
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let (keep, remove) = (decided(&plan, "keep"), decided(&plan, "remove"));
    assert_eq!((keep.len() + remove.len()) as u64, count);
    // The newest of each: an hour of 60 is kept whole by keep_within = 6h.
    assert_eq!(keep.iter().filter(|row| has(row, "keep-within")).count(), 361);
    assert!(keep.iter().chain(&remove).all(|row| row["reasons"].as_array().is_some_and(|r| !r.is_empty())));
    let table = measured(&["prune", "--dry-run", "--trust-clock"], 2, BOUND);
    assert_eq!(table.lines().filter(|line| line.starts_with("  remove  0001-")).count(), remove.len());
    let done: Value =
        serde_json::from_str(&measured(&["-o", "json", "prune", "--yes", "--trust-clock"], 0, 3 * BOUND / 2))
            .expect("JSON");
    assert_eq!(done["removed"].as_array().map(Vec::len), Some(remove.len()));
    let left = run(&["-o", "jsonl", "snapshot", "list"]);
    assert_eq!(left.lines().count(), keep.len() + 1);
}

fn decided<'a>(plan: &'a Value, list: &str) -> Vec<&'a Value> {
    plan["plan"][list].as_array().expect("a list").iter().collect()
}

fn has(row: &Value, rule: &str) -> bool {
    row["rules"].as_array().is_some_and(|rules| rules.iter().any(|r| r == rule))
}

#[test]
fn ten_thousand_snapshots() {
    listed_within_the_bound(10_000);
}

#[test]
#[ignore = "soak: writes 200,000 files"]
fn a_hundred_thousand_snapshots_in_64_mib() {
    listed_within_the_bound(100_000);
}
