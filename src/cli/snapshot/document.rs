//! What the snapshot commands print.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::super::failure::ErrorDocument;
use super::super::output::{self, Document, fields, table};
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

#[derive(Debug, Serialize)]
pub struct ListDocument {
    pub schema: u32,
    /// Newest first.
    pub snapshots: Vec<Snapshot>,
    /// Lineages with snapshots that are not in the list.
    pub other_lineages: Vec<String>,
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

impl Document for ListDocument {
    fn table(&self) -> String {
        let mut text = if self.snapshots.is_empty() {
            "no snapshots\n".into()
        } else {
            let mut header = vec!["ID", "AGE", "STATE", "REVISION", "SIZE", "STORED", "STORES", "NODE", "TAGS"];
            let lineages: BTreeSet<_> = self.snapshots.iter().map(|s| s.shown.manifest.lineage).collect();
            // One alone would be the same word in each row.
            let lineage = (lineages.len() > 1).then_some("LINEAGE");
            header.extend(lineage);
            let rows = self.snapshots.iter().map(|s| {
                let lineage = lineage.map(|_| s.shown.manifest.lineage.to_string());
                row(s).into_iter().chain(lineage).collect()
            });
            table(&header, &["AGE", "REVISION", "SIZE", "STORED"], rows)
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
        if !self.other_lineages.is_empty() {
            let (count, plural) = (self.other_lineages.len(), if self.other_lineages.len() == 1 { "" } else { "s" });
            text.push_str(&format!(
                "{count} other lineage{plural}: snapshots of other clusters (--all-lineages lists them)\n"
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
        let line = |snapshot: &Snapshot| serde_json::to_string(snapshot);
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
    let Shown { manifest, stores, tags, .. } = &snapshot.shown;
    vec![
        manifest.id.to_string(),
        output::age(snapshot.age()),
        snapshot.state_words(),
        manifest.revision.to_string(),
        output::size(manifest.size.db),
        output::size(manifest.size.stored),
        stores.join(","),
        manifest.node.to_string(),
        tags.join(","),
    ]
}

impl Snapshot {
    fn age(&self) -> u64 {
        self.shown.age(self.now).max(0).unsigned_abs()
    }

    fn state_words(&self) -> String {
        let pinned = if self.shown.pinned { ", pinned" } else { "" };
        format!("{}{pinned}", self.shown.state.word())
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
