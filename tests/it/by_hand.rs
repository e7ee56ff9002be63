//! Snapshots written by hand into a store, without any etcd: for what goes by manifests alone.

use std::fs;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::bed::Refloat;
use crate::listing;

pub const LINEAGE: &str = "aaaaaaaaaaaaaaaa";
pub const OTHER: &str = "bbbbbbbbbbbbbbbb";
pub const HOUR: i64 = 3600;

/// What is different in one of them. To begin with: this node's, verified, of the first timeline.
pub struct Made<'a> {
    pub lineage: &'a str,
    pub timeline: &'a str,
    pub revision: u64,
    /// Seconds before now.
    pub age: i64,
    pub node: &'a str,
    pub fields: Value,
}

impl Made<'_> {
    pub fn new(revision: u64, age: i64) -> Made<'static> {
        let fields = json!({});
        Made { lineage: LINEAGE, timeline: "0001-475752fa", revision, age, node: "test", fields }
    }
}

/// Writes manifest and data; gives the id.
#[track_caller]
pub fn make(refloat: &Refloat, made: &Made<'_>) -> String {
    let at = Timestamp::from_millisecond(Timestamp::now().as_millisecond() - 1000 * made.age).expect("a time");
    let compact = format!("{}{:03}Z", at.strftime("%Y%m%dT%H%M%S"), at.as_millisecond().rem_euclid(1000));
    let id = format!("{}-{:020}-{compact}-{}", &made.timeline[..4], made.revision, made.node);
    let (_, mut manifest) = listing::snapshot(made.lineage, made.revision);
    for (key, value) in [
        ("id", json!(id)),
        ("timeline", json!(made.timeline)),
        ("node", json!(made.node)),
        ("taken_at", json!(at.to_string())),
        ("finished_at", json!(at.to_string())),
    ] {
        manifest[key] = value;
    }
    for (key, value) in made.fields.as_object().expect("fields") {
        manifest[key] = value.clone();
    }
    let dir = refloat.store().join(made.lineage).join("snapshots");
    fs::create_dir_all(&dir).expect("make a directory");
    fs::write(dir.join(format!("{id}.json")), manifest.to_string()).expect("write a manifest");
    fs::write(dir.join(format!("{id}.db.zst")), "x").expect("write data");
    id
}

/// What the state directory says, beside the schema and no stores.
#[track_caller]
pub fn state(refloat: &Refloat, fields: &Value) {
    let mut state = json!({ "schema": 1, "lineage": LINEAGE, "stores": [] });
    fields.as_object().expect("fields").iter().for_each(|(key, value)| state[key] = value.clone());
    fs::write(refloat.state().join("stores.json"), state.to_string()).expect("write the state");
}
