//! The configured stores, each opened or refused on its own: one that fails never keeps the others from working.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::publish::StoreOutcome;
use super::room::Room;
use super::state::{limits, load_known, save_known, state_patience};
use crate::catalog::prune::usage;
use crate::catalog::{Catalog, KnownLineage, LineageId, Manifest, Node, SnapshotId, read_known};
use crate::config::{MinFree, Settings, StoreSettings, format_size, rounded_size};
use crate::error::{Code, Error, Result};
use crate::fs::{BootTime, Dir, Limits, Pending};
use crate::store::{KnownStores, LocalStore, Mode, OpenStore, Store};

/// Directories whose file system backups must never fill: kubelet evicts pods there, etcd stops.
const NEIGHBOURS: [&str; 2] = ["/var/lib/kubelet", "/var/lib/etcd"];

/// A store that can be used.
#[derive(Clone)]
pub struct Opened {
    pub name: String,
    pub settings: StoreSettings,
    pub store: Arc<LocalStore>,
    /// Of the own member, whose file system backups must not fill either.
    pub data_dir: Option<PathBuf>,
}

/// All stores of one command.
pub struct OpenStores {
    good: Vec<Opened>,
    failed: Vec<(String, Error)>,
    known: KnownStores,
    limits: Limits,
}

impl OpenStores {
    /// Opens for publishing. An error only when none of them can be used.
    pub fn for_writing(
        settings: &Settings,
        only: &[String],
        state: &Dir,
        cancel: &CancellationToken,
    ) -> Result<OpenStores> {
        let limits = limits(settings, cancel);
        let stores = OpenStores::open(settings, only, load_known(state, &limits)?, Mode::Write, &limits)?;
        stores.or_first_failure()
    }

    /// Opens for reading; works without a state directory. An error only when none of them can be read.
    pub fn for_reading(settings: &Settings, only: &[String], cancel: &CancellationToken) -> Result<OpenStores> {
        let limits = limits(settings, cancel);
        OpenStores::open(settings, only, known(settings, &limits)?, Mode::Read, &limits)?.or_first_failure()
    }

    /// Opens each and keeps what happened, also when all fail. They are waited for together.
    pub fn open(
        settings: &Settings,
        only: &[String],
        known: KnownStores,
        mode: Mode,
        limits: &Limits,
    ) -> Result<OpenStores> {
        let mut stores = OpenStores { good: Vec::new(), failed: Vec::new(), known, limits: limits.clone() };
        let wanted = settings.stores.iter().filter(|s| only.is_empty() || only.contains(&s.name));
        let begin =
            |one: &StoreSettings| LocalStore::begin_open(&request(one, mode), stores.known.get(&one.path), limits);
        let begun: Vec<_> = wanted.map(|one| (one, begin(one))).collect();
        for (one, opening) in begun {
            match opening.and_then(Pending::wait).and_then(|store| stores.distinct(one, store)) {
                Ok(store) => {
                    let (name, data_dir) = (one.name.clone(), settings.etcd.data_dir.clone());
                    stores.good.push(Opened { name, settings: one.clone(), store: Arc::new(store), data_dir });
                }
                Err(error) => stores.failed.push((one.name.clone(), error)),
            }
        }
        Ok(stores)
    }

    /// Through a link two stores may be one directory: a snapshot there would be listed as two copies.
    fn distinct(&self, one: &StoreSettings, store: LocalStore) -> Result<LocalStore> {
        match self.good.iter().find(|s| s.store.identity() == store.identity()) {
            None => Ok(store),
            Some(same) => Err(Error::new(Code::Config, "open store", &one.name)
                .because(format!(
                    "{} is also store {}: one directory, no second copy",
                    store.path().display(),
                    same.name
                ))
                .remedy("give each store a directory of its own, or configure one of them alone")),
        }
    }

