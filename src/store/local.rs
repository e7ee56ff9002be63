//! A store on a directory.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::list::{is_reserved, list};
use super::{Marker, Page, PlainFile, Store, StoreSpace, shown};
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::fs::{Dir, Space, Staged, Swept, is_name, is_out_of_space, is_refused, sweep_staged};

const CREATE: &str = "create object";

/// How much of a source is copied at once, in bytes.
const COPY: usize = 1024 * 1024;

/// Made by [`LocalStore::open`]. Everything goes through the handle that was opened then: what is mounted, linked or
/// moved later under the same path is not this store.
#[derive(Debug, Clone)]
pub struct LocalStore {
    dir: Dir,
    /// As configured, links not resolved: only ever compared with the handle.
    configured: PathBuf,
    name: String,
    /// Empty for an empty directory that was only opened for reading.
    id: String,
    writable: bool,
}

impl LocalStore {
    pub(super) fn new(dir: Dir, configured: PathBuf, name: String, id: String, writable: bool) -> LocalStore {
        LocalStore { dir, configured, name, id, writable }
    }

    /// The real path, for people.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The handle, for a lock beside the objects (`.refloat-…` names are not objects).
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// A file on the store's file system for a large object that is still being written.
    pub fn stage(&self) -> Result<Staged> {
        self.check_writable("stage object")?;
        self.dir.stage().map_err(|e| self.write_failed(e, "stage object", ""))
    }

    /// Gives a staged file its name, durably; `AlreadyExists` when it is taken.
    pub fn publish(&self, staged: Staged, name: &str) -> Result<()> {
        self.check_name(CREATE, name)?;
        self.check_writable(CREATE)?;
        self.parents(name)
            .and_then(|()| staged.publish(&self.dir, name))
            .map_err(|e| self.write_failed(e, CREATE, name))
    }

    /// Removes temporary names whose writers are dead.
    pub fn sweep(&self) -> Result<Swept> {
        self.check_writable("sweep store")?;
        sweep_staged(&self.dir).map_err(|e| self.write_failed(e, "sweep store", ""))
    }

    /// `StoreVanished` unless the marker is still the one that was found on opening.
    pub fn check_marker(&self) -> Result<()> {
        match Marker::read(&self.dir)?.map(|m| m.id) {
            Some(id) if id == self.id => Ok(()),
            Some(id) => Err(self.gone(format!("it was store {}, now it is store {id}", self.id))),
            None => Err(self.gone(format!("the marker of store {} is gone", self.id))),
        }
    }

    /// The same before anything is removed, and the configured path must still lead to this directory: what was
    /// swapped, moved or mounted over meanwhile is noticed here, and nowhere touched.
    pub fn check_place(&self) -> Result<()> {
        match Dir::open(&self.configured) {
            Ok(now) if now.identity() == self.dir.identity() => {}
            Ok(now) => {
                let (configured, now) = (self.configured.display(), now.path().display());
                return Err(self.gone(format!("{configured} leads to another directory now ({now})")));
            }
            Err(e) => {
                return Err(self.gone(format!("{} leads nowhere now: {}", self.configured.display(), e.line())));
            }
        }
        self.check_marker()
    }

    fn gone(&self, why: String) -> Error {
        Error::new(Code::StoreVanished, "check marker of store", self.shown())
            .because(why)
            .remedy("see what happened to that directory; nothing more was changed in it")
    }

    /// Total and free bytes as the file system gives them.
    pub fn local_space(&self) -> Result<Space> {
        self.dir.space().map_err(|e| self.failed(e, "read free space of store", ""))
    }

    fn parents(&self, name: &str) -> Result<()> {
        match name.rsplit_once('/') {
            Some((parent, _)) => self.dir.create_dirs(parent).map(drop),
            None => Ok(()),
        }
    }

