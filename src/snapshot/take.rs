//! One snapshot from the lock to the manifest: the order of the steps, and what a failure of each means.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::agreement;
use super::capture::{Captured, capture, lie};
use super::evidence;
use super::judge::{Judgement, Object, judge};
use super::making_room::Asking;
use super::outcome::{Outcome, Preflight, TakeRequest, Taken};
use super::preflight::{Fit, preflight};
use super::progress::Progress;
use super::publish::Publication;
use super::record;
use super::state::{aside, lock, node, open_state};
use super::stores::OpenStores;
use crate::catalog::history::Seen;
use crate::catalog::{
    Agreement, AgreementResult, EtcdId, Evidence, KnownLineage, Placement, Reason, Shown, TailAt, place, shown,
};
use crate::config::Settings;
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::etcd::StreamLimits;
use crate::format::check::{Content, Options};
use crate::store::LocalStore;
use crate::store::codec::Framed;

/// Slowest stream that still ends within its deadline, bytes a second.
const SLOWEST: u64 = 5 << 20;
/// Findings that a take names one by one.
const SHOWN: usize = 20;
const SHORTEST_DEADLINE: Duration = Duration::from_secs(120);

/// Takes one verified snapshot into every store that can take it.
pub async fn take(
    settings: &Settings,
    request: &TakeRequest,
    progress: Arc<dyn Progress>,
    cancel: &CancellationToken,
) -> Result<Outcome> {
    let node = node(settings)?;
    let state = open_state(settings, cancel)?;
    let patience = if request.no_wait { Duration::ZERO } else { settings.snapshot.max_duration };
    let _lock = lock(settings, &state, &node, patience, &*progress, cancel).await?;

    progress.step("preflight");
    let stores = {
        let (settings, only, state, cancel) = (settings.clone(), request.stores.clone(), state.clone(), cancel.clone());
        aside("open stores", move || OpenStores::for_writing(&settings, &only, &state, &cancel)).await?
    };
    let fit = tokio::select! {
        fit = preflight(&settings.etcd, request.access.as_ref(), request.member.as_deref()) => fit?,
        () = cancel.cancelled() => return Err(Error::new(Code::Canceled, "take snapshot", "")),
    };
    fit.warnings.iter().for_each(|w| progress.warn(w));
    let cluster = EtcdId(fit.status.cluster_id);
    let (mut stores, rooms) = {
        let (settings, node, dry_run, db_size) = (settings.clone(), node.clone(), request.dry_run, fit.status.db_size);
        let (progress, cancel) = (progress.clone(), cancel.clone());
        aside("look for room", move || {
            let ask = Asking { settings: &settings, node: &node, cluster, dry_run, db_size };
            let rooms = ask.rooms(&stores, &*progress, &cancel);
            Ok((stores, rooms))
        })
        .await?
    };
    if cancel.is_cancelled() {
        return Err(canceled(fit.member.url()));
    }
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
    let deadline =
        Duration::from_secs(fit.status.db_size / SLOWEST).max(SHORTEST_DEADLINE).min(settings.snapshot.max_duration);
    let limits = StreamLimits::new(settings.snapshot.stall_timeout, deadline);
    let (home, captured, (object, judgement)) = loop {
        let home = stores.home()?;
        let captured =
            capture(&fit.member, &home.store, (limits, request.rate), fit.status.db_size, &progress, cancel).await;
        let judged = match captured {
            Ok(captured) => {
                crash::point!("take::streamed");
                progress.step("verify");
                let judged =
                    judge_captured(&captured, &home.store, fit.member.url(), settings, &progress, cancel).await;
                judged.map(|judged| (captured, judged))
            }
            Err(error) => Err(error),
        };
        match judged {
            Ok((captured, judged)) => break (home, captured, judged),
            // The store's own failure, a disk that filled up for instance, is not that of the others.
            Err(error) if is_of_store(&error) => {
                stores.set_aside(&home.name, error)?;
                progress.step("stream");
            }
            Err(error) => return Err(error),
        }
    };
    crash::point!("take::verified");
    let content = judgement.content.clone().unwrap_or_default();
    judgement.findings.iter().take(SHOWN).for_each(|finding| progress.warn(&finding.to_string()));
    if let Some(more) = judgement.findings.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        progress.warn(&format!("and {more} findings more: see `refloat snapshot verify`"));
    }

    progress.step("agree");
    let canceled = || canceled(fit.member.url());
    let agreement = tokio::select! {
        agreement = agree(settings, &fit, &judgement, &content) => agreement,
        () = cancel.cancelled() => return Err(canceled()),
    };

    progress.step("publish");
    // Damage and disagreement are the member's fault, not a new history: what its rows say decides nothing.
    let trusted = judgement.ok() && agreement.iter().all(|a| a.result != AgreementResult::Different);
    let (mut stores, known) = aside("read stores", move || {
        let known = stores.known_history()?;
        Ok((stores, known))
    })
    .await?;
    let placement = tokio::select! {
        placement = place_it(&known, &fit, &content, &object, judgement.db_len, trusted) => placement?,
        () = cancel.cancelled() => return Err(canceled()),
    };
    if cancel.is_cancelled() {
        return Err(canceled());
    }
    let reasons: Vec<String> = placement.reasons.iter().map(ToString::to_string).collect();
    let elsewhere = placement.reasons.iter().any(|r| matches!(r, Reason::SameClusterIdElsewhere(_)));
    if placement.alarm {
        progress.warn(&format!("this history is not the one before: {}", reasons.join("; ")));
    } else if elsewhere {
        // From now on the list shows the new lineage, and the snapshots from before are gone from it.
        progress.warn(&format!(
            "a new lineage begins: the cluster was rebuilt, or its UID could not be read before ({})",
            reasons.join("; ")
        ));
    }
    let manifest = record::manifest(record::Facts {
        node: &node,
        fit: &fit,
        captured: &captured,
        object: &object,
        judgement: &judgement,
        content: &content,
        placement: &placement,
        agreement,
        tags: &request.tags,
    })?;
    let seen = Seen { node, at: Timestamp::now(), revision: manifest.revision, reasons: reasons.clone() };
    let others: Vec<_> = stores.good().filter(|s| s.name != home.name).map(|s| s.store.clone()).collect();
    // The bytes are there also when their store could not be listed meanwhile.
    let lost = stores.take_failure_of(&home.name);
    let (mut outcomes, staged, flushing) = (stores.failures(), captured.staged, captured.flushing);
    let (published, manifest) = tokio::task::spawn_blocking(move || {
        let publication = Publication { manifest: &manifest, placement: &placement, seen: &seen };
        let ready = match lost {
            Some(error) => Err(error),
            None => flushing.wait(),
        };
        publication.run(staged, ready, &home.store, &others).map(|published| (published, manifest))
    })
    .await
    .map_err(|e| Error::new(Code::Internal, "publish snapshot", "").because(e))??;
    published.1.iter().for_each(|w| progress.warn(w));
    let holders: Vec<String> = published.0.iter().filter(|o| o.result.is_ok()).map(|o| o.name.clone()).collect();
    outcomes.extend(published.0);
    if holders.is_empty() && cancel.is_cancelled() {
        return Err(canceled());
    }
    if holders.is_empty() {
        let first = outcomes.into_iter().find_map(|o| o.result.err());
        return Err(first.unwrap_or_else(|| Error::new(Code::Internal, "publish snapshot", "without any store")));
    }
    for outcome in &outcomes {
        if let Err(error) = &outcome.result {
            progress.warn(&format!("store {}: {}", outcome.name, error.line()));
        }
    }
    let manifest = {
        let (holders, progress) = (holders.clone(), progress.clone());
        aside("note known stores", move || {
            stores.remember(&state, &holders, &manifest, &*progress);
            Ok(manifest)
        })
        .await?
    };
    let copies: Vec<shown::Copy> =
        holders.iter().map(|store| shown::Copy { store: store.clone(), ..Default::default() }).collect();
    Ok(Outcome::Taken(Box::new(Taken {
        snapshot: Shown::fold(manifest, &copies),
        stores: outcomes,
        reasons,
        findings: judgement.findings,
    })))
}

