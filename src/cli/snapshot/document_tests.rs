use serde_json::{Value, json};

use super::*;
use crate::catalog::shown::Copy;
use crate::catalog::{Note, NoteBody};
use crate::cli::args::Format;
use crate::cli::output::tests::printed;

pub const ID: &str = "0001-00000000000000004711-20260301T120000000Z-cp1";

pub fn snapshot() -> Snapshot {
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
        NoteBody::Pin { reason: Some("audit".into()) },
    );
    let copy = |store: &str, notes| Copy { store: store.into(), notes, ..Copy::default() };
    let shown = Shown::fold(manifest, &[copy("local", vec![pin]), copy("usb", vec![])]);
    Snapshot { shown, now: "2026-03-01T14:05:00Z".parse().unwrap() }
}

/// The names that scripts rely on (design §15), with what they hold here.
pub fn assert_snapshot(document: &Value) {
    let expected = json!({
        "id": ID, "lineage": "00112233445566aa", "timeline": "0001-deadbeef", "cluster_id": "cdf818194e3a8c32",
        "node": "cp1", "member_id": "8e9e05c52164694d", "revision": 4711, "compact_revision": 4000,
        "taken_at": "2026-03-01T12:00:00Z", "state": "verified",
        "agreement": [{"with": "cp2", "result": "equal"}, {"with": "cp3", "result": "skipped", "reason": "it leads"}],
        "size": {"db": 3 << 20, "in_use": 2 << 20, "stored": 1 << 20},
        "sha256": {"db": "aa".repeat(32), "stored": "bb".repeat(32)},
        "hash_kv": {"hash": 42, "revision": 4711, "compact_revision": 4000},
        "stores": ["local", "usb"], "tags": ["x"], "pinned": true,
        "pin": {"at": "2026-03-01T13:00:00Z", "node": "cp1", "reason": "audit"}, "etcd_version": "3.6.16", "age": 7500,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&document[name], value, "{name}");
    }
}

fn parsed(document: &impl Document) -> Value {
    serde_json::from_str(&printed(document, Format::Json)).unwrap()
}

fn failed() -> StoreOutcome {
    let error =
        crate::error::Error::io("write object", "/usb", std::io::Error::from_raw_os_error(28)).remedy("tidy up");
    StoreOutcome { name: "usb".into(), outcome: Outcome::Failed, error: Some((&error).into()) }
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
        "pinned         2026-03-01T13:00:00Z on cp1: audit\n",
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
