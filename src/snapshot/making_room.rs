//! Room for one more snapshot: what killed runs left goes, then, where it is short, what retention lets go (design
//! §6.1).
//!
//! Each store is listed once for all of it; one that cannot be listed to its end takes no part.

use std::collections::BTreeSet;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::leftovers::{Alone, keep_writers_out, sweep};
use super::progress::Progress;
use super::prune::{Pruner, Request};
use super::room::Room;
use super::stores::{OpenStores, Opened};
use crate::catalog::{Catalog, EtcdId, KnownTimeline, LineageId, Node, read_known};
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::store::Store;

/// Expected stored bytes and bytes that must be free, by store; or why it does not fit.
pub type Rooms = Vec<(String, Result<(u64, u64)>)>;

/// What is asked for.
pub struct Asking<'a> {
    pub settings: &'a Settings,
    pub node: &'a Node,
    /// Of the member: only its lineages are swept.
    pub cluster: EtcdId,
    /// Says what would fit, and removes nothing.
    pub dry_run: bool,
    /// Bytes that the database has.
    pub db_size: u64,
}

impl Asking<'_> {
    pub fn rooms(&self, stores: &OpenStores, progress: &dyn Progress, cancel: &CancellationToken) -> Rooms {
        let mut rooms = Rooms::new();
        let mut short: Vec<(&Opened, Room, Error)> = Vec::new();
        let ours = {
            let alone = if self.dry_run { Alone::new() } else { keep_writers_out(stores, progress) };
            let (catalog, unread) = Catalog::read_available(&stores.list());
            for (name, error) in unread {
                rooms.push((name, Err(error)));
            }
            let ours = self.ours(&catalog);
            sweep(&catalog, self.node, &ours, &alone, progress);
            for (opened, room) in stores.rooms(&catalog, self.node, self.db_size) {
                let fits = match room {
                    Ok(room) => match room.check(&opened.name) {
                        Ok(()) => Ok((room.expected(), room.needed())),
                        Err(error) => {
                            short.push((opened, room, error));
                            continue;
                        }
                    },
                    Err(error) => Err(error),
                };
                rooms.push((opened.name.clone(), fits));
            }
            ours
        };
        // Two that the cluster's id fits leave a doubt.
        let lineage = ours.first().filter(|_| ours.len() == 1).copied();
        for (opened, room, error) in short {
            let request =
                Request { coming: (room.expected(), room.needed()), for_a_take: true, lineage, ..Request::default() };
            let made = self.make(stores, opened, request, error, progress, cancel);
            rooms.push((opened.name.clone(), made.map(|()| (room.expected(), room.needed()))));
        }
        rooms
    }

    /// Lineages of the member's cluster.
    fn ours(&self, catalog: &Catalog<'_>) -> BTreeSet<LineageId> {
        let ours = |timelines: &[KnownTimeline]| timelines.iter().any(|t| t.cluster_id == Some(self.cluster));
        read_known(catalog).into_iter().filter(|l| ours(&l.timelines)).map(|l| l.id).collect()
    }

    /// Thins a store by the same plan as `refloat prune`; the shortage itself where that does not help.
    fn make(
        &self,
        stores: &OpenStores,
        opened: &Opened,
        request: Request,
        short: Error,
        progress: &dyn Progress,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let all = stores.beside(self.settings)?;
        let pruner = Pruner { settings: self.settings, node: self.node, stores: &all, request };
        let now = Timestamp::now();
        let helps = |why: String| {
            progress.warn(&format!("store {} is short of space, and nothing could be removed: {why}", opened.name));
        };
        let planned = match pruner.plan(opened, now, progress) {
            Ok(planned) => planned,
            Err(error) => {
                helps(error.line());
                return Err(short);
            }
        };
        if let Some(hold) = planned.plan.decisions.hold.first().filter(|_| planned.plan.changes()) {
            helps(hold.say(&planned.plan.found.candidates).to_string());
            return Err(short.remedy("see `refloat prune --dry-run`: it says what holds and what would be removed"));
        }
        // What does not suffice is not begun: old snapshots would go and the new one would not come.
        if let Some(conflict) = planned.plan.decisions.conflicts.first() {
            let remedy = short.get_remedy().unwrap_or("free space there").to_string();
            return Err(Error::new(short.code(), short.what(), short.on())
                .because(format!("{}; {conflict}", short.why().join(": ")))
                .remedy(format!("{remedy}; unpin snapshots that may go")));
        }
        if self.dry_run {
            progress
                .warn(&format!("store {} is short of space: removing what retention lets go makes room", opened.name));
            return Ok(());
        }
        progress.step(&format!("make room in store {}", opened.name));
        let done = pruner.act(opened, planned.plan.hash, now, progress, cancel).inspect_err(|e| helps(e.line()));
        let Ok((_, report)) = done else { return Err(short) };
        progress.warn(&format!(
            "store {} was short of space: removed {} snapshots and emptied {} from the trash, {} bytes freed",
            opened.name,
            report.removed.len(),
            report.emptied.len(),
            report.freed
        ));
        for refused in &report.refused {
            progress.warn(&format!("left {} in store {}: {}", refused.name, opened.name, refused.error.line()));
        }
        if let Some(error) = &report.failed {
            progress.warn(&format!("making room in store {} ended early: {}", opened.name, error.line()));
        }
        let catalog = Catalog::read(&[&*opened.store as &dyn Store])?;
        match stores.rooms(&catalog, self.node, self.db_size).into_iter().find(|(o, _)| o.name == opened.name) {
            Some((_, room)) => room?.check(&opened.name),
            None => Err(short),
        }
    }
}
