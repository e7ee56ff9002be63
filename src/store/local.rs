//! A store on a directory.
//!
//! Each call runs on a thread of its own and is waited for as long as it moves ([`Patience`]): what hangs is this store,
//! and not who asks. What is opened here is read in the same way.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::stored::StoredFile;
use super::{Page, Store, StoreSpace};
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::fs::patience::moved;
use crate::fs::{Aside, Dir, Limits, Patience, Pending, Space, Staged, Swept, Tenancy};

mod calls;

use calls::{CREATE, Calls};

/// How much of a source is copied at once, in bytes.
const COPY: usize = 1024 * 1024;
/// What is copied is synced in steps of this size: each one shows that the disk still takes it, and etcd's own syncs do
/// not queue behind gigabytes.
const SYNC_EVERY: u64 = 32 << 20;

/// Made by [`LocalStore::open`]. Everything goes through the handle that was opened then: what is mounted, linked or
/// moved later under the same path is not this store. Clones share it.
#[derive(Debug, Clone)]
pub struct LocalStore {
    calls: Arc<Calls>,
    patience: Patience,
    /// Reads go on where only writes hang.
    reading: Patience,
}

/// How the store at this configured path is waited for: to open and change it, and to read its objects.
pub(super) fn patience(configured: &Path, on: &str, limits: &Limits) -> (Patience, Patience) {
    let key = configured.display().to_string();
    let on: Arc<str> = format!("store {on}").into();
    let reading = Patience::new(&format!("{key} (reading)"), on.clone(), Code::StoreHung, limits.clone());
    (Patience::new(&key, on, Code::StoreHung, limits.clone()), reading)
}

impl LocalStore {
    pub(super) fn new(
        dir: Dir,
        configured: PathBuf,
        name: String,
        id: String,
        writable: bool,
        limits: &Limits,
    ) -> LocalStore {
        let (patience, reading) = patience(&configured, &format!("{name} at {}", dir.path().display()), limits);
        LocalStore { calls: Arc::new(Calls { dir, configured, name, id, writable }), patience, reading }
    }

    /// The real path, for people.
    pub fn path(&self) -> &Path {
        self.calls.dir.path()
    }

    /// Device and inode of the directory: equal means the same store.
    pub fn identity(&self) -> (u64, u64) {
        self.calls.dir.identity()
    }

    /// Whether a call has been standing still for too long.
    pub fn is_hung(&self) -> bool {
        self.patience.is_hung() || self.reading.is_hung()
    }

    /// Says so.
    pub fn hung(&self, what: &str) -> Error {
        let patience = if self.patience.is_hung() { &self.patience } else { &self.reading };
        patience.says_hung(what)
    }

    /// How long calls may stand still.
    pub fn limits(&self) -> &Limits {
        self.patience.limits()
    }

    fn look<T: Send + 'static>(
        &self,
        what: &str,
        call: impl FnOnce(&Calls) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let calls = self.calls.clone();
        self.patience.look(what, move || call(&calls))
    }

    fn write<T: Send + 'static>(
        &self,
        what: &str,
        call: impl FnOnce(&Calls) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let calls = self.calls.clone();
        self.patience.write(what, move || call(&calls))
    }

    /// Starts something longer that writes to this store, on a thread of its own. It must say that it moves
    /// ([`crate::fs::patience::moved`]) at least once in `limits().write`.
    pub fn begin<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Pending<T>> {
        self.patience.begin(what, self.limits().write, work)
    }

    /// A file on the store's file system for a large object that is still being written.
    pub fn stage(&self) -> Result<Aside<Staged>> {
        let staged = self.write("stage object in", |calls| calls.stage())?;
        Ok(Aside::new(staged, self.patience.clone()))
    }

    /// What was written so far, to be read back.
    pub fn read_back(&self, staged: &Staged, on: &str) -> Result<StoredFile> {
        let file = staged.file().try_clone().map_err(|e| Error::io("read back", on, e))?;
        StoredFile::new(file, on, self.reading.clone())
    }

    /// Gives a staged file its name, durably; `AlreadyExists` when it is taken.
    pub fn publish(&self, staged: Aside<Staged>, name: &str) -> Result<()> {
        let (calls, name) = (self.calls.clone(), name.to_string());
        staged.spend("create object in", move |staged| calls.publish(staged, &name))
    }

    /// Removes temporary names whose writers are dead.
    pub fn sweep(&self) -> Result<Swept> {
        self.write("sweep", |calls| calls.sweep())
    }

    /// `StoreVanished` unless the marker is still the one that was found on opening.
    pub fn check_marker(&self) -> Result<()> {
        self.look("check marker of", |calls| calls.check_marker())
    }

    /// The same before anything is removed, and the configured path must still lead to this directory: what was
    /// swapped, moved or mounted over meanwhile is noticed here, and nowhere touched.
    pub fn check_place(&self) -> Result<()> {
        self.look("check place of", |calls| calls.check_place())
    }

    /// Total and free bytes as the file system gives them.
    pub fn local_space(&self) -> Result<Space> {
        self.look("read free space of", |calls| calls.space())
    }

    /// Keeps sweepers out while something is written in steps; waits for one that is at work.
    pub fn share(&self) -> Result<Tenancy> {
        self.write("write to", |calls| calls.share())
    }

    /// Keeps writers out; `None` while there is one.
    pub fn alone(&self) -> Result<Option<Tenancy>> {
        self.look("lock", |calls| calls.alone())
    }
}

