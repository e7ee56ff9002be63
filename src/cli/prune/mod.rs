//! `refloat prune`.

mod document;

use clap::Args;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::confirm::confirm;
use super::context::{Context, Ending, aside};
use super::output::{count, size};
use super::{remote, stream};
use crate::catalog::Digest;
use crate::engine::job::Task;
use crate::error::{Code, Error, Exit, Result};
use crate::snapshot::prune::{Pruner, Request, held};
use crate::snapshot::state;
use crate::snapshot::stores::OpenStores;
use crate::store::Mode;

use document::{PruneDocument, StoreRun};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat prune --dry-run              each snapshot with the reasons why it stays or goes; exit code 2 if any goes
  refloat prune                        the same, then asks
  refloat prune --yes --store local    without asking, in one store
  refloat prune --yes --plan 5f1c09ab  only what the dry run with this plan has shown

What goes waits in the trash of the store for `trash_grace` (\"remove\" in the plan), unless its space is needed at once
(\"delete\"); after that it is gone for good (\"empty\"). Never removed are the newest verified snapshot of each timeline,
`min_keep` verified ones, pinned and imported ones, those of other nodes (scope \"node\") and of other clusters, and
whatever refloat did not write.

Nothing is removed at all (exit code 75, HELD in the plan) while the clock is in doubt, two slots of the schedule passed
without a snapshot, none is verified, or a freeze stands. `refloat snapshot take` ends most of this.")]
pub struct PruneArgs {
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Only if the plan is still the one with this hash, which a dry run has shown; its first 8 digits suffice
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub plan: Option<String>,
    /// Go on although the clock is in doubt: you have looked, and it is right
    #[arg(long)]
    pub trust_clock: bool,
    /// Queue it in the daemon, one job a store, and return at once: by the rules, as after each snapshot
    #[arg(long, conflicts_with_all = ["dry_run", "plan", "trust_clock"])]
    pub no_wait: bool,
}

fn hash(text: &str) -> std::result::Result<String, String> {
    let digits = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    if digits && (8..=64).contains(&text.len()) {
        Ok(text.into())
    } else {
        Err("8 to 64 hexadecimal digits, as `refloat prune --dry-run` prints them".into())
    }
}

/// What all stores together say.
fn overall(runs: &[StoreRun]) -> Digest {
    let mut hasher = Sha256::new();
    for run in runs {
        if let Ok(planned) = &run.planned {
            hasher.update(format!("{} {}\n", run.name, planned.plan.hash));
        }
    }
    Digest(hasher.finalize().into())
}

pub async fn run(args: PruneArgs, context: &Context) -> Result<Ending> {
    if args.no_wait {
        return queue(&args, context).await;
    }
    let settings = context.settings()?.clone();
    let names = context.store_names()?;
    context.become_owner()?;
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    let (dry_run, trusted) = (args.dry_run, args.trust_clock);
    let limits = state::limits(&settings, &cancel);
    let (work, runs) = aside(move || {
        let node = state::node(&settings)?;
        let mode = if dry_run { Mode::Read } else { Mode::Remove };
        let known = crate::snapshot::stores::known(&settings, &limits)?;
        let mut stores = OpenStores::open(&settings, &names, known, mode, &limits)?;
        let mut runs: Vec<StoreRun> = Vec::new();
        for (name, error) in stores.take_failed() {
            runs.push(StoreRun { name, planned: Err(error), done: None });
        }
        let all = stores.beside(&settings)?;
        let work = Work { settings, node, stores, all, trusted };
        for opened in work.stores.good() {
            progress.step(&format!("look at store {}", opened.name));
            let planned = work.pruner().plan(opened, Timestamp::now(), &*progress);
            runs.push(StoreRun { name: opened.name.clone(), planned, done: None });
        }
        Ok((work, runs))
    })
    .await?;
    let hash = overall(&runs);
    if let Some(wanted) = args.plan.filter(|wanted| !hash.to_string().starts_with(wanted)) {
        // Without the stores that failed it is another plan.
        let failures: String =
            runs.iter().filter_map(StoreRun::error).map(|e| format!("; not in it: {}", e.line())).collect();
        return Err(Error::new(Code::PlanChanged, "prune by plan", wanted)
            .because(format!("the plan is now {hash}{failures}"))
            .remedy("look at it with `refloat prune --dry-run`"));
    }
    let acts = |run: &StoreRun| run.planned.as_ref().is_ok_and(|p| p.plan.changes() && !p.plan.held());
    if dry_run || !runs.iter().any(acts) {
        return end(&runs, hash, dry_run, context);
    }
    if !args.yes {
        stream::print(&context.output, &PruneDocument { runs: &runs, hash, dry_run: true })?;
    }
    let acting: Vec<&StoreRun> = runs.iter().filter(|run| acts(run)).collect();
    let names: Vec<&str> = acting.iter().map(|run| run.name.as_str()).collect();
    if !confirm(&question(&acting), args.yes, "prune store", &names.join(", "))? {
        return Ok(Ending::Good);
    }
    let (progress, token) = (context.progress.clone(), cancel.clone());
    let runs = aside(move || {
        let each = runs.into_iter().map(|run| {
            let opened = work.stores.good().find(|s| s.name == run.name);
            let (true, Some(opened), StoreRun { name, planned: Ok(agreed), .. }) = (acts(&run), opened, &run) else {
                return run;
            };
            let (hash, name) = (agreed.plan.hash, name.clone());
            // What it was made from goes before the second look: a hundred thousand snapshots are held once.
            drop(run);
            progress.step(&format!("prune store {name}"));
            match work.pruner().act(opened, hash, Timestamp::now(), &*progress, &token) {
                Ok((planned, report)) => StoreRun { name, planned: Ok(planned), done: Some(report) },
                Err(error) => StoreRun { name, planned: Err(error), done: None },
            }
        });
        Ok(each.collect::<Vec<StoreRun>>())
    })
    .await?;
    let ending = end(&runs, hash, false, context)?;
    if cancel.is_cancelled() {
        return Err(Error::new(Code::Canceled, "prune", "").remedy("run it again: it goes on where it stopped"));
    }
    Ok(ending)
}

async fn queue(args: &PruneArgs, context: &Context) -> Result<Ending> {
    let names: Vec<String> = context.stores()?.into_iter().map(|store| store.name.clone()).collect();
    let question = format!("Remove from {} what the rules let go?", names.join(", "));
    if !confirm(&question, args.yes, "prune store", &names.join(", "))? {
        return Ok(Ending::Good);
    }
    let client = remote::needed(context, "queue prune").await?;
    for store in names {
        remote::queue(&client, &Task::Prune { store }, context).await?;
    }
    Ok(Ending::Good)
}

/// What stays the same from the plan to the act.
struct Work {
    settings: crate::config::Settings,
    node: crate::catalog::Node,
    /// Those that are pruned.
    stores: OpenStores,
    /// Those that may know of pins.
    all: OpenStores,
    trusted: bool,
}

impl Work {
    fn pruner(&self) -> Pruner<'_> {
        let request = Request { clock_trusted: self.trusted, ..Request::default() };
        Pruner { settings: &self.settings, node: &self.node, stores: &self.all, request }
    }
}

/// About those stores in which something will be done.
fn question(runs: &[&StoreRun]) -> String {
    let mut parts = Vec::new();
    for run in runs {
        let Ok(planned) = &run.planned else { continue };
        let (trash, now) = planned.plan.removed_bytes();
        let emptied = planned.plan.emptied_bytes();
        let (removed, leftovers) = (planned.plan.decisions.remove.len(), planned.plan.found.leftovers.len());
        parts.push(format!(
            "store {}: remove {} ({} into the trash, {} at once), empty {} of the trash, clean up {}",
            run.name,
            count(removed, "snapshot"),
            size(trash),
            size(now),
            size(emptied),
            count(leftovers, "leftover")
        ));
    }
    format!("{}. Go on?", parts.join("; "))
}

/// Prints, then ends with what was worst: a failure, a refusal, a hold, changes of a dry run.
fn end(runs: &[StoreRun], hash: Digest, dry_run: bool, context: &Context) -> Result<Ending> {
    if let [StoreRun { planned: Err(_), .. }] = runs {
        // Nothing to show beside the error.
        return Ok(fail(runs, context));
    }
    stream::print(&context.output, &PruneDocument { runs, hash, dry_run })?;
    if runs.iter().any(|run| run.error().is_some()) {
        return Ok(fail(runs, context));
    }
    let reports = || runs.iter().filter_map(|run| run.done.as_ref().map(|r| (run, r)));
    if let Some((run, report)) = reports().find(|(_, r)| !r.refused.is_empty()) {
        let refused = report.refused.iter().map(|r| format!("{}: {}", r.name, r.error.line()));
        return Err(Error::new(Code::Refused, "prune store", &run.name)
            .because(refused.collect::<Vec<_>>().join("; "))
            .remedy("look at what stands there; everything else was done"));
    }
    let plans = || runs.iter().filter_map(|run| run.planned.as_ref().ok().map(|p| (run, &p.plan)));
    let mut held = plans().filter(|(_, plan)| plan.changes()).filter_map(|(run, plan)| held(&run.name, plan));
    if let Some(error) = held.next() {
        return Err(error);
    }
    let changes = dry_run && plans().any(|(_, plan)| plan.changes());
    Ok(if changes { Ending::Bad(Exit::Changes) } else { Ending::Good })
}

/// Tells each failure; the first one's exit code counts.
fn fail(runs: &[StoreRun], context: &Context) -> Ending {
    let mut first = None;
    for error in runs.iter().filter_map(StoreRun::error) {
        first = first.or(Some(error.exit()));
        context.fail(error);
    }
    first.map_or(Ending::Good, Ending::Bad)
}
