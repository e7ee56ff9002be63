//! What a store on a directory does, on the calling thread; [`super::LocalStore`] waits for it.

use std::fs::File;
use std::path::PathBuf;

use super::super::list::{is_reserved, list};
use super::super::{Marker, Page, shown};
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::fs::{Dir, Space, Staged, Swept, Tenancy, is_name, is_out_of_space, is_refused, sweep_staged};

pub const CREATE: &str = "create object";

/// The directory, its place and its name.
#[derive(Debug)]
pub struct Calls {
    pub dir: Dir,
    /// As configured, links not resolved: only ever compared with the handle.
    pub configured: PathBuf,
    pub name: String,
    /// Empty for an empty directory that was only opened for reading.
    pub id: String,
    pub writable: bool,
}

impl Calls {
    pub fn stage(&self) -> Result<Staged> {
        self.check_writable("stage object")?;
        crash::point!("store::stage");
        self.dir.stage().map_err(|e| self.write_failed(e, "stage object", ""))
    }

    pub fn publish(&self, staged: Staged, name: &str) -> Result<()> {
        self.check_name(CREATE, name)?;
        self.check_writable(CREATE)?;
        crash::point!("store::publish");
        self.parents(name)
            .and_then(|()| staged.publish(&self.dir, name))
            .map_err(|e| self.write_failed(e, CREATE, name))
    }

    pub fn sweep(&self) -> Result<Swept> {
        self.check_writable("sweep store")?;
        crash::point!("store::sweep");
        sweep_staged(&self.dir).map_err(|e| self.write_failed(e, "sweep store", ""))
    }

    pub fn check_marker(&self) -> Result<()> {
        crash::point!("store::check_marker");
        match Marker::read(&self.dir)?.map(|m| m.id) {
            Some(id) if id == self.id => Ok(()),
            Some(id) => Err(self.gone(format!("it was store {}, now it is store {id}", self.id))),
            None => Err(self.gone(format!("the marker of store {} is gone", self.id))),
        }
    }

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

    pub fn space(&self) -> Result<Space> {
        crash::point!("store::space");
        self.dir.space().map_err(|e| self.failed(e, "read free space of store", ""))
    }

    fn parents(&self, name: &str) -> Result<()> {
        match name.rsplit_once('/') {
            Some((parent, _)) => self.dir.create_dirs(parent).map(drop),
            None => Ok(()),
        }
    }

    pub fn check_name(&self, what: &str, name: &str) -> Result<()> {
        if is_name(name) && !is_reserved(name) && matches!(shown(name.as_ref()), std::borrow::Cow::Borrowed(_)) {
            return Ok(());
        }
        let code = if what == CREATE { Code::CannotCreate } else { Code::NotFound };
        Err(Error::new(code, what, format!("{name:?} in store {}", self.name)).because("no object has such a name"))
    }

    pub fn check_writable(&self, what: &str) -> Result<()> {
        if self.writable {
            return Ok(());
        }
        Err(Error::new(Code::StoreNotWritable, what, self.shown()).because("it was opened for reading only"))
    }

    pub fn shown(&self) -> String {
        format!("{} at {}", self.name, self.dir.path().display())
    }

    fn failed(&self, err: Error, what: &str, name: &str) -> Error {
        let on = if name.is_empty() { self.shown() } else { format!("{name} in store {}", self.shown()) };
        err.during(what, on)
    }

    /// The same for what writes: says when the store cannot be written, and how full it is when it is full.
    pub fn write_failed(&self, err: Error, what: &str, name: &str) -> Error {
        let refused = is_refused(&err);
        let space = if is_out_of_space(&err) { self.dir.space().ok() } else { None };
        let err = self.failed(err, what, name);
        match space {
            Some(s) => err.remedy(format!("free some space: {} of {} bytes are free", s.free, s.total)),
            None if refused => err.with_code(Code::StoreNotWritable),
            None => err,
        }
    }

    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.check_name(CREATE, name)?;
        self.check_writable(CREATE)?;
        crash::point!("store::create");
        self.parents(name).and_then(|()| self.dir.create(name, bytes)).map_err(|e| self.write_failed(e, CREATE, name))
    }

    pub fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        self.check_name("read object", name)?;
        crash::point!("store::read");
        self.dir.read(name, limit).map_err(|e| self.failed(e, "read object", name))
    }

    pub fn open(&self, name: &str) -> Result<File> {
        self.check_name("open object", name)?;
        crash::point!("store::open");
        self.dir.open_file(name).map_err(|e| self.failed(e, "open object", name))
    }

    pub fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        crash::point!("store::list");
        list(&self.dir, prefix, after, limit).map_err(|e| self.failed(e, "list store", ""))
    }

    pub fn delete(&self, name: &str) -> Result<()> {
        self.check_name("delete object", name)?;
        self.check_writable("delete object")?;
        self.check_place()?;
        crash::point!("store::delete");
        self.dir.remove_file(name).map_err(|e| self.write_failed(e, "delete object", name))
    }

    pub fn check_removable(&self, name: &str) -> Result<()> {
        const WHAT: &str = "remove object";
        self.check_name(WHAT, name)?;
        self.check_writable(WHAT)?;
        self.dir.check_own(name).map_err(|e| self.failed(e, WHAT, name))
    }

    pub fn rename(&self, name: &str, to: &str) -> Result<()> {
        const WHAT: &str = "rename object";
        self.check_name(WHAT, name)?;
        self.check_name(CREATE, to)?;
        self.check_writable(WHAT)?;
        self.check_place()?;
        crash::point!("store::rename");
        self.parents(to)
            .and_then(|()| self.dir.rename_file(name, to))
            .map_err(|e| self.write_failed(e, WHAT, &format!("{name} to {to}")))
    }

    /// For whoever writes in steps, together with others.
    pub fn share(&self) -> Result<Tenancy> {
        crash::point!("store::share");
        Tenancy::share(&self.dir)
    }

    /// For whoever removes; `None` while anybody writes.
    pub fn alone(&self) -> Result<Option<Tenancy>> {
        Tenancy::alone(&self.dir)
    }
}
