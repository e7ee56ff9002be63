//! What was done to a directory tree, operation by operation, and faults to order: for tests alone.
//!
//! A disk after a power loss holds what was synced, and of the rest whatever it likes. No test can cut the power, but
//! one can note each operation ([`Trace`]) and then work out what the disk may hold ([`super::power`]). Compiled with
//! the feature `failpoints` and under test only; a trace costs nothing where none is running.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::power::{Disk, Loss, losses};
use super::{Dir, Kind};
use crate::error::Result;

/// A directory or file of a trace; never given twice, unlike inode numbers.
pub type Id = u64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Mkdir {
        dir: Id,
        name: OsString,
        made: Id,
    },
    /// A new name; it takes the place of what had it.
    Link {
        dir: Id,
        name: OsString,
        file: Id,
    },
    Unlink {
        dir: Id,
        name: OsString,
    },
    /// File systems that keep a journal never lose both names.
    Rename {
        dir: Id,
        from: OsString,
        into: Id,
        to: OsString,
        file: Id,
    },
    Write {
        file: Id,
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLen {
        file: Id,
        len: u64,
    },
    /// With the whole content where it was not written by [`Op::Write`].
    SyncFile {
        file: Id,
        content: Option<Vec<u8>>,
    },
    /// The kernel reported that write-back failed, and takes the pages for clean.
    FailedSync {
        file: Id,
    },
    SyncDir {
        dir: Id,
    },
    /// The test: something was acknowledged.
    Mark,
}

/// What can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Write,
    Sync,
    SetLen,
    SyncDir,
}

#[derive(Debug)]
struct State {
    ids: HashMap<(u64, u64), Id>,
    given: Id,
    ops: Vec<Op>,
    faults: Vec<(Action, i32)>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    state: Mutex<State>,
}

/// Notes what is done beneath one directory until it is dropped.
#[derive(Debug)]
pub struct Trace {
    shared: Arc<Shared>,
    before: Disk,
}

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static TRACES: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Trace {
    /// What is there already counts as durable.
    pub fn start(root: &Dir) -> Result<Trace> {
        let mut state = State { ids: HashMap::new(), given: 0, ops: Vec::new(), faults: Vec::new() };
        let mut before = Disk::new(state.new_id(root.identity()));
        take_in(root, &mut state, &mut before)?;
        let shared = Arc::new(Shared { root: root.path().to_owned(), state: Mutex::new(state) });
        lock(&TRACES).push(Arc::clone(&shared));
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Ok(Trace { shared, before })
    }

    /// What was done before has been acknowledged.
    pub fn mark(&self) {
        lock(&self.shared.state).ops.push(Op::Mark);
    }

    /// The next such action fails with this error number, once; several wait in turn.
    pub fn fail(&self, action: Action, errno: i32) {
        lock(&self.shared.state).faults.push((action, errno));
    }

    pub fn ops(&self) -> Vec<Op> {
        lock(&self.shared.state).ops.clone()
    }

    /// Each state in which a power loss may leave the tree, at whatever moment it comes.
    pub fn losses(&self) -> Vec<Loss> {
        losses(&self.before, &self.ops())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        lock(&TRACES).retain(|other| !Arc::ptr_eq(other, &self.shared));
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

impl State {
    fn new_id(&mut self, identity: (u64, u64)) -> Id {
        self.given += 1;
        self.ids.insert(identity, self.given);
        self.given
    }

    fn id(&mut self, identity: (u64, u64)) -> Id {
        match self.ids.get(&identity) {
            Some(id) => *id,
            None => self.new_id(identity),
        }
    }
}

fn take_in(dir: &Dir, state: &mut State, disk: &mut Disk) -> Result<()> {
    let above = state.id(dir.identity());
    for entry in dir.entries()? {
        let Some(name) = entry.name.to_str() else { continue };
        match entry.kind {
            Kind::Dir => {
                let below = dir.open_dir(name)?;
                disk.has_dir(above, &entry.name, state.new_id(below.identity()));
                take_in(&below, state, disk)?;
            }
            Kind::File => {
                let Some(stat) = dir.stat(&entry.name)? else { continue };
                disk.has_file(above, &entry.name, state.new_id(stat.identity), dir.read(name, u64::MAX)?);
            }
            Kind::Link | Kind::Other => {}
        }
    }
    Ok(())
}

fn each(path: &Path, mut see: impl FnMut(&mut State)) {
    if RUNNING.load(Ordering::SeqCst) == 0 {
        return;
    }
    for shared in lock(&TRACES).iter().filter(|shared| path.starts_with(&shared.root)) {
        see(&mut lock(&shared.state));
    }
}

fn identity(file: &File) -> (u64, u64) {
    file.metadata().map_or((0, 0), |meta| (meta.dev(), meta.ino()))
}

fn content(file: &File) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; file.metadata().map_or(0, |meta| usize::try_from(meta.len()).unwrap_or(0))];
    file.read_exact_at(&mut bytes, 0).map_or(Vec::new(), |()| bytes)
}

