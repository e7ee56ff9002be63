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
use crate::kube::Access;
use crate::setup::cluster::{ADMIN, Cluster};
use crate::setup::node::below;
use crate::setup::{Action, Check, Kept, Plan, Prepared, act, check, prepare, services};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat setup --dry-run    everything that would be written and started; exit code 2 if there is anything
  sudo refloat setup         the same, done; run again it changes nothing

  sudo refloat setup --kubeconfig admin.conf   with an administrator's kubeconfig from elsewhere

It writes /etc/refloat/conf.d/10-discovered.toml from what `refloat discover` finds, a drop-in for refloat.service with
the credentials and the stores, one for refloat-certs.path with the certificates to watch, makes the directories of
stores, and enables and starts the units. A key that another configuration file sets is left alone and named.

With an administrator's kubeconfig, which it finds on nodes of kubeadm, RKE2 and k3s, it also makes refloat's own identity
in Kubernetes: roles that let it read and renew one Lease of each node and read health paths (config/rbac.yaml), a client
certificate of user refloat in /etc/refloat/kubeconfig, whose key never leaves this host, and this node's Lease
kube-system/refloat-NODE. A certificate is kept while more than 30 % of its life is left: run setup again before.")]
pub struct SetupArgs {
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Kubeconfig of an administrator, used once to make refloat's own identity in Kubernetes
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Leave Kubernetes alone
    #[arg(long, conflicts_with = "kubeconfig")]
    pub no_kubernetes: bool,
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
    /// `manifest`: `null` where it is something else than an object that is applied.
    Kubernetes {
        step: String,
        manifest: Option<serde_json::Value>,
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
    let (first, second) = (around.clone(), around);
    let mut prepared = aside(move || prepare(&first, None, Timestamp::now())).await?;
    let cluster = cluster(&args, &mut prepared, context).await?;
    if let Some(cluster) = &cluster {
        let apiservers = cluster.apiservers.clone();
        prepared = aside(move || prepare(&second, Some(&apiservers), Timestamp::now())).await?;
        prepared.plan.warnings.extend(cluster.warnings.iter().cloned());
    }
    if real {
        prepared.plan.start(services::down().await, &prepared.enabled);
    }
    let Plan { actions, kept, warnings } = prepared.plan;
    let mut changes: Vec<Change> = actions.iter().map(Change::from).collect();
    let in_cluster = changes_of(cluster.as_ref());
    let changed = !actions.is_empty() || !in_cluster.is_empty();
    // The directory that the kubeconfig goes into is made before, services that use it are started after it.
    let files = actions.iter().take_while(|action| !action.is_of_systemd()).count();
    changes.splice(files..files, in_cluster);
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
        changes,
        kept,
        checks,
        warnings,
        to_do: Vec::new(),
        error: None,
    };
    if args.dry_run {
        context.output.document(&document)?;
        return Ok(if changed { Ending::Bad(Exit::Changes) } else { Ending::Good });
    }
    let (root, done) = (args.root.clone(), actions.clone());
    aside(move || act::files(&root, &done)).await?;
    let mut failure = None;
    if let Some(cluster) = &cluster {
        let made = tokio::select! {
            made = cluster.act(&args.root, prepared.owner.as_ref()) => made,
            () = context.cancel.cancelled() => return Err(Error::new(Code::Canceled, "make the identity in Kubernetes", "")),
        };
        if let Err(error) = made {
            // Backups need nothing of it, so the services are started all the same.
            document.error = Some(ErrorDocument::from(&error));
            failure = Some(error);
        }
    }
    if real {
        let applied = tokio::select! {
            applied = services::apply(&actions) => applied,
            () = context.cancel.cancelled() => return Err(Error::new(Code::Canceled, "start the services", "")
                .because("asked to stop; the files are written")
                .remedy("run `sudo refloat setup` again: it goes on there")),
        };
        if let Err((left, error)) = applied {
            document.to_do = left.iter().filter_map(Action::command).collect();
            document.error = Some(ErrorDocument::from(&error));
            failure = Some(error);
        }
    } else {
        document.to_do = actions.iter().filter_map(Action::command).collect();
    }
    context.output.document(&document)?;
    failure.map_or(Ok(Ending::Good), Err)
}

/// What the cluster lacks; `None` where nobody is to be asked, or nobody answers, which is told.
async fn cluster(args: &SetupArgs, prepared: &mut Prepared, context: &Context) -> Result<Option<Cluster>> {
    let has_apiserver = prepared.found.as_ref().is_some_and(|found| found.apiserver.is_some());
    let known = || ADMIN.iter().map(|path| below(&args.root, Path::new(path))).find(|path| path.exists());
    let given = args.kubeconfig.clone();
    let admin = match given.clone().or_else(|| has_apiserver.then(known).flatten()) {
        _ if args.no_kubernetes => return Ok(None),
        Some(admin) => admin,
        None if has_apiserver => {
            prepared.plan.warnings.push(format!(
                "no identity in Kubernetes is made, so no apiserver is watched: there is no {}; give one with --kubeconfig",
                ADMIN.join(", no ")
            ));
            return Ok(None);
        }
        None => return Ok(None),
    };
    let node = prepared.loaded.settings.node.clone();
    // Another root is not this host: its administrator is asked only where somebody says so.
    let local = |access: &Access| {
        given.is_some() || args.root == Path::new("/") || access.server().starts_with("https://127.0.0.1:")
    };
    let looked = async {
        match Access::read(&admin).map(|access| local(&access))? {
            true => Cluster::look(&args.root, &admin, &node, Timestamp::now()).await.map(Some),
            false => Ok(None),
        }
    };
    let looked = tokio::select! {
        looked = looked => looked,
        () = context.cancel.cancelled() => return Err(Error::new(Code::Canceled, "set up this node", "")),
    };
    match looked {
        Ok(cluster) => Ok(cluster),
        Err(error) if given.is_some() => Err(error.during("make the identity in Kubernetes", "")),
        Err(error) => {
            prepared.plan.warnings.push(format!(
                "the identity in Kubernetes is not made: {}; run setup again once the apiserver is well",
                error.line()
            ));
            Ok(None)
        }
    }
}

fn changes_of(cluster: Option<&Cluster>) -> Vec<Change> {
    let Some(cluster) = cluster else { return Vec::new() };
    let manifests = cluster.apply.iter().map(|one| Some(one.body.clone())).chain(std::iter::repeat(None));
    cluster.steps().into_iter().zip(manifests).map(|(step, manifest)| Change::Kubernetes { step, manifest }).collect()
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
                Change::Kubernetes { step, manifest } => {
                    text.push_str(&format!("{verb}{}\n", printable(step)));
                    if let (true, Some(manifest)) = (self.dry_run, manifest) {
                        text.push_str(&difference("", &format!("{manifest:#}")));
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
