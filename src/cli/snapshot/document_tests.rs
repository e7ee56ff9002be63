use super::*;
use crate::cli::args::Format;
use crate::cli::output::tests::printed;

fn snapshot() -> Snapshot {
    Snapshot {
        id: "0001-00000000000000004711-20260301t120000000Z-cp1".into(),
        lineage: "00112233445566aa".into(),
        timeline: "0001-deadbeef".into(),
        cluster_id: "cdf818194e3a8c32".into(),
        node: "cp1".into(),
        member_id: "8e9e05c52164694d".into(),
        revision: 4711,
        compact_revision: 4000,
        taken_at: "2026-03-01T12:00:00Z".parse().unwrap(),
        state: State::Verified,
        agreement: vec![
            Agreement { with: "cp2".into(), result: "equal".into(), why: None },
            Agreement { with: "cp3".into(), result: "skipped".into(), why: Some("it leads".into()) },
        ],
        size: Size { db: 3 << 20, in_use: Some(2 << 20), stored: 1 << 20 },
        sha256: Sha256 { db: "aa".into(), stored: "bb".into() },
        hash_kv: Some(HashKv { hash: 42, revision: 4711, compact_revision: 4000 }),
        stores: vec!["local".into(), "usb".into()],
        tags: vec!["x".into()],
        pinned: true,
        etcd_version: "3.6.16".into(),
        age: 7500,
    }
}

const SNAPSHOT: &str = "\"id\":\"0001-00000000000000004711-20260301t120000000Z-cp1\",\"lineage\":\"00112233445566aa\",\
     \"timeline\":\"0001-deadbeef\",\"cluster_id\":\"cdf818194e3a8c32\",\"node\":\"cp1\",\"member_id\":\"8e9e05c52164694d\",\
     \"revision\":4711,\"compact_revision\":4000,\"taken_at\":\"2026-03-01T12:00:00Z\",\"state\":\"verified\",\
     \"agreement\":[{\"with\":\"cp2\",\"result\":\"equal\"},{\"with\":\"cp3\",\"result\":\"skipped\",\"why\":\"it leads\"}],\
     \"size\":{\"db\":3145728,\"in_use\":2097152,\"stored\":1048576},\"sha256\":{\"db\":\"aa\",\"stored\":\"bb\"},\
     \"hash_kv\":{\"hash\":42,\"revision\":4711,\"compact_revision\":4000},\"stores\":[\"local\",\"usb\"],\
     \"tags\":[\"x\"],\"pinned\":true,\"etcd_version\":\"3.6.16\",\"age\":7500";

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
    ListDocument { schema: 1, snapshots: vec![snapshot()], others: Others::new(1, name_foreign, all) }
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
    assert_eq!(
        serde_json::to_string(&list(true)).unwrap(),
        format!("{{\"schema\":1,\"snapshots\":[{{{SNAPSHOT}}}],{rest}}}")
    );
    assert_eq!(printed(&list(true), Format::Jsonl), format!("{{\"schema\":1,{SNAPSHOT}}}\n{{\"schema\":1,{rest}}}\n"));
    let unasked = printed(&list(false), Format::Json);
    assert!(!unasked.contains("foreign_names") && !unasked.contains("notes.txt"), "{unasked}");
}

#[test]
fn list_as_a_table() {
    assert_eq!(
        printed(&list(false), Format::Table),
        "ID                                                   AGE  STATE             REVISION     SIZE   STORED  STORES     NODE  TAGS\n\
         0001-00000000000000004711-20260301t120000000Z-cp1  2h05m  verified, pinned      4711  3.0 MiB  1.0 MiB  local,usb  cp1   x\n\
         1 unfinished: data without a manifest, never counted\n\
         1 foreign: not written by refloat, never touched (--foreign names them)\n  unfinished: u.db.zst in store local\n  \
         unreadable: r.json in store local (cut off)\n  unreadable: r.json in store usb (cut off)\n"
    );
    let empty = ListDocument { schema: 1, snapshots: vec![], others: Others::default() };
    assert_eq!(printed(&empty, Format::Table), "no snapshots\n");
}

#[test]
fn show_is_the_snapshot_with_a_schema() {
    let document = ShowDocument { schema: 1, snapshot: snapshot() };
    assert_eq!(printed(&document, Format::Jsonl), format!("{{\"schema\":1,{SNAPSHOT}}}\n"));
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
    assert_eq!(
        printed(&document, Format::Jsonl),
        format!(
            "{{\"schema\":1,\"job\":null,\"snapshot\":{{{SNAPSHOT}}},\"stores\":[{{\"name\":\"local\",\"outcome\":\"stored\",\
             \"error\":null}},{{\"name\":\"usb\",\"outcome\":\"failed\",\"error\":{{\"code\":\"io\",\"what\":\"write object\",\
             \"on\":\"/usb\",\"why\":[\"No space left on device (os error 28)\"],\"remedy\":\"tidy up\"}}}}]}}\n"
        )
    );
    assert_eq!(
        printed(&document, Format::Table),
        "0001-00000000000000004711-20260301t120000000Z-cp1  verified  revision 4711  3.0 MiB (1.0 MiB stored)\n  store local: \
         stored\n  store usb: failed to write object /usb: No space left on device (os error 28); try: tidy up\n  agreement \
         with cp2: equal\n  agreement with cp3: skipped (it leads)\n"
    );
}

#[test]
fn a_dry_run_shows_member_and_space() {
    let document = PreflightDocument {
        schema: 1,
        member: "cp1".into(),
        member_id: "8e9e05c52164694d".into(),
        etcd_version: "3.6.16".into(),
        db: 3 << 20,
        stores: vec![
            PreflightStore { name: "local".into(), ok: true, needed: 1 << 30, free: Some(5 << 30), error: None },
            PreflightStore { name: "usb".into(), ok: false, needed: 1 << 30, free: None, error: failed().error },
        ],
        warnings: vec!["etcd 3.6.16 has a defect".into()],
    };
    assert_eq!(
        printed(&document, Format::Table),
        "member cp1 (8e9e05c52164694d) answers: etcd 3.6.16, database 3.0 MiB\n  store local: ready, needs up to 1.0 GiB of \
         5.0 GiB free\n  store usb: failed to write object /usb: No space left on device (os error 28); try: tidy up\nwarning: \
         etcd 3.6.16 has a defect\n"
    );
}
