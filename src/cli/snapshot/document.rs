//! What the snapshot commands print.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::super::failure::ErrorDocument;
use super::super::output::{self, Document, fields};
use crate::catalog::{Manifest, Shown};

/// One snapshot as the stores have it, at one moment: its JSON is the manifest with what came later folded in.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub shown: Shown,
    pub now: Timestamp,
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown.document(self.now).serialize(serializer)
    }
}

/// The snapshot itself, whose manifest has its `schema`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ShowDocument(pub Snapshot);

#[derive(Debug, Serialize)]
pub struct TakeDocument {
    pub schema: u32,
    /// `null` without a daemon.
    pub job: Option<String>,
    pub snapshot: Snapshot,
    pub stores: Vec<StoreOutcome>,
}

#[derive(Debug, Serialize)]
pub struct StoreOutcome {
    pub name: String,
    pub outcome: Outcome,
    pub error: Option<ErrorDocument>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Stored,
    Failed,
}

/// `snapshot take --dry-run`.
#[derive(Debug, Serialize)]
pub struct PreflightDocument {
    pub schema: u32,
    pub member: String,
    pub url: String,
    /// Why this member and not another.
    pub chosen_as: String,
    pub etcd_version: String,
    /// Bytes of the member's database.
    pub db: u64,
    pub stores: Vec<PreflightStore>,
}

#[derive(Debug, Serialize)]
pub struct PreflightStore {
    pub name: String,
    pub ok: bool,
    /// Bytes that must be free beside `min_free`; `null` with an error.
    pub needed: Option<u64>,
    pub error: Option<ErrorDocument>,
}

#[derive(Debug, Serialize)]
pub struct ExportDocument {
    pub schema: u32,
    pub id: String,
    pub file: String,
    /// With the trailer.
    pub bytes: u64,
    /// Of the database without its trailer, hex.
    pub sha256: String,
}

impl Snapshot {
    pub(super) fn age(&self) -> u64 {
        self.shown.age(self.now).max(0).unsigned_abs()
    }

    /// What sets it apart from others of its state.
    pub(super) fn marks(&self) -> Vec<&'static str> {
        let pinned = self.shown.pinned.then_some("pinned");
        pinned.into_iter().chain(self.shown.manifest.imported.is_some().then_some("imported")).collect()
    }

    pub(super) fn state_words(&self) -> String {
        std::iter::once(self.shown.state.word()).chain(self.marks()).collect::<Vec<_>>().join(", ")
    }

    fn pin_words(&self) -> String {
        let Some(word) = self.shown.pin.as_ref().filter(|word| word.pinned) else { return String::new() };
        let by = word.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        let why = word.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{}{by}{why}", output::time(word.at))
    }

    fn agreements(&self) -> impl Iterator<Item = String> {
        self.shown.agreement.iter().map(|a| {
            let (word, reason) = a.result.words();
            let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("{word} with {}{reason}", a.with)
        })
    }

    fn fields(&self) -> String {
        let Shown { manifest, stores, damaged_stores, tags, .. } = &self.shown;
        let Manifest { id, timeline, lineage, node, revision, compact_revision, size, sha256, .. } = manifest;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let member = match (&manifest.member_name, manifest.member_id) {
            (Some(name), Some(id)) => format!("{name} ({id})"),
            (None, Some(id)) => id.to_string(),
            (_, None) => String::new(),
        };
        let in_use = size.in_use.map(|bytes| format!(", {} in use", output::size(bytes))).unwrap_or_default();
        let hash_kv = manifest
            .hash_kv
            .map(|h| format!("{} at revision {}, compact revision {}", h.hash, h.revision, h.compact_revision));
        let imported = manifest.imported.as_ref().map(|i| format!("{} ({})", i.from, output::time(i.at)));
        let count = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
        let not_checked = manifest.not_checked.iter().map(|n| format!("{} ({})", n.check, n.reason));
        fields(&[
            ("id", id.to_string()),
            ("state", self.state_words()),
            ("taken at", format!("{} ({} ago)", output::time(manifest.taken_at), output::age(self.age()))),
            ("node", node.to_string()),
            ("member", member),
            ("etcd", text(&manifest.etcd_version)),
            ("cluster", manifest.cluster_id.map(|id| id.to_string()).unwrap_or_default()),
            ("lineage", lineage.to_string()),
            ("timeline", timeline.to_string()),
            ("revision", format!("{revision} (compacted at {compact_revision})")),
            ("keys", count(manifest.keys)),
            ("leases", count(manifest.leases)),
            ("alarms", manifest.alarms.join(", ")),
            ("checked", manifest.checks.join(", ")),
            ("not checked", not_checked.collect::<Vec<_>>().join("; ")),
            ("agreement", self.agreements().collect::<Vec<_>>().join("; ")),
            ("size", format!("{}{in_use}, {} stored", output::size(size.db), output::size(size.stored))),
            ("sha256", sha256.db.to_string()),
            ("sha256 stored", sha256.stored.to_string()),
            ("hash kv", hash_kv.unwrap_or_default()),
            ("imported from", imported.unwrap_or_default()),
            ("pinned", self.pin_words()),
            ("stores", stores.join(", ")),
            ("damaged in", damaged_stores.join(", ")),
            ("tags", tags.join(", ")),
        ])
    }
}

impl Document for ShowDocument {
    fn table(&self) -> String {
        self.0.fields()
    }
}

impl Document for TakeDocument {
    fn table(&self) -> String {
        let Shown { manifest, state, .. } = &self.snapshot.shown;
        let mut text = format!(
            "{}  {}  revision {}  {} ({} stored)\n",
            manifest.id,
            state.word(),
            manifest.revision,
            output::size(manifest.size.db),
            output::size(manifest.size.stored),
        );
        for store in &self.stores {
            text.push_str(&outcome_line(&store.name, store.outcome == Outcome::Stored, "stored", store.error.as_ref()));
        }
        for agreement in self.snapshot.agreements() {
            text.push_str(&(output::printable(&format!("  agreement: {agreement}")) + "\n"));
        }
        text
    }
}

impl Document for PreflightDocument {
    fn table(&self) -> String {
        let PreflightDocument { member, url, chosen_as, etcd_version, db, .. } = self;
        let size = output::size(*db);
        let line = format!("member {member} at {url} ({chosen_as}) answers: etcd {etcd_version}, database {size}");
        let mut text = output::printable(&line) + "\n";
        for store in &self.stores {
            let needed = store.needed.map(output::size).unwrap_or_default();
            let good = format!("ready, {needed} are needed and free");
            text.push_str(&outcome_line(&store.name, store.ok, &good, store.error.as_ref()));
        }
        text
    }
}

impl Document for ExportDocument {
    fn table(&self) -> String {
        let (file, size) = (&self.file, output::size(self.bytes));
        // Not the hash of the file, which a reader would compare it with.
        let line = format!("{file}: {} ({size}), sha256 without the trailer {}", self.id, self.sha256);
        output::printable(&line) + "\n"
    }
}

pub(super) fn outcome_line(store: &str, ok: bool, good: &str, error: Option<&ErrorDocument>) -> String {
    let said = match (ok, error) {
        (true, _) => good.to_string(),
        (false, Some(e)) => {
            let remedy = e.remedy.as_ref().map(|remedy| format!("; try: {remedy}")).unwrap_or_default();
            format!("failed to {} {}: {}{remedy}", e.what, e.on, e.why.join(": "))
        }
        (false, None) => "failed".into(),
    };
    output::printable(&format!("  store {store}: {said}")) + "\n"
}

#[cfg(test)]
#[path = "document_tests.rs"]
pub(super) mod tests;
