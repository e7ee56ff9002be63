use serde_json::{Value, json};

use super::*;
use crate::catalog::shown::Copy;
use crate::catalog::{Note, NoteBody};
use crate::cli::args::Format;
use crate::cli::output::tests::printed;

const ID: &str = "0001-00000000000000004711-20260301T120000000Z-cp1";

fn snapshot() -> Snapshot {
    let manifest = json!({
        "schema": 1, "id": ID, "lineage": "00112233445566aa", "timeline": "0001-deadbeef",
        "cluster_id": "cdf818194e3a8c32", "node": "cp1", "member_id": "8e9e05c52164694d", "member_name": "m1",
        "revision": 4711, "compact_revision": 4000,
        "taken_at": "2026-03-01T12:00:00Z", "finished_at": "2026-03-01T12:00:09Z",
        "size": {"db": 3 << 20, "in_use": 2 << 20, "stored": 1 << 20},
        "sha256": {"db": "aa".repeat(32), "stored": "bb".repeat(32)},
        "codec": "zstd", "hash_kv": {"hash": 42, "revision": 4711, "compact_revision": 4000},
        "agreement": [{"with": "cp2", "result": "equal"}, {"with": "cp3", "result": "skipped", "reason": "it leads"}],
        "etcd_version": "3.6.16", "keys": 7, "leases": 2, "tags": ["x"],
        "checks": ["stored", "trailer", "tree", "rows", "hash_kv"],
    });
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
    let pin = Note::new(
        manifest.id.clone(),
        "2026-03-01T13:00:00Z".parse().unwrap(),
        "cp1".parse().unwrap(),
        NoteBody::Pin { reason: None },
    );
    let copy = |store: &str, notes| Copy { store: store.into(), notes, ..Copy::default() };
    let shown = Shown::fold(manifest, &[copy("local", vec![pin]), copy("usb", vec![])]);
    Snapshot { shown, now: "2026-03-01T14:05:00Z".parse().unwrap() }
}

/// The names that scripts rely on (design §15), with what they hold here.
fn assert_snapshot(document: &Value) {
    let expected = json!({
        "id": ID, "lineage": "00112233445566aa", "timeline": "0001-deadbeef", "cluster_id": "cdf818194e3a8c32",
        "node": "cp1", "member_id": "8e9e05c52164694d", "revision": 4711, "compact_revision": 4000,
        "taken_at": "2026-03-01T12:00:00Z", "state": "verified",
        "agreement": [{"with": "cp2", "result": "equal"}, {"with": "cp3", "result": "skipped", "reason": "it leads"}],
        "size": {"db": 3 << 20, "in_use": 2 << 20, "stored": 1 << 20},
        "sha256": {"db": "aa".repeat(32), "stored": "bb".repeat(32)},
        "hash_kv": {"hash": 42, "revision": 4711, "compact_revision": 4000},
        "stores": ["local", "usb"], "tags": ["x"], "pinned": true, "etcd_version": "3.6.16", "age": 7500,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&document[name], value, "{name}");
    }
}

fn parsed(document: &impl Document) -> Value {
    serde_json::from_str(&printed(document, Format::Json)).unwrap()
}

fn found(kind: Kind, store: &str, name: &str, why: Option<&str>) -> StoredName {
    StoredName { kind, store: store.into(), name: name.into(), why: why.map(String::from) }
}

fn list(name_foreign: bool) -> ListDocument {
    let all = vec![
        found(Kind::Foreign, "local", "notes.txt", None),
        found(Kind::Unfinished, "local", "u.db.zst", None),
        found(Kind::Unreadable, "local", "r.json", Some("cut off")),
        found(Kind::Unreadable, "usb", "r.json", Some("cut off")),
    ];
    ListDocument {
        schema: 1,
        snapshots: vec![snapshot()],
        other_lineages: vec![],
        others: Others::new(1, name_foreign, all),
    }
}

fn failed() -> StoreOutcome {
    let error =
        crate::error::Error::io("write object", "/usb", std::io::Error::from_raw_os_error(28)).remedy("tidy up");
    StoreOutcome { name: "usb".into(), outcome: Outcome::Failed, error: Some((&error).into()) }
}

