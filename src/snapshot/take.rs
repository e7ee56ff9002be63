//! One snapshot from the lock to the manifest: the order of the steps, and what a failure of each means.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::agreement;
use super::capture::{Captured, capture};
use super::evidence;
use super::judge::{Judgement, Object, judge};
use super::preflight::{Fit, preflight};
use super::progress::Progress;
use super::publish::{Publication, StoreOutcome};
use super::stores::{OpenStores, Opened};
use crate::catalog::history::Seen;
use crate::catalog::{
    Agreement, AgreementResult, Catalog, Codec, Digest, EtcdId, Evidence, Manifest, Node, NotChecked, Placement, Sha256, Shown, Size,
    SnapshotId, State, SweepPlan, SweepScope, TailAt, check, place, read_known, shown, time,
};
use crate::config::Settings;
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::etcd::StreamLimits;
use crate::format::check::{Content, Options};
use crate::fs::{Attempt, Dir, Holder, Lock};
use crate::store::PlainFile;
use crate::store::codec::Framed;

/// Held while a snapshot of the own member is taken: one at a time (design §4.3, law 10).
pub const LOCK: &str = "take.lock";
/// Slowest stream that still ends within its deadline, bytes a second.
const SLOWEST: u64 = 5 << 20;
const SHORTEST_DEADLINE: Duration = Duration::from_secs(120);
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct TakeRequest {
    /// Another member than the own one: name, id or client URL.
    pub member: Option<String>,
    pub tags: Vec<String>,
    /// Fail at once when another take is under way.
    pub no_wait: bool,
    /// Only these stores; empty: all.
    pub stores: Vec<String>,
    /// Stop after the preflight.
    pub dry_run: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Taken {
    pub snapshot: Shown,
    pub stores: Vec<StoreOutcome>,
    /// Why its lineage and timeline are these.
    pub reasons: Vec<String>,
    /// Faults of the member's own database: bytes that arrived whole, but are not sound.
    pub findings: Vec<crate::format::check::Finding>,
}

impl Taken {
    /// The error that the whole run ends with, although the snapshot was kept.
    pub fn failure(&self) -> Option<Error> {
        let id = self.snapshot.manifest.id.to_string();
        let failed: Vec<&str> = self.stores.iter().filter(|s| s.result.is_err()).map(|s| s.name.as_str()).collect();
        match self.snapshot.state {
            State::Disputed => Some(
                Error::new(Code::Disputed, "agree on snapshot", id)
                    .because("a member has another content at the same revision: the members of this cluster differ")
                    .remedy("compare the members with `etcdctl endpoint hashkv --cluster` before trusting any backup of them"),
            ),
            State::Unverified => Some(
                Error::new(Code::DataInvalid, "verify snapshot", id)
                    .because(self.findings.first().map_or_else(|| "not everything was checked".into(), |f| f.message.clone()))
                    .remedy("the bytes arrived as the member sent them: check that member's own database"),
            ),
            State::Verified if !failed.is_empty() => Some(
                Error::new(Code::SomeStoresFailed, "publish snapshot", id)
                    .because(format!("it is not in store {}", failed.join(", ")))
                    .remedy("see the error of that store; the others have the snapshot"),
            ),
            State::Verified => None,
        }
    }
}

/// The outcome of a dry run.
#[derive(Debug)]
pub struct Preflight {
    pub member: String,
    pub url: String,
    /// Why this member.
    pub reason: &'static str,
    pub etcd_version: String,
    /// Bytes.
    pub db_size: u64,
    /// Expected stored bytes, and bytes that must be free, by store.
    pub stores: Vec<(String, Result<(u64, u64)>)>,
}

/// Either the snapshot or, for a dry run, what was found before it.
pub enum Outcome {
    Taken(Box<Taken>),
    Preflight(Preflight),
}

/// Takes one verified snapshot into every store that can take it.
pub async fn take(
    settings: &Settings,
    request: &TakeRequest,
    progress: Arc<dyn Progress>,
    cancel: &CancellationToken,
) -> Result<Outcome> {
    let node = node(settings)?;
    let state = open_state(settings)?;
    let _lock = lock(&state, &node, request.no_wait, &*progress, cancel).await?;

    progress.step("preflight");
    let mut stores = OpenStores::for_writing(settings, &request.stores, &state)?;
    let fit = tokio::select! {
        fit = preflight(&settings.etcd, request.member.as_deref()) => fit?,
        () = cancel.cancelled() => return Err(Error::new(Code::Canceled, "take snapshot", "")),
    };
    fit.warnings.iter().for_each(|w| progress.warn(w));
    if !request.dry_run {
        sweep(&stores, &node, EtcdId(fit.status.cluster_id), &*progress)?;
    }
    let rooms = stores.check_room(fit.status.db_size);
    if request.dry_run {
        return Ok(Outcome::Preflight(Preflight {
            member: fit.chosen.info.as_ref().map(|i| i.label()).unwrap_or_default(),
            url: fit.chosen.url.clone(),
            reason: fit.chosen.reason,
            etcd_version: fit.status.version.clone(),
            db_size: fit.status.db_size,
            stores: rooms,
        }));
    }
    stores.drop_full(rooms)?;

    progress.step("stream");
    let home = stores.home()?;
    let deadline =
        Duration::from_secs(fit.status.db_size / SLOWEST).max(SHORTEST_DEADLINE).min(settings.snapshot.max_duration);
    let limits = StreamLimits::new(settings.snapshot.stall_timeout, deadline);
    let captured = capture(&fit.member, &home.store, limits, fit.status.db_size, &*progress, cancel).await?;
    crash::point!("take::streamed");

    progress.step("verify");
    let (object, judgement) = judge_captured(&captured, settings, progress.clone(), cancel).await?;
    crash::point!("take::verified");
    let content = judgement.content.clone().unwrap_or_default();

    progress.step("agree");
    let canceled = || Error::new(Code::Canceled, "take snapshot from", fit.member.url());
    let agreement = tokio::select! {
        agreement = agree(settings, &fit, &judgement, &content) => agreement,
        () = cancel.cancelled() => return Err(canceled()),
    };

    progress.step("publish");
    // Damage and disagreement are the member's fault, not a new history: what its rows say decides nothing.
    let trusted = judgement.ok() && agreement.iter().all(|a| a.result != AgreementResult::Different);
    let placement = tokio::select! {
        placement = place_it(&stores, &fit, &content, &object, judgement.db_len, trusted) => placement?,
        () = cancel.cancelled() => return Err(canceled()),
    };
    if cancel.is_cancelled() {
        return Err(canceled());
    }
    let reasons: Vec<String> = placement.reasons.iter().map(ToString::to_string).collect();
    if placement.alarm {
        progress.warn(&format!("this history is not the one before: {}", reasons.join("; ")));
    }
    let manifest =
        manifest(&node, &fit, &captured, &judgement, &content, &placement, agreement, &request.tags, &object)?;
    let seen = Seen { node, at: Timestamp::now(), revision: manifest.revision, reasons: reasons.clone() };
    let others: Vec<_> = stores.good().filter(|s| s.name != home.name).map(|s| s.store.clone()).collect();
    let (mut outcomes, staged) = (stores.failures(), captured.staged);
    let (published, manifest) = tokio::task::spawn_blocking(move || {
        let publication = Publication { manifest: &manifest, placement: &placement, seen: &seen };
        publication.run(staged, &home.store, &others).map(|published| (published, manifest))
    })
    .await
    .map_err(|e| Error::new(Code::Internal, "publish snapshot", "").because(e))??;
    published.1.iter().for_each(|w| progress.warn(w));
    let holders: Vec<String> = published.0.iter().filter(|o| o.result.is_ok()).map(|o| o.name.clone()).collect();
    outcomes.extend(published.0);
    if holders.is_empty() {
        let first = outcomes.into_iter().find_map(|o| o.result.err());
        return Err(first.unwrap_or_else(|| Error::new(Code::Internal, "publish snapshot", "without any store")));
    }
    for outcome in &outcomes {
        if let Err(error) = &outcome.result {
            progress.warn(&format!("store {}: {error}: {}", outcome.name, error.why().join(": ")));
        }
    }
    stores.remember(&state, &holders, &manifest.id.to_string(), &*progress);
    let copies: Vec<shown::Copy> =
        holders.iter().map(|store| shown::Copy { store: store.clone(), ..Default::default() }).collect();
    Ok(Outcome::Taken(Box::new(Taken {
        snapshot: Shown::fold(manifest, &copies),
        stores: outcomes,
        reasons,
        findings: judgement.findings,
    })))
}

/// This node's name, as it stands in ids.
pub fn node(settings: &Settings) -> Result<Node> {
    settings.node.parse().map_err(|e| Error::new(Code::Config, "use node name", &settings.node).because(e))
}

/// The state directory, made when it is missing.
pub fn open_state(settings: &Settings) -> Result<Dir> {
    use std::os::unix::fs::DirBuilderExt;
    let path = &settings.paths.state;
    if let Err(e) = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path) {
        return Err(Error::new(Code::CannotCreate, "create state directory", path.display().to_string())
            .because(e)
            .remedy("run as its owner, or name another one as [paths] state"));
    }
    Dir::open(path)
}

