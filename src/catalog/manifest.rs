//! The manifest: the small JSON that makes a snapshot exist.
//!
//! It is created only once its data is read back, and never changes afterwards: what comes later are notes beside it.
//! What is not known is absent, never invented. Every field: docs/formats.md.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::id::SnapshotId;
use super::names::Name;
use super::time::rfc3339;
use super::value::{Digest, EtcdId, LineageId, Node, TimelineId};

/// The newest schema that this code writes and reads.
pub const SCHEMA: u32 = 1;
/// A manifest is a few KiB; anything larger is not one.
pub const MAX_BYTES: u64 = 1 << 20;

/// Names of checks in `checks` and `not_checked`.
pub mod check {
    /// The stored object was read back: size and SHA-256 are those that were written.
    pub const STORED: &str = "stored";
    /// SHA-256 of the database equals the trailer that etcd sent.
    pub const TRAILER: &str = "trailer";
    /// Metas and every page that the root reaches.
    pub const TREE: &str = "tree";
    /// Keys, revisions, versions and leases of all MVCC rows.
    pub const ROWS: &str = "rows";
    /// HashKV of the file was computed.
    pub const HASH_KV: &str = "hash_kv";

    /// What must have been checked before a snapshot counts (promise 1).
    pub const REQUIRED: [&str; 4] = [STORED, TRAILER, TREE, ROWS];
}

/// One snapshot: what was captured, from whom, and what was checked. Times in RFC 3339 UTC, sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema: u32,
    pub id: SnapshotId,
    pub lineage: LineageId,
    pub timeline: TimelineId,
    /// Absent for imports: the file does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<EtcdId>,
    /// The host that took it.
    pub node: Node,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_id: Option<EtcdId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_name: Option<String>,
    /// Read from the file: the largest main revision, raised to the compact revision.
    pub revision: i64,
    pub compact_revision: i64,
    /// Start of the stream, the same as in the id, in whole milliseconds.
    #[serde(with = "rfc3339")]
    pub taken_at: Timestamp,
    #[serde(with = "rfc3339")]
    pub finished_at: Timestamp,
    pub size: Size,
    pub sha256: Sha256,
    pub codec: Codec,
    /// Public keys that the object is encrypted to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// HashKV of the file, computed offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_kv: Option<HashKv>,
    #[serde(default)]
    pub agreement: Vec<Agreement>,
    /// Of the last revision, by [`TailHasher`](super::TailHasher); absent when that revision has no row or the file is
    /// compacted up to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_version: Option<String>,
    /// Absent where etcd does not store it (3.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raft_term: Option<u64>,
    /// The applied index that the file stands at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raft_index: Option<u64>,
    /// Live keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leases: Option<u64>,
    #[serde(default)]
    pub alarms: Vec<String>,
    /// See [`check`].
    #[serde(default)]
    pub checks: Vec<String>,
    #[serde(default)]
    pub not_checked: Vec<NotChecked>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The database without its trailer.
    pub db: u64,
    /// What etcd called in use; absent when it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use: Option<u64>,
    /// The object in the store.
    pub stored: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sha256 {
    /// The database without its trailer, so equal to the trailer.
    pub db: Digest,
    /// The object in the store.
    pub stored: Digest,
}

/// How the object was made from the database; also the end of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Codec {
    #[serde(rename = "zstd")]
    Zstd,
    #[serde(rename = "zstd+age")]
    ZstdAge,
}

