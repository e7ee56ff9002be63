//! What `refloat prune` prints: the plan with every reason, then what was done.

use std::fmt::Display;
use std::io::{self, Write};

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::catalog::prune::{Plan, Report};
use crate::catalog::retention::{Decisions, Kept, OutOfReach, Removal, Trashed};
use crate::catalog::{Digest, State};
use crate::cli::failure::ErrorDocument;
use crate::cli::output::{SCHEMA, count, printable, size, wrapped};
use crate::cli::stream::{Streamed, line};
use crate::config::Scope;
use crate::error::Error;
use crate::snapshot::prune::Planned;

/// One store: its plan or why there is none, and what came of it.
pub struct StoreRun {
    pub name: String,
    pub planned: Result<Planned, Error>,
    /// `None` in a dry run, or when nothing was to be done.
    pub done: Option<Report>,
}

/// Digits of a plan's hash that suffice.
const SHORT_HASH: usize = 8;

/// Where the reasons of a row begin, and where they end at the latest: a terminal of 120 columns shows them whole.
const REASONS: std::ops::Range<usize> = 10..120;

/// The `prune` document.
pub struct PruneDocument<'a> {
    pub runs: &'a [StoreRun],
    pub hash: Digest,
    pub dry_run: bool,
}

impl StoreRun {
    fn plan(&self) -> Option<&Plan> {
        self.planned.as_ref().ok().map(|p| &p.plan)
    }

    fn report(&self) -> Option<&Report> {
        self.done.as_ref()
    }

    fn outcome(&self) -> &'static str {
        match (&self.planned, &self.done) {
            (Err(_), _) => "failed",
            (Ok(_), Some(report)) if !report.refused.is_empty() => "refused",
            (Ok(_), Some(report)) if report.stopped => "stopped",
            (Ok(_), Some(_)) => "pruned",
            (Ok(planned), None) if planned.plan.held() && planned.plan.changes() => "held",
            (Ok(planned), None) if planned.plan.changes() => "planned",
            (Ok(_), None) => "unchanged",
        }
    }

    /// What went wrong as a whole; refusals of single ones aside.
    pub fn error(&self) -> Option<&Error> {
        self.planned.as_ref().err().or_else(|| self.report()?.failed.as_ref())
    }
}

/// A list whose elements are made while it is written.
struct Each<F>(F);

impl<I: Iterator, F: Fn() -> I> Serialize for Each<F>
where
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq((self.0)())
    }
}

#[derive(Serialize)]
struct KeepRow<'a> {
    store: &'a str,
    id: String,
    state: State,
    bytes: u64,
    /// In words.
    reasons: Vec<String>,
    /// The same as stable words.
    rules: Vec<&'static str>,
}

#[derive(Serialize)]
struct RemoveRow<'a> {
    store: &'a str,
    id: String,
    state: State,
    bytes: u64,
    reasons: Vec<String>,
    rules: Vec<&'static str>,
    /// `trash`, or `nowhere` where its space is needed at once or the store has no trash.
    to: &'static str,
}

#[derive(Serialize)]
struct EmptyRow<'a> {
    store: &'a str,
    id: String,
    removed_at: String,
    bytes: u64,
    reason: String,
    rule: &'static str,
}

#[derive(Serialize)]
struct LeftoverRow<'a> {
    store: &'a str,
    name: String,
    reason: &'static str,
}

#[derive(Serialize)]
struct SaidRow<'a> {
    store: &'a str,
    rule: &'static str,
    reason: String,
}

#[derive(Serialize)]
struct RemovedRow<'a> {
    store: &'a str,
    id: String,
    bytes: u64,
    to: &'static str,
}

fn to(at_once: bool) -> &'static str {
    if at_once { "nowhere" } else { "trash" }
}

fn texts<T>(reasons: &[T], say: impl Fn(&T) -> String) -> Vec<String> {
    reasons.iter().map(say).collect()
}

