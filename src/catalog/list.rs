//! What stores hold, as it is shown: newest first, each snapshot once with the stores that hold it.
//!
//! Manifests are read one snapshot at a time ([`Catalog::shown`]), so memory is that of the names alone. Data without
//! a manifest is unfinished, a manifest that cannot be used is unreadable, everything else foreign; none of the three
//! ever counts as a backup.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::Serialize;

use super::index::{Catalog, Entry};
use super::load::Loaded;
use super::names::Name;
use super::value::{LineageId, Node};

/// Which lineages to show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lineages {
    /// The one that [`Catalog::current_lineage`] finds; all, where no snapshot is verified.
    #[default]
    Current,
    One(LineageId),
    All,
}

/// What to show.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub lineages: Lineages,
    /// Only this node's snapshots.
    pub node: Option<Node>,
}

/// A data object without manifest, or the rest of a write: an upload under way or one that was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unfinished {
    pub store: String,
    pub name: String,
    /// Bytes.
    pub size: u64,
    #[serde(with = "super::time::rfc3339")]
    pub modified: Timestamp,
}

/// Something in a store that refloat did not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignName {
    pub store: String,
    pub name: String,
}

/// A name of ours whose content cannot be used: neither counted nor removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    pub store: String,
    pub name: String,
    pub reason: String,
}

/// A lineage with snapshots that a filter left out: another cluster, or the one that this one was rebuilt from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OtherLineage {
    pub lineage: LineageId,
    pub snapshots: u64,
    /// Bytes of all its data objects, over all stores.
    pub stored: u64,
}

impl Catalog<'_> {
    /// Lineages that the filter lets through, the one with the newest snapshot first.
    pub fn chosen(&self, filter: &Filter, own: &Node) -> Vec<LineageId> {
        match filter.lineages {
            Lineages::One(lineage) => vec![lineage],
            Lineages::Current => match self.current_lineage(own) {
                Some(lineage) => vec![lineage],
                // What cannot be read or was never verified must not vanish from the list.
                None => self.chosen(&Filter { lineages: Lineages::All, node: None }, own),
            },
            Lineages::All => {
                let newest = |l: &LineageId| self.entries(*l).map(|e| e.id().taken_at()).max();
                let mut all: Vec<(Option<Timestamp>, LineageId)> = self.lineages().map(|l| (newest(&l), l)).collect();
                all.sort_by_key(|(time, lineage)| (Reverse(*time), *lineage));
                all.into_iter().map(|(_, lineage)| lineage).collect()
            }
        }
    }

    /// Reads the chosen snapshots one by one, newest first.
    pub fn shown<'c>(&'c self, filter: &'c Filter, own: &Node) -> impl Iterator<Item = Loaded> + 'c {
        self.shown_in(self.chosen(filter, own), filter)
    }

    fn shown_in<'c>(&'c self, lineages: Vec<LineageId>, filter: &'c Filter) -> impl Iterator<Item = Loaded> + 'c {
        self.loading(self.matching(lineages, filter)).map(|(_, loaded)| loaded)
    }

    /// Snapshots of these lineages that the filter lets through, unread, newest first within each.
    pub fn matching<'c>(
        &'c self,
        lineages: Vec<LineageId>,
        filter: &'c Filter,
    ) -> impl Iterator<Item = Entry<'c>> + 'c {
        let entries = lineages.into_iter().flat_map(|lineage| self.entries(lineage));
        entries.filter(|e| e.has_manifest() && fits(e, filter))
    }

    /// Lineages with snapshots beside the chosen ones.
    pub fn others(&self, chosen: &[LineageId]) -> Vec<OtherLineage> {
        let lineages = self.lineages().filter(|l| !chosen.contains(l));
        let counted = lineages.map(|lineage| {
            let mut other = OtherLineage { lineage, snapshots: 0, stored: 0 };
            for entry in self.entries(lineage) {
                other.snapshots += u64::from(entry.has_manifest());
                other.stored += entry.stored_bytes();
            }
            other
        });
        counted.filter(|other| other.snapshots > 0).collect()
    }

    /// Data objects without manifest and rests of writes, in all lineages and of all nodes.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        let data = self.all_entries().flat_map(|entry| self.unfinished_of(&entry)).map(|(_, unfinished)| unfinished);
        data.chain(self.temps().iter().map(|(_, temp)| temp.clone())).collect()
    }

    /// What stands under one id in a store that has no manifest for it, with the place of that store.
    pub(super) fn unfinished_of(&self, entry: &Entry<'_>) -> Vec<(usize, Unfinished)> {
        let mut list = Vec::new();
        for copy in entry.copies.iter().filter(|c| !c.manifest) {
            let at = usize::from(copy.store);
            let Some(store) = self.store(at) else { continue };
            list.extend(copy.data().map(|(codec, size)| {
                let name = Name::Data(copy.lineage, copy.id.clone(), codec).to_string();
                (at, Unfinished { store: store.name().into(), name, size, modified: copy.modified })
            }));
        }
        list
    }
}

