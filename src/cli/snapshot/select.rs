//! What the commands about snapshots share: open stores.

use super::super::context::{Context, aside};
use crate::catalog::Node;
use crate::error::Result;
use crate::snapshot::state;
use crate::snapshot::stores::OpenStores;

pub(in crate::cli) use crate::snapshot::select::find;
pub(super) use crate::snapshot::select::{find_in, own_lineage, read_catalog};

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
