//! Does what a plan says, one removal after the other; a refusal of one leaves the others their turn.

use std::cell::Cell;

use jiff::Timestamp;

use super::found::Leftover;
use super::plan::Plan;
use crate::catalog::copies::CopyNames;
use crate::catalog::index::{Catalog, add_name};
use crate::catalog::manifest::MAX_BYTES;
use crate::catalog::names::{Name, TrashedName};
use crate::catalog::retention::Trashed;
use crate::catalog::{LineageId, SnapshotId};
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::fs::is_out_of_space;
use crate::store::Store;

/// What was done.
#[derive(Debug, Default)]
pub struct Report {
    pub removed: Vec<Removed>,
    /// Snapshots that left the trash for good.
    pub emptied: Vec<Trashed>,
    /// Leftovers of killed runs, cleaned up.
    pub cleaned: Vec<String>,
    /// What stayed although it was planned, and why.
    pub refused: Vec<Refused>,
    /// Bytes that went into the trash.
    pub to_trash: u64,
    /// Bytes that the file system has back.
    pub freed: u64,
    /// Stopped before its end, by request or because writers wait.
    pub stopped: bool,
    /// Steps that are behind it, refused ones too.
    pub steps: usize,
    /// The sum over the names that were taken away, see [`Catalog::is_still_so`].
    pub gone: u64,
    /// What ended it after some of it was done.
    pub failed: Option<Error>,
}

impl Report {
    /// Whether anything came of it.
    pub fn worked(&self) -> bool {
        !self.removed.is_empty() || !self.emptied.is_empty() || !self.cleaned.is_empty()
    }

    /// With the error that ended it; that error alone where nothing had been done.
    pub fn ended_by(mut self, error: Error) -> Result<Report> {
        if !self.worked() && self.refused.is_empty() {
            return Err(error);
        }
        self.failed = Some(error);
        Ok(self)
    }

    /// One step, if it is wanted; `false` when nothing more may be done.
    pub(super) fn step(
        &mut self,
        name: &str,
        go_on: &mut dyn FnMut(&Report) -> bool,
        step: impl FnOnce(&mut Report) -> Result<()>,
    ) -> bool {
        if !go_on(self) {
            self.stopped = true;
            return false;
        }
        crash::point!("prune::step");
        self.steps += 1;
        let Err(error) = step(self) else { return true };
        // The store answers nothing, or the call was given up on request: that is no refusal of this one.
        if matches!(error.code(), Code::StoreHung | Code::StateHung | Code::Canceled) {
            self.stopped = true;
            self.failed = Some(error);
            return false;
        }
        // The store is not what it was: nothing more is touched there.
        self.stopped = error.code() == Code::StoreVanished;
        self.refused.push(Refused { name: name.into(), error });
        !self.stopped
    }

    /// Adds what a later turn did.
    pub fn append(&mut self, mut more: Report) {
        self.removed.append(&mut more.removed);
        self.emptied.append(&mut more.emptied);
        self.cleaned.append(&mut more.cleaned);
        self.refused.append(&mut more.refused);
        self.to_trash = self.to_trash.saturating_add(more.to_trash);
        self.freed = self.freed.saturating_add(more.freed);
        self.stopped = more.stopped;
        self.steps += more.steps;
        self.gone = self.gone.wrapping_add(more.gone);
        self.failed = self.failed.take().or(more.failed);
    }
}

/// A snapshot that is gone from the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub id: SnapshotId,
    pub lineage: LineageId,
    pub bytes: u64,
    /// It waits in the trash.
    pub in_trash: bool,
}

#[derive(Debug)]
pub struct Refused {
    pub name: String,
    pub error: Error,
}

