//! What killed runs of this node left goes, before a take or an import looks for room and for a name.
//!
//! Listing and removing must both happen while nobody writes: what is half written looks left over. So first writers
//! are kept out where that is possible at once, then the stores are listed, then only those stores are swept.

use std::collections::{BTreeMap, BTreeSet};

use super::progress::Progress;
use super::stores::{OpenStores, Opened};
use crate::catalog::{Catalog, LineageId, Node, SweepPlan, SweepScope};
use crate::fs::Tenancy;

/// The stores, by name, that nobody else writes to as long as this lives.
pub type Alone = BTreeMap<String, Tenancy>;

/// Waits for nobody; temporary names of dead writers are gone afterwards.
pub fn keep_writers_out(stores: &OpenStores, progress: &dyn Progress) -> Alone {
    let mut alone = Alone::new();
    for Opened { store, name, .. } in stores.good() {
        match store.alone().and_then(|only| only.map(|t| Ok((store.sweep()?, t))).transpose()) {
            Ok(Some((swept, tenancy))) => {
                swept.refused.iter().for_each(|error| progress.warn(&error.line()));
                alone.insert(name.clone(), tenancy);
            }
            Ok(None) => tracing::info!("nothing is swept in store {name}: somebody writes there"),
            Err(error) => progress.warn(&format!("nothing is swept in store {name}: {}", error.line())),
        }
    }
    alone
}

/// Removes leftovers of these lineages from the stores that are ours `alone`, which the catalogue was read after; whether
/// anything went.
pub fn sweep(
    catalog: &Catalog<'_>,
    node: &Node,
    lineages: &BTreeSet<LineageId>,
    alone: &Alone,
    progress: &dyn Progress,
) -> bool {
    let scope = SweepScope { node: node.clone(), lineages: Some(lineages.clone()) };
    let mut plan = SweepPlan::new(catalog, &scope);
    plan.items.retain(|item| alone.contains_key(&item.store));
    let report = plan.act(catalog);
    for item in &report.removed {
        progress.warn(&format!(
            "removed a leftover of a killed run from store {}: {} ({} bytes)",
            item.store, item.name, item.size
        ));
    }
    for kept in &report.kept {
        progress.warn(&format!("left {} in store {}: {}", kept.name, kept.store, kept.reason));
    }
    !report.removed.is_empty()
}
