//! Prunes the configured stores: reads each, decides, keeps writers out, looks again, acts (design §7).
//!
//! In: settings and what a person agreed to. Out: a plan a store, then what was done. The daemon, the command and a
//! take that is short of space all go this way.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::state::state_patience;
use super::stores::{OpenStores, Opened, reserved};
use crate::catalog::prune::{self, Found, Plan, Reach, Report};
use crate::catalog::retention::{Candidate, Freeze, Policy, Situation, Space};
use crate::catalog::{Catalog, Digest, LineageId, Node, SnapshotId, State, freeze};
use crate::config::{Scope, Settings, SnapshotSettings};
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::fs::{Dir, Tenancy};
use crate::store::Store;

/// Writers wait ten seconds for a sweep; so long and no longer they are kept out at a time.
pub(super) const TURN: Duration = Duration::from_secs(5);
/// How long a prune waits for writers.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
/// Between two turns, so that writers, who look each 50 ms, get in.
pub(super) const GAP: Duration = Duration::from_millis(150);

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// A person looked: the clock is right, although snapshots are overdue.
    pub clock_trusted: bool,
    /// The lineage of the own member's cluster, where it was asked; the node's own record comes first.
    pub lineage: Option<LineageId>,
    /// It makes room for a snapshot that is about to be taken: that none was for long holds nothing then.
    pub for_a_take: bool,
    /// What a snapshot that is about to be taken will store, and what must be free for it meanwhile, in bytes.
    pub coming: (u64, u64),
}

/// The plan for one store, with the figures that it was made from.
#[derive(Debug)]
pub struct Planned {
    pub plan: Plan,
    /// `None`: no snapshot tells which cluster this node belongs to, so there is nothing to plan.
    pub lineage: Option<LineageId>,
    pub scope: Scope,
    pub space: Space,
    /// Of the file system.
    pub total: Option<u64>,
    pub max_bytes: Option<u64>,
    /// Names in the store that refloat did not write.
    pub foreign: u64,
}

/// Everything that stays the same from the first look to the last.
pub struct Pruner<'a> {
    pub settings: &'a Settings,
    pub node: &'a Node,
    /// All that are configured: what they know counts, also in stores that are not pruned.
    pub stores: &'a OpenStores,
    pub request: Request,
}