impl Codec {
    /// The end of the data object's name after the id.
    pub fn suffix(self) -> &'static str {
        match self {
            Codec::Zstd => ".db.zst",
            Codec::ZstdAge => ".db.zst.age",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashKv {
    pub hash: u32,
    pub revision: i64,
    pub compact_revision: i64,
}

/// What one other capture said about this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "AgreementText", into = "AgreementText")]
pub struct Agreement {
    /// With whom: `member <id>`, or `fold` for previous snapshot and change log.
    pub with: String,
    pub result: AgreementResult,
}

/// [`Agreement`] as it is written: the reason stands beside the result.
#[derive(Serialize, Deserialize)]
struct AgreementText {
    with: String,
    result: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<Agreement> for AgreementText {
    fn from(a: Agreement) -> Self {
        let (result, reason) = a.result.words();
        AgreementText { with: a.with, result: result.into(), reason: reason.map(String::from) }
    }
}

impl TryFrom<AgreementText> for Agreement {
    type Error = String;
    fn try_from(text: AgreementText) -> Result<Self, String> {
        let reason = || text.reason.clone().unwrap_or_default();
        let result = match text.result.as_str() {
            "equal" => AgreementResult::Equal,
            "different" => AgreementResult::Different,
            "not-comparable" => AgreementResult::NotComparable(reason()),
            "skipped" => AgreementResult::Skipped(reason()),
            other => return Err(format!("{other:?} is no result of an agreement")),
        };
        Ok(Agreement { with: text.with, result })
    }
}

impl Agreement {
    pub fn new(with: impl Into<String>, result: AgreementResult) -> Self {
        Agreement { with: with.into(), result }
    }
}

/// Written as `result`, with `reason` where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgreementResult {
    Equal,
    Different,
    /// Other compact revision, compacted, unsupported.
    NotComparable(String),
    Skipped(String),
}

impl AgreementResult {
    /// The word for it, and the reason where there is one.
    pub fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            AgreementResult::Equal => ("equal", None),
            AgreementResult::Different => ("different", None),
            AgreementResult::NotComparable(why) => ("not-comparable", Some(why)),
            AgreementResult::Skipped(why) => ("skipped", Some(why)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotChecked {
    pub check: String,
    pub reason: String,
}

/// Where an import came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The file's name as given.
    pub from: String,
    #[serde(with = "rfc3339")]
    pub at: Timestamp,
}

/// What a snapshot is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Everything in [`check::REQUIRED`] was checked and nobody disagrees.
    Verified,
    /// Something was not checked, or a later look found damage. Never counts as a backup.
    Unverified,
    /// A live member had another HashKV at the same revision and compact revision. Never counts.
    Disputed,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Verified => "verified",
            State::Unverified => "unverified",
            State::Disputed => "disputed",
        }
    }
}

/// Why bytes are no manifest that this code can use.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("{0} bytes, more than the limit of {MAX_BYTES}")]
    TooLarge(u64),
    #[error("no JSON document with a schema number: {0}")]
    NoSchema(String),
    #[error("schema {0}, newer than the {SCHEMA} that this version reads")]
    Newer(u32),
    #[error("not as schema {SCHEMA} wants it: {0}")]
    Shape(String),
    #[error("its {0} is not that of its name")]
    NotItsName(&'static str),
    #[error("its {0} contradicts its id")]
    Contradiction(&'static str),
}

#[derive(Deserialize)]
struct Probe {
    schema: u32,
}

/// Reads the schema number first, so that a newer document is told apart from a broken one.
pub(crate) fn check_schema(bytes: &[u8]) -> Result<(), ManifestError> {
    let probe: Probe = serde_json::from_slice(bytes).map_err(|e| ManifestError::NoSchema(e.to_string()))?;
    match probe.schema {
        SCHEMA => Ok(()),
        0 => Err(ManifestError::Shape("schema 0".into())),
        newer => Err(ManifestError::Newer(newer)),
    }
}

impl Manifest {
    /// Reads a manifest. Fields that this version does not know are tolerated; parts that contradict the id are not.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(ManifestError::TooLarge(bytes.len() as u64));
        }
        check_schema(bytes)?;
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(|e| ManifestError::Shape(e.to_string()))?;
        manifest.agrees_with_id()?;
        Ok(manifest)
    }

    /// The same, and it must be the one that its name promises.
    pub fn parse_named(bytes: &[u8], lineage: LineageId, id: &SnapshotId) -> Result<Self, ManifestError> {
        let manifest = Manifest::parse(bytes)?;
        if manifest.id != *id {
            return Err(ManifestError::NotItsName("id"));
        }
        if manifest.lineage != lineage {
            return Err(ManifestError::NotItsName("lineage"));
        }
        Ok(manifest)
    }

    fn agrees_with_id(&self) -> Result<(), ManifestError> {
        let id = &self.id;
        let parts = [
            ("timeline", self.timeline.number == id.timeline()),
            ("revision", self.revision == id.revision()),
            ("taken_at", super::time::to_millis(self.taken_at) == id.taken_at()),
            ("node", self.node == *id.node()),
            ("compact_revision", (0..=self.revision).contains(&self.compact_revision)),
        ];
        match parts.iter().find(|(_, ok)| !ok) {
            Some((what, _)) => Err(ManifestError::Contradiction(what)),
            None => Ok(()),
        }
    }

    /// What the data object is called.
    pub fn data_name(&self) -> Name {
        Name::Data(self.lineage, self.id.clone(), self.codec)
    }

    /// What the manifest itself is called.
    pub fn name(&self) -> Name {
        Name::Manifest(self.lineage, self.id.clone())
    }

    /// The document as it is stored: indented JSON with a final newline. Fails like [`Manifest::parse`] would on it,
    /// so that nothing is written which cannot be read back.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ManifestError> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|e| ManifestError::Shape(e.to_string()))?;
        bytes.push(b'\n');
        Manifest::parse(&bytes)?;
        Ok(bytes)
    }

    /// What this document alone is worth; [`Shown`](super::Shown) takes the notes into account.
    pub fn state(&self) -> State {
        if self.agreement.iter().any(|a| a.result == AgreementResult::Different) {
            State::Disputed
        } else if checks_suffice(&self.checks) {
            State::Verified
        } else {
            State::Unverified
        }
    }
}

