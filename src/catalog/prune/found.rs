//! What one store holds, as retention wants to know it, and what runs that were killed have left in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::index::{Catalog, Entry};
use crate::catalog::list::Unreadable;
use crate::catalog::load::Loaded;
use crate::catalog::names::Name;
use crate::catalog::retention::{Candidate, Trashed};
use crate::catalog::{LineageId, Node, SnapshotId, State};
use crate::config::Scope;

/// Facts of one store.
#[derive(Debug, Default)]
pub struct Found {
    pub candidates: Vec<Candidate>,
    pub trash: Vec<Trashed>,
    pub leftovers: Vec<Leftover>,
    /// Snapshots whose manifest or notes cannot be used: neither counted nor removed.
    pub unreadable: Vec<Unreadable>,
    pub usage: Usage,
}

/// Bytes of this scope, of all lineages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// What counts for `max_bytes`: data, whole or not, and trash.
    pub used: u64,
    /// Data without a manifest, trash aside.
    pub unfinished: u64,
}

/// Counts by names and sizes alone.
pub fn usage(catalog: &Catalog<'_>, at: u16, scope: Scope, node: &Node) -> Usage {
    let counts = |id: &SnapshotId| scope == Scope::Cluster || id.node() == node;
    let mut usage = Usage::default();
    for copy in catalog.all_entries().flat_map(|e| e.copies).filter(|c| c.store == at && counts(&c.id)) {
        let data: u64 = copy.data().map(|(_, size)| size).sum();
        usage.used = usage.used.saturating_add(data);
        if !copy.manifest {
            usage.unfinished = usage.unfinished.saturating_add(data);
        }
    }
    let trash = catalog.trash().iter().filter(|t| t.store == at && counts(&t.id));
    usage.used = trash.map(|t| t.bytes()).fold(usage.used, u64::saturating_add);
    usage
}

/// Something that a killed run left, and the next one may clean up once nobody writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// Data or a note of this node without a manifest: a take, an import or a removal was cut short.
    Stray { name: Name, bytes: u64 },
    /// A removal was cut short: its manifest lies in the trash, this does not yet.
    Half {
        name: Name,
        bytes: u64,
        removed_at: jiff::Timestamp,
        /// What is in the trash of that removal goes now, so this does too.
        at_once: bool,
    },
    /// The last of a removal: in the trash is a manifest, perhaps with notes, and nowhere its data.
    Rest { name: Name, bytes: u64 },
}

impl Leftover {
    pub fn name(&self) -> &Name {
        match self {
            Leftover::Stray { name, .. } | Leftover::Half { name, .. } | Leftover::Rest { name, .. } => name,
        }
    }

    pub fn bytes(&self) -> u64 {
        match self {
            Leftover::Stray { bytes, .. } | Leftover::Half { bytes, .. } | Leftover::Rest { bytes, .. } => *bytes,
        }
    }

    /// Why it may go, or where.
    pub fn reason(&self) -> &'static str {
        match self {
            Leftover::Stray { name: Name::Data(..), .. } => "data of this node without a manifest",
            Leftover::Stray { .. } => "a note of this node about a snapshot that is gone",
            Leftover::Half { at_once: true, .. } => "a removal was cut short: this goes with the rest of it",
            Leftover::Half { .. } => "a removal was cut short: this follows into the trash",
            Leftover::Rest { .. } => "the last of a removal: its data is gone",
        }
    }
}

/// Whose things are looked at.
pub struct Reach<'a> {
    pub scope: Scope,
    pub node: &'a Node,
    pub lineage: LineageId,
}

impl Reach<'_> {
    fn node(&self, id: &SnapshotId) -> bool {
        self.scope == Scope::Cluster || id.node() == self.node
    }

    fn has(&self, lineage: LineageId, id: &SnapshotId) -> bool {
        lineage == self.lineage && self.node(id)
    }

    /// What this node wrote itself: nobody else cleans that up, and this node nobody else's.
    fn own(&self, lineage: LineageId, id: &SnapshotId) -> bool {
        lineage == self.lineage && id.node() == self.node
    }
}