/// Acts in the store at place `at` of the catalogue that the plan was made from, after the first `from` steps of it.
/// Before each step `go_on` is asked.
pub fn act(
    plan: &Plan,
    catalog: &Catalog<'_>,
    (at, from): (u16, usize),
    now: Timestamp,
    go_on: &mut dyn FnMut(&Report) -> bool,
) -> Report {
    let mut report = Report::default();
    if plan.held() {
        return report;
    }
    let Some(store) = catalog.store(usize::from(at)) else { return report };
    let work = Work { store, catalog, at, now, gone: Cell::new(0) };
    let steps = plan.found.leftovers.iter().map(Step::Leftover);
    let steps =
        steps.chain(plan.decisions.empty.iter().filter_map(|e| plan.found.trash.get(e.trashed)).map(Step::Empty));
    let steps = steps.chain(plan.decisions.remove.iter().filter_map(|removal| {
        let candidate = plan.found.candidates.get(removal.candidate)?;
        Some(Step::Remove(candidate.lineage, &candidate.id, candidate.bytes, removal.at_once))
    }));
    for step in steps.skip(from) {
        let go_on = match step {
            Step::Leftover(leftover) => {
                report.step(&leftover.name().to_string(), go_on, |report| work.clean(leftover, report))
            }
            Step::Empty(trashed) => {
                let name = format!("{}/{}", trashed.lineage, trashed.id);
                report.step(&name, go_on, |report| work.empty(trashed, report))
            }
            Step::Remove(lineage, id, bytes, at_once) => report
                .step(&format!("{lineage}/{id}"), go_on, |report| work.remove(lineage, id, bytes, at_once, report)),
        };
        if !go_on {
            break;
        }
    }
    report.gone = work.gone.get();
    report
}

