//! What the commands about snapshots share: open stores, and the snapshot that a person means.

use super::super::context::{Context, aside};
use crate::catalog::find::LATEST;
use crate::catalog::{Catalog, Lineages, Node, Shown};
use crate::error::Result;
use crate::snapshot::progress::Progress;
use crate::snapshot::state;
use crate::snapshot::stores::OpenStores;
use crate::store::Store;

/// Opens the stores for reading and works on them.
pub(in crate::cli) async fn with_stores<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(OpenStores, Node) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (settings, names) = (context.settings()?.clone(), context.store_names()?);
    let (progress, cancel) = (context.progress.clone(), context.cancel.clone());
    aside(move || {
        let stores = OpenStores::for_reading(&settings, &names, &cancel)?;
        for (name, error) in stores.failed() {
            progress.warn(&format!("store {name}: {}", error.line()));
        }
        let node = state::node(&settings)?;
        work(stores, node)
    })
    .await
}

/// The snapshot that `id` means. Stores that cannot be listed are only warned about.
pub(in crate::cli) fn find(stores: &OpenStores, id: &str, node: &Node, progress: &dyn Progress) -> Result<Shown> {
    find_in(stores, &read_catalog(&stores.list(), progress)?, id, node, progress)
}

/// The same in a catalogue that was read already.
pub(super) fn find_in(
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
pub(super) fn own_lineage(stores: &OpenStores, catalog: &Catalog<'_>, progress: &dyn Progress) -> Lineages {
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
pub(super) fn read_catalog<'a>(stores: &[&'a dyn Store], progress: &dyn Progress) -> Result<Catalog<'a>> {
    let (catalog, mut failed) = Catalog::read_available(stores);
    if catalog.stores().is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    for (store, error) in failed {
        progress.warn(&format!("store {store}: {}", error.line()));
    }
    Ok(catalog)
}