impl Pruner<'_> {
    /// A plan for one store. An error when its list cannot be trusted.
    pub fn plan(&self, opened: &Opened, now: Timestamp, progress: &dyn Progress) -> Result<Planned> {
        self.look(opened, now, progress).map(|(planned, ..)| planned)
    }

    /// Looks again, holds the plan against the one that was agreed to, and acts. Gives the plan as it was then, which
    /// does the same.
    ///
    /// `PlanChanged` when the store is not what it was; `LockHeld` when somebody writes there for too long. Once something
    /// was done, such an error is in the report.
    pub fn act(
        &self,
        opened: &Opened,
        agreed: Digest,
        now: Timestamp,
        progress: &dyn Progress,
        cancel: &CancellationToken,
    ) -> Result<(Planned, Report)> {
        let mut tenancy = Some(alone(opened, cancel)?);
        let (mut planned, mut catalog, mut at) = self.look(opened, now, progress)?;
        if planned.plan.hash != agreed {
            return Err(changed(opened));
        }
        crash::point!("prune::looked");
        let (mut whole, mut from, mut gone) = (Report::default(), 0, 0u64);
        let total = planned.plan.decisions.remove.len() as u64;
        loop {
            if let Some(error) = held(&opened.name, &planned.plan) {
                return Ok((planned, whole.ended_by(error)?));
            }
            let (turn, done) = (Instant::now(), whole.removed.len() as u64);
            let report = prune::act(&planned.plan, &catalog, (at, from), now, &mut |report: &Report| {
                progress.bytes(done + report.removed.len() as u64, Some(total), "snapshots");
                turn.elapsed() < TURN && !cancel.is_cancelled()
            });
            from += report.steps;
            gone = gone.wrapping_add(report.gone);
            let vanished = report.refused.iter().any(|r| r.error.code() == Code::StoreVanished);
            let over = !report.stopped || vanished || cancel.is_cancelled();
            whole.append(report);
            if let Some(error) = whole.failed.take() {
                return Ok((planned, whole.ended_by(error)?));
            }
            if over {
                return Ok((planned, whole));
            }
            // Writers get their turn. If anything came of it, all is looked at again; nothing new may go then.
            drop(tenancy.take());
            std::thread::sleep(GAP);
            let again = alone(opened, cancel).and_then(|only| {
                tenancy = Some(only);
                if catalog.is_still_so(gone)? {
                    return Ok(None);
                }
                let again = self.look(opened, now, progress)?;
                if is_part(&again.0.plan, &planned.plan) { Ok(Some(again)) } else { Err(changed(opened)) }
            });
            match again {
                Ok(None) => {}
                Ok(Some((fresh, seen, place))) => (planned, catalog, at, from, gone) = (fresh, seen, place, 0, 0),
                Err(error) => return Ok((planned, whole.ended_by(error)?)),
            }
        }
    }

    fn look<'c>(
        &'c self,
        opened: &'c Opened,
        now: Timestamp,
        progress: &dyn Progress,
    ) -> Result<(Planned, Catalog<'c>, u16)> {
        if !opened.store.id().is_empty() {
            opened.store.check_place()?;
        }
        let store: &dyn Store = &*opened.store;
        let catalog = self.stores.read_with(opened, progress)?;
        // The own store is the first of those that could be read.
        let at = 0;
        let lineage = self.lineage(&catalog)?;
        self.own_newest_is_there(opened, &catalog, lineage)?;
        let scope = opened.settings.scope;
        let found = match lineage {
            Some(lineage) => prune::find(&catalog, at, &Reach { scope, node: self.node, lineage }),
            None => Found::default(),
        };
        let space = opened.store.space()?;
        let figures = Space {
            used: found.usage.used,
            unfinished: found.usage.unfinished,
            free: space.map(|s| s.free),
            reserved: space.map(|s| reserved(opened, s.total)).transpose()?.unwrap_or(0),
            coming: self.request.coming.0,
            coming_free: self.request.coming.1,
        };
        let mut policy = self.policy(opened, lineage);
        let newest = newest_verified(&found.candidates, &policy);
        let mut overdue_at = newest.and_then(|newest| overdue(&self.settings.snapshot, newest));
        let mut freeze = frozen(self.settings, opened, lineage);
        if self.request.for_a_take && overdue_at.is_some_and(|at| now >= at) {
            // Snapshots are overdue because they find no room: that must not keep them from getting it. Ages do not
            // count from the clock, and what does is taken for not over: a freeze, and the grace of the trash.
            overdue_at = None;
            freeze.iter_mut().for_each(|freeze| freeze.until = None);
            if !policy.trash_grace.is_zero() {
                policy.trash_grace = Duration::MAX;
            }
        }
        let situation = Situation {
            now,
            overdue_at,
            clock_jump: self.stores.clock_jump(now),
            clock_trusted: self.request.clock_trusted,
            freeze,
            space: figures,
        };
        let planned = Planned {
            plan: prune::plan(store, found, &policy, &situation),
            lineage,
            scope,
            space: figures,
            total: space.map(|s| s.total),
            max_bytes: policy.max_bytes,
            foreign: catalog.foreign_in(at),
        };
        Ok((planned, catalog, at))
    }

    /// Which cluster this node belongs to, by its own record or its member's word, never by what a store happens to hold:
    /// another cluster may share that, and have a node of this name. `None` where there are no snapshots at all.
    fn lineage(&self, catalog: &Catalog<'_>) -> Result<Option<LineageId>> {
        if let Some(lineage) = self.stores.lineage().or(self.request.lineage) {
            return Ok(Some(lineage));
        }
        let with = |l: &LineageId| catalog.entries(*l).any(|e| e.has_manifest());
        let others: Vec<String> = catalog.lineages().filter(with).map(|l| l.to_string()).collect();
        if others.is_empty() {
            return Ok(None);
        }
        Err(Error::new(Code::ListingInDoubt, "tell which cluster this node belongs to", self.node.as_str())
            .because(format!(
                "its state directory remembers no snapshot; those in the stores ({}) may be another cluster's",
                others.join(", ")
            ))
            .remedy("take a snapshot first: it tells which cluster is this node's"))
    }

    fn policy(&self, opened: &Opened, lineage: Option<LineageId>) -> Policy {
        Policy {
            rules: opened.settings.retention.clone(),
            timezone: self.settings.snapshot.timezone.clone(),
            scope: opened.settings.scope,
            node: self.node.clone(),
            lineage: lineage.unwrap_or(LineageId([0; 8])),
            max_bytes: opened.settings.max_bytes,
            trash_grace: opened.settings.trash_grace,
        }
    }

    /// A list without the snapshot that this node published last, and without any newer one, is not the list of that
    /// store.
    fn own_newest_is_there(&self, opened: &Opened, catalog: &Catalog<'_>, lineage: Option<LineageId>) -> Result<()> {
        let Some(newest) = self.stores.newest(&opened.settings.path) else { return Ok(()) };
        // By the name that this node had then: it may have a new one since.
        let reaches = |id: &SnapshotId| opened.settings.scope == Scope::Cluster || id.node() == newest.node();
        let known = |l: LineageId| {
            catalog.entries(l).any(|e| *e.id() >= newest && reaches(e.id()) && catalog.has_manifest(l, e.id(), 0))
        };
        if lineage.is_some_and(known) {
            return Ok(());
        }
        Err(Error::new(Code::ListingInDoubt, "prune store", &opened.name)
            .because(format!("its list lacks {newest}, the newest that this node published there"))
            .remedy("see what happened to that store; a new `refloat snapshot take` makes its own snapshot the newest"))
    }
}