/// Reads every manifest of the store at place `at` of the catalogue, and those of the same snapshots in the others:
/// a pin counts wherever it was seen.
pub fn find(catalog: &Catalog<'_>, at: u16, reach: &Reach<'_>) -> Found {
    let Some(store) = catalog.store(usize::from(at)) else { return Found::default() };
    let usage = usage(catalog, at, reach.scope, reach.node);
    let mut found = Found { usage, ..Found::default() };
    let removals = Removals::of(catalog);
    let removed_at = |lineage, id: &SnapshotId| removals.newest(usize::from(at), lineage, id);
    let listed = |entry: &Entry<'_>| entry.copies.iter().any(|c| c.store == at && c.manifest);
    for (entry, loaded) in catalog.loading(catalog.all_entries().filter(listed)) {
        let copy = entry.copies.iter().find(|c| c.store == at);
        let bytes = copy.into_iter().flat_map(|c| c.data()).map(|(_, size)| size).sum();
        snapshot(loaded, &entry, store.name(), bytes, &mut found);
    }
    for entry in catalog.all_entries() {
        let Some(copy) = entry.copies.iter().find(|c| c.store == at && !c.manifest) else { continue };
        for (codec, bytes) in copy.data() {
            let name = Name::Data(copy.lineage, copy.id.clone(), codec);
            found.leftovers.extend(stray(
                name,
                bytes,
                copy.lineage,
                &copy.id,
                removed_at(copy.lineage, &copy.id),
                reach,
            ));
        }
    }
    for note in catalog.notes().iter().filter(|n| n.store == at && !n.irregular) {
        if catalog.copy(note.lineage, &note.id, at).is_none_or(|copy| !copy.manifest) {
            let name = Name::Note(note.lineage, note.id.clone(), note.kind.clone(), note.at);
            found.leftovers.extend(stray(name, 0, note.lineage, &note.id, removed_at(note.lineage, &note.id), reach));
        }
    }
    trash(catalog, at, &|lineage, id| reach.has(lineage, id), &mut found);
    found
}

/// One snapshot as a candidate, or the reason why it is none.
pub(super) fn snapshot(loaded: Loaded, entry: &Entry<'_>, store: &str, bytes: u64, found: &mut Found) {
    let before = found.unreadable.len();
    found.unreadable.extend(loaded.unreadable.into_iter().filter(|u| u.store == store));
    // What was noted about it and cannot be read may be a dispute or a failed look: then nobody knows its worth.
    if found.unreadable.len() > before {
        return;
    }
    let Some(shown) = loaded.shown else { return };
    // Not in this store's list of copies: removed since the names were read.
    let Some(at) = shown.stores.iter().position(|s| s == store) else { return };
    found.candidates.push(Candidate {
        id: entry.id().clone(),
        lineage: entry.lineage(),
        timeline: shown.manifest.timeline,
        state: shown.states.get(at).copied().unwrap_or(State::Unverified),
        pinned: shown.pinned,
        imported: shown.manifest.imported.is_some(),
        finished_at: shown.manifest.finished_at,
        bytes,
    });
}

/// Removals done or under way: snapshots whose manifest lies in the trash, with the time in its name.
pub struct Removals<'c>(BTreeMap<(u16, LineageId, &'c SnapshotId), jiff::Timestamp>);

impl<'c> Removals<'c> {
    pub fn of(catalog: &'c Catalog<'_>) -> Removals<'c> {
        let mut newest = BTreeMap::new();
        for t in catalog.trash().iter().filter(|t| t.manifest.is_some()) {
            let known = newest.entry((t.store, t.lineage, &t.id)).or_insert(t.at);
            *known = t.at.max(*known);
        }
        Removals(newest)
    }

    /// When a snapshot was last removed from the store at this place.
    pub fn newest(&self, store: usize, lineage: LineageId, id: &SnapshotId) -> Option<jiff::Timestamp> {
        self.0.get(&(u16::try_from(store).ok()?, lineage, id)).copied()
    }
}

fn stray(
    name: Name,
    bytes: u64,
    lineage: LineageId,
    id: &SnapshotId,
    removed_at: Option<jiff::Timestamp>,
    reach: &Reach<'_>,
) -> Option<Leftover> {
    match removed_at {
        Some(removed_at) if reach.has(lineage, id) => Some(Leftover::Half { name, bytes, removed_at, at_once: false }),
        Some(_) => None,
        None => reach.own(lineage, id).then_some(Leftover::Stray { name, bytes }),
    }
}

/// The trash, removal by removal.
pub(super) fn trash(
    catalog: &Catalog<'_>,
    at: u16,
    within: &dyn Fn(LineageId, &SnapshotId) -> bool,
    found: &mut Found,
) {
    let halves: BTreeSet<(LineageId, SnapshotId)> = found
        .leftovers
        .iter()
        .filter_map(|l| match l {
            Leftover::Half { name: Name::Data(lineage, id, _), .. } => Some((*lineage, id.clone())),
            _ => None,
        })
        .collect();
    for t in catalog.trash().iter().filter(|t| t.store == at) {
        let half = halves.contains(&(t.lineage, t.id.clone()));
        if t.manifest.is_some() && !t.has_data() && !half && within(t.lineage, &t.id) {
            // The manifest last: without it what remains would wait for its time to be over.
            found.leftovers.extend(t.parts().map(|(name, bytes)| Leftover::Rest { name, bytes }));
        } else {
            found.trash.push(Trashed { id: t.id.clone(), lineage: t.lineage, at: t.at, bytes: t.bytes() });
        }
    }
}