fn fits(entry: &Entry<'_>, filter: &Filter) -> bool {
    filter.node.as_ref().is_none_or(|node| entry.id().node() == node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::manifest::{Manifest, State};
    use crate::catalog::note::{Note, NoteBody};
    use crate::catalog::shown::Shown;
    use crate::catalog::testing::{LINEAGE, MemStore, at, node, snapshot};
    use crate::error::Code;
    use crate::store::Store;

    /// A whole listing.
    #[derive(Debug, Clone, Default)]
    struct Listing {
        /// Newest first.
        snapshots: Vec<Shown>,
        foreign: u64,
        foreign_names: Vec<ForeignName>,
        unfinished: Vec<Unfinished>,
        unreadable: Vec<Unreadable>,
        /// Lineages with snapshots that the filter left out.
        other_lineages: Vec<OtherLineage>,
    }

    impl Catalog<'_> {
        /// Everything at once.
        fn listing(&self, filter: &Filter, own: &Node) -> Listing {
            let chosen = self.chosen(filter, own);
            let mut listing = Listing {
                other_lineages: self.others(&chosen),
                foreign: self.foreign(),
                foreign_names: self.foreign_names().to_vec(),
                unfinished: self.unfinished(),
                ..Listing::default()
            };
            for loaded in self.shown_in(chosen, filter) {
                listing.snapshots.extend(loaded.shown);
                listing.unreadable.extend(loaded.unreadable);
            }
            listing
        }
    }

    fn read(stores: &[&dyn Store]) -> Listing {
        Catalog::read(stores).unwrap().listing(&Filter { lineages: Lineages::All, node: None }, &node("cp1"))
    }

    fn revisions(listing: &Listing) -> Vec<i64> {
        listing.snapshots.iter().map(|s| s.manifest.revision).collect()
    }

    fn manifest_name(m: &Manifest) -> String {
        m.name().to_string()
    }

    fn data_name(m: &Manifest) -> String {
        m.data_name().to_string()
    }

    #[test]
    fn newest_first_each_once_with_its_stores() {
        let (a, b) = (MemStore::new("a"), MemStore::new("b"));
        for (timeline, revision, seconds) in [(1, 10, 0), (1, 20, 10), (2, 15, 20), (1, 20, 11)] {
            a.publish(&snapshot(timeline, revision, seconds, "cp1"));
        }
        b.publish(&snapshot(1, 20, 10, "cp1"));
        b.publish(&snapshot(2, 16, 19, "cp2"));
        let listing = read(&[&a, &b]);
        assert_eq!(revisions(&listing), [16, 15, 20, 20, 10]);
        let stores: Vec<Vec<String>> = listing.snapshots.iter().map(|s| s.stores.clone()).collect();
        assert_eq!(stores, [vec!["b"], vec!["a"], vec!["a"], vec!["a", "b"], vec!["a"]]);
        assert!(listing.unreadable.is_empty() && listing.unfinished.is_empty() && listing.foreign == 0);
    }

    #[test]
    fn lineage_with_the_newest_snapshot_comes_first() {
        let store = MemStore::new("a");
        for (byte, seconds) in [(1u8, 5), (2, 50), (3, 20)] {
            store.publish(&Manifest { lineage: LineageId([byte; 8]), ..snapshot(1, 10, seconds, "cp1") });
        }
        let order: Vec<u8> = read(&[&store]).snapshots.iter().map(|s| s.manifest.lineage.0[0]).collect();
        assert_eq!(order, [2, 3, 1]);
    }

    #[test]
    fn filters() {
        let store = MemStore::new("a");
        store.publish(&snapshot(1, 10, 0, "cp1"));
        store.publish(&snapshot(1, 11, 1, "cp2"));
        store.publish(&Manifest { lineage: LineageId([1; 8]), ..snapshot(1, 12, 2, "cp2") });
        let own = node("cp1");
        let of =
            |lineages, node| revisions(&Catalog::read(&[&store]).unwrap().listing(&Filter { lineages, node }, &own));
        assert_eq!(of(Lineages::Current, None), [11, 10], "this node's lineage, although another is newer");
        assert_eq!(of(Lineages::Current, Some(node("cp2"))), [11]);
        assert_eq!(of(Lineages::One(LineageId([1; 8])), None), [12]);
        assert_eq!(of(Lineages::One(LineageId([9; 8])), None), [0i64; 0]);
        assert_eq!(of(Lineages::All, Some(node("cp2"))), [12, 11]);
        let listing = Catalog::read(&[&store]).unwrap().listing(&Filter::default(), &own);
        assert_eq!(listing.other_lineages, [OtherLineage { lineage: LineageId([1; 8]), snapshots: 1, stored: 3 }]);
    }

    #[test]
    fn where_nothing_is_verified_everything_is_shown() {
        let store = MemStore::new("a");
        store.publish(&Manifest { checks: Vec::new(), ..snapshot(1, 10, 0, "cp1") });
        let cut = Manifest { lineage: LineageId([1; 8]), ..snapshot(1, 20, 1, "cp1") };
        store.put_text(&manifest_name(&cut), "");
        let listing = Catalog::read(&[&store]).unwrap().listing(&Filter::default(), &node("cp1"));
        assert_eq!((revisions(&listing), listing.unreadable.len()), (vec![10], 1));
    }

    #[test]
    fn what_is_no_snapshot_is_named_and_never_counted() {
        let mut store = MemStore::new("a");
        store.irregular.push(format!("{LINEAGE}/snapshots/link.json"));
        store.irregular.push(manifest_name(&snapshot(1, 90, 0, "cp1")));
        store.publish(&snapshot(1, 10, 0, "cp1"));
        store.put_text("readme.txt", "x");
        store.put_text(&format!("{LINEAGE}/snapshots/link.json"), "x");
        // A link where a manifest should be is no manifest, so the data beside it is unfinished.
        store.publish(&snapshot(1, 90, 0, "cp1"));
        let unfinished = snapshot(1, 20, 1, "cp1");
        store.put_text(&data_name(&unfinished), "abc");
        store.put_text(&format!("{LINEAGE}/snapshots/.refloat-tmp-1"), "ab");
        // Each of these says why.
        let no_data = snapshot(1, 30, 2, "cp1");
        store.put_text(&manifest_name(&no_data), no_data.to_bytes().unwrap());
        let short = snapshot(1, 40, 3, "cp1");
        store.publish(&short);
        store.put_text(&data_name(&short), "ab");
        let newer = snapshot(1, 50, 4, "cp1");
        store.publish(&newer);
        store.put_text(&manifest_name(&newer), r#"{"schema": 9}"#);
        let cut = snapshot(1, 60, 5, "cp1");
        store.publish(&cut);
        store.put_text(&manifest_name(&cut), &cut.to_bytes().unwrap()[..100]);
        let swapped = snapshot(1, 70, 6, "cp1");
        store.publish(&swapped);
        store.put_text(&manifest_name(&swapped), cut.to_bytes().unwrap());
        let refused = snapshot(1, 80, 7, "cp1");
        store.publish(&refused);
        store.broken.lock().unwrap().insert(manifest_name(&refused), Code::Io);

        let listing = read(&[&store]);
        assert_eq!(revisions(&listing), [10]);
        assert_eq!(listing.foreign, 3);
        assert_eq!(listing.foreign_names.len(), 3);
        let names: Vec<String> = listing.unfinished.iter().map(|u| u.name.clone()).collect();
        assert_eq!(
            names,
            [
                data_name(&snapshot(1, 90, 0, "cp1")),
                data_name(&unfinished),
                format!("{LINEAGE}/snapshots/.refloat-tmp-1")
            ]
        );
        assert_eq!(listing.unfinished[1].size, 3);
        let reasons: Vec<&str> = listing.unreadable.iter().map(|u| u.reason.as_str()).collect();
        let want = [
            "read object",
            "its id is not that of its name",
            "no JSON document",
            "schema 9, newer",
            "data object has 2 bytes, the manifest says 3",
            "data object missing",
        ];
        assert_eq!(reasons.len(), want.len(), "{reasons:?}");
        for (reason, want) in reasons.iter().zip(want) {
            assert!(reason.starts_with(want), "{reason:?} should begin with {want:?}");
        }
    }

    #[test]
    fn one_bad_copy_does_not_hide_a_good_one() {
        let (a, b, c) = (MemStore::new("a"), MemStore::new("b"), MemStore::new("c"));
        let m = snapshot(1, 10, 0, "cp1");
        a.put_text(&manifest_name(&m), "garbage");
        b.publish(&m);
        c.publish(&Manifest { tags: vec!["forged".into()], ..m });
        let listing = read(&[&a, &b, &c]);
        assert_eq!(listing.snapshots.len(), 1);
        assert_eq!(listing.snapshots[0].stores, ["b"]);
        let named: Vec<&str> = listing.unreadable.iter().map(|u| u.store.as_str()).collect();
        assert_eq!(named, ["a", "c"]);
    }

    #[test]
    fn notes_are_folded_and_bad_ones_named() {
        let store = MemStore::new("a");
        let m = snapshot(1, 10, 0, "cp1");
        store.publish(&m);
        // A node whose name goes on where this one ends must not get its notes.
        store.publish(&snapshot(1, 10, 0, "cp1.pin"));
        let put = |seconds, body: NoteBody| {
            let note = Note::new(m.id.clone(), at(seconds), node("cp2"), body);
            let name = note.name(m.lineage).to_string();
            store.put_text(&name, note.to_bytes().unwrap());
            name
        };
        put(1, NoteBody::Tag { tags: vec!["weekly".into()] });
        put(2, NoteBody::Unpin { reason: None });
        let bad_pin = put(3, NoteBody::Pin { reason: None });
        store.put_text(&bad_pin, "garbage");
        store.put_text(&bad_pin.replace(".pin-", ".later-"), "not read at all");
        let listing = read(&[&store]);
        let by = |n: &str| listing.snapshots.iter().find(|s| s.manifest.node == node(n)).unwrap();
        assert_eq!((by("cp1").pinned, by("cp1").tags.clone()), (true, vec!["weekly".to_string()]));
        assert_eq!((by("cp1.pin").pinned, by("cp1.pin").tags.len()), (false, 0));
        assert_eq!(listing.unreadable.len(), 1);
        assert_eq!(listing.unreadable[0].name, bad_pin);
        assert_eq!(listing.foreign, 0);
    }

    #[test]
    fn a_list_in_doubt_is_an_error() {
        let store = MemStore::new("a");
        store.publish(&snapshot(1, 10, 0, "cp1"));
        store.broken.lock().unwrap().insert("list".into(), Code::Io);
        let good = MemStore::new("b");
        let read = Catalog::read(&[&good, &store]);
        assert_eq!(read.err().map(|e| e.code()), Some(Code::Io));
        // The others can still be looked at.
        good.publish(&snapshot(1, 20, 0, "cp1"));
        let (catalog, failed) = Catalog::read_available(&[&store, &good]);
        let names: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a"]);
        let listing = catalog.listing(&Filter::default(), &node("cp1"));
        assert_eq!(listing.snapshots[0].stores, ["b"]);
    }

    #[test]
    fn manifests_are_read_only_when_asked_for() {
        let store = MemStore::new("a");
        for revision in 1..=50 {
            store.publish(&snapshot(1, revision, revision, "cp1"));
        }
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let reads = || store.reads.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(reads(), 0);
        let filter = Filter { lineages: Lineages::One(LINEAGE), node: None };
        let first: Vec<_> = catalog.shown(&filter, &node("cp1")).take(3).collect();
        assert_eq!(first[0].shown.as_ref().map(|s| (s.manifest.revision, s.state)), Some((50, State::Verified)));
        assert_eq!(reads(), 3);
    }
}
