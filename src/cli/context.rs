//! What a command gets besides its arguments.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::args::Global;
use super::failure;
use super::output::Output;
use super::owner;
use crate::config::{self, Loaded, Settings, StoreSettings, Surroundings};
use crate::error::{Code, Error, Exit, Result};
use crate::host::user::Owner;
use crate::snapshot::progress::Progress;

/// How a command ends that has printed its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Good,
    /// The document tells what is wrong; the exit code does too.
    Bad(Exit),
}

/// Runs blocking work on a thread of its own, so that a signal is still heard.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Error::new(Code::Internal, "run the command", "").because(e))?
}

pub struct Context {
    /// Shared, so that long lists can be written from a blocking thread while they are read.
    pub output: Arc<Output>,
    pub progress: Arc<dyn Progress>,
    /// Fires on the first SIGINT or SIGTERM.
    pub cancel: CancellationToken,
    /// Colours on standard output.
    pub color: bool,
    config: Option<PathBuf>,
    store: Option<String>,
    loaded: OnceLock<Loaded>,
}

impl Context {
    pub fn new(output: Output, progress: Arc<dyn Progress>, cancel: CancellationToken, global: Global) -> Self {
        let output = Arc::new(output);
        let color = global.color(&std::io::stdout());
        Context { output, progress, cancel, color, config: global.config, store: global.store, loaded: OnceLock::new() }
    }

    /// The configuration, read when first asked for: tools for files must work where it is broken.
    pub fn loaded(&self) -> Result<&Loaded> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = config::load(&Surroundings::of_this_process(), self.config.as_deref())?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// Whether `--config` names a file.
    pub fn has_own_file(&self) -> bool {
        self.config.is_some()
    }

    pub fn settings(&self) -> Result<&Settings> {
        self.loaded().map(|loaded| &loaded.settings)
    }

    /// The stores that this command is about: all, or the one of `--store`.
    pub fn stores(&self) -> Result<Vec<&StoreSettings>> {
        let settings = self.settings()?;
        match &self.store {
            None => Ok(settings.stores.iter().collect()),
            Some(name) => self.store_named(name).map(|store| vec![store]),
        }
    }

    pub fn store_named(&self, name: &str) -> Result<&StoreSettings> {
        let stores = &self.settings()?.stores;
        stores.iter().find(|store| store.name == name).ok_or_else(|| {
            let known: Vec<&str> = stores.iter().map(|store| store.name.as_str()).collect();
            Error::new(Code::NotFound, "find store", name)
                .because("no store of this name is configured")
                .remedy(format!("name one of: {}", known.join(", ")))
        })
    }

    /// Whose the state directory is, if this runs as root and it is not root's.
    pub fn other_owner(&self) -> Result<Option<Owner>> {
        owner::other(&self.settings()?.paths.state)
    }

    /// Started as root, goes on as the owner of the state directory (design §4.1): the daemon must be able to use all
    /// that is written from here on. What only root may read has to be open by now.
    pub fn become_owner(&self) -> Result<()> {
        match self.other_owner()? {
            Some(owner) => owner::go_on_as(&owner, &self.settings()?.paths.state, &self.stores()?),
            None => Ok(()),
        }
    }

    /// Tells an error of one of several parts, whose result is printed all the same.
    pub fn fail(&self, error: &Error) {
        failure::print(error, self.output.format());
    }

    /// The name of `--store`, which must be configured; empty for all stores.
    pub fn store_names(&self) -> Result<Vec<String>> {
        match &self.store {
            None => Ok(Vec::new()),
            Some(name) => self.store_named(name).map(|store| vec![store.name.clone()]),
        }
    }
}