impl<'a> PruneDocument<'a> {
    fn plans(&self) -> impl Iterator<Item = (&'a str, &'a Plan)> {
        self.runs.iter().filter_map(|run| run.plan().map(|plan| (run.name.as_str(), plan)))
    }

    fn keep(&self) -> impl Iterator<Item = KeepRow<'a>> {
        self.plans().flat_map(|(store, plan)| plan.decisions.keep.iter().filter_map(move |k| keep_row(store, plan, k)))
    }

    fn remove(&self) -> impl Iterator<Item = RemoveRow<'a>> {
        self.plans()
            .flat_map(|(store, plan)| plan.decisions.remove.iter().filter_map(move |r| remove_row(store, plan, r)))
    }

    fn empty(&self) -> impl Iterator<Item = EmptyRow<'a>> {
        self.plans().flat_map(|(store, plan)| {
            let trash = &plan.found.trash;
            plan.decisions.empty.iter().filter_map(move |e| {
                let Trashed { id, at, bytes, .. } = trash.get(e.trashed)?;
                let (id, removed_at) = (id.to_string(), at.to_string());
                Some(EmptyRow {
                    store,
                    id,
                    removed_at,
                    bytes: *bytes,
                    reason: e.reason.to_string(),
                    rule: e.reason.word(),
                })
            })
        })
    }

    fn leftovers(&self) -> impl Iterator<Item = LeftoverRow<'a>> {
        let row = |store, l: &crate::catalog::prune::Leftover| LeftoverRow {
            store,
            name: l.name().to_string(),
            reason: l.reason(),
        };
        self.plans().flat_map(move |(store, plan)| plan.found.leftovers.iter().map(move |l| row(store, l)))
    }

    fn held(&self) -> impl Iterator<Item = SaidRow<'a>> {
        self.plans().flat_map(|(store, plan)| {
            let row = move |h: &crate::catalog::retention::Hold| SaidRow {
                store,
                rule: h.word(),
                reason: h.say(&plan.found.candidates).to_string(),
            };
            plan.decisions.hold.iter().map(row)
        })
    }

    fn conflicts(&self) -> impl Iterator<Item = SaidRow<'a>> {
        self.plans().flat_map(|(store, plan)| {
            let conflicts = plan.decisions.conflicts.iter();
            conflicts.map(move |c| SaidRow { store, rule: c.word(), reason: c.to_string() })
        })
    }

    fn removed(&self) -> impl Iterator<Item = RemovedRow<'a>> {
        self.runs.iter().flat_map(|run| {
            run.report().into_iter().flat_map(|r| &r.removed).map(|removed| RemovedRow {
                store: &run.name,
                id: removed.id.to_string(),
                bytes: removed.bytes,
                to: to(!removed.in_trash),
            })
        })
    }

    fn stores(&self) -> impl Iterator<Item = StoreRow<'a>> {
        self.runs.iter().map(StoreRow::of)
    }

    fn sums(&self) -> Sums {
        let reports = || self.runs.iter().filter_map(StoreRun::report);
        let planned = self.runs.iter().filter_map(|r| r.planned.as_ref().ok());
        Sums {
            to_trash: reports().map(|r| r.to_trash).fold(0, u64::saturating_add),
            freed: reports().map(|r| r.freed).fold(0, u64::saturating_add),
            foreign: planned.map(|p| p.foreign).sum(),
        }
    }
}

/// Over all stores.
struct Sums {
    to_trash: u64,
    freed: u64,
    foreign: u64,
}

fn keep_row<'a>(store: &'a str, plan: &Plan, kept: &Kept) -> Option<KeepRow<'a>> {
    let c = plan.found.candidates.get(kept.candidate)?;
    Some(KeepRow {
        store,
        id: c.id.to_string(),
        state: c.state,
        bytes: c.bytes,
        reasons: texts(&kept.reasons, ToString::to_string),
        rules: kept.reasons.iter().map(|r| r.word()).collect(),
    })
}

