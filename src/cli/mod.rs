//! What a person types. One file or folder per noun: arguments, the call into the library, the document it prints.
//!
//! In: the command line. Out: a document on standard output (table, JSON or JSON lines), progress and errors on
//! standard error, an exit code from the error's own table. No decision about data is made here.

mod answer;
mod args;
mod columns;
mod completions;
mod config;
mod confirm;
mod context;
mod daemon;
pub mod db;
mod defrag;
mod discover;
pub mod failure;
mod fence;
mod health;
mod jobs;
pub mod list;
pub mod output;
mod owner;
mod progress;
mod prune;
mod remote;
mod schedule;
mod setup;
mod signals;
pub mod snapshot;
mod status;
pub mod store;
mod stream;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches};
use tokio_util::sync::CancellationToken;

use crate::error::{Code, Error, Exit, Result};

pub use args::{Cli, Format, Global};
pub use context::{Context, Ending};

use args::Command;
use output::Output;

/// The command line, or the exit code after help, version or a complaint was printed.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> std::result::Result<Cli, ExitCode> {
    let args: Vec<OsString> = args.into_iter().collect();
    let color = if args.iter().any(|arg| arg == "--no-color") { clap::ColorChoice::Never } else { Default::default() };
    let parsed = Cli::command().color(color).try_get_matches_from(&args).and_then(|m| Cli::from_arg_matches(&m));
    parsed.map_err(|error| {
        if !error.use_stderr() {
            // Help or version into a closed pipe is nobody's fault.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        if args::asks_for_json(&args) {
            failure::print(&usage(&error), Format::Json);
        } else {
            let _ = error.print();
        }
        ExitCode::from(Exit::Usage as u8)
    })
}

/// clap's complaint in the shape of all other errors.
fn usage(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim);
    let lines = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let said: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let because = said.join(" ").trim_start_matches("error: ").to_string();
    Error::new(Code::Usage, "read the command line", "").because(because).remedy("see `refloat --help`")
}

/// Runs the command to its end, or to its cancellation.
pub fn run(cli: Cli) -> ExitCode {
    let format = cli.global.output;
    if let Command::Daemon(_) = &cli.command {
        return end(daemon::run(cli.global.config.as_deref()).map(|()| Ending::Good), format);
    }
    if cli.is_health_daemon() {
        return end(health::daemon(cli.global.config.as_deref()).map(|()| Ending::Good), format);
    }
    if let Command::Answer(_) = &cli.command {
        return end(answer::run(cli.global.config.as_deref()).map(|()| Ending::Good), format);
    }
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(Code::Internal, "start the runtime", "").because(e))
        .and_then(|runtime| {
            let result = runtime.block_on(to_its_end(cli));
            // A blocking call that was abandoned on cancel must not hold the process.
            runtime.shutdown_background();
            result
        });
    end(result, format)
}

fn end(result: Result<Ending>, format: Format) -> ExitCode {
    match result {
        Ok(Ending::Good) => ExitCode::SUCCESS,
        Ok(Ending::Bad(exit)) => ExitCode::from(exit as u8),
        Err(error) => {
            failure::print(&error, format);
            ExitCode::from(error.exit() as u8)
        }
    }
}

/// How long a command may take to end once it was told to. A disk that answers nothing (frozen, a dead mount) holds
/// its call for ever; what such a call leaves behind is swept by the next run, as after a crash.
const GRACE: Duration = Duration::from_secs(4);

async fn to_its_end(cli: Cli) -> Result<Ending> {
    let cancel = signals::cancel_on_signal()?;
    // On a task of its own: a call that blocks there does not keep this one from hearing the signal.
    let work = tokio::spawn(dispatch(cli, cancel.clone()));
    let overdue = async {
        cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        done = work => done.map_err(|e| Error::new(Code::Internal, "run the command", "").because(e))?,
        () = overdue => Err(Error::new(Code::Canceled, "end the command", "")
            .because("a call to a disk or a file system does not come back")
            .remedy("look at the stores and the state directory: one of them does not answer")),
    }
}

async fn dispatch(cli: Cli, cancel: CancellationToken) -> Result<Ending> {
    let (progress, bar) = progress::choose(&cli.global);
    let output = Output::to_stdout(cli.global.output, bar.clone());
    let context = Context::new(output, progress, cancel, cli.global);
    let result = command(cli.command, &context).await;
    if let Some(bar) = bar {
        // Work that was abandoned on cancel may still hold it.
        bar.finish_and_clear();
    }
    result
}

async fn command(command: Command, context: &Context) -> Result<Ending> {
    match command {
        Command::Snapshot(command) => snapshot::run(command, context).await,
        Command::Prune(args) => prune::run(args, context).await,
        Command::Defrag(args) => defrag::run(args, context).await,
        Command::Store(command) => store::run(command, context).await,
        Command::Db(command) => db::run(command, context).await,
        Command::Discover(args) => discover::run(args, context).await,
        Command::Setup(args) => setup::run(args, context).await,
        Command::Config(command) => config::run(command, context),
        Command::Status(args) => status::run(args, context).await,
        Command::Health(args) => health::run(args, context).await,
        Command::Jobs(command) => jobs::run(command, context).await,
        Command::Schedule(command) => schedule::run(command, context).await,
        Command::Fence(command) => fence::run(command, context).await,
        // They have a runtime of their own, see `run`.
        Command::Answer(_) | Command::Daemon(_) => Err(Error::new(Code::Internal, "run a service", "")),
        Command::Completions(args) => completions::run(&args, context),
    }
}
