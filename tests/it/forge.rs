//! Snapshots of other times, nodes and histories, made from one that was really taken: what retention looks at is
//! changed in a copy of its manifest, the data is copied as it is.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::bed::Refloat;
use crate::taking::text;

/// A snapshot that was really taken, as a pattern.
pub struct Forge {
    store: std::path::PathBuf,
    manifest: Value,
    /// What revisions count from.
    base: i64,
}

/// What is different in a forged one.
#[derive(Clone)]
pub struct Like<'a> {
    pub timeline: u16,
    /// Later in history than the pattern by so many revisions; may be negative.
    pub revision: i64,
    pub taken_at: Timestamp,
    pub node: &'a str,
    pub lineage: Option<&'a str>,
    /// Keys of the manifest that are replaced, or removed where null.
    pub fields: Value,
}

impl Like<'_> {
    /// The same history and node, `seconds` before now, with a revision to match.
    pub fn ago(seconds: i64) -> Like<'static> {
        let taken_at = Timestamp::from_millisecond(Timestamp::now().as_millisecond() - 1000 * seconds).unwrap();
        Like { timeline: 1, revision: -seconds, taken_at, node: "test", lineage: None, fields: json!({}) }
    }
}

impl Forge {
    /// `snapshot` as `snapshot take -o json` gives it.
    #[track_caller]
    pub fn new(refloat: &Refloat, snapshot: &Value) -> Forge {
        let (lineage, id) = (text(snapshot, "lineage"), text(snapshot, "id"));
        let store = refloat.store();
        let manifest = std::fs::read(store.join(lineage).join(format!("snapshots/{id}.json"))).expect("its manifest");
        let manifest = serde_json::from_slice(&manifest).expect("JSON");
        Forge { store, manifest, base: 100_000_000 }
    }

    /// From now on all are of revision 1, so that whatever is really taken is newer.
    pub fn of_the_past(mut self) -> Forge {
        self.base = i64::MIN / 2;
        self
    }

    pub fn lineage(&self) -> &str {
        text(&self.manifest, "lineage")
    }

    /// Writes manifest and data; gives the id.
    #[track_caller]
    pub fn make(&self, like: &Like<'_>) -> String {
        let revision = (self.base + like.revision).max(1);
        let compact = like.taken_at.strftime("%Y%m%dT%H%M%S").to_string();
        let millis = like.taken_at.as_millisecond().rem_euclid(1000);
        let id = format!("{:04}-{revision:020}-{compact}{millis:03}Z-{}", like.timeline, like.node);
        let lineage = like.lineage.unwrap_or(self.lineage());
        let hex = &text(&self.manifest, "timeline")[5..];
        let timeline = match like.timeline {
            0 => "0000-00000000".to_owned(),
            1 => format!("0001-{hex}"),
            n => format!("{n:04}-{n:08x}"),
        };
        let mut manifest = self.manifest.clone();
        for (key, value) in [
            ("id", json!(id)),
            ("lineage", json!(lineage)),
            ("timeline", json!(timeline)),
            ("node", json!(like.node)),
            ("revision", json!(revision)),
            ("taken_at", json!(like.taken_at.to_string())),
            ("finished_at", json!(like.taken_at.to_string())),
        ] {
            manifest[key] = value;
        }
        for (key, value) in like.fields.as_object().unwrap() {
            match value {
                Value::Null => drop(manifest.as_object_mut().unwrap().remove(key)),
                other => manifest[key] = other.clone(),
            }
        }
        let dir = self.store.join(lineage).join("snapshots");
        std::fs::create_dir_all(&dir).unwrap();
        let original = format!("{}.db.zst", text(&self.manifest, "id"));
        let pattern = self.store.join(self.lineage()).join("snapshots").join(original);
        std::fs::copy(pattern, dir.join(format!("{id}.db.zst"))).unwrap();
        std::fs::write(dir.join(format!("{id}.json")), serde_json::to_vec_pretty(&manifest).unwrap()).unwrap();
        id
    }
}