enum Step<'a> {
    Leftover(&'a Leftover),
    Empty(&'a Trashed),
    Remove(LineageId, &'a SnapshotId, u64, bool),
}

/// Where it is done.
pub(super) struct Work<'a> {
    pub store: &'a dyn Store,
    pub catalog: &'a Catalog<'a>,
    pub at: u16,
    pub now: Timestamp,
    pub gone: Cell<u64>,
}

impl Work<'_> {
    /// The manifest goes first: from then on there is no such snapshot, whatever happens to the rest.
    pub fn remove(
        &self,
        lineage: LineageId,
        id: &SnapshotId,
        bytes: u64,
        at_once: bool,
        report: &mut Report,
    ) -> Result<()> {
        let Some(copy) = self.catalog.copy(lineage, id, self.at) else { return Ok(()) };
        let manifest = Name::Manifest(lineage, id.clone());
        let rest = self.beside(copy);
        // What would be refused half-way is refused before the first step.
        for name in std::iter::once(&manifest).chain(&rest) {
            match self.store.check_removable(&name.to_string()) {
                Err(e) if e.code() == Code::NotFound => {}
                other => other?,
            }
        }
        let in_trash = self.put_away(&manifest, self.now)?;
        crash::point!("prune::manifest");
        let mut keep = in_trash && !at_once;
        for name in &rest {
            // A part that found no room there makes the others worthless.
            if keep {
                keep = self.put_away(name, self.now)?
            } else {
                self.delete(name)?
            }
            crash::point!("prune::part");
        }
        if in_trash && !keep {
            self.delete(&Name::Trash(
                lineage,
                crate::catalog::time::to_millis(self.now),
                TrashedName::Manifest(id.clone()),
            ))?;
        }
        let sum = if keep { &mut report.to_trash } else { &mut report.freed };
        *sum = sum.saturating_add(bytes);
        report.removed.push(Removed { id: id.clone(), lineage, bytes, in_trash: keep });
        Ok(())
    }

    /// Notes and data under one id.
    fn beside(&self, copy: &CopyNames) -> Vec<Name> {
        let notes = self.catalog.notes_of(copy);
        let notes = notes.map(|n| Name::Note(n.lineage, n.id.clone(), n.kind.clone(), n.at));
        notes.chain(copy.data().map(|(codec, _)| Name::Data(copy.lineage, copy.id.clone(), codec))).collect()
    }

    /// Into the trash, or gone (`false`) where there is none: the kind of store has none, or the file system is so full
    /// that not even a name can be made.
    fn put_away(&self, name: &Name, at: Timestamp) -> Result<bool> {
        let to = name.clone().in_trash(at).ok_or_else(|| {
            Error::new(Code::Internal, "move into the trash", name.to_string()).because("it is no part of a snapshot")
        })?;
        if !self.store.renames() {
            return self.delete(name).map(|()| false);
        }
        match self.store.rename(&name.to_string(), &to.to_string()) {
            Ok(()) => {
                self.count(name);
                Ok(true)
            }
            // Somebody else removed it: what was wanted is so.
            Err(e) if e.code() == Code::NotFound => Ok(true),
            Err(e) if is_out_of_space(&e) => self.delete(name).map(|()| false),
            Err(e) => Err(e),
        }
    }

    fn delete(&self, name: &Name) -> Result<()> {
        match self.store.delete(&name.to_string()) {
            Ok(()) => {
                self.count(name);
                Ok(())
            }
            Err(e) if e.code() == Code::NotFound => Ok(()),
            other => other,
        }
    }

    fn count(&self, name: &Name) {
        self.gone.set(add_name(self.gone.get(), Some(name), &name.to_string()));
    }

    /// The manifest goes last: while it lies there, the next run knows what was under way.
    pub fn empty(&self, trashed: &Trashed, report: &mut Report) -> Result<()> {
        let copy = self.catalog.trashed(self.at, trashed.lineage, trashed.at, &trashed.id);
        for (name, size) in copy.into_iter().flat_map(|copy| copy.parts()) {
            self.delete(&name)?;
            report.freed = report.freed.saturating_add(size);
            crash::point!("prune::emptied");
        }
        report.emptied.push(trashed.clone());
        Ok(())
    }

    fn clean(&self, leftover: &Leftover, report: &mut Report) -> Result<()> {
        match leftover {
            Leftover::Half { name, bytes, at_once: true, .. } => {
                return self.forget(name, *bytes, report);
            }
            Leftover::Half { name, bytes, removed_at, .. } => {
                self.gone(name)?;
                let sum = if self.put_away(name, *removed_at)? { &mut report.to_trash } else { &mut report.freed };
                *sum = sum.saturating_add(*bytes);
            }
            Leftover::Stray { name, bytes } | Leftover::Rest { name, bytes } => {
                return self.forget(name, *bytes, report);
            }
        }
        report.cleaned.push(leftover.name().to_string());
        Ok(())
    }

    /// Deletes one object that no snapshot needs.
    pub fn forget(&self, name: &Name, bytes: u64, report: &mut Report) -> Result<()> {
        self.gone(name)?;
        self.delete(name)?;
        report.freed = report.freed.saturating_add(bytes);
        report.cleaned.push(name.to_string());
        Ok(())
    }

    /// Only a clear "not there" frees what stands beside a manifest; one that cannot be read may well be one.
    fn gone(&self, name: &Name) -> Result<()> {
        let (Name::Data(lineage, id, _) | Name::Note(lineage, id, ..)) = name else { return Ok(()) };
        match self.store.read(&Name::Manifest(*lineage, id.clone()).to_string(), MAX_BYTES) {
            Err(e) if e.code() == Code::NotFound => Ok(()),
            Err(e) => Err(e.during("look for manifest of", name.to_string())),
            Ok(_) => Err(Error::new(Code::ListingInDoubt, "clean up", name.to_string())
                .because("a manifest has appeared")
                .remedy("nothing: it stays")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told_beside_what_ended_it() {
        let error = || Error::new(Code::LockHeld, "prune store", "local");
        assert_eq!(Report::default().ended_by(error()).unwrap_err().code(), Code::LockHeld);
        let worked = Report { cleaned: vec!["a".into()], freed: 1, ..Report::default() };
        let refused = Report { refused: vec![Refused { name: "a".into(), error: error() }], ..Report::default() };
        for report in [worked, refused] {
            let (freed, ended) = (report.freed, report.ended_by(error()).unwrap());
            assert_eq!((ended.freed, ended.failed.map(|e| e.code())), (freed, Some(Code::LockHeld)));
        }
    }
}
