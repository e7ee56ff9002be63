//! `refloat completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::args::Cli;
use super::context::{Context, Ending};
use crate::error::Result;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  refloat completions bash > /etc/bash_completion.d/refloat")]
pub(super) struct CompletionsArgs {
    /// Shell to write the script for
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs, context: &Context) -> Result<Ending> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "refloat", &mut script);
    context.output.raw(&script)?;
    Ok(Ending::Good)
}