fn remove_row<'a>(store: &'a str, plan: &Plan, removal: &Removal) -> Option<RemoveRow<'a>> {
    let candidates = &plan.found.candidates;
    let c = candidates.get(removal.candidate)?;
    Some(RemoveRow {
        store,
        id: c.id.to_string(),
        state: c.state,
        bytes: c.bytes,
        reasons: texts(&removal.reasons, |r| r.say(candidates).to_string()),
        rules: removal.reasons.iter().map(|r| r.word()).collect(),
        to: to(removal.at_once),
    })
}

/// The `plan` object.
struct PlanObject<'a>(&'a PruneDocument<'a>);

impl Serialize for PlanObject<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let d = self.0;
        let mut plan = out.serialize_struct("plan", 7)?;
        plan.serialize_field("hash", &d.hash)?;
        plan.serialize_field("keep", &Each(|| d.keep()))?;
        plan.serialize_field("remove", &Each(|| d.remove()))?;
        plan.serialize_field("empty", &Each(|| d.empty()))?;
        plan.serialize_field("leftovers", &Each(|| d.leftovers()))?;
        plan.serialize_field("held", &Each(|| d.held()))?;
        plan.serialize_field("conflicts", &Each(|| d.conflicts()))?;
        plan.end()
    }
}

impl Serialize for PruneDocument<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut document = out.serialize_map(None)?;
        document.serialize_entry("schema", &SCHEMA)?;
        document.serialize_entry("dry_run", &self.dry_run)?;
        document.serialize_entry("plan", &PlanObject(self))?;
        document.serialize_entry("removed", &Each(|| self.removed()))?;
        let Sums { to_trash, freed, foreign } = self.sums();
        document.serialize_entry("to_trash", &to_trash)?;
        document.serialize_entry("freed", &freed)?;
        document.serialize_entry("foreign", &foreign)?;
        document.serialize_entry("stores", &Each(|| self.stores()))?;
        document.end()
    }
}

/// The last JSON line: what is no element of a list.
struct Rest<'a>(&'a PruneDocument<'a>);

impl Serialize for Rest<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let d = self.0;
        let Sums { to_trash, freed, foreign } = d.sums();
        let mut rest = out.serialize_struct("rest", 7)?;
        rest.serialize_field("schema", &SCHEMA)?;
        rest.serialize_field("dry_run", &d.dry_run)?;
        rest.serialize_field("hash", &d.hash)?;
        rest.serialize_field("to_trash", &to_trash)?;
        rest.serialize_field("freed", &freed)?;
        rest.serialize_field("foreign", &foreign)?;
        rest.serialize_field("stores", &Each(|| d.stores()))?;
        rest.end()
    }
}

/// Figures of one store.
#[derive(Serialize)]
struct StoreRow<'a> {
    name: &'a str,
    outcome: &'static str,
    lineage: Option<String>,
    scope: Option<&'static str>,
    /// Bytes that count for `max_bytes`.
    used: Option<u64>,
    max_bytes: Option<u64>,
    free: Option<u64>,
    total: Option<u64>,
    /// Bytes that stay free for others (`min_free`).
    reserved: Option<u64>,
    foreign: Option<u64>,
    out_of_reach: Vec<OutOfReachRow>,
    unreadable: Vec<NamedRow>,
    refused: Vec<NamedRow>,
    error: Option<ErrorDocument>,
}

