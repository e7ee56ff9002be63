//! The root of the command line and the options that every command takes.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use super::{
    answer, completions, config, daemon, db, defrag, discover, fence, health, jobs, prune, schedule, setup, snapshot,
    status, store,
};
use crate::host::log::Lossy;

const EXAMPLES: &str = "\
Examples:
  refloat status                            what would be lost now, what runs, what comes next
  refloat health                            which member or apiserver is hung, and why
  refloat snapshot take                     take a verified snapshot into every store
  refloat snapshot list                     what there is, newest first
  refloat snapshot verify latest            check the stored bytes again
  refloat snapshot export latest --to FILE  a file that `etcdutl snapshot restore` accepts
  refloat prune --dry-run                   why each snapshot stays or goes
  refloat snapshot import FILE              bring in a backup of etcdctl, RKE2, k3s or kubespray
  refloat db check FILE                     check any etcd database file

Exit codes: 0 ok, 1 health is bad, 2 a dry run shows changes, 3 health is unknown, 64 usage, 65 data invalid or
disputed, 66 not found, 69 member unavailable, 70 internal, 73 cannot create, 74 input/output, 75 try again later,
77 permission, 78 configuration, 130 canceled.";

/// Guarded, verified etcd snapshots for self-run Kubernetes control planes
#[derive(Debug, Parser)]
#[command(name = "refloat", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// What would be lost now, what runs, what waits, what comes next
    Status(status::StatusArgs),
    /// Whether etcd and the apiservers can really be read and written, and why not
    Health(health::HealthArgs),
    /// Take, list, show, verify, export, import and pin snapshots
    #[command(subcommand)]
    Snapshot(snapshot::Command),
    /// Remove what the retention rules let go, after showing why
    Prune(prune::PruneArgs),
    /// Give the free pages of the own member's database back to its disk, when that pays
    Defrag(defrag::DefragArgs),
    /// What the daemon does and did
    #[command(subcommand)]
    Jobs(jobs::Command),
    /// When the daemon takes snapshots
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// Places for backups
    #[command(subcommand)]
    Store(store::Command),
    /// Read etcd database files, with or without trailer, plain or zstd; never writes
    #[command(subcommand)]
    Db(db::Command),
    /// What runs on this node, read from its files: etcd, the apiserver, their certificates
    Discover(discover::DiscoverArgs),
    /// Write what was found into the configuration, hand over the credentials, start the services
    Setup(setup::SetupArgs),
    /// Check and show the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Run the service: schedules, jobs, control socket
    Daemon(daemon::DaemonArgs),
    /// What balancers hear about this node; hold and release it by hand
    #[command(subcommand)]
    Fence(fence::Command),
    /// Run the service that balancers ask
    Answer(answer::AnswerArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Form of the result on standard output, and of errors on standard error
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table, value_name = "FORM")]
    pub output: Format,
    /// Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only this store
    #[arg(long, global = true, value_name = "NAME")]
    pub store: Option<String>,
    /// Show warnings and errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more on standard error; twice for details
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// No colours; NO_COLOR in the environment does the same
    #[arg(long, global = true)]
    pub no_color: bool,
    /// How progress is shown on standard error
    #[arg(long, global = true, value_enum, default_value_t = ProgressStyle::Auto, value_name = "STYLE")]
    pub progress: ProgressStyle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One document
    Json,
    /// One line per element
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressStyle {
    /// A bar on a terminal, plain lines elsewhere
    Auto,
    /// Warnings alone
    None,
    /// One JSON line per step, at most two per second within one
    Jsonl,
}

impl Cli {
    /// Whether this is the process that must not wait for a disk.
    pub(super) fn is_health_daemon(&self) -> bool {
        matches!(&self.command, Command::Health(health::HealthArgs { command: Some(_), .. }))
    }