#[test]
fn list_has_the_documented_names() {
    let detail = |kind: &str, store: &str, name: &str, why: &str| {
        format!("{{\"kind\":\"{kind}\",\"store\":\"{store}\",\"name\":\"{name}\",\"why\":{why}}}")
    };
    let details = [
        detail("foreign", "local", "notes.txt", "null"),
        detail("unfinished", "local", "u.db.zst", "null"),
        detail("unreadable", "local", "r.json", "\"cut off\""),
        detail("unreadable", "usb", "r.json", "\"cut off\""),
    ];
    let rest = format!(
        "\"foreign\":1,\"foreign_names\":[\"notes.txt\"],\"unfinished\":[\"u.db.zst\"],\"unreadable\":[\"r.json\"],\
         \"details\":[{}]",
        details.join(",")
    );
    let document = parsed(&list(true));
    assert_eq!(document["schema"], 1);
    assert_snapshot(&document["snapshots"][0]);
    let lines = printed(&list(true), Format::Jsonl);
    let lines: Vec<&str> = lines.lines().collect();
    assert_snapshot(&serde_json::from_str(lines[0]).unwrap());
    assert_eq!(lines[1], format!("{{\"schema\":1,{rest}}}"));
    assert!(printed(&list(true), Format::Json).len() > rest.len());
    let unasked = printed(&list(false), Format::Json);
    assert!(!unasked.contains("foreign_names") && !unasked.contains("notes.txt"), "{unasked}");
}

#[test]
fn several_lineages_have_a_column() {
    let mut other = snapshot();
    other.shown.manifest.lineage = "ffeeddccbbaa9988".parse().unwrap();
    let document = ListDocument {
        schema: 1,
        snapshots: vec![snapshot(), other],
        other_lineages: vec![],
        others: Others::default(),
    };
    let text = printed(&document, Format::Table);
    let last: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(last, ["LINEAGE", "00112233445566aa", "ffeeddccbbaa9988"]);
}

#[test]
fn list_as_a_table() {
    assert_eq!(
        printed(&list(false), Format::Table),
        "ID                                                   AGE  STATE             REVISION     SIZE   STORED  STORES     NODE  TAGS\n\
         0001-00000000000000004711-20260301T120000000Z-cp1  2h05m  verified, pinned      4711  3.0 MiB  1.0 MiB  local,usb  cp1   x\n\
         1 unfinished: data without a manifest, never counted\n\
         1 foreign: not written by refloat, never touched (--foreign names them)\n  unfinished: u.db.zst in store local\n  \
         unreadable: r.json in store local (cut off)\n  unreadable: r.json in store usb (cut off)\n"
    );
    let empty = ListDocument { schema: 1, snapshots: vec![], other_lineages: vec![], others: Others::default() };
    assert_eq!(printed(&empty, Format::Table), "no snapshots\n");
}

#[test]
fn show_is_the_snapshot_with_a_schema() {
    let document = ShowDocument(snapshot());
    let json = parsed(&document);
    assert_eq!(json["schema"], 1);
    assert_snapshot(&json);
    let table = printed(&document, Format::Table);
    for line in [
        "state          verified, pinned\n",
        "taken at       2026-03-01T12:00:00Z (2h05m ago)\n",
        "agreement      equal with cp2; skipped with cp3 (it leads)\n",
        "size           3.0 MiB, 2.0 MiB in use, 1.0 MiB stored\n",
        "hash kv        42 at revision 4711, compact revision 4000\n",
    ] {
        assert!(table.contains(line), "{line}{table}");
    }
}

#[test]
fn take_names_each_store() {
    let stored = StoreOutcome { name: "local".into(), outcome: Outcome::Stored, error: None };
    let document = TakeDocument { schema: 1, job: None, snapshot: snapshot(), stores: vec![stored, failed()] };
    let json = parsed(&document);
    assert_eq!((&json["schema"], &json["job"]), (&json!(1), &Value::Null));
    assert_snapshot(&json["snapshot"]);
    assert_eq!(json["stores"][0], json!({"name": "local", "outcome": "stored", "error": null}));
    assert_eq!(json["stores"][1]["error"]["code"], "io");
    assert_eq!(
        printed(&document, Format::Table),
        "0001-00000000000000004711-20260301T120000000Z-cp1  verified  revision 4711  3.0 MiB (1.0 MiB stored)\n  store local: \
         stored\n  store usb: failed to write object /usb: No space left on device (os error 28); try: tidy up\n  agreement: \
         equal with cp2\n  agreement: skipped with cp3 (it leads)\n"
    );
}

#[test]
fn a_dry_run_shows_member_and_space() {
    let document = PreflightDocument {
        schema: 1,
        member: "cp1".into(),
        url: "http://10.0.0.1:2379".into(),
        chosen_as: "the only endpoint".into(),
        etcd_version: "3.6.16".into(),
        db: 3 << 20,
        stores: vec![
            PreflightStore { name: "local".into(), ok: true, needed: Some(1 << 30), error: None },
            PreflightStore { name: "usb".into(), ok: false, needed: None, error: failed().error },
        ],
    };
    assert_eq!(
        printed(&document, Format::Table),
        "member cp1 at http://10.0.0.1:2379 (the only endpoint) answers: etcd 3.6.16, database 3.0 MiB\n  store local: ready, \
         1.0 GiB are needed and free\n  store usb: failed to write object /usb: No space left on device (os error 28); try: \
         tidy up\n"
    );
}
