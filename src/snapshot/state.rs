//! The state directory and the lock in it: one snapshot of the own member, or one import, at a time.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use crate::catalog::Node;
use crate::config::Settings;
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::fs::{Aside, Attempt, Dir, Holder, Limits, Lock, Patience, Swept, sweep_staged};
use crate::store::KnownStores;

/// Held while a snapshot of the own member is taken (design §4.3, law 10), and while known stores change.
pub const LOCK: &str = "take.lock";
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// This node's name, as it stands in ids.
pub fn node(settings: &Settings) -> Result<Node> {
    settings.node.parse().map_err(|e| Error::new(Code::Config, "use node name", &settings.node).because(e))
}

/// Runs what may block aside: an executor whose thread stands still hears no signal and no deadline.
pub(super) async fn aside<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Error::new(Code::Internal, what, "").because(e))?
}

/// How long calls on stores and on the state directory may stand still.
pub fn limits(settings: &Settings, cancel: &CancellationToken) -> Limits {
    Limits::new(settings.snapshot.stall_timeout, cancel)
}

/// How the state directory at this path is waited for: `StateHung` when it answers nothing.
pub fn state_patience(path: &Path, limits: &Limits) -> Patience {
    let shown = path.display().to_string();
    Patience::new(&shown, format!("state directory {shown}"), Code::StateHung, limits.clone())
}

/// The state directory, made when it is missing.
pub fn open_state(settings: &Settings, cancel: &CancellationToken) -> Result<Dir> {
    use std::os::unix::fs::DirBuilderExt;
    let path = settings.paths.state.clone();
    state_patience(&path, &limits(settings, cancel)).look("open", move || {
        crash::point!("state::open");
        if let Err(e) = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path) {
            return Err(Error::new(Code::CannotCreate, "create state directory", path.display().to_string())
                .because(e)
                .remedy("run as its owner, or name another one as [paths] state"));
        }
        Dir::open(&path)
    })
}

/// What was seen where.
pub fn load_known(state: &Dir, limits: &Limits) -> Result<KnownStores> {
    let dir = state.clone();
    state_patience(state.path(), limits).look("read known stores in", move || {
        crash::point!("state::load_known");
        KnownStores::load(&dir)
    })
}

/// Notes it durably.
pub fn save_known(known: &KnownStores, state: &Dir, limits: &Limits) -> Result<()> {
    let (known, dir) = (known.clone(), state.clone());
    state_patience(state.path(), limits).write("note known stores in", move || {
        crash::point!("state::save_known");
        known.save(&dir)
    })
}

/// Asks for the lock once, and clears away what a run left here that was killed while it wrote.
pub fn try_lock((state, limits): (&Dir, &Limits), holder: &Holder) -> Result<LockAttempt> {
    let calls = state_patience(state.path(), limits);
    let (dir, by) = (state.clone(), holder.clone());
    let (attempt, swept) = calls.look("lock", move || {
        crash::point!("state::lock");
        let attempt = Lock::try_acquire(&dir, LOCK, &by)?;
        let swept = matches!(attempt, Attempt::Acquired(_)).then(|| sweep_staged(&dir));
        Ok((attempt, swept))
    })?;
    Ok(LockAttempt { attempt, swept, calls })
}

/// What came of asking for the lock.
pub struct LockAttempt {
    attempt: Attempt,
    /// Unswept it harms nobody.
    swept: Option<Result<Swept>>,
    calls: Patience,
}

impl LockAttempt {
    /// `LockHeld` with the holder's name if somebody else has it; `what` on `on` is what it was wanted for. The lock is the
    /// caller's: a thread that hangs elsewhere does not keep it.
    pub fn into_lock(self, what: &str, on: &str) -> Result<Aside<Lock>> {
        let LockAttempt { attempt, calls, .. } = self;
        attempt.into_lock(what, on).map(|lock| Aside::new(lock, calls))
    }
}

/// Waits for the lock, saying who has it, as long as the longest take may last; then names the holder.
pub async fn lock(
    settings: &Settings,
    state: &Dir,
    node: &Node,
    patience: Duration,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Aside<Lock>> {
    let state = (state, &limits(settings, cancel));
    lock_for("take snapshot on", "snapshot take", state, node, patience, progress, cancel).await
}

/// The same for other work that must not run beside a take: `what` for its own errors, `called` for those who wait.
pub async fn lock_for(
    what: &str,
    called: &str,
    state: (&Dir, &Limits),
    node: &Node,
    patience: Duration,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Aside<Lock>> {
    let holder = Holder::current(called, node.as_str());
    let (mut said, mut waited) = (None, Duration::ZERO);
    loop {
        let (dir, limits, by) = (state.0.clone(), state.1.clone(), holder.clone());
        let asked = aside("ask for the lock", move || try_lock((&dir, &limits), &by)).await?;
        match &asked.attempt {
            Attempt::Acquired(_) => {
                match &asked.swept {
                    Some(Ok(swept)) => swept.refused.iter().for_each(|error| progress.warn(&error.line())),
                    Some(Err(error)) => progress.warn(&error.line()),
                    None => {}
                }
                return asked.into_lock(what, node.as_str());
            }
            Attempt::Held(_) if waited >= patience => return asked.into_lock(what, node.as_str()),
            Attempt::Held(by) => {
                if said.as_ref() != Some(by) {
                    progress.step(&format!("wait for {by}"));
                    said = Some(by.clone());
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOCK_PAUSE) => waited += LOCK_PAUSE,
            () = cancel.cancelled() => return Err(Error::new(Code::Canceled, "wait for lock", LOCK)),
        }
    }
}