/// Waits for the lock, saying who has it; or fails at once when told not to wait.
async fn lock(
    state: &Dir,
    node: &Node,
    no_wait: bool,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Lock> {
    let holder = Holder::current("snapshot take", node.as_str());
    let mut said = None;
    loop {
        match Lock::try_acquire(state, LOCK, &holder)? {
            Attempt::Acquired(lock) => return Ok(lock),
            held if no_wait => return held.into_lock("take snapshot"),
            Attempt::Held(by) => {
                if said.as_ref() != Some(&by) {
                    progress.step(&format!("wait for {by}"));
                    said = Some(by);
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOCK_PAUSE) => {}
            () = cancel.cancelled() => return Err(Error::new(Code::Canceled, "wait for lock", LOCK)),
        }
    }
}

/// Removes what killed runs of this node left of this cluster's lineages.
fn sweep(stores: &OpenStores, node: &Node, cluster: EtcdId, progress: &dyn Progress) -> Result<()> {
    for Opened { store, .. } in stores.good() {
        if let Err(error) = store.sweep() {
            progress.warn(&format!("{error}: {}", error.why().join(": ")));
        }
    }
    let list = stores.list();
    let catalog = match Catalog::read(&list) {
        Ok(catalog) => catalog,
        // No list, no sweep; the take itself needs none.
        Err(error) => {
            progress.warn(&format!("nothing is swept: {error}: {}", error.why().join(": ")));
            return Ok(());
        }
    };
    let ours = |timelines: &[crate::catalog::KnownTimeline]| timelines.iter().any(|t| t.cluster_id == Some(cluster));
    let lineages: BTreeSet<_> = read_known(&catalog).into_iter().filter(|l| ours(&l.timelines)).map(|l| l.id).collect();
    let scope = SweepScope { node: node.clone(), lineages: Some(lineages) };
    let report = SweepPlan::new(&catalog, &scope).act(&catalog);
    for item in &report.removed {
        progress.warn(&format!(
            "removed a leftover of a killed run from store {}: {} ({} bytes)",
            item.store, item.name, item.size
        ));
    }
    for kept in &report.kept {
        progress.warn(&format!("left {} in store {}: {}", kept.name, kept.store, kept.reason));
    }
    Ok(())
}

/// Second pass, over the bytes as they are stored.
async fn judge_captured(
    captured: &Captured,
    settings: &Settings,
    progress: Arc<dyn Progress>,
    cancel: &CancellationToken,
) -> Result<(Object, Judgement)> {
    let on = "the captured snapshot";
    let file = captured.staged.file().try_clone().map_err(|e| Error::io("read back", on, e))?;
    let plain = PlainFile::new(file, on)?;
    let framed =
        Framed::open(Arc::new(plain) as Arc<dyn crate::format::ReadAt>).map_err(|e| e.into_error("read back", on))?;
    let object = Object::Framed(Arc::new(framed));
    let options = Options { wanted_key: evidence::namespace_key(&settings.etcd.prefix), ..Options::default() };
    let (judged, token) = (object.clone(), cancel.clone());
    let judgement = tokio::task::spawn_blocking(move || judge(&judged, on, options, &*progress, &token))
        .await
        .map_err(|e| Error::new(Code::Internal, "verify", on).because(e))??;
    // Both passes saw the same bytes, or the disk lies.
    if judgement.db_sha256 != captured.db_sha256
        || judgement.stored_sha256 != Some(Digest(captured.written.stored_sha256))
    {
        return Err(Error::new(Code::Io, "read back", on)
            .because("what was written and what is read differ")
            .remedy("check the disk of that store"));
    }
    Ok((object, judgement))
}

async fn agree(settings: &Settings, fit: &Fit, judgement: &Judgement, content: &Content) -> Vec<Agreement> {
    let Some(hash) = judgement.hash_kv else { return Vec::new() };
    let candidates = agreement::candidates(&fit.view.members, fit.view.leader);
    let decisions = agreement::decide(settings.snapshot.agreement, content.rows, fit.status.member_id, &candidates);
    agreement::ask(decisions, hash, content.rows, &fit.view.members, &fit.access).await
}

/// Reads the stores, then the cluster's revision (in this order), then decides. Rows that are not `trusted` are not
/// compared with those of the past.
async fn place_it(
    stores: &OpenStores,
    fit: &Fit,
    content: &Content,
    object: &Object,
    db_len: u64,
    trusted: bool,
) -> Result<Placement> {
    let known = {
        let list = stores.list();
        read_known(&Catalog::read(&list)?)
    };
    let linearizable = fit.member.linearizable().await.ok().filter(|h| h.cluster_id == fit.status.cluster_id);
    let evidence = Evidence {
        uid: evidence::uid(content.wanted.as_deref()),
        cluster_id: EtcdId(fit.status.cluster_id),
        revision: content.revision as i64,
        compact_revision: content.compact_revision as i64,
        linearizable_revision: linearizable.map(|h| h.revision),
    };
    let bytes = object.bytes();
    let tail = |revision: i64| match u64::try_from(revision) {
        Ok(revision) if trusted => evidence::tail_at(bytes, db_len, revision, content.compact_revision),
        Ok(_) | Err(_) => TailAt::Unknown,
    };
    place(&evidence, &tail, &known, crate::fs::random()?)
        .map_err(|e| Error::new(Code::DataInvalid, "place snapshot", "").because(e))
}

#[allow(clippy::too_many_arguments)] // everything that was found out, in one document
fn manifest(
    node: &Node,
    fit: &Fit,
    captured: &Captured,
    judgement: &Judgement,
    content: &Content,
    placement: &Placement,
    agreement: Vec<Agreement>,
    tags: &[String],
    object: &Object,
) -> Result<Manifest> {
    let taken_at = time::to_millis(captured.started);
    let timeline = placement.timeline.id();
    let revision = content.revision as i64;
    let sound = judgement.ok();
    let mut checks = vec![check::STORED, check::TRAILER];
    let mut not_checked = Vec::new();
    let reason = || judgement.findings.first().map_or_else(String::new, |f| f.message.clone());
    for name in [check::TREE, check::ROWS, check::HASH_KV] {
        if sound { checks.push(name) } else { not_checked.push(NotChecked { check: name.into(), reason: reason() }) }
    }
    // A revision that is compacted itself tells nothing about history.
    let tail = match evidence::tail_at(object.bytes(), judgement.db_len, content.revision, content.compact_revision) {
        TailAt::Rows(digest) if content.compact_revision < content.revision => Some(digest),
        TailAt::Rows(_) | TailAt::Compacted | TailAt::NoRows | TailAt::Unknown => None,
    };
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
        sha256: Sha256 { db: judgement.db_sha256, stored: Digest(captured.written.stored_sha256) },
        codec: Codec::Zstd,
        recipients: Vec::new(),
        hash_kv: judgement.hash_kv.map(|h| crate::catalog::HashKv {
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