#[derive(Serialize)]
struct OutOfReachRow {
    lineage: String,
    node: Option<String>,
    snapshots: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct NamedRow {
    name: String,
    reason: String,
}

impl<'a> StoreRow<'a> {
    fn of(run: &'a StoreRun) -> StoreRow<'a> {
        let planned = run.planned.as_ref().ok();
        let named = |name: &str, reason: String| NamedRow { name: name.into(), reason };
        let reach = |o: &OutOfReach| OutOfReachRow {
            lineage: o.lineage.to_string(),
            node: o.node.as_ref().map(ToString::to_string),
            snapshots: o.snapshots,
            bytes: o.bytes,
        };
        let plan = run.plan();
        StoreRow {
            name: &run.name,
            outcome: run.outcome(),
            lineage: planned.and_then(|p| p.lineage).map(|l| l.to_string()),
            scope: planned.map(|p| scope(p.scope)),
            used: planned.map(|p| p.space.used),
            max_bytes: planned.and_then(|p| p.max_bytes),
            free: planned.and_then(|p| p.space.free),
            total: planned.and_then(|p| p.total),
            reserved: planned.map(|p| p.space.reserved),
            foreign: planned.map(|p| p.foreign),
            out_of_reach: plan.map(|p| p.decisions.out_of_reach.iter().map(reach).collect()).unwrap_or_default(),
            unreadable: plan
                .map(|p| p.found.unreadable.iter().map(|u| named(&u.name, u.reason.clone())).collect())
                .unwrap_or_default(),
            refused: run
                .report()
                .map(|r| r.refused.iter().map(|refused| named(&refused.name, refused.error.line())).collect())
                .unwrap_or_default(),
            error: run.error().map(ErrorDocument::from),
        }
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Node => "node",
        Scope::Cluster => "cluster",
    }
}

impl Streamed for PruneDocument<'_> {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for run in self.runs {
            store_table(run, self.dry_run, out)?;
        }
        let plans = || self.runs.iter().filter_map(StoreRun::plan);
        if plans().any(Plan::changes) && self.runs.iter().all(|run| run.done.is_none()) {
            let hash = self.hash.to_string();
            writeln!(out, "plan {hash}")?;
            if plans().any(|plan| plan.changes() && !plan.held()) {
                let short = hash.get(..SHORT_HASH).unwrap_or(&hash);
                writeln!(out, "  with --plan {short} a prune does this and nothing else")?;
            }
        }
        Ok(())
    }

    fn lines(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Act<T> {
            act: &'static str,
            #[serde(flatten)]
            row: T,
        }
        self.keep().try_for_each(|row| line(out, &Act { act: "keep", row }))?;
        self.remove().try_for_each(|row| line(out, &Act { act: "remove", row }))?;
        self.empty().try_for_each(|row| line(out, &Act { act: "empty", row }))?;
        self.leftovers().try_for_each(|row| line(out, &Act { act: "leftover", row }))?;
        self.held().try_for_each(|row| line(out, &Act { act: "held", row }))?;
        self.conflicts().try_for_each(|row| line(out, &Act { act: "conflict", row }))?;
        self.removed().try_for_each(|row| line(out, &Act { act: "removed", row }))?;
        line(out, &Rest(self))
    }
}

fn store_table(run: &StoreRun, dry_run: bool, out: &mut dyn Write) -> io::Result<()> {
    let Ok(planned) = &run.planned else {
        return writeln!(out, "store {}: no plan", run.name);
    };
    let plan = &planned.plan;
    let Decisions { keep, remove, .. } = &plan.decisions;
    writeln!(out, "store {}: {} stay, {} go", run.name, count(keep.len(), "snapshot"), remove.len())?;
    writeln!(out, "  {}", figures(planned))?;
    for hold in &plan.decisions.hold {
        let why = hold.say(&plan.found.candidates);
        writeln!(out, "  HELD: nothing is removed now: {}", printable(&why.to_string()))?;
    }
    let mut row = |act: &str, id: &dyn Display, state: &str, bytes: u64, reasons: &[String]| {
        writeln!(out, "  {act:<6}  {:<50}  {state:<10}  {:>10}", id.to_string(), size(bytes))?;
        let reasons = wrapped(&printable(&reasons.join("; ")), REASONS.len());
        reasons.iter().try_for_each(|line| writeln!(out, "{:1$}{line}", "", REASONS.start))
    };
    // A journal has the plan's removals each time; what stays is for whoever asks with a dry run.
    let shown = if dry_run { keep.as_slice() } else { &[] };
    for kept in shown.iter().filter_map(|k| keep_row(&run.name, plan, k)) {
        row("keep", &kept.id, kept.state.word(), kept.bytes, &kept.reasons)?;
    }
    for gone in remove.iter().rev().filter_map(|r| remove_row(&run.name, plan, r)) {
        let act = if gone.to == "trash" { "remove" } else { "delete" };
        row(act, &gone.id, gone.state.word(), gone.bytes, &gone.reasons)?;
    }
    for emptied in &plan.decisions.empty {
        if let Some(t) = plan.found.trash.get(emptied.trashed) {
            row("empty", &t.id, "trash", t.bytes, &[emptied.reason.to_string()])?;
        }
    }
    for leftover in &plan.found.leftovers {
        writeln!(out, "  clean   {}: {}", printable(&leftover.name().to_string()), leftover.reason())?;
    }
    beside(planned, out)?;
    match (&run.done, plan.changes()) {
        (Some(report), _) => done(report, out),
        (None, false) => writeln!(out, "  nothing to remove"),
        _ => Ok(()),
    }
}