    /// A person named what is to go: then a store that fails is a failure of all.
    pub fn or_any_failure(mut self) -> Result<OpenStores> {
        match self.take_failed().into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(self),
        }
    }

    fn or_first_failure(mut self) -> Result<OpenStores> {
        if !self.good.is_empty() {
            return Ok(self);
        }
        match self.failed.drain(..).next() {
            Some((_, error)) => Err(error),
            None => Err(Error::new(Code::NotFound, "find store", "").because("no store is configured")),
        }
    }

    pub fn good(&self) -> impl Iterator<Item = &Opened> {
        self.good.iter()
    }

    /// The same store, with the right to create.
    pub fn writable(&self, opened: &Opened) -> Result<LocalStore> {
        let known = self.known.get(&opened.settings.path);
        LocalStore::begin_open(&request(&opened.settings, Mode::Write), known, &self.limits)?.wait()
    }

    /// The lineage of this node's own last snapshot: in a store that clusters share, the only sure word about
    /// which of them is meant.
    pub fn lineage(&self) -> Option<LineageId> {
        self.known.lineage()?.parse().ok()
    }

    /// The snapshot that this node published last in the store at this configured path.
    pub fn newest(&self, path: &Path) -> Option<SnapshotId> {
        self.known.get(path)?.newest_id.as_deref()?.parse().ok()
    }

    /// By how many seconds the wall clock left the time since boot since this node's last snapshot.
    pub fn clock_jump(&self, now: Timestamp) -> Option<i64> {
        self.known.clock()?.jump(&BootTime::now()?, now)
    }

    /// For the catalogue.
    pub fn list(&self) -> Vec<&dyn Store> {
        self.good.iter().map(|s| &*s.store as &dyn Store).collect()
    }

    /// All configured stores, also those that were not asked for, to see what they know: pins above all.
    pub fn beside(&self, settings: &Settings) -> Result<OpenStores> {
        OpenStores::open(settings, &[], self.known.clone(), Mode::Read, &self.limits)
    }

    /// Lists one store, at place 0, and the others for what they know of the same snapshots: a pin counts wherever it was
    /// seen. An error when that one cannot be listed to its end.
    pub fn read_with<'c>(&'c self, opened: &'c Opened, progress: &dyn Progress) -> Result<Catalog<'c>> {
        let others = self.good().filter(|s| s.name != opened.name).map(|s| &*s.store as &dyn Store);
        let list: Vec<&dyn Store> = std::iter::once(&*opened.store as &dyn Store).chain(others).collect();
        let (catalog, failed) = Catalog::read_available(&list);
        for (name, error) in failed {
            if name == opened.name {
                return Err(error.remedy("nothing was removed; try again once the store answers"));
            }
            unseen(&name, &error, progress);
        }
        self.failed.iter().filter(|(name, _)| *name != opened.name).for_each(|(name, e)| unseen(name, e, progress));
        Ok(catalog)
    }

    pub fn failed(&self) -> &[(String, Error)] {
        &self.failed
    }

    /// Takes the failures out.
    pub fn take_failed(&mut self) -> Vec<(String, Error)> {
        std::mem::take(&mut self.failed)
    }

    /// Failures as outcomes of a take.
    pub fn failures(&mut self) -> Vec<StoreOutcome> {
        self.take_failed().into_iter().map(|(name, error)| StoreOutcome { name, result: Err(error) }).collect()
    }

    /// The store whose file system takes the stream: the first one.
    pub fn home(&self) -> Result<Opened> {
        self.good.first().cloned().ok_or_else(|| Error::new(Code::Internal, "choose store", "").because("none is open"))
    }

    /// What the decision whether a snapshot of a database of this size fits needs, for each that was listed.
    pub fn rooms(&self, catalog: &Catalog<'_>, node: &Node, db_size: u64) -> Vec<(&Opened, Result<Room>)> {
        let facts = |opened: &Opened| {
            let at = catalog.stores().iter().position(|s| s.name() == opened.name)?;
            Some(room(opened, catalog, u16::try_from(at).ok()?, node, db_size))
        };
        self.good.iter().filter_map(|opened| facts(opened).map(|room| (opened, room))).collect()
    }

    /// What they know about lineages and timelines. One that hangs meanwhile is set aside, and what it might have said is
    /// left out as a whole; any other failure ends it.
    pub fn known_history(&mut self) -> Result<Vec<KnownLineage>> {
        loop {
            let (known, mut failed) = {
                let (catalog, failed) = Catalog::read_available(&self.list());
                (read_known(&catalog), failed)
            };
            if let Some(at) = failed.iter().position(|(_, error)| error.code() != Code::StoreHung) {
                return Err(failed.swap_remove(at).1);
            }
            let silent =
                self.good.iter().filter(|s| s.store.is_hung() && !failed.iter().any(|(name, _)| *name == s.name));
            let silent: Vec<(String, Error)> = silent.map(|s| (s.name.clone(), s.store.hung("read"))).collect();
            failed.extend(silent);
            if failed.is_empty() {
                return Ok(known);
            }
            for (name, error) in failed {
                self.set_aside(&name, error)?;
            }
        }
    }

    /// Takes out why one store was set aside.
    pub fn take_failure_of(&mut self, name: &str) -> Option<Error> {
        let at = self.failed.iter().position(|(failed, _)| failed == name)?;
        Some(self.failed.remove(at).1)
    }

    /// Whether a snapshot of a database of this size fits into each as it is: expected and needed bytes, or the refusal.
    pub fn check_room(&self, node: &Node, db_size: u64) -> Vec<(String, Result<(u64, u64)>)> {
        let (catalog, unread) = Catalog::read_available(&self.list());
        let rooms = self.rooms(&catalog, node, db_size).into_iter().map(|(opened, room)| {
            let fits = room.and_then(|room| room.check(&opened.name).map(|()| (room.expected(), room.needed())));
            (opened.name.clone(), fits)
        });
        rooms.chain(unread.into_iter().map(|(name, error)| (name, Err(error)))).collect()
    }

    /// Sets aside the stores that have no room; an error when none is left.
    pub fn drop_full(&mut self, rooms: Vec<(String, Result<(u64, u64)>)>) -> Result<()> {
        for (name, result) in rooms {
            if let Err(error) = result {
                self.drop_one(&name, error);
            }
        }
        self.any_left()
    }

    /// Goes on without a store that failed; that failure when it was the last one.
    pub fn set_aside(&mut self, name: &str, error: Error) -> Result<()> {
        self.drop_one(name, error);
        // The latest is what was tried, and not one that was known to be gone before.
        self.failed.rotate_right(1);
        self.any_left()
    }

    fn drop_one(&mut self, name: &str, error: Error) {
        self.good.retain(|s| s.name != name);
        self.failed.push((name.into(), error));
    }

    fn any_left(&mut self) -> Result<()> {
        if !self.good.is_empty() {
            return Ok(());
        }
        Err(self
            .failed
            .drain(..)
            .next()
            .map(|(_, error)| error)
            .unwrap_or_else(|| Error::new(Code::Internal, "choose store", "")))
    }

    /// Notes what was seen where. A failure is only a warning: the snapshot exists.
    pub fn remember(&mut self, state: &Dir, holders: &[String], newest: &Manifest, progress: &dyn Progress) {
        self.known.set_lineage(&newest.lineage.to_string());
        self.known.set_clock(BootTime::now(), Timestamp::now());
        for opened in self.good.iter().filter(|s| holders.contains(&s.name)) {
            self.known.remember(&opened.settings.path, opened.store.id(), Some(&newest.id.to_string()));
        }
        if let Err(error) = save_known(&self.known, state, &self.limits) {
            progress.warn(&error.line());
        }
    }
}