    fn check_name(&self, what: &str, name: &str) -> Result<()> {
        if is_name(name) && !is_reserved(name) && matches!(shown(name.as_ref()), std::borrow::Cow::Borrowed(_)) {
            return Ok(());
        }
        let code = if what == CREATE { Code::CannotCreate } else { Code::NotFound };
        Err(Error::new(code, what, format!("{name:?} in store {}", self.name)).because("no object has such a name"))
    }

    fn check_writable(&self, what: &str) -> Result<()> {
        if self.writable {
            return Ok(());
        }
        Err(Error::new(Code::StoreNotWritable, what, self.shown()).because("it was opened for reading only"))
    }

    fn shown(&self) -> String {
        format!("{} at {}", self.name, self.dir.path().display())
    }

    fn failed(&self, err: Error, what: &str, name: &str) -> Error {
        let on = if name.is_empty() { self.shown() } else { format!("{name} in store {}", self.shown()) };
        err.during(what, on)
    }

    /// The same for what writes: says when the store cannot be written, and how full it is when it is full.
    fn write_failed(&self, err: Error, what: &str, name: &str) -> Error {
        let refused = is_refused(&err);
        let space = if is_out_of_space(&err) { self.dir.space().ok() } else { None };
        let err = self.failed(err, what, name);
        match space {
            Some(s) => err.remedy(format!("free some space: {} of {} bytes are free", s.free, s.total)),
            None if refused => err.with_code(Code::StoreNotWritable),
            None => err,
        }
    }
}

impl Store for LocalStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn location(&self) -> String {
        self.dir.path().display().to_string()
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.check_name(CREATE, name)?;
        self.check_writable(CREATE)?;
        self.parents(name).and_then(|()| self.dir.create(name, bytes)).map_err(|e| self.write_failed(e, CREATE, name))
    }

    fn put(&self, name: &str, source: &dyn ReadAt) -> Result<()> {
        self.check_name(CREATE, name)?;
        let staged = self.stage()?;
        let len = source.len();
        let mut buf = vec![0; COPY.min(usize::try_from(len).unwrap_or(COPY))];
        let mut at = 0;
        while at < len {
            let part = &mut buf[..usize::try_from(len - at).unwrap_or(COPY).min(COPY)];
            source.read_at(at, part).map_err(|e| Error::io("read source of object", name, e))?;
            staged
                .file()
                .write_all(part)
                .map_err(|e| self.write_failed(Error::io("write object", name, e), CREATE, name))?;
            at += part.len() as u64;
        }
        self.publish(staged, name)
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        self.check_name("read object", name)?;
        self.dir.read(name, limit).map_err(|e| self.failed(e, "read object", name))
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadAt>> {
        self.check_name("open object", name)?;
        let file = self.dir.open_file(name).map_err(|e| self.failed(e, "open object", name))?;
        Ok(Box::new(PlainFile::new(file, name)?))
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        list(&self.dir, prefix, after, limit).map_err(|e| self.failed(e, "list store", ""))
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.check_name("delete object", name)?;
        self.check_writable("delete object")?;
        self.check_place()?;
        self.dir.remove_file(name).map_err(|e| self.write_failed(e, "delete object", name))
    }

    fn check_removable(&self, name: &str) -> Result<()> {
        const WHAT: &str = "remove object";
        self.check_name(WHAT, name)?;
        self.check_writable(WHAT)?;
        self.dir.check_own(name).map_err(|e| self.failed(e, WHAT, name))
    }

    fn renames(&self) -> bool {
        true
    }

    fn rename(&self, name: &str, to: &str) -> Result<()> {
        const WHAT: &str = "rename object";
        self.check_name(WHAT, name)?;
        self.check_name(CREATE, to)?;
        self.check_writable(WHAT)?;
        self.check_place()?;
        self.parents(to)
            .and_then(|()| self.dir.rename_file(name, to))
            .map_err(|e| self.write_failed(e, WHAT, &format!("{name} to {to}")))
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
