//! A whole lineage, timeline or node's part of one, removed because a person says so (design §7).
//!
//! In: a catalogue and what is to go. Out: a [`Retired`] that prints, then a [`Report`]. Nothing waits in the trash:
//! the person was shown what goes. Pins hold here too, and what cannot be read stays.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;

use super::act::{Report, Work};
use super::found::{Found, snapshot};
use crate::catalog::index::Catalog;
use crate::catalog::list::Unreadable;
use crate::catalog::names::Name;
use crate::catalog::retention::{Candidate, Trashed};
use crate::catalog::{LineageId, Node, SnapshotId, State, TimelineId};

/// What is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retire {
    pub lineage: LineageId,
    pub timeline: Option<Which>,
    /// Only what this node took.
    pub node: Option<Node>,
}

/// Only one timeline. Two nodes that saw two restores at once may have given both one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The one with this number; 0 are the imports.
    Number(u16),
    Named(TimelineId),
}

impl Which {
    pub fn number(self) -> u16 {
        match self {
            Which::Number(number) => number,
            Which::Named(id) => id.number,
        }
    }

    fn is(self, timeline: TimelineId) -> bool {
        match self {
            Which::Number(number) => timeline.number == number,
            Which::Named(id) => timeline == id,
        }
    }
}

impl Retire {
    /// As far as an id tells, which has the number of a timeline alone.
    fn has(&self, lineage: LineageId, id: &SnapshotId) -> bool {
        lineage == self.lineage
            && self.timeline.is_none_or(|which| id.timeline() == which.number())
            && self.node.as_ref().is_none_or(|node| id.node() == node)
    }

    fn is_whole(&self) -> bool {
        self.timeline.is_none() && self.node.is_none()
    }

    /// Whether the id alone says that something belongs to it.
    fn goes_by_id(&self) -> bool {
        !matches!(self.timeline, Some(Which::Named(_)))
    }
}

/// What would go from one store.
#[derive(Debug, Default)]
pub struct Retired {
    /// Oldest first.
    pub snapshots: Vec<Candidate>,
    /// Data and notes without a manifest; none for a timeline by name, which their ids do not have.
    pub strays: Vec<(Name, u64)>,
    pub trash: Vec<Trashed>,
    /// Evidence, once no snapshot needs it.
    pub files: Vec<Name>,
    /// Stays, and the evidence with it.
    pub unreadable: Vec<Unreadable>,
}

impl Retired {
    pub fn is_empty(&self) -> bool {
        let Retired { snapshots, strays, trash, files, .. } = self;
        snapshots.is_empty() && strays.is_empty() && trash.is_empty() && files.is_empty()
    }

    /// Their timelines, each once.
    pub fn timelines(&self) -> BTreeSet<TimelineId> {
        self.snapshots.iter().map(|c| c.timeline).collect()
    }

    pub fn pinned(&self) -> impl Iterator<Item = &Candidate> {
        self.snapshots.iter().filter(|c| c.pinned)
    }

    /// Bytes that the file system gets back.
    pub fn bytes(&self) -> u64 {
        let snapshots = self.snapshots.iter().map(|c| c.bytes);
        let others = self.strays.iter().map(|(_, bytes)| *bytes).chain(self.trash.iter().map(|t| t.bytes));
        snapshots.chain(others).fold(0, u64::saturating_add)
    }
}