/// The freeze that stands longest: of a lineage in this store, or of this node.
pub(super) fn frozen(settings: &Settings, opened: &Opened, lineage: Option<LineageId>) -> Option<Freeze> {
    let here = lineage.and_then(|l| freeze::in_store(&*opened.store, l));
    let path = settings.paths.state.clone();
    let looked = state_patience(&path, opened.store.limits())
        .look("look for a freeze in", move || Dir::open(&path).map(|state| freeze::in_state(&state)));
    let local = match looked {
        Ok(freeze) => freeze,
        Err(e) if e.code() == Code::NotFound => None,
        Err(e) => Some(Freeze { until: None, reason: format!("the state directory cannot be read: {}", e.line()) }),
    };
    freeze::longest(here.into_iter().chain(local))
}

fn changed(opened: &Opened) -> Error {
    Error::new(Code::PlanChanged, "prune store", &opened.name)
        .because("it is not what it was when the plan was made")
        .remedy("look at the new plan with `refloat prune --dry-run`, then run it again")
}

/// Keeps writers out of a store, once they have ended.
pub(super) fn alone(opened: &Opened, cancel: &CancellationToken) -> Result<Tenancy> {
    let begun = Instant::now();
    loop {
        if let Some(tenancy) = opened.store.alone()? {
            return Ok(tenancy);
        }
        if cancel.is_cancelled() {
            return Err(Error::new(Code::Canceled, "prune store", &opened.name));
        }
        if begun.elapsed() >= PATIENCE {
            return Err(Error::new(Code::LockHeld, "prune store", &opened.name)
                .because("somebody writes there, or prunes it")
                .remedy("wait until it ends, then try again"));
        }
        std::thread::sleep(PAUSE);
    }
}

