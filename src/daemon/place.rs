//! Whether the state directory is still the one that was opened: what is written to one that was removed is lost.

use std::path::PathBuf;
use std::time::Duration;

use super::Shared;
use crate::engine::command::Command;
use crate::engine::failure::Failure;
use crate::error::{Code, Error};
use crate::fs::Dir;

const ABOUT: &str = "state directory";
const PERIOD: Duration = Duration::from_secs(30);

/// `identity`: device and inode of what was opened.
pub(super) async fn watch(shared: Shared, path: PathBuf, identity: (u64, u64)) {
    loop {
        let looked = path.clone();
        // One that hangs is the ledger's to say; then this one waits with it.
        let now = tokio::task::spawn_blocking(move || Dir::open(&looked).map(|dir| dir.identity())).await;
        let failure = match now {
            Ok(Ok(now)) if now == identity => None,
            Ok(seen) => {
                let why = match seen {
                    Ok(_) => "another directory has its name now".to_string(),
                    Err(error) => error.line(),
                };
                let error = Error::new(Code::StoreVanished, "find state directory", path.display().to_string())
                    .because(why)
                    .remedy("what is recorded from here on is lost: put it back, then `systemctl restart refloat`");
                Some(Failure::from(&error))
            }
            // The runtime is ending.
            Err(_) => return,
        };
        shared.handle.tell(Command::Trouble { about: ABOUT.into(), failure }).await;
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = shared.stop.cancelled() => return,
        }
    }
}
