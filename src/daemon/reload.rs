//! SIGHUP: new settings, or the old ones with the reason.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::config::{self, Settings, Surroundings};
use crate::engine::command::Handle;
use crate::engine::failure::Failure;
use crate::error::{Code, Error, Result};
use crate::host::notify::Notifier;

/// Files that cannot be read within it are not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn reload(
    handle: &Handle,
    settings: &watch::Sender<Arc<Settings>>,
    only: Option<&Path>,
    notifier: &Notifier,
) {
    notifier.reloading();
    let read = read(only.map(Path::to_path_buf)).await.and_then(|(new, files)| {
        stays(&settings.borrow(), &new)?;
        Ok((Arc::new(new), files))
    });
    match read {
        Ok((new, files)) => {
            settings.send_replace(new.clone());
            let _ = handle.reload(Ok((new, files))).await;
        }
        Err(error) => {
            let _ = handle.reload(Err(Failure::from(&error))).await;
        }
    }
    notifier.ready();
}

pub(super) async fn read(only: Option<std::path::PathBuf>) -> Result<(Settings, Vec<String>)> {
    let reading = tokio::task::spawn_blocking(move || config::load(&Surroundings::of_this_process(), only.as_deref()));
    let failed = |why: String| Error::new(Code::Config, "read configuration", "").because(why);
    let loaded = match tokio::time::timeout(PATIENCE, reading).await {
        Ok(Ok(loaded)) => loaded?,
        Ok(Err(e)) => return Err(failed(e.to_string())),
        Err(_) => return Err(failed(format!("no answer of the disk within {} seconds", PATIENCE.as_secs()))),
    };
    let files = loaded.files.iter().map(|file| file.display().to_string()).collect();
    Ok((loaded.settings, files))
}

/// What a running daemon cannot change.
pub(super) fn stays(old: &Settings, new: &Settings) -> Result<()> {
    for (key, old, new) in
        [("state", &old.paths.state, &new.paths.state), ("runtime", &old.paths.runtime, &new.paths.runtime)]
    {
        if old != new {
            return Err(Error::new(Code::Config, "reload", "")
                .because(format!("[paths] {key} changed from {} to {}", old.display(), new.display()))
                .remedy("`systemctl restart refloat` takes up new directories"));
        }
    }
    Ok(())
}
