//! Everything that was found out about one snapshot, in its manifest.

use jiff::Timestamp;

use super::capture::Captured;
use super::evidence;
use super::judge::{Judgement, Object, Trailer};
use super::preflight::Fit;
use crate::catalog::{
    Agreement, Codec, EtcdId, HashKv, Imported, Manifest, Node, NotChecked, Placement, Sha256, Size, SnapshotId,
    TailAt, check, time,
};
use crate::error::{Code, Error, Result};
use crate::format::check::Content;

/// All that the steps before have found out.
pub struct Facts<'a> {
    pub node: &'a Node,
    pub fit: &'a Fit,
    pub captured: &'a Captured,
    pub object: &'a Object,
    pub judgement: &'a Judgement,
    pub content: &'a Content,
    pub placement: &'a Placement,
    pub agreement: Vec<Agreement>,
    pub tags: &'a [String],
}

/// What is known about a file that somebody else captured.
pub struct ImportFacts<'a> {
    pub node: &'a Node,
    pub id: SnapshotId,
    pub stored_bytes: u64,
    pub object: &'a Object,
    pub judgement: &'a Judgement,
    pub placement: &'a Placement,
    pub tags: &'a [String],
    pub imported: Imported,
}

/// The document that makes the snapshot exist.
pub fn manifest(facts: Facts<'_>) -> Result<Manifest> {
    let Facts { node, fit, captured, object, judgement, content, placement, agreement, tags } = facts;
    let taken_at = time::to_millis(captured.started);
    let id = SnapshotId::new(placement.timeline.id().number, content.revision as i64, taken_at, node.clone())
        .map_err(|e| Error::new(Code::DataInvalid, "name snapshot of", &fit.chosen.url).because(e))?;
    let version = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let bytes = Bytes { node, id, stored_bytes: captured.written.stored_bytes, object, judgement, content, placement };
    let base = bytes.document(tags)?;
    Ok(Manifest {
        cluster_id: Some(EtcdId(fit.status.cluster_id)),
        member_id: Some(EtcdId(fit.status.member_id)),
        member_name: fit.chosen.info.as_ref().and_then(|i| version(&i.name)),
        agreement,
        etcd_version: version(&fit.status.version),
        storage_version: base.storage_version.or_else(|| captured.storage_version.as_deref().and_then(version)),
        ..base
    })
}

/// The same for an import: nothing is said that the file does not say.
pub fn imported(facts: ImportFacts<'_>) -> Result<Manifest> {
    let ImportFacts { node, id, stored_bytes, object, judgement, placement, tags, imported } = facts;
    let content = judgement.content.as_ref().ok_or_else(|| {
        Error::new(Code::Internal, "describe import of", &imported.from).because("its tree was not walked")
    })?;
    let base = Bytes { node, id, stored_bytes, object, judgement, content, placement }.document(tags)?;
    Ok(Manifest { imported: Some(imported), ..base })
}

/// All that the stored bytes tell.
struct Bytes<'a> {
    node: &'a Node,
    id: SnapshotId,
    stored_bytes: u64,
    object: &'a Object,
    judgement: &'a Judgement,
    content: &'a Content,
    placement: &'a Placement,
}

impl Bytes<'_> {
    fn document(self, tags: &[String]) -> Result<Manifest> {
        let Bytes { node, id, stored_bytes, object, judgement, content, placement } = self;
        let sound = judgement.ok();
        let mut checks = vec![check::STORED];
        let mut not_checked = Vec::new();
        match judgement.trailer {
            Trailer::Absent => not_checked
                .push(NotChecked { check: check::TRAILER.into(), reason: "the file has no SHA-256 trailer".into() }),
            // One that is wrong is among the findings, or the stream was refused before.
            Trailer::Good | Trailer::Wrong => checks.push(check::TRAILER),
        }
        let reason = || judgement.findings.first().map_or_else(String::new, ToString::to_string);
        for name in [check::TREE, check::ROWS, check::HASH_KV] {
            if sound {
                checks.push(name)
            } else {
                not_checked.push(NotChecked { check: name.into(), reason: reason() })
            }
        }
        // A revision that is compacted itself tells nothing about history.
        let tail = match evidence::tail_at(object.bytes(), judgement.db_len, content.revision, content.compact_revision)
        {
            TailAt::Rows(digest) if content.compact_revision < content.revision => Some(digest),
            TailAt::Rows(_) | TailAt::Compacted | TailAt::NoRows | TailAt::Unknown => None,
        };
        let stored = judgement.stored_sha256.ok_or_else(|| {
            Error::new(Code::Internal, "describe snapshot", id.to_string()).because("the stored object was not hashed")
        })?;
        Ok(Manifest {
            schema: 1,
            lineage: placement.lineage.id(),
            timeline: placement.timeline.id(),
            cluster_id: None,
            node: node.clone(),
            member_id: None,
            member_name: None,
            revision: id.revision(),
            compact_revision: content.compact_revision as i64,
            taken_at: id.taken_at(),
            finished_at: time::to_millis(Timestamp::now()),
            size: Size { db: judgement.db_len, in_use: Some(content.in_use), stored: stored_bytes },
            sha256: Sha256 { db: judgement.db_sha256, stored },
            codec: Codec::Zstd,
            recipients: Vec::new(),
            hash_kv: judgement.hash_kv.map(|h| HashKv {
                hash: h.hash,
                revision: h.revision as i64,
                compact_revision: h.compact_revision as i64,
            }),
            agreement: Vec::new(),
            tail,
            etcd_version: None,
            storage_version: content.meta.storage_version.clone(),
            cluster_version: content.cluster_version.clone(),
            raft_term: content.meta.term,
            raft_index: content.meta.consistent_index,
            keys: sound.then_some(content.live_keys),
            leases: sound.then_some(content.leases),
            alarms: content.alarms.iter().map(|(id, name)| format!("{id:x} {name}")).collect(),
            checks: checks.into_iter().map(String::from).collect(),
            not_checked,
            tags: tags.to_vec(),
            imported: None,
            id,
        })
    }
}
