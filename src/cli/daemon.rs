//! `refloat daemon`.

use std::path::Path;

use clap::Args;

use crate::config::{self, Surroundings};
use crate::error::{Code, Error, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat daemon                       what refloat.service runs
  refloat daemon --config ./test.toml  in the foreground, with one file alone

It ends on SIGTERM or SIGINT once running jobs are at a safe point, and reads its configuration again on SIGHUP. What it
does: `refloat status`.")]
pub struct DaemonArgs {}

/// Threads for what blocks; each job has one of its own besides.
const BLOCKING: usize = 4;

/// Runs to its end on this thread.
pub(super) fn run(only: Option<&Path>) -> Result<()> {
    let loaded = config::load(&Surroundings::of_this_process(), only)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING).build();
    let runtime = runtime.map_err(|e| Error::new(Code::Internal, "start the runtime", "").because(e))?;
    let ended = runtime.block_on(crate::daemon::run(loaded, only.map(Path::to_path_buf)));
    // A call to a disk that does not come back must not hold the end.
    runtime.shutdown_background();
    ended
}