/// Looks for all of it in the store at place `at` of the catalogue.
pub fn find(catalog: &Catalog<'_>, at: u16, what: &Retire) -> Retired {
    let Some(store) = catalog.store(usize::from(at)) else { return Retired::default() };
    let (mut found, mut retired) = (Found::default(), Retired::default());
    for entry in catalog.entries(what.lineage).filter(|e| what.has(e.lineage(), e.id())) {
        let Some(copy) = entry.copies.iter().find(|c| c.store == at) else { continue };
        if copy.manifest {
            snapshot(catalog.load(&entry), &entry, store.name(), copy.data().map(|(_, size)| size).sum(), &mut found);
        } else if what.goes_by_id() {
            let names = copy.data().map(|(codec, size)| (Name::Data(copy.lineage, copy.id.clone(), codec), size));
            retired.strays.extend(names);
        }
    }
    let by_id = |lineage, id: &SnapshotId| what.goes_by_id() && what.has(lineage, id);
    let notes = catalog.notes().iter().filter(|n| n.store == at && !n.irregular && by_id(n.lineage, &n.id));
    for note in notes.filter(|n| !catalog.has_manifest(n.lineage, &n.id, at)) {
        retired.strays.push((Name::Note(note.lineage, note.id.clone(), note.kind.clone(), note.at), 0));
    }
    super::found::trash(catalog, at, &by_id, &mut found);
    retired.trash = found.trash.into_iter().filter(|t| by_id(t.lineage, &t.id)).collect();
    retired.strays.extend(found.leftovers.iter().map(|rest| (rest.name().clone(), rest.bytes())));
    retired.unreadable = found.unreadable;
    retired.snapshots = found.candidates;
    retired.snapshots.retain(|c| what.timeline.is_none_or(|which| which.is(c.timeline)));
    retired.snapshots.sort_by(|a, b| a.id.cmp(&b.id));
    if retired.unreadable.is_empty() && what.node.is_none() {
        let here = |store: usize| store == usize::from(at);
        let timelines = catalog.timeline_files(what.lineage).filter(|(_, store)| here(*store));
        let timelines = timelines.filter(|(id, _)| what.timeline.is_none_or(|which| which.is(*id)));
        retired.files.extend(timelines.map(|(id, _)| Name::Timeline(what.lineage, id)));
        if what.is_whole() && catalog.lineage_files(what.lineage).any(here) {
            retired.files.push(Name::Lineage(what.lineage));
        }
    }
    retired
}

/// Whether the store keeps a verified snapshot of the lineage, imports aside, that is not among those that go.
pub fn leaves_a_backup(catalog: &Catalog<'_>, at: u16, what: &Retire, retired: &Retired) -> bool {
    let Some(store) = catalog.store(usize::from(at)) else { return false };
    let going: HashSet<&SnapshotId> = retired.snapshots.iter().map(|c| &c.id).collect();
    // Newest first, so the first one that is looked at usually suffices.
    catalog.entries(what.lineage).filter(|e| !going.contains(e.id()) && e.id().timeline() > 0).any(|entry| {
        let mut found = Found::default();
        if entry.copies.iter().any(|c| c.store == at && c.manifest) {
            snapshot(catalog.load(&entry), &entry, store.name(), 0, &mut found);
        }
        found.candidates.iter().any(|c| c.state == State::Verified && !c.imported)
    })
}

/// Removes it, the oldest snapshot first and the evidence last. Before each step `go_on` is asked.
pub fn act(
    retired: &Retired,
    catalog: &Catalog<'_>,
    at: u16,
    now: Timestamp,
    go_on: &mut dyn FnMut(&Report) -> bool,
) -> Report {
    let mut report = Report::default();
    let Some(store) = catalog.store(usize::from(at)) else { return report };
    let work = Work { store, catalog, at, now, gone: Cell::new(0) };
    for c in retired.snapshots.iter().filter(|c| !c.pinned) {
        let step = |report: &mut Report| work.remove(c.lineage, &c.id, c.bytes, true, report);
        if !report.step(&format!("{}/{}", c.lineage, c.id), go_on, step) {
            return report;
        }
    }
    for (name, bytes) in &retired.strays {
        if !report.step(&name.to_string(), go_on, |report| work.forget(name, *bytes, report)) {
            return report;
        }
    }
    for trashed in &retired.trash {
        let name = format!("{}/{}", trashed.lineage, trashed.id);
        if !report.step(&name, go_on, |report| work.empty(trashed, report)) {
            return report;
        }
    }
    // Whatever stayed needs its evidence.
    if report.refused.is_empty() && retired.pinned().next().is_none() {
        for name in &retired.files {
            if !report.step(&name.to_string(), go_on, |report| work.forget(name, 0, report)) {
                return report;
            }
        }
    }
    report
}
