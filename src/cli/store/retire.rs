//! `refloat store retire`.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use crate::catalog::prune::Report;
use crate::catalog::prune::retire::{Retire, Retired, Which};
use crate::catalog::{LineageId, Node, TimelineId};
use crate::cli::confirm::confirm;
use crate::cli::context::{Context, Ending, aside};
use crate::cli::failure::ErrorDocument;
use crate::cli::output::{Document, SCHEMA, count, printable, size};
use crate::error::{Code, Error, Exit, Result};
use crate::snapshot::retire::Retirer;
use crate::snapshot::state;
use crate::snapshot::stores::{OpenStores, known};
use crate::store::Mode;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat store retire 3f0e8a526c1d4b7e --dry-run      what would go: the snapshots of a cluster that is no more
  refloat store retire 3f0e8a526c1d4b7e                the same, then asks
  refloat store retire 3f0e8a526c1d4b7e --timeline 1   only the history before a restore
  refloat store retire 3f0e8a526c1d4b7e --timeline 0   only imports
  refloat store retire 3f0e8a526c1d4b7e --node old     only what a node took that is gone or has a new name

It goes at once, not by way of the trash. Refused: the newest timeline of the lineage that this node takes snapshots of,
the last verified snapshot of it, what somebody took a snapshot of lately, and pinned snapshots.")]
pub struct RetireArgs {
    /// 16 hexadecimal digits, see `refloat snapshot list --all-lineages`
    #[arg(value_name = "LINEAGE", value_parser = lineage)]
    pub lineage: LineageId,
    /// Only this timeline: its number, or number and name as a snapshot shows them
    #[arg(long, value_name = "NUMBER", value_parser = timeline)]
    pub timeline: Option<Which>,
    /// Only what this node took
    #[arg(long, value_name = "NAME", value_parser = node)]
    pub node: Option<Node>,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

fn lineage(text: &str) -> std::result::Result<LineageId, String> {
    text.parse().map_err(|e: crate::catalog::value::ValueError| e.to_string())
}

fn node(text: &str) -> std::result::Result<Node, String> {
    text.parse().map_err(|e: crate::catalog::value::ValueError| e.to_string())
}

fn timeline(text: &str) -> std::result::Result<Which, String> {
    match text.parse::<TimelineId>() {
        Ok(id) if id.is_imports() => Ok(Which::Number(id.number)),
        Ok(id) => Ok(Which::Named(id)),
        Err(_) => {
            let number = text.parse().ok().filter(|n| *n <= TimelineId::MAX_NUMBER);
            number.map(Which::Number).ok_or_else(|| "a number up to 9999, or a timeline such as 0002-c39caf6b".into())
        }
    }
}

/// What goes or went, store by store.
#[derive(Debug, Serialize)]
struct RetireDocument {
    schema: u32,
    dry_run: bool,
    lineage: String,
    timeline: Option<u16>,
    node: Option<String>,
    stores: Vec<RetiredStore>,
}

#[derive(Debug, Serialize)]
struct RetiredStore {
    name: String,
    /// Ids, oldest first.
    snapshots: Vec<String>,
    /// Other objects: evidence, leftovers, trash.
    others: usize,
    /// Bytes that go.
    bytes: u64,
    /// Stay.
    unreadable: Vec<String>,
    /// `null` in a dry run, and where nothing was begun.
    removed: Option<usize>,
    freed: u64,
    refused: Vec<String>,
    /// Why nothing was done, or no more.
    error: Option<ErrorDocument>,
}

impl Document for RetireDocument {
    fn table(&self) -> String {
        let mut text = String::new();
        for store in &self.stores {
            let RetiredStore { name, snapshots, others, bytes, .. } = store;
            let what = if *others > 0 { format!(" and {}", count(*others, "other object")) } else { String::new() };
            let snapshots_said = count(snapshots.len(), "snapshot");
            text.push_str(&format!("store {name}: {snapshots_said}{what}, {}\n", size(*bytes)));
            for id in snapshots {
                text.push_str(&format!("  remove  {id}\n"));
            }
            for stays in &store.unreadable {
                text.push_str(&format!("  stays, since it cannot be read: {}\n", printable(stays)));
            }
            if let Some(removed) = store.removed {
                text.push_str(&format!("  done: {removed} removed, {} freed\n", size(store.freed)));
            }
            for refused in &store.refused {
                text.push_str(&format!("  REFUSED: {}\n", printable(refused)));
            }
            if store.error.is_some() {
                text.push_str("  FAILED: see the error\n");
            }
        }
        text
    }
}

/// One store's part of the work.
struct Part {
    name: String,
    retired: Retired,
    done: Option<Result<Report>>,
}

impl Part {
    /// Why nothing was done, or no more.
    fn error(&self) -> Option<&Error> {
        match self.done.as_ref()? {
            Ok(report) => report.failed.as_ref(),
            Err(error) => Some(error),
        }
    }
}

pub async fn retire(args: RetireArgs, context: &Context) -> Result<Ending> {
    let what = Retire { lineage: args.lineage, timeline: args.timeline, node: args.node.clone() };
    let settings = context.settings()?.clone();
    let names = context.store_names()?;
    context.become_owner()?;
    let mode = if args.dry_run { Mode::Read } else { Mode::Remove };
    let limits = state::limits(&settings, &context.cancel);
    let stores = OpenStores::open(&settings, &names, known(&settings, &limits)?, mode, &limits)?.or_any_failure()?;
    let node = state::node(&settings)?;
    let (looking, progress) = (what.clone(), context.progress.clone());
    let (stores, all, settings, node, parts) = aside(move || {
        let all = stores.beside(&settings)?;
        let retirer = Retirer { settings: &settings, node: &node, stores: &all, what: &looking };
        let mut parts = Vec::new();
        for opened in stores.good() {
            let retired = retirer.plan(opened, Timestamp::now(), &*progress)?;
            parts.push(Part { name: opened.name.clone(), retired, done: None });
        }
        Ok((stores, all, settings, node, parts))
    })
    .await?;
    let document = |parts: &[Part]| RetireDocument {
        schema: SCHEMA,
        dry_run: args.dry_run,
        lineage: what.lineage.to_string(),
        timeline: what.timeline.map(Which::number),
        node: what.node.as_ref().map(ToString::to_string),
        stores: parts.iter().map(shown).collect(),
    };
    if parts.iter().all(|part| part.retired.is_empty() && part.retired.unreadable.is_empty()) {
        return Err(Error::new(Code::NotFound, "retire lineage", what.lineage.to_string())
            .because("no store has anything of it")
            .remedy("see `refloat snapshot list --all-lineages`"));
    }
    if args.dry_run || parts.iter().all(|part| part.retired.is_empty()) {
        context.output.document(&document(&parts))?;
        let changes = parts.iter().any(|part| !part.retired.is_empty());
        return Ok(if changes { Ending::Bad(Exit::Changes) } else { Ending::Good });
    }
    if !args.yes {
        context.output.document(&document(&parts))?;
    }
    let bytes: u64 = parts.iter().map(|part| part.retired.bytes()).fold(0, u64::saturating_add);
    let question = format!("Remove all of this for good ({})?", size(bytes));
    if !confirm(&question, args.yes, "retire lineage", &what.lineage.to_string())? {
        return Ok(Ending::Good);
    }
    let (progress, cancel, token) = (context.progress.clone(), context.cancel.clone(), context.cancel.clone());
    let going = what.clone();
    let parts = aside(move || {
        let retirer = Retirer { settings: &settings, node: &node, stores: &all, what: &going };
        let mut parts = parts;
        for part in &mut parts {
            let Some(opened) = stores.good().find(|s| s.name == part.name) else { continue };
            // What happened in one store is told, also when another one fails.
            part.done = Some(retirer.act(opened, &part.retired, Timestamp::now(), &*progress, &token));
        }
        Ok(parts)
    })
    .await?;
    context.output.document(&document(&parts))?;
    if cancel.is_cancelled() {
        return Err(Error::new(Code::Canceled, "retire lineage", what.lineage.to_string())
            .remedy("run it again: it goes on where it stopped"));
    }
    let mut failed = None;
    for error in parts.iter().filter_map(Part::error) {
        failed = failed.or(Some(error.exit()));
        context.fail(error);
    }
    if let Some(exit) = failed {
        return Ok(Ending::Bad(exit));
    }
    let refused: Vec<String> = parts.iter().flat_map(|part| shown(part).refused).collect();
    if refused.is_empty() {
        return Ok(Ending::Good);
    }
    Err(Error::new(Code::Refused, "retire lineage", what.lineage.to_string())
        .because(refused.join("; "))
        .remedy("look at what stands there; everything else was done"))
}

fn shown(part: &Part) -> RetiredStore {
    let Part { name, retired, done } = part;
    let report = done.as_ref().and_then(|done| done.as_ref().ok());
    let refused = report.iter().flat_map(|r| &r.refused).map(|r| format!("{}: {}", r.name, r.error.line()));
    RetiredStore {
        name: name.clone(),
        snapshots: retired.snapshots.iter().map(|c| c.id.to_string()).collect(),
        others: retired.strays.len() + retired.trash.len() + retired.files.len(),
        bytes: retired.bytes(),
        unreadable: retired.unreadable.iter().map(|u| format!("{}: {}", u.name, u.reason)).collect(),
        removed: report.map(|r| r.removed.len()),
        freed: report.map_or(0, |r| r.freed),
        refused: refused.collect(),
        error: part.error().map(ErrorDocument::from),
    }
}
