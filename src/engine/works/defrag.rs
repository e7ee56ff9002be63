//! A defragmentation job.

use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::engine::event::Outcome;
use crate::error::{Code, Error, Result};
use crate::maintain::defrag::{Request, defragment};
use crate::snapshot::progress::Progress;

pub fn run(settings: &Settings, anyway: bool, progress: &dyn Progress, cancel: &CancellationToken) -> Result<Outcome> {
    let request = Request { anyway, ..Request::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::new(Code::Internal, "start an executor", "").because(e))?;
    let made = runtime.block_on(defragment(settings, &request, progress, cancel));
    // A name that is still being looked up, or a call to a dead disk, must not hold us.
    runtime.shutdown_background();
    made.map(Outcome::Defrag)
}