/// The newest in history that rules would count.
fn newest_verified(candidates: &[Candidate], policy: &Policy) -> Option<Timestamp> {
    let counts = |c: &&Candidate| {
        let here = c.lineage == policy.lineage && (policy.scope == Scope::Cluster || *c.id.node() == policy.node);
        here && c.state == State::Verified && !c.imported
    };
    candidates.iter().filter(counts).map(|c| &c.id).max().map(|id| id.taken_at())
}

/// When two slots of the schedule have passed without a snapshot.
fn overdue(snapshot: &SnapshotSettings, newest: Timestamp) -> Option<Timestamp> {
    snapshot.schedule.nth_after(newest, 2, &snapshot.timezone)
}

/// Whether one plan does nothing that the other one would not do; what would have waited in the trash still does.
fn is_part(part: &Plan, whole: &Plan) -> bool {
    fn removed(plan: &Plan) -> impl Iterator<Item = ((LineageId, &SnapshotId), bool)> {
        let candidate = |index: usize| plan.found.candidates.get(index).map(|c| (c.lineage, &c.id));
        plan.decisions.remove.iter().filter_map(move |r| Some((candidate(r.candidate)?, r.at_once)))
    }
    fn emptied(plan: &Plan) -> impl Iterator<Item = (LineageId, &SnapshotId, Timestamp)> {
        plan.decisions.empty.iter().filter_map(|e| plan.found.trash.get(e.trashed)).map(|t| (t.lineage, &t.id, t.at))
    }
    let (agreed, agreed_trash): (HashMap<_, _>, HashSet<_>) = (removed(whole).collect(), emptied(whole).collect());
    let shown = |(id, at_once): ((LineageId, &SnapshotId), bool)| {
        agreed.get(&id).is_some_and(|agreed_at_once| *agreed_at_once || !at_once)
    };
    removed(part).all(shown) && emptied(part).all(|e| agreed_trash.contains(&e))
}

/// Why nothing may be removed now, and what ends the gravest of it.
pub fn held(store: &str, plan: &Plan) -> Option<Error> {
    let holds = &plan.decisions.hold;
    let why: Vec<String> = holds.iter().map(|hold| hold.say(&plan.found.candidates).to_string()).collect();
    let first = holds.first()?;
    Some(Error::new(Code::Held, "prune store", store).because(why.join("; ")).remedy(first.remedy()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::TimelineId;
    use crate::catalog::retention::{Decisions, Removal};

    /// Removals by revision, each with whether it goes past the trash.
    fn plan(removals: &[(i64, bool)]) -> Plan {
        let (mut found, mut decisions) = (Found::default(), Decisions::default());
        for (candidate, (revision, at_once)) in removals.iter().enumerate() {
            let id = SnapshotId::new(1, *revision, Timestamp::UNIX_EPOCH, "cp1".parse().unwrap()).unwrap();
            found.candidates.push(Candidate {
                id,
                lineage: LineageId([1; 8]),
                timeline: TimelineId { number: 1, hex: [1; 4] },
                state: State::Verified,
                pinned: false,
                imported: false,
                finished_at: Timestamp::UNIX_EPOCH,
                bytes: 1,
            });
            decisions.remove.push(Removal { candidate, reasons: Vec::new(), at_once: *at_once });
        }
        Plan { store: "a".into(), found, decisions, hash: Digest([0; 32]) }
    }

    #[test]
    fn a_later_turn_does_only_what_was_agreed_to() {
        let agreed = plan(&[(1, true), (2, false), (3, false)]);
        for (part, want) in [
            (&[][..], true),
            (&[(2, false), (3, false)], true),
            (&[(1, false)], true),
            (&[(4, false)], false),
            // It was to wait in the trash.
            (&[(2, true)], false),
        ] {
            assert_eq!(is_part(&plan(part), &agreed), want, "{part:?}");
        }
    }
}
