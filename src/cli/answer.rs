//! `refloat answer`.

use std::path::Path;

use clap::Args;

use crate::daemon::answer;
use crate::error::{Code, Error, Result};
use crate::host::sockets::Inherited;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat answer                       what refloat-answer.service runs, on the sockets that systemd holds
  refloat answer --config ./test.toml  in the foreground, on the addresses of [fence] agent_check and http

It tells balancers whether this node's path may be used: `up ready 100%` or `down #reason` to HAProxy's agent-check, 200
or 503 to GET /ready. Down comes from `refloat fence hold --down`, and with [fence] mode = \"balancer\" from the health
process while that renews its word each second; after ten seconds of silence the answer is up.")]
pub struct AnswerArgs {}

/// Runs to its end on this thread.
pub(super) fn run(only: Option<&Path>) -> Result<()> {
    let inherited = Inherited::take()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    let runtime = runtime.map_err(|e| Error::new(Code::Internal, "start the runtime", "").because(e))?;
    runtime.block_on(answer::run(inherited, only.map(Path::to_path_buf)))
}