impl Store for LocalStore {
    fn name(&self) -> &str {
        &self.calls.name
    }

    fn location(&self) -> String {
        self.path().display().to_string()
    }

    fn id(&self) -> &str {
        &self.calls.id
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (name, bytes) = (name.to_string(), bytes.to_vec());
        self.write("create object in", move |calls| calls.create(&name, &bytes))
    }

    fn put(&self, name: &str, source: &dyn ReadAt) -> Result<()> {
        self.calls.check_name(CREATE, name)?;
        let mut staged = self.stage()?;
        let len = source.len();
        let mut buf = vec![0; COPY.min(usize::try_from(len).unwrap_or(COPY))];
        let (mut at, mut unsynced) = (0, 0);
        while at < len {
            self.patience.check("create object in")?;
            buf.truncate(usize::try_from(len - at).unwrap_or(COPY).min(COPY));
            source.read_at(at, &mut buf).map_err(|e| Error::io("read source of object", name, e))?;
            at += buf.len() as u64;
            unsynced += buf.len() as u64;
            let sync = unsynced >= SYNC_EVERY;
            if sync {
                unsynced = 0;
            }
            let (calls, on) = (self.calls.clone(), name.to_string());
            let (file, back) = staged.spend("write object to", move |staged| {
                let written = staged.file().write_all(&buf).and_then(|()| match sync {
                    true => staged.file().sync_data(),
                    false => Ok(()),
                });
                let failed = |e| calls.write_failed(Error::io("write object", &on, e), CREATE, &on);
                written.map(|()| (staged, buf)).map_err(failed)
            })?;
            (staged, buf) = (Aside::new(file, self.patience.clone()), back);
        }
        self.publish(staged, name)
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        let name = name.to_string();
        self.look("read object in", move |calls| calls.read(&name, limit))
    }

    fn read_each(&self, names: Vec<String>, limit: u64) -> Vec<Result<Vec<u8>>> {
        let wanted = names.len();
        let read = self.look("read objects in", move |calls| {
            let read = |name: &String| {
                moved();
                calls.read(name, limit)
            };
            Ok(names.iter().map(read).collect())
        });
        read.unwrap_or_else(|error| {
            let again = || Error::new(error.code(), error.what(), error.on()).because(error.why().join(": "));
            (0..wanted).map(|_| Err(again())).collect()
        })
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadAt>> {
        let on = name.to_string();
        let file = self.look("open object in", move |calls| calls.open(&on))?;
        Ok(Box::new(StoredFile::new(file, name, self.reading.clone())?))
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        let (prefix, after) = (prefix.to_string(), after.map(String::from));
        self.look("list", move |calls| calls.list(&prefix, after.as_deref(), limit))
    }

    fn delete(&self, name: &str) -> Result<()> {
        let name = name.to_string();
        self.write("delete object in", move |calls| calls.delete(&name))
    }

    fn check_removable(&self, name: &str) -> Result<()> {
        let name = name.to_string();
        self.look("remove object in", move |calls| calls.check_removable(&name))
    }

    fn renames(&self) -> bool {
        true
    }

    fn rename(&self, name: &str, to: &str) -> Result<()> {
        let (name, to) = (name.to_string(), to.to_string());
        self.write("rename object in", move |calls| calls.rename(&name, &to))
    }

    fn space(&self) -> Result<Option<StoreSpace>> {
        let Space { total, free, .. } = self.local_space()?;
        Ok(Some(StoreSpace { total, free }))
    }
}

#[cfg(test)]
mod mounts;
#[cfg(test)]
mod tests;
