//! Carries a plan out, under the locks, and looks whether it helped.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::look::{Look, look};
use super::plan::{Plan, Step, plan};
use crate::config::Settings;
use crate::error::{Code, Error, Result};
use crate::etcd::{Access, ClusterLock, Member, MemberView};
use crate::snapshot::progress::Progress;
use crate::snapshot::state::{limits, lock_for, node, open_state};

/// The same on all nodes of a cluster. Not beneath Kubernetes' own prefix.
pub const LOCK_KEY: &str = "refloat/lock/defrag";
const WHAT: &str = "defragment";
/// How often the lock is kept alive, far within its lease.
const KEEP: Duration = Duration::from_secs(15);
/// A leadership is handed over in a moment, an election takes seconds.
const HANDOVER: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// After it the member applies what it missed.
const RECOVERY: Duration = Duration::from_secs(60);

/// What came of it, sizes in bytes, time in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Defragmented {
    pub member: String,
    pub before: u64,
    pub after: u64,
    pub took: f64,
    /// The member that leads instead of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_moved_to: Option<String>,
}

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Also where it frees little.
    pub anyway: bool,
    /// Credentials that were read before.
    pub access: Option<Access>,
    /// Fail at once when a snapshot or another node's defragmentation is under way.
    pub no_wait: bool,
}

/// What would be done now.
pub async fn dry_run(settings: &Settings, request: &Request) -> Result<(Plan, Vec<String>)> {
    let look = look(settings, request.access.as_ref()).await?;
    Ok((plan(&look.facts, &settings.maintain, request.anyway), look.warnings))
}

/// Defragments the own member, if the plan says so; a refusal is `NotNow` with all its reasons.
pub async fn defragment(
    settings: &Settings,
    request: &Request,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Defragmented> {
    let node = node(settings)?;
    let state = open_state(settings, cancel)?;
    // A snapshot's read transaction would hold the defragmentation, and that everybody else.
    let patience = if request.no_wait { Duration::ZERO } else { settings.snapshot.max_duration };
    let around = (&state, &limits(settings, cancel));
    let _own = lock_for("defragment on", "defrag", around, &node, patience, progress, cancel).await?;

    progress.step("look");
    let first = look(settings, request.access.as_ref()).await?;
    first.warnings.iter().for_each(|warning| progress.warn(warning));
    worth(&plan(&first.facts, &settings.maintain, request.anyway))?;
    if cancel.is_cancelled() {
        return Err(canceled(&first));
    }
    let mut lock = ClusterLock::take(&keeper(&first).await?, LOCK_KEY, node.as_str()).await?;
    let done = locked(settings, request, &mut lock, progress, cancel).await;
    lock.release().await;
    done
}

fn canceled(look: &Look) -> Error {
    Error::new(Code::Canceled, WHAT, look.fit.member.url()).because("nothing was changed")
}

/// Refusals as an error.
fn worth(plan: &Plan) -> Result<()> {
    if plan.refused.is_empty() {
        return Ok(());
    }
    let why: Vec<String> = plan.refused.iter().map(ToString::to_string).collect();
    Err(Error::new(Code::NotNow, WHAT, format!("member {}", plan.member))
        .because(why.join("; "))
        .remedy("see `refloat defrag --dry-run`; the rules are under [maintain]"))
}

/// Through whom the lock is kept: not the one that will stand still, where there is another.
async fn keeper(look: &Look) -> Result<Member> {
    let own = look.fit.status.member_id;
    let other = |view: &&MemberView| view.info.id != own && !view.info.is_learner && view.status.is_ok();
    match look.fit.view.members.iter().find(other).and_then(|view| Some((view.url.as_ref()?, view))) {
        Some((url, view)) => Member::connect_named(url, &view.info.label(), &look.fit.access).await,
        None => Ok(look.fit.member.clone()),
    }
}

async fn locked(
    settings: &Settings,
    request: &Request,
    lock: &mut ClusterLock,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Defragmented> {
    // While it was waited for, somebody else may have changed everything.
    let look = look(settings, request.access.as_ref()).await?;
    let plan = plan(&look.facts, &settings.maintain, request.anyway);
    worth(&plan)?;
    plan.notes.iter().for_each(|note| progress.warn(note));
    let (member, mut moved) = (&look.fit.member, None);
    let mut done = None;
    for step in &plan.steps {
        if cancel.is_cancelled() {
            return Err(canceled(&look));
        }
        match step {
            Step::MoveLeader { to, name } => {
                progress.step(&format!("hand the leadership over to {name}"));
                hand_over(member, *to, name).await?;
                moved = Some(name.clone());
            }
            Step::Defragment { deadline } => {
                progress.step(&format!("defragment member {}", plan.member));
                let begun = Instant::now();
                rewrite(member, Duration::from_secs(*deadline), lock, progress).await?;
                done = Some(begun.elapsed());
            }
        }
    }
    let took = done.ok_or_else(|| Error::new(Code::Internal, WHAT, member.url()).because("the plan has no step"))?;
    progress.step("look whether the member is well");
    let after = recovered(&look).await?;
    Ok(Defragmented {
        member: plan.member,
        before: plan.db_size,
        after,
        took: took.as_secs_f64(),
        leader_moved_to: moved,
    })
}

async fn hand_over(member: &Member, to: u64, name: &str) -> Result<()> {
    member.move_leader(to).await?;
    let deadline = Instant::now() + HANDOVER;
    loop {
        if member.status().await?.leader == Some(to) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Error::new(Code::NotNow, "hand the leadership over to", name)
                .because(format!("it does not lead after {} s", HANDOVER.as_secs()))
                .remedy("see `etcdctl endpoint status --cluster`; nothing was defragmented"));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// A call under way cannot be taken back: a cancellation waits for it. The lock is kept meanwhile; once it is lost, that
/// is said, and the work goes on, since stopping is no longer in anybody's hand.
async fn rewrite(member: &Member, deadline: Duration, lock: &mut ClusterLock, progress: &dyn Progress) -> Result<()> {
    let work = member.defragment(deadline);
    tokio::pin!(work);
    let begun = Instant::now();
    loop {
        tokio::select! {
            done = &mut work => return done.map_err(|error| {
                error.remedy("it may still go on there: see `etcdctl endpoint status`, and try again once it has ended")
            }),
            () = tokio::time::sleep(KEEP) => {
                if let Err(error) = lock.keep().await {
                    progress.warn(&error.line());
                }
                progress.bytes(begun.elapsed().as_secs(), Some(deadline.as_secs()), "s");
            }
        }
    }
}

/// The size of the new database, once the member is as well as before: it answers with quorum, and has lost nothing.
async fn recovered(look: &Look) -> Result<u64> {
    let (own, access) = (&look.fit, &look.fit.access);
    let url = own.member.url();
    let deadline = Instant::now() + RECOVERY;
    loop {
        let seen = async {
            let member = Member::connect(url, access).await?;
            let status = member.status().await?;
            member.linearizable().await?;
            member.alarms().await?;
            Ok::<_, Error>(status)
        };
        match seen.await {
            Ok(status) if status.revision < own.status.revision => {
                return Err(Error::new(Code::DataInvalid, WHAT, url)
                    .because(format!("its revision went back from {} to {}", own.status.revision, status.revision))
                    .remedy("stop this member, and compare it with the others: `etcdctl endpoint hashkv --cluster`"));
            }
            Ok(status) => return Ok(status.db_size),
            Err(error) if Instant::now() >= deadline => {
                return Err(error.during("look after the defragmentation of", url.to_string()));
            }
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}