fn canceled(url: &str) -> Error {
    Error::new(Code::Canceled, "take snapshot from", url)
}

/// Whether writing failed, not the stream: that one has codes of its own.
fn is_of_store(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::Io | Code::StoreHung | Code::StoreNotWritable | Code::StoreVanished | Code::TooLittleSpace
    )
}

/// Second pass, over the bytes as they are stored.
async fn judge_captured(
    captured: &Captured,
    home: &LocalStore,
    url: &str,
    settings: &Settings,
    progress: &Arc<dyn Progress>,
    cancel: &CancellationToken,
) -> Result<(Object, Judgement)> {
    let on = "the captured snapshot";
    let plain = home.read_back(&captured.staged, on)?;
    let framed =
        Framed::open(Arc::new(plain) as Arc<dyn crate::format::ReadAt>).map_err(|e| e.into_error("read back", on))?;
    let object = Object::Framed(Arc::new(framed));
    let options = Options { wanted_key: evidence::namespace_key(&settings.etcd.prefix), ..Options::default() };
    let (judged, token, progress) = (object.clone(), cancel.clone(), progress.clone());
    let judgement = tokio::task::spawn_blocking(move || judge(&judged, on, options, &*progress, &token))
        .await
        .map_err(|e| Error::new(Code::Internal, "verify", on).because(e))??;
    // What the store did not give is no damage.
    if !judgement.ok() && home.is_hung() {
        return Err(home.hung("read back in"));
    }
    // Each frame has a checksum from before it was written: what does not fit it, the disk has changed.
    if let Some(damage) = judgement.findings.iter().find(|f| f.check == "frame") {
        return Err(Error::new(Code::Io, "read back", on)
            .because(format!("what was written and what is read differ: {damage}"))
            .remedy("check the disk of that store"));
    }
    if judgement.db_sha256 != captured.trailer {
        return Err(lie(
            url,
            format!(
                "SHA-256 of the {} bytes of the database is {}, the trailer that the member sent is {}",
                judgement.db_len, judgement.db_sha256, captured.trailer
            ),
        ));
    }
    Ok((object, judgement))
}

async fn agree(settings: &Settings, fit: &Fit, judgement: &Judgement, content: &Content) -> Vec<Agreement> {
    let Some(hash) = judgement.hash_kv else { return Vec::new() };
    let candidates = agreement::candidates(&fit.view.members, fit.view.leader);
    let decisions = agreement::decide(settings.snapshot.agreement, content.rows, fit.status.member_id, &candidates);
    agreement::ask(decisions, hash, content.rows, &fit.view.members, &fit.access).await
}

/// What the stores know was read before; reads the cluster's revision (in this order), then decides. Rows that are not `trusted` are not
/// compared with those of the past.
async fn place_it(
    known: &[KnownLineage],
    fit: &Fit,
    content: &Content,
    object: &Object,
    db_len: u64,
    trusted: bool,
) -> Result<Placement> {
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
    place(&evidence, &tail, known, crate::fs::random()?)
        .map_err(|e| Error::new(Code::DataInvalid, "place snapshot", "").because(e))
}
