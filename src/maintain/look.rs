//! Asks everybody: what members say of themselves, whether they are well, and how much room there is.

use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use super::plan::{Facts, MemberFacts};
use crate::config::Settings;
use crate::error::Result;
use crate::etcd::{Access, Member, MemberView, defects};
use crate::snapshot::preflight::{Fit, preflight};

/// Faults of etcd that turn a defragmentation into damage; the others of [`defects`] are told.
const DANGEROUS: [&str; 2] = ["defrag-leftover", "defrag-crash-inconsistency"];
/// A file system that does not say its size in this time is not written to.
const STATFS: Duration = Duration::from_secs(5);

/// Everything that a plan is made from, and the connection that it is carried out on.
pub struct Look {
    pub facts: Facts,
    pub fit: Fit,
    pub warnings: Vec<String>,
}

/// The whole cluster, all members at once. `MemberGone` and the like when the own member does not answer.
pub async fn look(settings: &Settings, loaded: Option<&Access>) -> Result<Look> {
    let mut fit = preflight(&settings.etcd, loaded, None).await?;
    let own = fit.status.member_id;
    let asked = fit.view.members.iter().map(|member| facts_of(member, own, &fit));
    let members = futures_util::future::join_all(asked).await;
    let (mut warnings, mut dangerous) = (std::mem::take(&mut fit.warnings), Vec::new());
    for defect in defects(&fit.status.version) {
        let text = format!("etcd {}: {} ({})", fit.status.version, defect.summary, defect.reference);
        match DANGEROUS.contains(&defect.id) {
            true => dangerous.push(text),
            false if defect.id.starts_with("defrag") => warnings.push(text),
            false => {}
        }
    }
    let free = match &settings.etcd.data_dir {
        Some(dir) => free_beside(dir).await,
        None => Err("where its database lies is not configured: set [etcd] data_dir".into()),
    };
    Ok(Look { facts: Facts { members, free, defects: dangerous }, fit, warnings })
}

async fn facts_of(view: &MemberView, own: u64, fit: &Fit) -> MemberFacts {
    let status = view.status.as_ref();
    MemberFacts {
        id: view.info.id,
        name: view.info.label(),
        own: view.info.id == own,
        leader: fit.view.leader == Some(view.info.id),
        learner: view.info.is_learner,
        db_size: status.map_or(0, |status| status.db_size),
        db_in_use: status.map_or(0, |status| status.db_in_use),
        health: match (status, &view.url) {
            (Ok(_), Some(url)) => is_well(url, view, &fit.access).await,
            (Err(error), _) => Err(error.line()),
            (Ok(_), None) => Err("it has no client URL".into()),
        },
    }
}

/// Reads locally, with quorum, and has a proposal pass (E2 to E4). A learner does only the first.
pub async fn is_well(url: &str, view: &MemberView, access: &Access) -> Result<(), String> {
    let asked = async {
        let member = Member::connect_named(url, &view.info.label(), access).await?;
        member.serializable().await?;
        if !view.info.is_learner {
            member.linearizable().await?;
            member.alarms().await?;
        }
        Ok::<(), crate::error::Error>(())
    };
    asked.await.map_err(|error| error.line())
}

/// On a thread of its own: a file system that hangs keeps the call.
async fn free_beside(dir: &Path) -> Result<u64, String> {
    let path = dir.to_path_buf();
    let (told, answer) = tokio::sync::oneshot::channel();
    let spawned = std::thread::Builder::new().name("statfs".into()).spawn(move || {
        let _ = told.send(nix::sys::statvfs::statvfs(&path));
    });
    spawned.map_err(|e| format!("no thread to ask on: {e}"))?;
    match timeout(STATFS, answer).await {
        Ok(Ok(Ok(fs))) => Ok(fs.blocks_available().saturating_mul(fs.fragment_size().max(1))),
        Ok(Ok(Err(e))) => Err(format!("{}: {e}", dir.display())),
        Ok(Err(_)) | Err(_) => Err(format!("{}: no answer within {} s", dir.display(), STATFS.as_secs())),
    }
}
