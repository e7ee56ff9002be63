//! All names of some stores, in memory and in order: what a listing, a placement and a sweep start from.
//!
//! A hundred thousand snapshots take some ten MiB. A list that cannot be right is an error, because deletions hang on
//! it (law 5); nothing is read here but names.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;

use super::copies::{CopyNames, NoteName, TrashedCopy};
use super::id::SnapshotId;
use super::list::{ForeignName, Unfinished};
use super::manifest::Codec;
use super::names::Name;
use super::value::{LineageId, Node, TimelineId};
use crate::error::{Code, Error, Result};
use crate::store::{Entry as ListedEntry, Store, each_entry};

/// More foreign names than this are counted, not kept.
const MAX_FOREIGN_NAMES: usize = 10_000;

#[derive(Debug, Default)]
struct LineageNames {
    /// Stores with a `lineage.json`.
    files: Vec<usize>,
    timelines: Vec<(TimelineId, usize)>,
}

/// All names of some stores, and their manifests on demand.
#[derive(Default)]
pub struct Catalog<'a> {
    stores: Vec<&'a dyn Store>,
    copies: Vec<CopyNames>,
    notes: Vec<NoteName>,
    lineages: BTreeMap<LineageId, LineageNames>,
    temps: Vec<(usize, Unfinished)>,
    trash: Vec<TrashedCopy>,
    /// By store: the sum over all names outside of the trash.
    sums: Vec<u64>,
    /// By store.
    foreign: Vec<u64>,
    foreign_names: Vec<ForeignName>,
}

/// One id over all stores that have something under it.
#[derive(Clone, Copy)]
pub struct Entry<'c> {
    first: &'c CopyNames,
    pub(super) copies: &'c [CopyNames],
}

impl<'c> Entry<'c> {
    pub fn id(&self) -> &'c SnapshotId {
        &self.first.id
    }

    pub fn lineage(&self) -> LineageId {
        self.first.lineage
    }

    /// Whether any store holds a manifest; without one it is no snapshot.
    pub fn has_manifest(&self) -> bool {
        self.copies.iter().any(|c| c.manifest)
    }

    /// Bytes of its data objects, over all stores.
    pub fn stored_bytes(&self) -> u64 {
        self.copies.iter().flat_map(CopyNames::data).map(|(_, size)| size).sum()
    }
}

