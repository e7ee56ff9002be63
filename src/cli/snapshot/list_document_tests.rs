use serde_json::{Value, json};

use super::super::document::tests::{ID, assert_snapshot, snapshot};
use super::*;
use crate::cli::output::tests::Captured;

fn found(kind: Kind, store: &str, name: &str, why: Option<&str>) -> StoredName {
    StoredName { kind, store: store.into(), name: name.into(), why: why.map(String::from) }
}

fn rest(name_foreign: bool) -> Rest {
    let all = vec![
        found(Kind::Foreign, "local", "notes.txt", None),
        found(Kind::Unfinished, "local", "u.db.zst", None),
        found(Kind::Unreadable, "local", "r.json", Some("cut off")),
        found(Kind::Unreadable, "usb", "r.json", Some("cut off")),
    ];
    let other = OtherLineage { lineage: "ffeeddccbbaa9988".parse().unwrap(), snapshots: 2, stored: 5 << 20 };
    Rest { other_lineages: vec![other], omitted: Some(7), others: Others::new(1, name_foreign, all) }
}

fn printed(format: Format, several: bool, snapshots: &[Snapshot], rest: &Rest) -> String {
    let sink = Captured::default();
    let output = Output::new(format, Box::new(sink.clone()));
    let mut listed = Listed::begin(&output, several).unwrap();
    snapshots.iter().for_each(|snapshot| listed.row(snapshot).unwrap());
    listed.end(rest).unwrap();
    sink.text()
}

#[test]
fn the_documented_names() {
    let rest = rest(true);
    let document: Value = serde_json::from_str(&printed(Format::Json, false, &[snapshot()], &rest)).unwrap();
    assert_eq!(document["schema"], 1);
    assert_snapshot(&document["snapshots"][0]);
    let lines = printed(Format::Jsonl, false, &[snapshot()], &rest);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_snapshot(&lines[0]);
    let detail = |kind: &str, store: &str, name: &str, why: Value| json!({"kind": kind, "store": store, "name": name, "why": why});
    let want = json!({
        "schema": 1, "omitted": 7,
        "other_lineages": [{"lineage": "ffeeddccbbaa9988", "snapshots": 2, "stored": 5 << 20}],
        "foreign": 1, "foreign_names": ["notes.txt"], "unfinished": ["u.db.zst"], "unreadable": ["r.json"],
        "details": [
            detail("foreign", "local", "notes.txt", Value::Null),
            detail("unfinished", "local", "u.db.zst", Value::Null),
            detail("unreadable", "local", "r.json", "cut off".into()),
            detail("unreadable", "usb", "r.json", "cut off".into()),
        ],
    });
    assert_eq!(lines[1], want);
    for (name, value) in want.as_object().unwrap() {
        assert_eq!(&document[name], value, "{name}");
    }
}

#[test]
fn foreign_names_are_given_only_when_asked_for() {
    let unasked = printed(Format::Json, false, &[], &rest(false));
    assert!(!unasked.contains("foreign_names") && !unasked.contains("notes.txt"), "{unasked}");
}

#[test]
fn several_lineages_have_a_column() {
    let mut other = snapshot();
    other.shown.manifest.lineage = "ffeeddccbbaa9988".parse().unwrap();
    let text = printed(Format::Table, true, &[snapshot(), other], &Rest::default());
    let last: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(last, ["LINEAGE", "00112233445566aa", "ffeeddccbbaa9988"]);
}

#[test]
fn as_a_table() {
    let mut imported = snapshot();
    imported.shown.manifest.imported =
        Some(crate::catalog::Imported { from: "/b.db".into(), at: imported.shown.manifest.taken_at });
    imported.shown.pinned = false;
    assert_eq!(
        printed(Format::Table, false, &[snapshot(), imported], &rest(false)),
        format!(
            "ID                                                   AGE  STATE     MARKS     REVISION     SIZE   STORED  STORES     NODE  TAGS\n\
             {ID}  2h05m  verified  pinned        4711  3.0 MiB  1.0 MiB  local,usb  cp1   x\n\
             {ID}  2h05m  verified  imported      4711  3.0 MiB  1.0 MiB  local,usb  cp1   x\n\
             7 more: not listed (--limit)\n\
             1 unfinished: data without a manifest, never counted\n\
             1 unreadable: neither counted nor removed\n\
             1 foreign: not written by refloat, never touched (--foreign names them)\n\
             other lineage ffeeddccbbaa9988: 2 snapshots of another cluster, 5.0 MiB stored (--all-lineages lists them)\n  \
             unfinished: u.db.zst in store local\n  \
             unreadable: r.json in store local (cut off)\n  unreadable: r.json in store usb (cut off)\n"
        )
    );
    assert_eq!(printed(Format::Table, false, &[], &Rest::default()), "no snapshots\n");
}
