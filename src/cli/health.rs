//! `refloat health`: what the health process sees, or a look by hand; and that process itself.

use std::io::IsTerminal;
use std::path::Path;

use clap::{Args, Subcommand};

use super::args::Format;
use super::context::{Context, Ending};
use super::output::{Document, age, fields, printable, table};
use crate::config::{self, PathSettings, Surroundings};
use crate::error::{Code, Error, Exit, Result};
use crate::health::verdict::State;
use crate::http::HEALTH_SOCKET;
use crate::http::client::Client;
use crate::status::health::{Health, Target, name};

const EXAMPLES: &str = "\
Examples:
  refloat health               every member and apiserver: good, slow, bad or unknown, and why
  refloat health --watch       the same as a table that changes in place
  refloat health --once        a look by hand, without the health process
  refloat health -o json

Exit codes: 0 all are good or slow, 1 something is bad, 3 something could not be judged, 69 the health process does not
run.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct HealthArgs {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// Show it again on each change
    #[arg(long, conflicts_with = "once")]
    pub watch: bool,
    /// Ask everything here and now, without the health process
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the service: probes, verdicts, health socket
    Daemon(DaemonArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat health daemon                       what refloat-health.service runs
  refloat health daemon --config ./test.toml  in the foreground, with one file alone

It ends on SIGTERM or SIGINT, and reads configuration and certificates again on SIGHUP. What it sees: `refloat health`.")]
pub struct DaemonArgs {}

/// Threads for what blocks: names of hosts, files on a reload.
const BLOCKING: usize = 4;
/// Memory is locked, so a stack costs what it is, not what is used of it.
const STACK: usize = 256 << 10;

/// Runs the health process to its end on this thread.
pub(super) fn daemon(only: Option<&Path>) -> Result<()> {
    let loaded = config::load(&Surroundings::of_this_process(), only)?;
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let builder = builder.enable_all().max_blocking_threads(BLOCKING).thread_stack_size(STACK);
    let runtime = builder.build().map_err(|e| Error::new(Code::Internal, "start the runtime", "").because(e))?;
    let ended = runtime.block_on(crate::daemon::health::run(loaded, only.map(Path::to_path_buf)));
    // A call to a disk that does not come back must not hold the end.
    runtime.shutdown_background();
    ended
}

pub async fn run(args: HealthArgs, context: &Context) -> Result<Ending> {
    if args.command.is_some() {
        // Has a runtime of its own.
        return Err(Error::new(Code::Internal, "run the health process", ""));
    }
    if args.watch {
        return watch(context).await;
    }
    let health = if args.once { once(context).await? } else { of_the_process(context)?.get("/v1/health").await? };
    show(&health, context)?;
    Ok(ending(&health))
}

/// Asks whoever is in the configured runtime directory. A broken configuration keeps nobody from asking.
fn of_the_process(context: &Context) -> Result<Client> {
    let runtime = match context.settings() {
        Ok(settings) => settings.paths.runtime.clone(),
        Err(error) if context.has_own_file() => return Err(error),
        Err(error) => {
            context.progress.warn(&error.line());
            PathSettings::default().runtime
        }
    };
    Ok(Client::of_health(&runtime.join(HEALTH_SOCKET)))
}

async fn once(context: &Context) -> Result<Health> {
    let settings = context.settings()?.clone();
    tokio::select! {
        health = crate::daemon::health::once(settings) => Ok(health),
        () = context.cancel.cancelled() => Err(Error::new(Code::Canceled, "look at health", "")),
    }
}

fn ending(health: &Health) -> Ending {
    match health.state() {
        State::Good | State::Slow => Ending::Good,
        State::Bad => Ending::Bad(Exit::Bad),
        State::Unknown => Ending::Bad(Exit::Unknown),
    }
}

fn show(health: &Health, context: &Context) -> Result<()> {
    if context.output.format() == Format::Table && context.color {
        return context.output.raw(rendered(health, true).as_bytes());
    }
    context.output.document(health)
}

async fn watch(context: &Context) -> Result<Ending> {
    let mut follow = of_the_process(context)?.follow("/v1/health/follow").await?;
    let redraw = context.output.format() == Format::Table && std::io::stdout().is_terminal();
    let mut before: Option<Health> = None;
    loop {
        let next = tokio::select! {
            next = follow.next::<Health>() => next?,
            () = context.cancel.cancelled() => return Ok(Ending::Good),
        };
        let Some(health) = next else { return Ok(Ending::Bad(Exit::Unavailable)) };
        let text = match context.output.format() {
            // Home, and clear what is below: no flicker.
            Format::Table if redraw => format!("\x1b[H\x1b[J{}", rendered(&health, context.color)),
            Format::Table => changes(before.as_ref(), &health),
            Format::Json | Format::Jsonl => serde_json::to_string(&health).unwrap_or_default() + "\n",
        };
        context.output.raw(text.as_bytes())?;
        before = Some(health);
    }
}

/// A line for each target that is not as it was.
fn changes(before: Option<&Health>, now: &Health) -> String {
    let same = |target: &&Target| {
        let known =
            before.and_then(|before| before.targets.iter().find(|t| t.kind == target.kind && t.name == target.name));
        known.is_none_or(|known| (known.state, &known.cause) != (target.state, &target.cause))
    };
    let changed = now.targets.iter().filter(same);
    let line = |target: &Target| {
        let cause = target.cause.as_ref().map(|cause| format!(" {cause}")).unwrap_or_default();
        let why = target.reasons.first().map(|why| format!(": {}", printable(why))).unwrap_or_default();
        format!("{:.0} {} {} {}{cause}{why}\n", now.at, target.kind, printable(&target.name), name(target.state))
    };
    changed.map(line).collect()
}

impl Document for Health {
    fn table(&self) -> String {
        rendered(self, false)
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.targets.iter().map(serde_json::to_string).collect()
    }
}

fn rendered(health: &Health, color: bool) -> String {
    let mut text = format!("{}\n\n", printable(&health.sentence()));
    let rows = health.targets.iter().map(|target| row(health, target));
    let drawn = table(&["KIND", "NAME", "STATE", "CAUSE", "FOR", "PROBES", "WHY"], &["FOR"], rows);
    // One line a target, after the header.
    let states = std::iter::once(None).chain(health.targets.iter().map(|target| Some(target.state)));
    for (line, state) in drawn.lines().zip(states) {
        match state.filter(|_| color).map(paint) {
            Some(code) => text.push_str(&format!("\x1b[{code}m{line}\x1b[0m\n")),
            None => text.push_str(&format!("{line}\n")),
        }
    }
    for target in health.targets.iter().filter(|target| matches!(target.state, State::Bad | State::Slow)) {
        text.push_str(&format!("\n{} {} is {}\n", target.kind, printable(&target.name), name(target.state)));
        for reason in &target.reasons {
            text.push_str(&format!("  {}\n", printable(reason)));
        }
        if let Some(advice) = &target.advice {
            text.push_str(&format!("  try: {}\n", printable(advice)));
        }
    }
    let shared: Vec<String> =
        health.shared.iter().map(|shared| format!("{}: {}", shared.cause, shared.reason)).collect();
    let fence = &health.fence;
    let because = fence.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    text.push('\n');
    text.push_str(&fields(&[
        ("shared", shared.join("; ")),
        ("fence", format!("{} ({}), {}{because}", fence.mode, fence.target, fence.decision)),
        ("notes", health.notes.join("; ")),
    ]));
    text
}

fn row(health: &Health, target: &Target) -> Vec<String> {
    let here = if target.local && target.kind != "node" { " *" } else { "" };
    let lasts = health.at.duration_since(target.since).as_secs();
    let bad: Vec<&str> =
        target.probes.iter().filter(|(_, a)| a.state == "failed").map(|(name, _)| name.as_str()).collect();
    let probes = match (target.probes.len(), bad.is_empty()) {
        (0, _) => String::new(),
        (all, true) => format!("{all} ok"),
        (_, false) => format!("{} fail", bad.join(" ")),
    };
    vec![
        target.kind.clone(),
        format!("{}{here}", target.name),
        name(target.state).into(),
        target.cause.clone().unwrap_or_default(),
        age(u64::try_from(lasts).unwrap_or(0)),
        probes,
        target.reasons.first().cloned().unwrap_or_default(),
    ]
}

/// Colours of a terminal: green, yellow, red, and dim for what nobody knows.
fn paint(state: State) -> &'static str {
    match state {
        State::Good => "32",
        State::Slow => "33",
        State::Bad => "31;1",
        State::Unknown => "2",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::status::health::{Answered, Fence};

    fn target(name: &str, state: State, cause: Option<&str>) -> Target {
        let word = if state == State::Bad { "failed" } else { "good" };
        let answered = Answered { state: word.into(), at: None, median: None, said: None };
        Target {
            kind: "etcd".into(),
            name: name.into(),
            endpoint: Some("http://10.0.0.1:2379".into()),
            local: name == "a",
            state,
            cause: cause.map(String::from),
            reasons: cause.map(|_| "nothing\u{1b} answers".to_string()).into_iter().collect(),
            advice: cause.map(|_| "restart it".into()),
            since: "2026-12-01T00:00:00Z".parse().unwrap(),
            probes: BTreeMap::from([("E2".to_string(), answered.clone()), ("E3".to_string(), answered)]),
        }
    }

    fn health(targets: Vec<Target>) -> Health {
        Health {
            schema: 1,
            at: "2026-12-01T00:01:05Z".parse().unwrap(),
            node: "cp1".into(),
            version: "0".into(),
            pid: None,
            targets,
            shared: vec![],
            fence: Fence { mode: "advise".into(), target: "auto".into(), decision: "none".into(), reason: None },
            notes: vec![],
        }
    }

    #[test]
    fn the_table_names_what_is_bad_and_what_to_do() {
        let health = health(vec![target("a", State::Good, None), target("b", State::Bad, Some("hung-process"))]);
        let plain = health.table();
        assert_eq!(
            plain,
            "bad: etcd b (hung-process)\n\n\
             KIND  NAME  STATE  CAUSE           FOR  PROBES      WHY\n\
             etcd  a *   good                 1m05s  2 ok\n\
             etcd  b     bad    hung-process  1m05s  E2 E3 fail  nothing\\u{1b} answers\n\
             \netcd b is bad\n  nothing\\u{1b} answers\n  try: restart it\n\
             \nfence   advise (auto), none\n"
        );
        let painted = rendered(&health, true);
        assert!(painted.contains("\x1b[31;1metcd  b ") && painted.contains("\x1b[32metcd  a *"), "{painted}");
        assert_eq!(painted.replace("\x1b[31;1m", "").replace("\x1b[32m", "").replace("\x1b[0m", ""), plain);
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst() {
        let of = |states: &[State]| ending(&health(states.iter().map(|s| target("a", *s, None)).collect()));
        assert_eq!(of(&[State::Good, State::Slow]), Ending::Good);
        assert_eq!(of(&[State::Good, State::Unknown]), Ending::Bad(Exit::Unknown));
        assert_eq!(of(&[State::Unknown, State::Bad]), Ending::Bad(Exit::Bad));
    }

    #[test]
    fn without_a_terminal_changes_are_lines() {
        let good = health(vec![target("a", State::Good, None), target("b", State::Good, None)]);
        let bad = health(vec![target("a", State::Good, None), target("b", State::Bad, Some("hung-process"))]);
        assert_eq!(changes(None, &good).lines().count(), 2);
        assert_eq!(changes(Some(&good), &good), "");
        assert_eq!(
            changes(Some(&good), &bad),
            "2026-12-01T00:01:05Z etcd b bad hung-process: nothing\\u{1b} answers\n"
        );
    }
}
