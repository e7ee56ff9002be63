//! What is said and added beside the bytes: a file that is there already, pins, tags, and which stores were seen.

use jiff::Timestamp;

use super::outcome::Imported;
use super::run::Work;
use crate::catalog::history::Seen;
use crate::catalog::{Manifest, Place, Placement, Shown};
use crate::error::Result;
use crate::snapshot::pin::{self, Mark};
use crate::snapshot::publish::{Publication, StoreOutcome};
use crate::snapshot::state::{load_known, save_known};
use crate::snapshot::stores::{OpenStores, Opened};
use crate::store::Store;

/// Why an import is pinned.
const PIN_REASON: &str = "imported with --pin";

impl Work {
    /// The same bytes are there: says so, and adds what an earlier run did not come to.
    pub(super) fn already(&self, stores: &mut OpenStores, placement: &Placement, twin: Shown) -> Result<Imported> {
        let manifest = &twin.manifest;
        let mut outcomes = stores.failures();
        let mut lacking: Vec<Opened> = Vec::new();
        for (name, room) in stores.check_room(&self.node, manifest.size.db) {
            match (stores.good().find(|s| s.name == name && !twin.stores.contains(&name)), room) {
                (Some(store), Ok(_)) => lacking.push(store.clone()),
                (Some(_), Err(error)) => outcomes.push(StoreOutcome { name, result: Err(error) }),
                (None, _) => {}
            }
        }
        let mut snapshot = twin.clone();
        // What a take published is where its take could store it.
        if manifest.imported.is_some() && !lacking.is_empty() {
            let holder =
                stores.good().find(|s| twin.stores.contains(&s.name) && !twin.damaged_stores.contains(&s.name));
            if let Some(holder) = holder {
                let source = holder.store.open(&manifest.data_name().to_string())?;
                let seen = self.seen(placement, manifest, Timestamp::now());
                let placement = Placement { lineage: Place::Existing(manifest.lineage), ..placement.clone() };
                let publication = Publication { manifest, placement: &placement, seen: &seen };
                let into: Vec<_> = lacking.iter().map(|s| s.store.clone()).collect();
                let (copied, warnings) = publication.copy(&*source, &into);
                warnings.iter().for_each(|w| self.progress.warn(w));
                let done = copied.iter().filter(|o| o.result.is_ok()).map(|o| o.name.clone());
                snapshot.stores.extend(done);
                snapshot.states.resize(snapshot.stores.len(), snapshot.state);
                outcomes.extend(copied);
            }
        }
        let tags = self.request.tags.clone();
        Ok(self.marked(stores, Imported { snapshot, stores: outcomes, already: true }, &tags))
    }

    /// Adds the pin and, to one that was there, tags.
    pub(super) fn marked(&self, stores: &OpenStores, mut done: Imported, tags: &[String]) -> Imported {
        let pin = self.request.pin.then(|| Mark::Pin { reason: Some(PIN_REASON.into()) });
        let tag = (!tags.is_empty()).then(|| Mark::Tag { tags: tags.to_vec() });
        for mark in pin.into_iter().chain(tag) {
            let marked = match pin::mark(stores, Vec::new(), &done.snapshot, &self.node, &mark, Timestamp::now()) {
                Ok(marked) => {
                    done.snapshot = marked.snapshot;
                    marked.stores
                }
                // The snapshot is there all the same, and is told.
                Err(error) => vec![StoreOutcome { name: done.snapshot.stores.join(", "), result: Err(error) }],
            };
            for StoreOutcome { name, result } in marked {
                match done.stores.iter_mut().find(|s| s.name == name) {
                    // One outcome a store: what failed first stands.
                    Some(known) if known.result.is_ok() => known.result = result,
                    Some(_) => {}
                    None => done.stores.push(StoreOutcome { name, result }),
                }
            }
        }
        done
    }

    pub(super) fn seen(&self, placement: &Placement, manifest: &Manifest, at: Timestamp) -> Seen {
        let reasons = placement.reasons.iter().map(ToString::to_string).collect();
        Seen { node: self.node.clone(), at, revision: manifest.revision, reasons }
    }

    /// Notes which stores were seen. Lineage and newest snapshot stay: an import is neither.
    pub(super) fn remember(&self, stores: &OpenStores, holders: &[String]) {
        let noted = load_known(&self.state, &self.limits).and_then(|mut known| {
            let held = stores.good().filter(|s| holders.contains(&s.name));
            let new: Vec<&Opened> = held.filter(|s| known.get(&s.settings.path).is_none()).collect();
            new.iter().for_each(|s| known.remember(&s.settings.path, s.store.id(), None));
            if new.is_empty() { Ok(()) } else { save_known(&known, &self.state, &self.limits) }
        });
        if let Err(error) = noted {
            self.progress.warn(&error.line());
        }
    }
}
