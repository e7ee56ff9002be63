//! What jobs do in earnest: the same code as the commands, with the settings of the daemon.

mod defrag;
mod prune;
mod snapshot;
mod survey;
mod verify;

use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::event::{Outcome, Survey};
use super::job::Task;
use super::work::{Undone, Works};
use crate::config::Settings;
use crate::error::Result;
use crate::snapshot::progress::Progress;
use crate::snapshot::state;
use crate::snapshot::stores::{OpenStores, known};
use crate::store::Mode;

pub struct Real;

impl Works for Real {
    fn run(
        &self,
        settings: &Settings,
        task: &Task,
        progress: Arc<dyn Progress>,
        cancel: &CancellationToken,
    ) -> std::result::Result<Outcome, Undone> {
        match task {
            Task::Snapshot { member, tags, stores } => {
                snapshot::run(settings, member.clone(), tags.clone(), stores.clone(), progress, cancel)
            }
            Task::Verify { subject, store } => {
                Ok(verify::run(settings, subject, store.as_deref(), &*progress, cancel)?)
            }
            Task::Defrag { anyway } => Ok(defrag::run(settings, *anyway, &*progress, cancel)?),
            Task::Prune { store } => Ok(prune::run(settings, store, &*progress, cancel)?),
        }
    }

    fn survey(&self, settings: &Settings) -> Vec<(String, Survey)> {
        settings.stores.iter().map(|store| (store.name.clone(), survey::survey(settings, store))).collect()
    }

    fn clock_jump(&self, settings: &Settings, now: Timestamp) -> Result<Option<i64>> {
        let limits = state::limits(settings, &CancellationToken::new());
        let known = known(settings, &limits)?;
        // What this node remembers is enough: no store is opened for it.
        Ok(OpenStores::open(settings, &[String::new()], known, Mode::Read, &limits)?.clock_jump(now))
    }
}
