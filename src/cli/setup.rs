//! `refloat setup`.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::context::{Context, Ending, aside};
use super::failure::ErrorDocument;
use super::output::{Document, SCHEMA, printable};
use crate::config::Surroundings;
use crate::discover::Layout;
use crate::error::{Code, Error, Exit, Result};
use crate::host::user;
use crate::setup::{Action, Check, Kept, Plan, act, check, prepare};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat setup --dry-run    everything that would be written and started; exit code 2 if there is anything
  sudo refloat setup         the same, done; run again it changes nothing

It writes /etc/refloat/conf.d/10-discovered.toml from what `refloat discover` finds, a drop-in for refloat.service with
the credentials and the stores, one for refloat-certs.path with the certificates to watch, makes the directories of
stores, and enables and starts both units. A key that another configuration file sets is left alone and named.")]
pub struct SetupArgs {
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Set up the node below this directory instead of /
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
}

#[derive(Debug, Serialize)]
pub struct SetupDocument {
    schema: u32,
    dry_run: bool,
    /// `null`: nothing was found.
    layout: Option<Layout>,
    changes: Vec<Change>,
    /// Keys that are not written, since another file sets them.
    kept: Vec<Kept>,
    checks: Vec<Check>,
    warnings: Vec<String>,
    /// What is left to type, where systemd could not be reached.
    to_do: Vec<String>,
    /// Why.
    error: Option<ErrorDocument>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
enum Change {
    Directory {
        path: PathBuf,
        mode: String,
        owner: Option<String>,
    },
    /// `before`: `null` for a new file.
    File {
        path: PathBuf,
        before: Option<String>,
        after: String,
    },
    Units {
        command: String,
    },
}

pub async fn run(args: SetupArgs, context: &Context) -> Result<Ending> {
    let real = args.root == Path::new("/");
    if !args.dry_run && !user::is_root() {
        return Err(Error::new(Code::Permission, "set up this node", "")
            .because("only root may write into /etc and start units")
            .remedy("run `sudo refloat setup`, or look first with `refloat setup --dry-run`"));
    }
    let around = Surroundings { root: args.root.clone(), credentials: None, ..Surroundings::of_this_process() };
    let prepared = aside(move || prepare(&around, Timestamp::now())).await?;
    let Plan { actions, kept, warnings } = prepared.plan;
    // Another root is not this host: nobody is asked who may be somebody else.
    let reachable = |url: &str| real || url.contains("://127.0.0.1:");
    let checks = check::checks(&prepared.access, &prepared.loaded.settings, reachable, Timestamp::now());
    let checks = tokio::select! {
        checks = checks => checks,
        () = context.cancel.cancelled() => return Err(Error::new(Code::Canceled, "set up this node", "")),
    };
    let mut document = SetupDocument {
        schema: SCHEMA,
        dry_run: args.dry_run,
        layout: prepared.found.map(|found| found.layout),
        changes: actions.iter().map(Change::from).collect(),
        kept,
        checks,
        warnings,
        to_do: Vec::new(),
        error: None,
    };
    if args.dry_run {
        context.output.document(&document)?;
        return Ok(if actions.is_empty() { Ending::Good } else { Ending::Bad(Exit::Changes) });
    }
    let (root, of_systemd): (PathBuf, Vec<Action>) =
        (args.root, actions.iter().filter(|a| a.is_of_systemd()).cloned().collect());
    aside(move || act::files(&root, &actions)).await?;
    let left: &[Action] = &of_systemd;
    document.to_do = left.iter().filter_map(Action::command).collect();
    context.output.document(&document)?;
    Ok(Ending::Good)
}

impl From<&Action> for Change {
    fn from(action: &Action) -> Self {
        match action {
            Action::MakeDir { path, mode, owner } => Change::Directory {
                path: path.clone(),
                mode: format!("{mode:04o}"),
                owner: owner.as_ref().map(user::Owner::shown),
            },
            Action::Write { path, before, after } => {
                Change::File { path: path.clone(), before: before.clone(), after: after.clone() }
            }
            units => Change::Units { command: units.command().unwrap_or_default() },
        }
    }
}

impl Document for SetupDocument {
    fn table(&self) -> String {
        let mut text = String::new();
        if let Some(layout) = self.layout {
            text.push_str(&format!("layout: {}\n", layout.word()));
        }
        let verb = if self.dry_run { "would " } else { "" };
        for change in &self.changes {
            match change {
                Change::Directory { path, mode, owner } => {
                    let owner = owner.as_ref().map(|owner| format!(", owner {owner}")).unwrap_or_default();
                    text.push_str(&format!("{verb}make directory {} (mode {mode}{owner})\n", shown(path)));
                }
                Change::File { path, before, after } => {
                    text.push_str(&format!("{verb}write {}\n", shown(path)));
                    if self.dry_run {
                        text.push_str(&difference(before.as_deref().unwrap_or_default(), after));
                    }
                }
                Change::Units { command } => text.push_str(&format!("{verb}run {command}\n")),
            }
        }
        if self.changes.is_empty() {
            text.push_str("nothing to do\n");
        }
        for Kept { key, set_in } in &self.kept {
            text.push_str(&format!("left alone: {key} is set in {}\n", printable(set_in)));
        }
        for Check { what, ok, said } in &self.checks {
            let word = if *ok { "ok" } else { "NOT OK" };
            text.push_str(&format!("check {}: {word}: {}\n", printable(what), printable(said)));
        }
        for warning in &self.warnings {
            text.push_str(&format!("warning: {}\n", printable(warning)));
        }
        for command in &self.to_do {
            text.push_str(&format!("to do: {command}\n"));
        }
        text
    }
}

fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Lines that go and lines that come, without those that both begin and end with.
fn difference(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let line = |sign: char, line: &&str| format!("  {sign} {}\n", printable(line));
    let gone = old[start..old.len() - end].iter().map(|l| line('-', l));
    let come = new[start..new.len() - end].iter().map(|l| line('+', l));
    gone.chain(come).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_changes_alone() {
        for (before, after, expected) in [
            ("", "a\nb\n", "  + a\n  + b\n"),
            ("a\nb\nc\n", "a\nx\nc\n", "  - b\n  + x\n"),
            ("a\na\n", "a\n", "  - a\n"),
            ("a\n", "a\na\n", "  + a\n"),
            ("a\n", "a\n", ""),
            ("x\u{1b}[2J\n", "", "  - x\\u{1b}[2J\n"),
        ] {
            assert_eq!(difference(before, after), expected, "{before:?} {after:?}");
        }
    }
}
