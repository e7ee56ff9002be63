//! A snapshot job.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::engine::event::{Outcome, SnapshotOutcome, StoreResult};
use crate::engine::failure::Failure;
use crate::engine::work::Undone;
use crate::error::{Code, Error};
use crate::snapshot::outcome::{Outcome as Made, TakeRequest};
use crate::snapshot::progress::Progress;
use crate::snapshot::take::take;

pub fn run(
    settings: &Settings,
    member: Option<String>,
    tags: Vec<String>,
    stores: Vec<String>,
    progress: Arc<dyn Progress>,
    cancel: &CancellationToken,
) -> Result<Outcome, Undone> {
    let begun = Instant::now();
    let rate = settings.snapshot.rate;
    let request = TakeRequest { member, tags, stores, no_wait: false, dry_run: false, rate, access: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::new(Code::Internal, "start an executor", "").because(e))?;
    let made = runtime.block_on(take(settings, &request, progress, cancel));
    // A name that is still being looked up, or a call to a dead disk, must not hold us.
    runtime.shutdown_background();
    let Made::Taken(taken) = made? else {
        return Err(Error::new(Code::Internal, "take snapshot", "").because("nothing but a preflight").into());
    };
    let failure = taken.failure();
    let stores = taken
        .stores
        .iter()
        .map(|store| StoreResult { name: store.name.clone(), failure: store.result.as_ref().err().map(Failure::from) });
    let outcome = Outcome::Snapshot(Box::new(SnapshotOutcome {
        stores: stores.collect(),
        manifest: taken.snapshot.manifest,
        took: begun.elapsed().as_secs_f64(),
    }));
    match failure {
        None => Ok(outcome),
        Some(error) => Err(Undone { error, outcome: Some(Box::new(outcome)) }),
    }
}