fn unseen(name: &str, error: &Error, progress: &dyn Progress) {
    progress.warn(&format!("pins that only store {name} knows are not seen: {}", error.line()));
}

/// What was seen where, for commands that only read.
pub fn known(settings: &Settings, limits: &Limits) -> Result<KnownStores> {
    let path = settings.paths.state.clone();
    state_patience(&path, limits).look("read known stores in", move || match Dir::open(&path) {
        Ok(state) => KnownStores::load(&state),
        // Never taken before, or somebody else's: the marker alone has to do.
        Err(_) => Ok(KnownStores::default()),
    })
}

/// How a configured store is opened.
pub fn request(settings: &StoreSettings, mode: Mode) -> OpenStore {
    OpenStore { name: settings.name.clone(), url: settings.url.to_string(), mode }
}

/// Facts for the decision whether a snapshot fits.
fn room(opened: &Opened, catalog: &Catalog<'_>, at: u16, node: &Node, db_size: u64) -> Result<Room> {
    let space = opened.store.space()?;
    Ok(Room {
        db_size,
        last: catalog.newest_sizes(at),
        space: space.map(|s| (s.total, s.free)),
        reserved: space.map(|s| reserved(opened, s.total)).transpose()?.unwrap_or(0),
        max_bytes: opened.settings.max_bytes,
        used: usage(catalog, at, opened.settings.scope, node).used,
    })
}

/// Bytes of the store's file system, which has `total`, that are left to others. `Config` for more than it has: no
/// removal can ever meet that, and each prune would go down to the floor in trying.
pub fn reserved(opened: &Opened, total: u64) -> Result<u64> {
    if let MinFree::Bytes(wanted) = opened.settings.min_free
        && wanted > total
    {
        let (wanted, total) = (format_size(wanted), rounded_size(total));
        return Err(Error::new(Code::Config, "keep space free beside store", &opened.name)
            .because(format!("min_free = {wanted}, but its file system has {total} in all"))
            .remedy("set a smaller min_free, or \"auto\""));
    }
    let neighbours = NEIGHBOURS.iter().map(Path::new).chain(opened.data_dir.as_deref());
    let shared = neighbours.into_iter().any(|path| shares_device(&opened.store, path));
    Ok(opened.settings.min_free.bytes(total, shared))
}

fn shares_device(store: &LocalStore, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).is_ok_and(|m| m.dev() == store.identity().0)
}