/// Whether everything that promise 1 names was checked.
pub(crate) fn checks_suffice(checks: &[String]) -> bool {
    check::REQUIRED.iter().all(|required| checks.iter().any(|c| c == required))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::testing::snapshot;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn document() -> Value {
        serde_json::from_slice(&snapshot(1, 7, 0, "cp1").to_bytes().unwrap()).unwrap()
    }

    fn parse(value: &Value) -> Result<Manifest, ManifestError> {
        Manifest::parse(value.to_string().as_bytes())
    }

    #[test]
    fn round_trip_with_every_result() {
        let mut manifest = snapshot(1, 7, 0, "cp1");
        manifest.agreement = vec![
            Agreement::new("member a", AgreementResult::Equal),
            Agreement::new("member b", AgreementResult::NotComparable("other compact revision".into())),
            Agreement::new("member c", AgreementResult::Skipped("leader".into())),
        ];
        manifest.hash_kv = Some(HashKv { hash: u32::MAX, revision: 7, compact_revision: 3 });
        manifest.not_checked = vec![NotChecked { check: "freelist".into(), reason: "not stored".into() }];
        assert_eq!(Manifest::parse(&manifest.to_bytes().unwrap()).unwrap(), manifest);
    }

    #[test]
    fn names_in_json_are_those_that_scripts_know() {
        let mut manifest = snapshot(1, 7, 0, "cp1");
        manifest.agreement = vec![Agreement::new("member c", AgreementResult::Skipped("leader".into()))];
        manifest.hash_kv = Some(HashKv { hash: 5, revision: 7, compact_revision: 3 });
        let got = serde_json::to_value(&manifest).unwrap();
        assert_eq!(got["id"], "0001-00000000000000000007-20260921T141320000Z-cp1");
        assert_eq!(got["lineage"], "aaaaaaaaaaaaaaaa");
        assert_eq!(got["timeline"], "0001-01010101");
        assert_eq!(got["cluster_id"], "cafe");
        assert_eq!(got["member_id"], "1");
        assert_eq!(got["taken_at"], "2026-09-21T14:13:20Z");
        assert_eq!(got["size"], json!({"db": 4096, "in_use": 2048, "stored": 3}));
        assert_eq!(got["sha256"]["db"], "01".repeat(32));
        assert_eq!(got["codec"], "zstd");
        assert_eq!(got["hash_kv"], json!({"hash": 5, "revision": 7, "compact_revision": 3}));
        assert_eq!(got["agreement"], json!([{"with": "member c", "result": "skipped", "reason": "leader"}]));
        for absent in ["raft_term", "raft_index", "storage_version", "imported", "recipients"] {
            assert!(got.get(absent).is_none(), "{absent} is not known and must not be there");
        }
    }

    #[test]
    fn state_follows_from_checks_and_agreement() {
        let with = |checks: &[&str], result: Option<AgreementResult>| {
            let mut manifest = snapshot(1, 7, 0, "cp1");
            manifest.checks = checks.iter().map(|c| c.to_string()).collect();
            manifest.agreement = result.into_iter().map(|r| Agreement::new("x", r)).collect();
            manifest.state()
        };
        let all = check::REQUIRED;
        assert_eq!(with(&all, None), State::Verified);
        assert_eq!(with(&all, Some(AgreementResult::Skipped("leader".into()))), State::Verified);
        assert_eq!(with(&all, Some(AgreementResult::NotComparable("x".into()))), State::Verified);
        assert_eq!(with(&all, Some(AgreementResult::Different)), State::Disputed);
        assert_eq!(with(&[], None), State::Unverified);
        assert_eq!(with(&[], Some(AgreementResult::Different)), State::Disputed);
        for missing in all {
            let rest: Vec<&str> = all.into_iter().filter(|c| *c != missing).collect();
            assert_eq!(with(&rest, None), State::Unverified, "without {missing}");
        }
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let change = |field: &str, value: Value| {
            let mut d = document();
            d[field] = value;
            parse(&d).unwrap_err().to_string()
        };
        assert_eq!(change("schema", json!(2)), "schema 2, newer than the 1 that this version reads");
        assert!(change("schema", json!("1")).starts_with("no JSON document"));
        assert_eq!(change("revision", json!(8)), "its revision contradicts its id");
        assert_eq!(change("node", json!("cp2")), "its node contradicts its id");
        assert_eq!(change("compact_revision", json!(8)), "its compact_revision contradicts its id");
        assert_eq!(change("compact_revision", json!(-1)), "its compact_revision contradicts its id");
        assert_eq!(change("timeline", json!("0002-01010101")), "its timeline contradicts its id");
        assert_eq!(change("taken_at", json!("2026-09-21T14:13:21Z")), "its taken_at contradicts its id");
        assert!(change("codec", json!("lz4")).contains("lz4"));
        assert!(change("agreement", json!([{"with": "x", "result": "perhaps"}])).contains("perhaps"));
        let large = vec![b' '; MAX_BYTES as usize + 1];
        assert!(matches!(Manifest::parse(&large), Err(ManifestError::TooLarge(_))));
        let other = snapshot(1, 8, 0, "cp1");
        let named = Manifest::parse_named(&other.to_bytes().unwrap(), other.lineage, &snapshot(1, 7, 0, "cp1").id);
        assert!(matches!(named, Err(ManifestError::NotItsName("id"))));
    }

    #[test]
    fn later_fields_are_tolerated_and_required_ones_are_not_invented() {
        let mut d = document();
        d["signature"] = json!({"key": "x"});
        d["size"]["later"] = json!(1);
        assert!(parse(&d).is_ok());
        for field in ["id", "lineage", "revision", "compact_revision", "taken_at", "size", "sha256", "codec", "node"] {
            let mut d = document();
            d.as_object_mut().unwrap().remove(field);
            assert!(parse(&d).is_err(), "{field}");
        }
    }

    proptest! {
        #[test]
        fn damaged_bytes_never_panic(at: usize, byte: u8, cut: usize) {
            let mut bytes = snapshot(1, 7, 0, "cp1").to_bytes().unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Manifest::parse(&bytes);
            bytes.truncate(cut % bytes.len());
            // Whatever is cut off, a document without its end is none.
            let whole = bytes.last() == Some(&b'}');
            prop_assert!(Manifest::parse(&bytes).is_err() || whole);
        }
    }
}