/// A file without a name, or whose name follows.
pub fn created(dir: &Dir, file: &File) {
    each(dir.path(), |state| {
        state.new_id(identity(file));
    });
}

pub fn made_dir(dir: &Dir, name: &str) {
    let Ok(Some(stat)) = dir.stat(name.as_ref()) else { return };
    each(dir.path(), |state| {
        let (dir, made) = (state.id(dir.identity()), state.new_id(stat.identity));
        state.ops.push(Op::Mkdir { dir, name: name.into(), made });
    });
}

pub fn linked(dir: &Dir, name: &str, file: &File) {
    each(dir.path(), |state| {
        let (dir, file) = (state.id(dir.identity()), state.id(identity(file)));
        state.ops.push(Op::Link { dir, name: name.into(), file });
    });
}

pub fn unlinked(dir: &Dir, name: impl AsRef<OsStr>) {
    each(dir.path(), |state| {
        let dir = state.id(dir.identity());
        state.ops.push(Op::Unlink { dir, name: name.as_ref().into() });
    });
}

/// After the rename.
pub fn renamed(from: &Dir, name: &str, into: &Dir, to: &str) {
    let Ok(Some(stat)) = into.stat(to.as_ref()) else { return };
    each(from.path(), |state| {
        let (dir, into, file) = (state.id(from.identity()), state.id(into.identity()), state.id(stat.identity));
        state.ops.push(Op::Rename { dir, from: name.into(), into, to: to.into(), file });
    });
}

pub fn written(path: &str, file: &File, bytes: &[u8], offset: u64) {
    each(path.as_ref(), |state| {
        let file = state.id(identity(file));
        state.ops.push(Op::Write { file, offset, bytes: bytes.to_vec() });
    });
}

pub fn cut(path: &str, file: &File, len: u64) {
    each(path.as_ref(), |state| {
        let file = state.id(identity(file));
        state.ops.push(Op::SetLen { file, len });
    });
}

/// `None`: what was written is in the trace.
pub fn synced(path: &Path, file: &File, whole: bool) {
    each(path, |state| {
        let id = state.id(identity(file));
        state.ops.push(Op::SyncFile { file: id, content: whole.then(|| content(file)) });
    });
}

pub fn synced_dir(dir: &Dir) {
    each(dir.path(), |state| {
        let dir = state.id(dir.identity());
        state.ops.push(Op::SyncDir { dir });
    });
}

pub fn sync_failed(path: &str, file: &File) {
    each(path.as_ref(), |state| {
        let file = state.id(identity(file));
        state.ops.push(Op::FailedSync { file });
    });
}

/// The error that a test has ordered for this action.
pub fn fault(path: &Path, action: Action) -> std::io::Result<()> {
    let mut ordered = None;
    each(path, |state| {
        if let Some(at) = state.faults.iter().position(|(wanted, _)| *wanted == action) {
            ordered = Some(state.faults.remove(at).1);
        }
    });
    ordered.map_or(Ok(()), |errno| Err(std::io::Error::from_raw_os_error(errno)))
}
