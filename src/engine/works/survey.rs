//! What a store holds, as the status tells it.

use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalog, LineageId, Node, Shown, State};
use crate::config::{Scope, Settings, StoreSettings};
use crate::engine::event::{Newest, Survey};
use crate::engine::failure::Failure;
use crate::error::Result;
use crate::snapshot::state;
use crate::snapshot::stores::{OpenStores, Opened, known};
use crate::store::{Mode, Store};

/// Newest ones that are read to find a verified one; a store whose last hundred are damaged has none worth the name.
const READ: usize = 100;

pub fn survey(settings: &Settings, store: &StoreSettings) -> Survey {
    match look(settings, store) {
        Ok(survey) => survey,
        Err(error) => Survey::Failed { failure: Failure::from(&error) },
    }
}

fn look(settings: &Settings, store: &StoreSettings) -> Result<Survey> {
    let node = state::node(settings)?;
    let names = [store.name.clone()];
    let limits = state::limits(settings, &CancellationToken::new());
    let known = known(settings, &limits)?;
    let stores = OpenStores::open(settings, &names, known, Mode::Read, &limits)?.or_any_failure()?;
    let mut survey = Survey::Good { snapshots: 0, used: 0, free: None, total: None, newest: None, own: None };
    for opened in stores.good() {
        survey = read(&stores, opened, &node)?;
    }
    Ok(survey)
}

fn read(stores: &OpenStores, opened: &Opened, node: &Node) -> Result<Survey> {
    let catalog = Catalog::read(&[&*opened.store as &dyn Store])?;
    let space = opened.store.space()?;
    // This node's own cluster, in a store that others may share.
    let lineage = stores.lineage().or_else(|| catalog.current_lineage(node));
    let (mut snapshots, mut used) = (0, 0);
    let (mut newest, mut own) = (None, None);
    if let Some(lineage) = lineage {
        for entry in catalog.entries(lineage) {
            snapshots += u64::from(entry.has_manifest());
            used += entry.stored_bytes();
        }
        let ours = |other: &Node| opened.settings.scope == Scope::Cluster || other == node;
        for entry in catalog.entries(lineage).filter(|e| e.has_manifest() && ours(e.id().node())).take(READ) {
            let mine = entry.id().node() == node;
            if newest.is_some() && (!mine || own.is_some()) {
                continue;
            }
            let Some(shown) = catalog.load(&entry).shown.filter(|s| s.state == State::Verified) else { continue };
            if mine && own.is_none() {
                own = Some((shown.manifest.id.to_string(), shown.manifest.taken_at));
            }
            newest.get_or_insert_with(|| described(&shown, lineage));
        }
    }
    Ok(Survey::Good { snapshots, used, free: space.map(|s| s.free), total: space.map(|s| s.total), newest, own })
}

fn described(shown: &Shown, lineage: LineageId) -> Newest {
    let m = &shown.manifest;
    Newest {
        id: m.id.to_string(),
        taken_at: m.taken_at,
        revision: m.revision,
        lineage: lineage.to_string(),
        timeline: m.timeline.to_string(),
        cluster_id: m.cluster_id.as_ref().map(ToString::to_string),
        node: m.node.to_string(),
    }
}
