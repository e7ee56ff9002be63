//! What the snapshot commands print.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use super::super::failure::ErrorDocument;
use super::super::output::{self, Document, fields, rfc3339, table};

/// One snapshot as the stores have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    pub id: String,
    /// 16 hex digits.
    pub lineage: String,
    /// `<number>-<hex>`.
    pub timeline: String,
    /// Hex.
    pub cluster_id: String,
    pub node: String,
    /// Hex.
    pub member_id: String,
    pub revision: i64,
    pub compact_revision: i64,
    #[serde(serialize_with = "rfc3339")]
    pub taken_at: Timestamp,
    pub state: State,
    pub agreement: Vec<Agreement>,
    pub size: Size,
    pub sha256: Sha256,
    pub hash_kv: Option<HashKv>,
    /// Names of the stores that hold it.
    pub stores: Vec<String>,
    pub tags: Vec<String>,
    pub pinned: bool,
    pub etcd_version: String,
    /// Seconds since `taken_at`.
    pub age: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Verified,
    Unverified,
    Disputed,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Verified => "verified",
            State::Unverified => "unverified",
            State::Disputed => "disputed",
        }
    }
}

/// A comparison with another capture of the same revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Member that was asked.
    pub with: String,
    /// `equal`, `different`, `not-comparable` or `skipped`.
    pub result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Size {
    /// The database without its trailer.
    pub db: u64,
    /// What etcd says is not free inside it.
    pub in_use: Option<u64>,
    /// The object in the store.
    pub stored: u64,
}

/// Hex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sha256 {
    /// The database without its trailer: equal to the trailer.
    pub db: String,
    pub stored: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HashKv {
    pub hash: u32,
    pub revision: i64,
    pub compact_revision: i64,
}

#[derive(Debug, Serialize)]
pub struct ListDocument {
    pub schema: u32,
    /// Newest first.
    pub snapshots: Vec<Snapshot>,
    #[serde(flatten)]
    pub others: Others,
}