impl<'a> Catalog<'a> {
    /// Lists the stores. Any store that cannot be listed to its end makes the whole an error.
    pub fn read(stores: &[&'a dyn Store]) -> Result<Catalog<'a>> {
        let (catalog, mut failed) = Catalog::read_available(stores);
        if failed.is_empty() { Ok(catalog) } else { Err(failed.swap_remove(0).1) }
    }

    /// Lists the stores that can be listed to their end, and names the others with their errors: one dead store does
    /// not hide what the rest holds. Nothing of a half-read list is kept.
    pub fn read_available(stores: &[&'a dyn Store]) -> (Catalog<'a>, Vec<(String, Error)>) {
        let mut catalog = Catalog::default();
        let mut failed = Vec::new();
        let mut nodes = HashSet::new();
        for store in stores {
            let read = Catalog::default().with_store(catalog.stores.len(), *store, &mut nodes);
            match read.map_err(|e| e.during("list store", store.name())) {
                Ok(mut one) => {
                    // Before the next one is read, so that no more than one store's names are held twice.
                    one.settle();
                    catalog.append(one);
                }
                Err(e) => failed.push((store.name().to_string(), e)),
            }
        }
        catalog.settle();
        (catalog, failed)
    }

    /// Takes over what was read from one more store.
    fn append(&mut self, mut one: Catalog<'a>) {
        self.stores.append(&mut one.stores);
        self.copies.append(&mut one.copies);
        self.notes.append(&mut one.notes);
        self.temps.append(&mut one.temps);
        self.trash.append(&mut one.trash);
        self.sums.append(&mut one.sums);
        self.foreign.append(&mut one.foreign);
        let room = MAX_FOREIGN_NAMES.saturating_sub(self.foreign_names.len());
        self.foreign_names.extend(one.foreign_names.into_iter().take(room));
        for (lineage, mut names) in one.lineages {
            let known = self.lineages.entry(lineage).or_default();
            known.files.append(&mut names.files);
            known.timelines.append(&mut names.timelines);
        }
    }

    /// Sorts, and puts what one store has under one id together.
    fn settle(&mut self) {
        self.copies.sort_unstable_by(|a, b| a.key().cmp(&b.key()));
        self.copies.dedup_by(|later, first| {
            let same = later.key() == first.key();
            if same {
                first.absorb(later);
            }
            same
        });
        self.copies.shrink_to_fit();
        self.notes.sort_unstable();
        // A directory is found once for each file in it.
        self.notes.dedup();
        self.trash.sort_unstable_by(|a, b| a.key().cmp(&b.key()));
        self.trash.dedup_by(|later, first| {
            let same = later.key() == first.key();
            if same {
                first.absorb(later);
            }
            same
        });
    }

    fn with_store(mut self, at: usize, store: &'a dyn Store, nodes: &mut HashSet<Node>) -> Result<Self> {
        self.stores.push(store);
        let mut foreign = 0;
        let index = u16::try_from(at).map_err(|_| {
            Error::new(Code::ListingInDoubt, "read list", store.location()).because("more stores than can be numbered")
        })?;
        let mut sum = 0;
        each_entry(store, &mut |entry| {
            let name = if entry.irregular { None } else { Name::parse(&entry.name) };
            sum = add_name(sum, name.as_ref(), &entry.name);
            match name {
                Some(name) => self.take((index, store.name()), name, &entry, nodes),
                None => {
                    if let Some(Name::Note(lineage, id, kind, at)) = stands_for(&entry.name) {
                        self.notes.push(NoteName { lineage, id, store: index, at, kind, irregular: true });
                    }
                    foreign += 1;
                    if self.foreign_names.len() < MAX_FOREIGN_NAMES {
                        self.foreign_names.push(ForeignName { store: store.name().into(), name: entry.name });
                    }
                }
            }
        })?;
        self.foreign.push(foreign);
        self.sums.push(sum);
        Ok(self)
    }

    /// Whether a new list of each store has the same names outside of the trash, apart from those that were taken away
    /// in the first store, whose sum is `gone`. Objects never change, so the same names are the same store.
    pub fn is_still_so(&self, gone: u64) -> Result<bool> {
        for (at, store) in self.stores.iter().enumerate() {
            let mut sum = if at == 0 { gone } else { 0 };
            each_entry(*store, &mut |entry| {
                let name = if entry.irregular { None } else { Name::parse(&entry.name) };
                sum = add_name(sum, name.as_ref(), &entry.name);
            })?;
            if self.sums.get(at) != Some(&sum) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take(&mut self, (store, store_name): (u16, &str), name: Name, entry: &ListedEntry, nodes: &mut HashSet<Node>) {
        let (size, modified) = (entry.size, entry.modified);
        let mut shared = |id: SnapshotId| match nodes.get(id.node()) {
            Some(node) => id.with_node(node),
            None => {
                nodes.insert(id.node().clone());
                id
            }
        };
        let blank =
            |lineage, id| CopyNames { lineage, id, store, manifest: false, plain: None, encrypted: None, modified };
        if let Some(lineage) = name.lineage() {
            self.lineages.entry(lineage).or_default();
        }
        match name {
            Name::Manifest(l, id) => {
                let copy = CopyNames { manifest: true, ..blank(l, shared(id)) };
                self.add_copy(copy);
            }
            Name::Data(l, id, Codec::Zstd) => {
                let copy = CopyNames { plain: Some(size), ..blank(l, shared(id)) };
                self.add_copy(copy);
            }
            Name::Data(l, id, Codec::ZstdAge) => {
                let copy = CopyNames { encrypted: Some(size), ..blank(l, shared(id)) };
                self.add_copy(copy);
            }
            Name::Note(lineage, id, kind, at) => {
                self.notes.push(NoteName { lineage, id: shared(id), store, at, kind, irregular: false });
            }
            Name::Lineage(l) => self.lineages.entry(l).or_default().files.push(usize::from(store)),
            Name::Timeline(l, t) => self.lineages.entry(l).or_default().timelines.push((t, usize::from(store))),
            Name::Temp(name) => {
                let store_name = store_name.to_string();
                self.temps.push((usize::from(store), Unfinished { store: store_name, name, size, modified }));
            }
            Name::Trash(lineage, at, was) => {
                let mut one = TrashedCopy::of(lineage, store, at, was, size);
                one.id = shared(one.id);
                match self.trash.last_mut() {
                    Some(last) if last.key() == one.key() => last.absorb(&mut one),
                    _ => self.trash.push(one),
                }
            }
            Name::Marker | Name::Segment { .. } | Name::Freeze(_) => {}
        }
    }

    /// Data and manifest stand next to each other in a list, so hardly any id is held twice even for a moment.
    fn add_copy(&mut self, copy: CopyNames) {
        match self.copies.last_mut() {
            Some(last) if last.key() == copy.key() => last.absorb(&copy),
            _ => self.copies.push(copy),
        }
    }
}

/// Adds a name to a sum that does not depend on order; what is in the trash does not count.
pub(super) fn add_name(sum: u64, name: Option<&Name>, text: &str) -> u64 {
    if matches!(name, Some(Name::Trash(..))) {
        return sum;
    }
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(text, &mut hasher);
    sum.wrapping_add(std::hash::Hasher::finish(&hasher))
}

impl Catalog<'_> {
    /// Lineages with any file of their own, in order of their ids.
    pub fn lineages(&self) -> impl Iterator<Item = LineageId> {
        self.lineages.keys().copied()
    }

    /// Everything under ids of one lineage, newest first: by timeline, revision, time, node.
    pub fn entries(&self, lineage: LineageId) -> impl Iterator<Item = Entry<'_>> {
        let from = self.copies.partition_point(|c| c.lineage < lineage);
        let to = self.copies.partition_point(|c| c.lineage <= lineage);
        let copies = self.copies.get(from..to).unwrap_or_default();
        let groups = copies.chunk_by(|a, b| a.id == b.id);
        groups.filter_map(|copies| copies.first().map(|first| Entry { first, copies }))
    }

    /// Everything under ids, lineage by lineage.
    pub fn all_entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.lineages().flat_map(|lineage| self.entries(lineage))
    }

    /// Names that are not ours, in all stores.
    pub fn foreign(&self) -> u64 {
        self.foreign.iter().sum()
    }

    /// Names that are not ours in the store at this place.
    pub fn foreign_in(&self, store: u16) -> u64 {
        self.foreign.get(usize::from(store)).copied().unwrap_or(0)
    }

    /// The first of them, each behind the name of its store.
    pub fn foreign_names(&self) -> &[ForeignName] {
        &self.foreign_names
    }

    /// Rests of writes, with the place of their store.
    pub(super) fn temps(&self) -> &[(usize, Unfinished)] {
        &self.temps
    }

    /// All notes, in order of lineage, id, store, time.
    pub(super) fn notes(&self) -> &[NoteName] {
        &self.notes
    }

    /// Whether a store has a manifest of this id.
    pub fn has_manifest(&self, lineage: LineageId, id: &SnapshotId, store: u16) -> bool {
        self.copy(lineage, id, store).is_some_and(|copy| copy.manifest)
    }

    /// Stored and plain bytes of the newest snapshot in a store that can be read.
    pub fn newest_sizes(&self, store: u16) -> Option<(u64, u64)> {
        let here = |e: &Entry<'_>| e.copies.iter().any(|c| c.store == store && c.manifest);
        let newest = self.all_entries().filter(here).max_by_key(|e| e.id().taken_at())?;
        self.load(&newest).shown.map(|s| (s.manifest.size.stored, s.manifest.size.db))
    }

    /// What waits in the trash of all stores, in order of store, lineage, time, id.
    pub(super) fn trash(&self) -> &[TrashedCopy] {
        &self.trash
    }

    /// What one removal put into the trash of one store.
    pub(super) fn trashed(
        &self,
        store: u16,
        lineage: LineageId,
        at: Timestamp,
        id: &SnapshotId,
    ) -> Option<&TrashedCopy> {
        let found = self.trash.binary_search_by(|t| t.key().cmp(&(store, lineage, at, id)));
        found.ok().and_then(|index| self.trash.get(index))
    }

    /// What one store has under one id.
    pub(super) fn copy(&self, lineage: LineageId, id: &SnapshotId, store: u16) -> Option<&CopyNames> {
        let key = (lineage, std::cmp::Reverse(id), store);
        self.copies.binary_search_by(|c| c.key().cmp(&key)).ok().and_then(|at| self.copies.get(at))
    }

    pub fn stores(&self) -> &[&dyn Store] {
        &self.stores
    }

    pub(super) fn store(&self, at: usize) -> Option<&dyn Store> {
        self.stores.get(at).copied()
    }

    /// Stores with a `lineage.json` of this lineage.
    pub(super) fn lineage_files(&self, lineage: LineageId) -> impl Iterator<Item = usize> {
        self.lineages.get(&lineage).into_iter().flat_map(|l| l.files.iter().copied())
    }

    pub(super) fn timeline_files(&self, lineage: LineageId) -> impl Iterator<Item = (TimelineId, usize)> {
        self.lineages.get(&lineage).into_iter().flat_map(|l| l.timelines.iter().copied())
    }

    /// Notes about one copy, oldest first.
    pub(super) fn notes_of(&self, copy: &CopyNames) -> impl Iterator<Item = &NoteName> {
        let key = |n: &NoteName| (n.lineage, &n.id, n.store).cmp(&(copy.lineage, &copy.id, copy.store));
        let from = self.notes.partition_point(|n| key(n).is_lt());
        let to = self.notes.partition_point(|n| key(n).is_le());
        self.notes.get(from..to).unwrap_or_default().iter()
    }
}

/// What a foreign name, or a directory on the way to it, would stand for if it were a file. The name is nobody's, but
/// where a pin may have stood, nobody knows that there was none.
fn stands_for(name: &str) -> Option<Name> {
    let ends = name.match_indices('/').map(|(at, _)| at).chain([name.len()]);
    ends.filter_map(|end| Name::parse(name.get(..end)?)).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::list::{Filter, Lineages};
    use crate::catalog::testing::{LINEAGE, MemStore, node, snapshot};
    use crate::store::Page;

    /// Resident memory of this process in bytes.
    fn resident() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    #[test]
    fn lists_that_cannot_be_right_are_refused() {
        type Twist = fn(Page) -> Page;
        let twists: [(&str, Twist); 4] = [
            ("twice", |mut p| {
                p.entries.extend(p.entries.first().cloned());
                p
            }),
            ("backwards", |mut p| {
                p.entries.reverse();
                p
            }),
            ("the same page for ever", |mut p| {
                p.next = Some("0".into());
                p.entries.clear();
                p
            }),
            ("the same names for ever", |mut p| {
                p.next = Some("0".into());
                p
            }),
        ];
        for (name, twist) in twists {
            let store = MemStore { twist: Some(twist), ..MemStore::new("a") };
            store.publish(&snapshot(1, 10, 0, "cp1"));
            let error = Catalog::read(&[&store as &dyn Store]).err().map(|e| e.code());
            assert_eq!(error, Some(Code::ListingInDoubt), "{name}");
        }
    }

    #[test]
    fn many_pages_make_one_list() {
        let store = MemStore::new("a");
        (1..=1700).for_each(|revision| store.publish(&snapshot(1, revision, revision, "cp1")));
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let revisions: Vec<i64> = catalog.entries(LINEAGE).map(|e| e.id().revision()).collect();
        assert_eq!(revisions, (1..=1700).rev().collect::<Vec<i64>>());
        assert!(catalog.entries(LINEAGE).all(|e| e.has_manifest()));
    }

    /// Soak: 100,000 snapshots in two stores. Memory is that of the names; nothing grows while manifests are read.
    #[test]
    #[ignore = "soak: some seconds and half a GiB for the stores in memory"]
    fn a_hundred_thousand_snapshots() {
        const COUNT: i64 = 100_000;
        let (a, b) = (MemStore::new("a"), MemStore::new("b"));
        for revision in 1..=COUNT {
            let m = snapshot(1, revision, revision, if revision % 5 == 0 { "cp2" } else { "cp1" });
            a.publish(&m);
            b.publish(&m);
        }
        let before = resident();
        let catalog = Catalog::read(&[&a as &dyn Store, &b]).unwrap();
        let named = resident().saturating_sub(before);
        assert!(named < 96 << 20, "{named} bytes for the names");
        let filter = Filter { lineages: Lineages::One(LINEAGE), node: None };
        let mut next = COUNT;
        for loaded in catalog.shown(&filter, &node("cp1")) {
            assert_eq!(loaded.shown.map(|s| (s.manifest.revision, s.stores.len())), Some((next, 2)));
            next -= 1;
        }
        assert_eq!(next, 0);
        let grown = resident().saturating_sub(before);
        assert!(grown < named + (16 << 20), "{named} bytes for the names, {grown} after reading all");
        assert_eq!(catalog.latest(&node("cp2"), None).unwrap().manifest.revision, COUNT);
    }
}
