//! Removes what a killed run of this node left behind: a plan first, then one delete at a time.
//!
//! In: a catalogue, which exists only if every list was read to its end. Out: a plan, then a report. Serves promise 2:
//! only names of our grammar, only this node's, and right before each delete the store itself is asked once more
//! whether a manifest has appeared. The caller holds the node's take lock, so that no living writer can own them.
//! Temporary names are the store's own business: it alone can tell a living writer from a dead one.

use std::collections::BTreeSet;

use serde::Serialize;

use super::index::Catalog;
use super::manifest::MAX_BYTES;
use super::names::Name;
use super::prune::Removals;
use super::value::{LineageId, Node};
use crate::error::{Code, Error, Result};
use crate::store::Store;

/// Whose leftovers may be removed.
#[derive(Debug, Clone)]
pub struct SweepScope {
    /// Data objects carry the node that wrote them; others are never touched.
    pub node: Node,
    /// `None`: all lineages. In a store that several clusters share, name one's own: two clusters may both have a
    /// node of this name.
    pub lineages: Option<BTreeSet<LineageId>>,
}

/// What would be removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SweepPlan {
    pub items: Vec<SweepItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SweepItem {
    /// Place of the store in the catalogue's list.
    #[serde(skip)]
    store_at: usize,
    pub store: String,
    pub name: String,
    /// Bytes that it frees.
    pub size: u64,
    pub reason: String,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SweepReport {
    pub removed: Vec<SweepItem>,
    /// Bytes.
    pub freed: u64,
    /// What stayed, and why: a manifest appeared, or the store refused.
    pub kept: Vec<KeptItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptItem {
    pub store: String,
    pub name: String,
    pub reason: String,
}

impl SweepPlan {
    /// Decides purely from the names.
    pub fn new(catalog: &Catalog<'_>, scope: &SweepScope) -> SweepPlan {
        let in_scope = |l: LineageId| scope.lineages.as_ref().is_none_or(|only| only.contains(&l));
        let item = |(store_at, u): (usize, super::list::Unfinished), reason: &str| SweepItem {
            store_at,
            store: u.store,
            name: u.name,
            size: u.size,
            reason: reason.into(),
        };
        // What a prune was about to move: it goes on with that itself, and may still find it in the trash.
        let removals = Removals::of(catalog);
        let data = catalog
            .all_entries()
            .filter(|e| in_scope(e.lineage()) && *e.id().node() == scope.node)
            .flat_map(|e| catalog.unfinished_of(&e).into_iter().map(move |u| (e, u)))
            .filter(|(e, (store, _))| removals.newest(*store, e.lineage(), e.id()).is_none())
            .map(|(_, u)| item(u, "data of this node without a manifest"));
        SweepPlan { items: data.collect() }
    }

    /// Removes what the plan names, from the same stores that the catalogue read.
    pub fn act(self, catalog: &Catalog<'_>) -> SweepReport {
        let mut report = SweepReport::default();
        for item in self.items {
            let outcome = match catalog.store(item.store_at) {
                Some(store) => remove(store, &item.name),
                None => Ok(Some("its store is not there".into())),
            };
            let kept = match outcome {
                Ok(None) => {
                    report.freed = report.freed.saturating_add(item.size);
                    report.removed.push(item);
                    continue;
                }
                Ok(Some(reason)) => reason,
                Err(e) => e.line(),
            };
            report.kept.push(KeptItem { store: item.store, name: item.name, reason: kept });
        }
        report
    }
}

/// `Ok(None)` when it is gone, `Ok(Some)` with the reason when it must stay.
fn remove(store: &dyn Store, name: &str) -> Result<Option<String>> {
    match Name::parse(name) {
        Some(Name::Data(lineage, id, _)) => {
            // Only a clear "not there" frees the data; a manifest that cannot be read may well be one.
            match store.read(&Name::Manifest(lineage, id).to_string(), MAX_BYTES) {
                Err(e) if e.code() == Code::NotFound => {}
                Err(e) => return Err(e.during("look for manifest of", name)),
                Ok(_) => return Ok(Some("a manifest has appeared".into())),
            }
        }
        _ => return Err(Error::new(Code::Internal, "sweep", name).because("the name is no leftover")),
    }
    match store.delete(name) {
        Ok(()) => Ok(None),
        // Somebody else removed it: what was wanted is so.
        Err(e) if e.code() == Code::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::manifest::Manifest;
    use crate::catalog::testing::{LINEAGE, MemStore, node, snapshot};

    const OTHER: LineageId = LineageId([0xbb; 8]);

    fn data(m: &Manifest) -> String {
        m.data_name().to_string()
    }

    fn manifest(m: &Manifest) -> String {
        m.name().to_string()
    }

    fn scope(lineages: Option<LineageId>) -> SweepScope {
        SweepScope { node: node("cp1"), lineages: lineages.map(|l| BTreeSet::from([l])) }
    }

    fn names(plan: &SweepPlan) -> Vec<&str> {
        plan.items.iter().map(|i| i.name.as_str()).collect()
    }

    #[test]
    fn only_own_data_without_a_manifest_in_that_store() {
        let (a, b) = (MemStore::new("a"), MemStore::new("b"));
        let complete = snapshot(1, 10, 0, "cp1");
        a.publish(&complete);
        b.put_text(&data(&complete), "half");
        let own = snapshot(1, 20, 1, "cp1");
        a.put_text(&data(&own), "abc");
        let neighbour = snapshot(1, 30, 2, "cp1.x");
        a.put_text(&data(&neighbour), "abc");
        let elsewhere = Manifest { lineage: OTHER, ..snapshot(1, 40, 3, "cp1") };
        a.put_text(&data(&elsewhere), "abc");
        a.put_text(&format!("{LINEAGE}/snapshots/.refloat-tmp-1"), "x");
        a.put_text(&format!("{}.bak", data(&own)), "x");
        a.put_text(&format!("{LINEAGE}/changes/0001-89abcdef/cp1/{:020}-{:020}.seg.zst", 1, 2), "x");

        let catalog = Catalog::read(&[&a as &dyn Store, &b]).unwrap();
        let plan = SweepPlan::new(&catalog, &scope(Some(LINEAGE)));
        assert_eq!(names(&plan), [data(&own), data(&complete)]);
        assert_eq!(names(&SweepPlan::new(&catalog, &scope(None))).len(), 3);
        assert!(a.has(&data(&own)), "a plan changes nothing");

        let report = plan.act(&catalog);
        assert_eq!((report.removed.len(), report.freed, report.kept.len()), (2, 7, 0));
        assert!(!a.has(&data(&own)) && !b.has(&data(&complete)));
        for stays in [data(&complete), manifest(&complete), data(&neighbour), data(&elsewhere)] {
            assert!(a.has(&stays), "{stays}");
        }
        assert_eq!(a.objects.lock().unwrap().len(), 7);
    }

    #[test]
    fn a_manifest_that_appears_or_cannot_be_read_keeps_its_data() {
        let store = MemStore::new("a");
        let (published, hidden, gone) =
            (snapshot(1, 10, 0, "cp1"), snapshot(1, 20, 1, "cp1"), snapshot(1, 30, 2, "cp1"));
        for m in [&published, &hidden, &gone] {
            store.put_text(&data(m), "abc");
        }
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        let plan = SweepPlan::new(&catalog, &scope(None));
        assert_eq!(plan.items.len(), 3);
        store.publish(&published);
        store.broken.lock().unwrap().insert(manifest(&hidden), Code::Io);
        store.delete(&data(&gone)).unwrap();
        let report = plan.act(&catalog);
        let kept: Vec<&str> = report.kept.iter().map(|k| k.reason.as_str()).collect();
        assert_eq!(kept.len(), 2);
        assert!(kept[0].starts_with("look for manifest of"), "{kept:?}");
        assert_eq!(kept[1], "a manifest has appeared");
        assert!(store.has(&data(&published)) && store.has(&data(&hidden)));
    }

    #[test]
    fn a_refused_delete_is_reported_and_the_rest_goes_on() {
        let item = |name: String| SweepItem { store_at: 0, store: "a".into(), name, size: 3, reason: String::new() };
        let store = MemStore::new("a");
        let (good, own) = (snapshot(1, 10, 0, "cp1"), snapshot(1, 20, 1, "cp1"));
        store.publish(&good);
        store.put_text(&data(&own), "abc");
        let catalog = Catalog::read(&[&store as &dyn Store]).unwrap();
        // Even a plan that names other things does not remove them.
        let plan = SweepPlan {
            items: vec![
                item(manifest(&good)),
                item(data(&good)),
                item("readme.txt".into()),
                SweepItem { store_at: 9, ..item(data(&own)) },
                item(data(&own)),
            ],
        };
        let report = plan.act(&catalog);
        assert_eq!((report.removed.len(), report.kept.len()), (1, 4));
        assert!(store.has(&data(&good)) && store.has(&manifest(&good)) && !store.has(&data(&own)));
    }
}
