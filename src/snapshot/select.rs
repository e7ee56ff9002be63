//! Which snapshot somebody means, and which cluster is meant where nobody says.

use super::progress::Progress;
use super::stores::OpenStores;
use crate::catalog::find::LATEST;
use crate::catalog::{Catalog, Lineages, Node, Shown};
use crate::error::Result;
use crate::store::Store;

/// The snapshot that `id` means. Stores that cannot be listed are only warned about.
pub fn find(stores: &OpenStores, id: &str, node: &Node, progress: &dyn Progress) -> Result<Shown> {
    find_in(stores, &read_catalog(&stores.list(), progress)?, id, node, progress)
}

/// The same in a catalogue that was read already.
pub fn find_in(
    stores: &OpenStores,
    catalog: &Catalog<'_>,
    id: &str,
    node: &Node,
    progress: &dyn Progress,
) -> Result<Shown> {
    // An id means one snapshot wherever it is; `latest` means this node's cluster.
    let lineage = match own_lineage(stores, catalog, progress) {
        Lineages::One(lineage) if id == LATEST => Some(lineage),
        _ => None,
    };
    catalog.find(id, node, lineage)
}

/// The cluster that commands without an id are about: the one whose snapshot this node took last. A node that has
/// taken none goes by what the stores hold, which in a shared store may be another cluster: that is said.
pub fn own_lineage(stores: &OpenStores, catalog: &Catalog<'_>, progress: &dyn Progress) -> Lineages {
    if let Some(lineage) = stores.lineage() {
        return Lineages::One(lineage);
    }
    let several = catalog.lineages().filter(|l| catalog.entries(*l).any(|e| e.has_manifest())).nth(1).is_some();
    if several {
        progress.warn(
            "the stores hold snapshots of several clusters and this node has taken none of them: see --all-lineages",
        );
    }
    Lineages::Current
}

/// One store that cannot be listed does not hide what the others hold; an error when none can.
pub fn read_catalog<'a>(stores: &[&'a dyn Store], progress: &dyn Progress) -> Result<Catalog<'a>> {
    let (catalog, mut failed) = Catalog::read_available(stores);
    if catalog.stores().is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    for (store, error) in failed {
        progress.warn(&format!("store {store}: {}", error.line()));
    }
    Ok(catalog)
}
