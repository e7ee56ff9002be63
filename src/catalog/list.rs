//! What stores hold, as it is shown: newest first, each snapshot once with the stores that hold it.
//!
//! Manifests are read one snapshot at a time ([`Catalog::shown`]), so memory is that of the names alone. Data without
//! a manifest is unfinished, a manifest that cannot be used is unreadable, everything else foreign; none of the three
//! ever counts as a backup.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::index::{Catalog, Entry};
use super::load::Loaded;
use super::names::Name;
use super::shown::Shown;
use super::value::{LineageId, Node};
use crate::error::Result;
use crate::store::Store;

/// Which lineages to show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lineages {
    /// The one that [`Catalog::current_lineage`] finds.
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

/// A name of ours whose content cannot be used: neither counted nor removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    pub store: String,
    pub name: String,
    pub reason: String,
}

/// A whole listing; for many thousand snapshots walk a [`Catalog`] instead.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Newest first.
    pub snapshots: Vec<Shown>,
    pub foreign: u64,
    pub foreign_names: Vec<String>,
    pub unfinished: Vec<Unfinished>,
    pub unreadable: Vec<Unreadable>,
}

impl Listing {
    /// Reads everything that the filter lets through. `own` is this node: it decides what the current lineage is.
    pub fn read(stores: &[&dyn Store], filter: &Filter, own: &Node) -> Result<Listing> {
        Ok(Catalog::read(stores)?.listing(filter, own))
    }

    /// The `snapshot list` document; `foreign_names` only where they were asked for.
    pub fn document(&self, now: Timestamp, with_foreign_names: bool) -> Value {
        let snapshots: Vec<Value> = self.snapshots.iter().map(|s| s.document(now)).collect();
        let mut document = json!({
            "schema": 1,
            "snapshots": snapshots,
            "foreign": self.foreign,
            "unfinished": self.unfinished,
            "unreadable": self.unreadable,
        });
        if with_foreign_names {
            document["foreign_names"] = json!(self.foreign_names);
        }
        document
    }
}

impl Catalog<'_> {
    /// Lineages that the filter lets through, the one with the newest snapshot first.
    fn chosen(&self, filter: &Filter, own: &Node) -> Vec<LineageId> {
        match filter.lineages {
            Lineages::One(lineage) => vec![lineage],
            Lineages::Current => self.current_lineage(own).into_iter().collect(),
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
        let entries = self.chosen(filter, own).into_iter().flat_map(|lineage| self.entries(lineage));
        entries.filter(|e| e.has_manifest() && fits(e, filter)).map(|e| self.load(&e))
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

    /// Everything at once; memory grows with the number of snapshots.
    pub fn listing(&self, filter: &Filter, own: &Node) -> Listing {
        let mut listing = Listing {
            foreign: self.foreign(),
            foreign_names: self.foreign_names().to_vec(),
            unfinished: self.unfinished(),
            ..Listing::default()
        };
        for loaded in self.shown(filter, own) {
            listing.snapshots.extend(loaded.shown);
            listing.unreadable.extend(loaded.unreadable);
        }
        listing
    }
}

fn fits(entry: &Entry<'_>, filter: &Filter) -> bool {
    filter.node.as_ref().is_none_or(|node| entry.id().node() == node)
}
