//! `store retire`: what may go as a whole, looked up in one store and removed there (design §7).
//!
//! In: what a person named. Out: what would go, then what went. The current lineage's newest timeline is refused, and
//! so is any lineage that somebody still takes snapshots of: in a shared store that may be another cluster's. A freeze
//! and a clock that was set hold it as they hold a prune.

use std::collections::HashSet;
use std::time::Instant;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::prune::{GAP, TURN, alone, frozen};
use super::stores::{OpenStores, Opened};
use crate::catalog::prune::Report;
use crate::catalog::prune::retire::{Retire, Retired, Which, act, find, leaves_a_backup};
use crate::catalog::retention::holds_always;
use crate::catalog::{Catalog, LineageId, Node, SnapshotId, State};
use crate::config::Settings;
use crate::crash;
use crate::error::{Code, Error, Result};

pub struct Retirer<'a> {
    pub settings: &'a Settings,
    pub node: &'a Node,
    pub stores: &'a OpenStores,
    pub what: &'a Retire,
}

impl Retirer<'_> {
    /// What would go from one store. `Refused` when it is still in use, holds pinned snapshots, or is all that this node's
    /// cluster has; `Held` while nothing may be removed; `Ambiguous` when a number fits several timelines.
    pub fn plan(&self, opened: &Opened, now: Timestamp, progress: &dyn Progress) -> Result<Retired> {
        self.look(opened, now, progress).map(|(retired, _)| retired)
    }

    /// Looks again and removes it. Once something was done, an error is in the report.
    pub fn act(
        &self,
        opened: &Opened,
        agreed: &Retired,
        now: Timestamp,
        progress: &dyn Progress,
        cancel: &CancellationToken,
    ) -> Result<Report> {
        let shown: HashSet<&SnapshotId> = agreed.snapshots.iter().map(|c| &c.id).collect();
        let mut whole = Report::default();
        loop {
            let done = whole.removed.len() as u64;
            let report = match self.turn(opened, &shown, done, now, progress, cancel) {
                Ok(report) => report,
                Err(error) => return whole.ended_by(error),
            };
            let go_on = report.stopped && report.refused.is_empty() && report.worked() && !cancel.is_cancelled();
            whole.append(report);
            if let Some(error) = whole.failed.take() {
                return whole.ended_by(error);
            }
            if !go_on {
                return Ok(whole);
            }
            // Writers get their turn in between.
            std::thread::sleep(GAP);
        }
    }

    /// Looks, and removes for a few seconds what was `shown`.
    fn turn(
        &self,
        opened: &Opened,
        shown: &HashSet<&SnapshotId>,
        done: u64,
        now: Timestamp,
        progress: &dyn Progress,
        cancel: &CancellationToken,
    ) -> Result<Report> {
        let _alone = alone(opened, cancel)?;
        let (fresh, catalog) = self.look(opened, now, progress)?;
        if let Some(more) = fresh.snapshots.iter().find(|c| !shown.contains(&c.id)) {
            return Err(Error::new(Code::PlanChanged, "retire in store", &opened.name)
                .because(format!("{} has come since it was shown", more.id))
                .remedy("look again with --dry-run"));
        }
        crash::point!("retire::looked");
        let begun = Instant::now();
        Ok(act(&fresh, &catalog, 0, now, &mut |report| {
            progress.bytes(done + report.removed.len() as u64, Some(shown.len() as u64), "snapshots");
            begun.elapsed() < TURN && !cancel.is_cancelled()
        }))
    }

    fn look<'c>(
        &'c self,
        opened: &'c Opened,
        now: Timestamp,
        progress: &dyn Progress,
    ) -> Result<(Retired, Catalog<'c>)> {
        opened.store.check_place()?;
        let catalog = self.stores.read_with(opened, progress)?;
        self.refuse_held(opened, now)?;
        let own = own_lineage(self.stores, &catalog, self.node)? == Some(self.what.lineage);
        self.refuse_current(&catalog, own, now)?;
        let retired = find(&catalog, 0, self.what);
        self.refuse_two_timelines(&retired)?;
        // This cluster must be able to fall back on something; a person may err about which history is the good one.
        let verified = retired.snapshots.iter().any(|c| c.state == State::Verified);
        if own && verified && !leaves_a_backup(&catalog, 0, self.what, &retired) {
            return Err(self
                .refused(format!("store {} would keep no verified snapshot of this node's cluster", opened.name))
                .remedy("take a snapshot first"));
        }
        let pinned: Vec<String> = retired.pinned().map(|c| c.id.to_string()).collect();
        if !pinned.is_empty() {
            return Err(self
                .refused(format!("pinned in store {}: {}", opened.name, pinned.join(", ")))
                .remedy("unpin them first if they may go: `refloat snapshot unpin ID`"));
        }
        Ok((retired, catalog))
    }

    /// A freeze protects a restore, which may read what a person takes for old; by a clock that was set, nobody knows
    /// whether somebody still takes snapshots.
    fn refuse_held(&self, opened: &Opened, now: Timestamp) -> Result<()> {
        let freeze = frozen(self.settings, opened, Some(self.what.lineage));
        let holds = holds_always(self.stores.clock_jump(now), freeze.as_ref(), now);
        let Some(first) = holds.first() else { return Ok(()) };
        let why: Vec<String> = holds.iter().map(|hold| hold.say(&[]).to_string()).collect();
        Err(Error::new(Code::Held, "retire lineage", self.what.lineage.to_string())
            .because(why.join("; "))
            .remedy(first.remedy()))
    }

    fn refuse_two_timelines(&self, retired: &Retired) -> Result<()> {
        let timelines: Vec<String> = retired.timelines().iter().map(ToString::to_string).collect();
        match self.what.timeline {
            Some(Which::Number(number)) if timelines.len() > 1 => {
                Err(Error::new(Code::Ambiguous, "retire timeline", number.to_string())
                    .because(format!("it fits {} timelines: {}", timelines.len(), timelines.join(", ")))
                    .remedy("give number and name: --timeline NUMBER-NAME"))
            }
            _ => Ok(()),
        }
    }

    fn refused(&self, why: String) -> Error {
        Error::new(Code::Refused, "retire lineage", self.what.lineage.to_string()).because(why)
    }

    /// A part of the current lineage may go, where it is neither its newest timeline nor this node's.
    fn refuse_current(&self, catalog: &Catalog<'_>, own: bool, now: Timestamp) -> Result<()> {
        let Retire { lineage, timeline, node } = self.what;
        let ids = || catalog.entries(*lineage).filter(|e| e.has_manifest()).map(|e| e.id());
        let newest_timeline = ids().map(|id| id.timeline()).max();
        let number = timeline.map(Which::number);
        let old_timeline = number.is_some_and(|number| Some(number) != newest_timeline || number == 0);
        let gone_node = node.as_ref().is_some_and(|node| node != self.node);
        if own && !old_timeline && !gone_node {
            return Err(self
                .refused("it is the lineage that this node takes snapshots of".into())
                .remedy("name another lineage, an older --timeline, or a --node that is gone"));
        }
        // Somebody else's current one: its newest snapshot is younger than two slots of the schedule.
        let theirs = ids().filter(|id| node.as_ref().is_none_or(|node| id.node() == node));
        let newest = theirs.filter(|id| id.timeline() > 0).max_by_key(|id| id.taken_at());
        let snapshot = &self.settings.snapshot;
        let in_use = |id: &&SnapshotId| {
            let idle_at = snapshot.schedule.nth_after(id.taken_at(), 2, &snapshot.timezone);
            idle_at.is_none_or(|idle_at| now < idle_at)
        };
        match newest.filter(|_| !old_timeline).filter(in_use) {
            Some(id) => Err(self
                .refused(format!("somebody takes snapshots of it: {id} is younger than two slots of the schedule"))
                .remedy("stop taking them, wait until two slots have passed, then try again")),
            None => Ok(()),
        }
    }
}

/// Which cluster this node may belong to: the state remembers it, else the snapshots must leave no doubt. `None` where
/// there are none. Good enough to refuse by.
fn own_lineage(stores: &OpenStores, catalog: &Catalog<'_>, node: &Node) -> Result<Option<LineageId>> {
    if let Some(lineage) = stores.lineage() {
        return Ok(Some(lineage));
    }
    let with = |own: bool| -> Vec<LineageId> {
        let counts = |l: &LineageId| catalog.entries(*l).any(|e| e.has_manifest() && (!own || e.id().node() == node));
        catalog.lineages().filter(counts).collect()
    };
    let candidates = match with(true) {
        own if own.is_empty() => with(false),
        own => own,
    };
    match candidates.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Error::new(Code::ListingInDoubt, "tell which cluster this node belongs to", node.as_str())
                .because(format!(
                    "the stores hold snapshots of several, and this node took none lately: {}",
                    names.join(", ")
                ))
                .remedy("take a snapshot first: it tells which cluster is this node's"))
        }
    }
}
