//! Everything that was found out about one snapshot, in its manifest.

use jiff::Timestamp;

use super::capture::Captured;
use super::evidence;
use super::judge::{Judgement, Object};
use super::preflight::Fit;
use crate::catalog::{
    Agreement, Codec, EtcdId, HashKv, Manifest, Node, NotChecked, Placement, Sha256, Size, SnapshotId, TailAt, check,
    time,
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

/// The document that makes the snapshot exist.
pub fn manifest(facts: Facts<'_>) -> Result<Manifest> {
    let Facts { node, fit, captured, object, judgement, content, placement, agreement, tags } = facts;
    let taken_at = time::to_millis(captured.started);
    let timeline = placement.timeline.id();
    let revision = content.revision as i64;
    let sound = judgement.ok();
    let mut checks = vec![check::STORED, check::TRAILER];
    let mut not_checked = Vec::new();
    let reason = || judgement.findings.first().map_or_else(String::new, ToString::to_string);
    for name in [check::TREE, check::ROWS, check::HASH_KV] {
        if sound { checks.push(name) } else { not_checked.push(NotChecked { check: name.into(), reason: reason() }) }
    }
    // A revision that is compacted itself tells nothing about history.
    let tail = match evidence::tail_at(object.bytes(), judgement.db_len, content.revision, content.compact_revision) {
        TailAt::Rows(digest) if content.compact_revision < content.revision => Some(digest),
        TailAt::Rows(_) | TailAt::Compacted | TailAt::NoRows | TailAt::Unknown => None,
    };
    let stored = judgement.stored_sha256.ok_or_else(|| {
        Error::new(Code::Internal, "hash snapshot of", &fit.chosen.url).because("the stored object was not hashed")
    })?;
    let id = SnapshotId::new(timeline.number, revision, taken_at, node.clone())
        .map_err(|e| Error::new(Code::DataInvalid, "name snapshot of", &fit.chosen.url).because(e))?;
    let version = |text: &str| (!text.is_empty()).then(|| text.to_string());
    Ok(Manifest {
        schema: 1,
        id,
        lineage: placement.lineage.id(),
        timeline,
        cluster_id: Some(EtcdId(fit.status.cluster_id)),
        node: node.clone(),
        member_id: Some(EtcdId(fit.status.member_id)),
        member_name: fit.chosen.info.as_ref().and_then(|i| version(&i.name)),
        revision,
        compact_revision: content.compact_revision as i64,
        taken_at,
        finished_at: time::to_millis(Timestamp::now()),
        size: Size { db: judgement.db_len, in_use: Some(content.in_use), stored: captured.written.stored_bytes },
        sha256: Sha256 { db: judgement.db_sha256, stored },
        codec: Codec::Zstd,
        recipients: Vec::new(),
        hash_kv: judgement.hash_kv.map(|h| HashKv {
            hash: h.hash,
            revision: h.revision as i64,
            compact_revision: h.compact_revision as i64,
        }),
        agreement,
        tail,
        etcd_version: version(&fit.status.version),
        storage_version: content
            .meta
            .storage_version
            .clone()
            .or_else(|| captured.storage_version.as_deref().and_then(version)),
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
    })
}