fn figures(planned: &Planned) -> String {
    let space = &planned.space;
    let mut parts = vec![match planned.max_bytes {
        Some(max) => format!("{} used of max_bytes {}", size(space.used), size(max)),
        None => format!("{} used", size(space.used)),
    }];
    if let Some(free) = space.free {
        parts.push(format!("{} free, {} of it stay free (min_free)", size(free), size(space.reserved)));
    }
    let lineage = planned.lineage.map_or_else(|| "no snapshots".into(), |l| format!("lineage {l}"));
    parts.push(format!("{lineage}, scope {}", scope(planned.scope)));
    parts.join("; ")
}

/// What is not this prune's business, so that nobody wonders where it is.
fn beside(planned: &Planned, out: &mut dyn Write) -> io::Result<()> {
    let plan = &planned.plan;
    for o in &plan.decisions.out_of_reach {
        let whose = match &o.node {
            Some(node) => format!("node {node}"),
            None => format!("lineage {} (another or unknown cluster; see `refloat store retire`)", o.lineage),
        };
        let snapshots = count(usize::try_from(o.snapshots).unwrap_or(usize::MAX), "snapshot");
        writeln!(out, "  not touched: {snapshots} of {whose}, {}", size(o.bytes))?;
    }
    let waiting: Vec<&Trashed> = plan.found.trash.iter().collect();
    let emptied = plan.decisions.empty.len();
    if waiting.len() > emptied {
        let bytes: u64 = waiting.iter().map(|t| t.bytes).fold(0, u64::saturating_add) - plan.emptied_bytes();
        writeln!(out, "  in the trash: {}, {}", count(waiting.len() - emptied, "snapshot"), size(bytes))?;
    }
    for unreadable in &plan.found.unreadable {
        let line = format!("  not touched: {}: {}", unreadable.name, unreadable.reason);
        writeln!(out, "{}", printable(&line))?;
    }
    if planned.foreign > 0 {
        let names = count(usize::try_from(planned.foreign).unwrap_or(usize::MAX), "name");
        writeln!(
            out,
            "  not touched: {names} that refloat did not write (`refloat snapshot list --foreign` shows them)"
        )?;
    }
    for conflict in &plan.decisions.conflicts {
        writeln!(out, "  CONFLICT: {conflict}")?;
    }
    Ok(())
}

fn done(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let (removed, emptied) = (report.removed.len(), report.emptied.len());
    let trash = size(report.to_trash);
    writeln!(
        out,
        "  done: {removed} removed ({trash} into the trash), {emptied} emptied, {} freed",
        size(report.freed)
    )?;
    for refused in &report.refused {
        writeln!(out, "  REFUSED: {}: {}", printable(&refused.name), printable(&refused.error.line()))?;
    }
    if report.stopped {
        writeln!(out, "  stopped before its end: run it again")?;
    }
    Ok(())
}
