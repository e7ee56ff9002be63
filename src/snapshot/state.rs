//! The state directory and the lock in it: one snapshot of the own member, or one import, at a time.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use crate::catalog::Node;
use crate::config::Settings;
use crate::error::{Code, Error, Result};
use crate::fs::{Attempt, Dir, Holder, Lock, sweep_staged};

/// Held while a snapshot of the own member is taken (design §4.3, law 10), and while known stores change.
pub const LOCK: &str = "take.lock";
const LOCK_PAUSE: Duration = Duration::from_millis(200);

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

/// Waits for the lock, saying who has it, as long as the longest take may last; then names the holder.
pub async fn lock(
    state: &Dir,
    node: &Node,
    patience: Duration,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Lock> {
    lock_for("take snapshot on", "snapshot take", state, node, patience, progress, cancel).await
}

/// The same for other work that must not run beside a take: `what` for its own errors, `called` for those who wait.
pub async fn lock_for(
    what: &str,
    called: &str,
    state: &Dir,
    node: &Node,
    patience: Duration,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Lock> {
    let holder = Holder::current(called, node.as_str());
    let (mut said, mut waited) = (None, Duration::ZERO);
    loop {
        match Lock::try_acquire(state, LOCK, &holder)? {
            Attempt::Acquired(lock) => {
                // What a run left here that was killed while it wrote; unswept it harms nobody.
                match sweep_staged(state) {
                    Ok(swept) => swept.refused.iter().for_each(|error| progress.warn(&error.line())),
                    Err(error) => progress.warn(&error.line()),
                }
                return Ok(lock);
            }
            held if waited >= patience => return held.into_lock(what, node.as_str()),
            Attempt::Held(by) => {
                if said.as_ref() != Some(&by) {
                    progress.step(&format!("wait for {by}"));
                    said = Some(by);
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOCK_PAUSE) => waited += LOCK_PAUSE,
            () = cancel.cancelled() => return Err(Error::new(Code::Canceled, "wait for lock", LOCK)),
        }
    }
}