    /// Where log lines go: standard error, by way of a thread where nobody may wait for it.
    pub fn log_writer(&self) -> BoxMakeWriter {
        match self.is_health_daemon() {
            true => BoxMakeWriter::new(Lossy::new(std::io::stderr())),
            false => BoxMakeWriter::new(std::io::stderr),
        }
    }

    /// For tracing-subscriber: libraries stay quiet until details are asked for, and the daemon tells its events.
    pub fn log_filter(&self) -> &'static str {
        // It tells each refused connection by itself; whoever asked tells it already, and knows whether it was expected.
        let daemon = matches!(self.command, Command::Daemon(_)) || self.is_health_daemon();
        match (self.global.quiet, self.global.verbose) {
            (true, _) => "error,kube_client=off",
            (_, 0) if daemon => "warn,kube_client=off,refloat::daemon=info,refloat::engine=info",
            (_, 0) => "warn,kube_client=off",
            (_, 1) => "warn,kube_client=off,refloat=info",
            (_, 2) => "warn,kube_client=off,refloat=debug",
            (_, _) => "debug",
        }
    }
}

impl Global {
    /// Whether to write colours to `stream`.
    pub fn color(&self, stream: &impl IsTerminal) -> bool {
        let unwanted = self.no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        !unwanted && stream.is_terminal()
    }
}

/// For a command line that could not be parsed: was JSON asked for, as far as can be seen?
pub(super) fn asks_for_json(args: &[OsString]) -> bool {
    let json = |text: &OsStr| text == "json" || text == "jsonl";
    let joined = ["-o", "-o=", "--output="];
    args.iter().enumerate().any(|(i, arg)| {
        let separate = (arg == "-o" || arg == "--output") && args.get(i + 1).is_some_and(|next| json(next));
        let text = arg.to_string_lossy();
        separate || joined.iter().any(|prefix| text.strip_prefix(prefix).is_some_and(|rest| json(OsStr::new(rest))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_tree_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_help_with_an_example() {
        fn walk(command: &clap::Command, path: &str) {
            assert!(command.get_about().is_some(), "{path}: no help");
            if command.has_subcommands() {
                command.get_subcommands().for_each(|sub| walk(sub, &format!("{path} {}", sub.get_name())));
            } else {
                let help = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
                assert!(help.contains("Example") && help.contains(path), "{path}: no example in {help:?}");
            }
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{path}: {} has no help", arg.get_id());
            }
        }
        walk(&Cli::command(), "refloat");
    }

    #[test]
    fn examples_parse() {
        fn walk(command: &clap::Command) -> Vec<String> {
            let own = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
            let mut lines: Vec<String> = own.lines().map(str::trim).map(String::from).collect();
            lines.retain(|line| line.starts_with("refloat "));
            lines.extend(command.get_subcommands().flat_map(walk));
            lines
        }
        let examples = walk(&Cli::command());
        assert!(examples.len() > 15, "{examples:?}");
        for line in examples {
            // The words end where the explanation begins, two blanks later, or at a pipe or redirection.
            let words = line.split("  ").next().unwrap_or_default();
            let words = words.split(['|', '>']).next().unwrap_or_default();
            let parsed = Cli::try_parse_from(words.split_whitespace());
            assert!(parsed.is_ok(), "{words}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn never_compacted_is_a_revision_too() {
        for (value, good) in [("-1", true), ("0", true), ("-2", false)] {
            let line = ["refloat", "db", "hashkv", "f", "--compact-revision", value];
            assert_eq!(Cli::try_parse_from(line).is_ok(), good, "{value}");
        }
    }

    #[test]
    fn json_is_seen_in_a_broken_command_line() {
        for (line, expected) in [
            ("snapshot frob -o json", true),
            ("-ojsonl x", true),
            ("--output=json", true),
            ("--output table json", false),
            ("snapshot -o", false),
            ("snapshot show json", false),
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(asks_for_json(&args), expected, "{line}");
        }
    }
}