/// What else lies in the stores. Lists hold names; `details` says where and why.
#[derive(Debug, Default, Serialize)]
pub struct Others {
    /// How many objects refloat did not write.
    pub foreign: u64,
    /// With `--foreign` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_names: Option<Vec<String>>,
    /// Data without a manifest.
    pub unfinished: Vec<String>,
    /// Own-looking manifests that cannot be read.
    pub unreadable: Vec<String>,
    /// One for each name in the three lists.
    pub details: Vec<StoredName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredName {
    pub kind: Kind,
    pub store: String,
    /// Below the store's root.
    pub name: String,
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Foreign,
    Unfinished,
    Unreadable,
}

impl Others {
    /// `foreign` counts also what `found` does not name; without `name_foreign` none is named.
    pub fn new(foreign: u64, name_foreign: bool, found: Vec<StoredName>) -> Self {
        let details: Vec<StoredName> =
            found.into_iter().filter(|one| name_foreign || one.kind != Kind::Foreign).collect();
        let names = |kind| {
            // The same name in two stores is one name.
            let names: BTreeSet<&String> = details.iter().filter(|one| one.kind == kind).map(|one| &one.name).collect();
            names.into_iter().cloned().collect::<Vec<String>>()
        };
        Others {
            foreign,
            foreign_names: name_foreign.then(|| names(Kind::Foreign)),
            unfinished: names(Kind::Unfinished),
            unreadable: names(Kind::Unreadable),
            details,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct ShowDocument {
    pub schema: u32,
    #[serde(flatten)]
    pub snapshot: Snapshot,
}

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
    /// Hex.
    pub member_id: String,
    pub etcd_version: String,
    /// Bytes of the member's database.
    pub db: u64,
    pub stores: Vec<PreflightStore>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct PreflightStore {
    pub name: String,
    pub ok: bool,
    /// Bytes that the snapshot may take.
    pub needed: u64,
    /// Bytes beyond `min_free`; `null` where the store has no such notion.
    pub free: Option<u64>,
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

impl Document for ListDocument {
    fn table(&self) -> String {
        let mut text = if self.snapshots.is_empty() {
            "no snapshots\n".into()
        } else {
            let header = ["ID", "AGE", "STATE", "REVISION", "SIZE", "STORED", "STORES", "NODE", "TAGS"];
            table(&header, &["AGE", "REVISION", "SIZE", "STORED"], self.snapshots.iter().map(row))
        };
        let Others { foreign, unfinished, details, .. } = &self.others;
        if !unfinished.is_empty() {
            text.push_str(&format!("{} unfinished: data without a manifest, never counted\n", unfinished.len()));
        }
        if *foreign > 0 {
            text.push_str(&format!(
                "{foreign} foreign: not written by refloat, never touched (--foreign names them)\n"
            ));
        }
        for one in details {
            let kind = match one.kind {
                Kind::Foreign => "foreign",
                Kind::Unfinished => "unfinished",
                Kind::Unreadable => "unreadable",
            };
            text.push_str(&format!("  {kind}: {}\n", one.line()));
        }
        text
    }

    /// One line per snapshot, then one with the rest.
    fn lines(&self) -> serde_json::Result<Vec<String>> {
        #[derive(Serialize)]
        struct Line<'a, T> {
            schema: u32,
            #[serde(flatten)]
            rest: &'a T,
        }
        let line = |rest| serde_json::to_string(&Line { schema: self.schema, rest });
        let mut lines: Vec<String> = self.snapshots.iter().map(line).collect::<serde_json::Result<_>>()?;
        lines.push(serde_json::to_string(&Line { schema: self.schema, rest: &self.others })?);
        Ok(lines)
    }
}

impl StoredName {
    fn line(&self) -> String {
        let why = self.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        output::printable(&format!("{} in store {}{why}", self.name, self.store))
    }
}

fn row(snapshot: &Snapshot) -> Vec<String> {
    vec![
        snapshot.id.clone(),
        output::age(snapshot.age),
        snapshot.state_words(),
        snapshot.revision.to_string(),
        output::size(snapshot.size.db),
        output::size(snapshot.size.stored),
        snapshot.stores.join(","),
        snapshot.node.clone(),
        snapshot.tags.join(","),
    ]
}

impl Snapshot {
    fn state_words(&self) -> String {
        let pinned = if self.pinned { ", pinned" } else { "" };
        format!("{}{pinned}", self.state.word())
    }

    fn fields(&self) -> String {
        let agreement = self.agreement.iter().map(|a| {
            let why = a.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{} with {}{why}", a.result, a.with)
        });
        let sizes = self.size;
        let in_use = sizes.in_use.map(|bytes| format!(", {} in use", output::size(bytes))).unwrap_or_default();
        let hash_kv = self
            .hash_kv
            .map(|h| format!("{} at revision {}, compact revision {}", h.hash, h.revision, h.compact_revision));
        fields(&[
            ("id", self.id.clone()),
            ("state", self.state_words()),
            ("taken at", format!("{} ({} ago)", output::time(self.taken_at), output::age(self.age))),
            ("node", self.node.clone()),
            ("member", self.member_id.clone()),
            ("etcd", self.etcd_version.clone()),
            ("cluster", self.cluster_id.clone()),
            ("lineage", self.lineage.clone()),
            ("timeline", self.timeline.clone()),
            ("revision", format!("{} (compacted at {})", self.revision, self.compact_revision)),
            ("agreement", agreement.collect::<Vec<_>>().join("; ")),
            ("size", format!("{}{in_use}, {} stored", output::size(sizes.db), output::size(sizes.stored))),
            ("sha256", self.sha256.db.clone()),
            ("sha256 stored", self.sha256.stored.clone()),
            ("hash kv", hash_kv.unwrap_or_default()),
            ("stores", self.stores.join(", ")),
            ("tags", self.tags.join(", ")),
        ])
    }
}

impl Document for ShowDocument {
    fn table(&self) -> String {
        self.snapshot.fields()
    }
}

impl Document for TakeDocument {
    fn table(&self) -> String {
        let snapshot = &self.snapshot;
        let mut text = format!(
            "{}  {}  revision {}  {} ({} stored)\n",
            output::printable(&snapshot.id),
            snapshot.state.word(),
            snapshot.revision,
            output::size(snapshot.size.db),
            output::size(snapshot.size.stored),
        );
        for store in &self.stores {
            text.push_str(&outcome_line(&store.name, store.outcome == Outcome::Stored, "stored", store.error.as_ref()));
        }
        for agreement in &snapshot.agreement {
            let why = agreement.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let line = format!("  agreement with {}: {}{why}", agreement.with, agreement.result);
            text.push_str(&(output::printable(&line) + "\n"));
        }
        text
    }
}

impl Document for PreflightDocument {
    fn table(&self) -> String {
        let mut text = output::printable(&format!(
            "member {} ({}) answers: etcd {}, database {}",
            self.member,
            self.member_id,
            self.etcd_version,
            output::size(self.db)
        ));
        text.push('\n');
        for store in &self.stores {
            let free = store.free.map(|free| format!(" of {} free", output::size(free))).unwrap_or_default();
            let good = format!("ready, needs up to {}{free}", output::size(store.needed));
            text.push_str(&outcome_line(&store.name, store.ok, &good, store.error.as_ref()));
        }
        for warning in &self.warnings {
            text.push_str(&format!("warning: {}\n", output::printable(warning)));
        }
        text
    }
}

impl Document for ExportDocument {
    fn table(&self) -> String {
        let line = format!("{}: {} ({}), sha256 {}", self.file, self.id, output::size(self.bytes), self.sha256);
        output::printable(&line) + "\n"
    }
}

fn outcome_line(store: &str, ok: bool, good: &str, error: Option<&ErrorDocument>) -> String {
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
mod tests;
