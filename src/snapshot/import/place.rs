//! Where a judged file goes: read from the stores at that moment (law 5), with leftovers of killed imports out of the way.

use std::collections::BTreeSet;

use super::belongs;
use super::outcome::ImportPlan;
use super::run::{Found, Work};
use crate::catalog::{Catalog, HashKv, LineageId, Node, Origin, Placement, Shown, SnapshotId, read_known};
use crate::error::{Code, Error, Result};
use crate::snapshot::stores::OpenStores;
use crate::snapshot::{evidence, leftovers};

/// What was decided.
pub(super) struct Placed {
    pub placement: Placement,
    pub id: SnapshotId,
    /// The same bytes in the same lineage.
    pub twin: Option<Shown>,
}

impl Placed {
    /// What a dry run tells.
    pub fn plan(self, found: &Found, stores: &OpenStores, node: &Node) -> ImportPlan {
        let Placed { placement, id, twin } = self;
        let already = twin.is_some();
        let new_lineage = !already && placement.lineage.is_new();
        // The id of such a lineage is random: the import itself gets another one.
        let random = new_lineage && placement.origin == Some(Origin::ForeignOrigin);
        let (id, lineage) = twin.map_or((id, placement.lineage.id()), |t| (t.manifest.id, t.manifest.lineage));
        let Found { source, judgement, content, proven } = found;
        ImportPlan {
            id,
            lineage: (!random).then_some(lineage),
            new_lineage,
            reason: placement.reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            modified: source.modified,
            proven: *proven,
            already,
            db_size: judgement.db_len,
            sha256: judgement.db_sha256,
            compact_revision: content.compact_revision as i64,
            keys: content.live_keys,
            hash_kv: judgement.hash_kv.map(|h| HashKv {
                hash: h.hash,
                revision: h.revision as i64,
                compact_revision: h.compact_revision as i64,
            }),
            stores: stores.check_room(node, judgement.db_len),
        }
    }
}

impl Work {
    /// Reads the stores: where the file belongs, whether it is there, and what it will be called.
    pub(super) fn place(&self, stores: &OpenStores, found: &Found) -> Result<Placed> {
        let list = stores.list();
        let catalog = Catalog::read(&list)?;
        let known = read_known(&catalog);
        let unused = belongs::unused(&catalog, &known, &self.node);
        let uid = evidence::uid(found.content.wanted.as_deref());
        let placement = belongs::belongs(&uid, self.request.lineage, &known, unused, crate::fs::random()?)?;
        let lineage = placement.lineage.id();
        let mut related = BTreeSet::from([lineage]);
        // Two files of unknown origin with the same bytes are of one origin.
        if placement.origin == Some(Origin::ForeignOrigin) {
            related.extend(belongs::foreign(&known));
        }
        let revision = found.content.revision as i64;
        let twin = belongs::twin(&catalog, &related, revision, found.judgement.db_sha256, found.proven);
        let whole = |twin: &Shown| stores.good().all(|s| twin.stores.contains(&s.name));
        let nothing_to_write = self.request.dry_run || twin.as_ref().is_some_and(whole);
        let catalog = if nothing_to_write || !self.sweep(stores, &related) { catalog } else { Catalog::read(&list)? };
        let number = placement.timeline.id().number;
        let id = SnapshotId::new(number, revision, found.source.modified, self.node.clone())
            .map_err(|e| Error::new(Code::DataInvalid, "name import of", found.source.name()).because(e))?;
        Ok(Placed { id: belongs::free_id(&catalog, lineage, id)?, placement, twin })
    }

    /// Removes what killed imports of this node left; whether it removed anything. Leftovers that stay are in nobody's
    /// way: ids are chosen beside them.
    fn sweep(&self, stores: &OpenStores, lineages: &BTreeSet<LineageId>) -> bool {
        let alone = leftovers::keep_writers_out(stores, &*self.progress);
        let (catalog, unread) = Catalog::read_available(&stores.list());
        for (name, error) in unread {
            self.progress.warn(&format!("nothing is swept in store {name}: {}", error.line()));
        }
        leftovers::sweep(&catalog, &self.node, lineages, &alone, &*self.progress)
    }
}
