//! A store that says what would change and changes nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Page, Store, StoreSpace};
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;

/// One change that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planned {
    Create {
        name: String,
        /// Bytes.
        size: u64,
    },
    Delete {
        name: String,
    },
    Rename {
        name: String,
        to: String,
    },
}

/// Reads go through; creates and deletes are recorded, and refused where the real ones would be refused.
#[derive(Debug)]
pub struct DryRun<S> {
    inner: S,
    planned: Mutex<Vec<Planned>>,
}

impl<S: Store> DryRun<S> {
    pub fn new(inner: S) -> DryRun<S> {
        DryRun { inner, planned: Mutex::new(Vec::new()) }
    }

    /// What would have changed, in order.
    pub fn planned(&self) -> Vec<Planned> {
        self.lock().clone()
    }

    /// The store behind it.
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Planned>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `name` would be there by now.
    fn exists(&self, planned: &[Planned], name: &str) -> Result<bool> {
        let last = planned.iter().rev().find_map(|p| match p {
            Planned::Create { name: n, .. } if n == name => Some(true),
            Planned::Delete { name: n } if n == name => Some(false),
            Planned::Rename { name: n, .. } if n == name => Some(false),
            Planned::Rename { to, .. } if to == name => Some(true),
            _ => None,
        });
        match last {
            Some(exists) => Ok(exists),
            None => match self.inner.open(name) {
                Ok(_) => Ok(true),
                Err(e) if e.code() == Code::NotFound => Ok(false),
                Err(e) => Err(e),
            },
        }
    }

    fn plan_create(&self, name: &str, size: u64) -> Result<()> {
        let mut planned = self.lock();
        if self.exists(&planned, name)? {
            return Err(Error::new(Code::AlreadyExists, "create object", format!("{name} in store {}", self.name())));
        }
        planned.push(Planned::Create { name: name.into(), size });
        Ok(())
    }
}

impl<S: Store> Store for DryRun<S> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn location(&self) -> String {
        self.inner.location()
    }

    fn id(&self) -> &str {
        self.inner.id()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.plan_create(name, bytes.len() as u64)
    }

    fn put(&self, name: &str, source: &dyn ReadAt) -> Result<()> {
        self.plan_create(name, source.len())
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        self.inner.read(name, limit)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadAt>> {
        self.inner.open(name)
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        self.inner.list(prefix, after, limit)
    }

    fn delete(&self, name: &str) -> Result<()> {
        let mut planned = self.lock();
        if !self.exists(&planned, name)? {
            return Err(Error::new(Code::NotFound, "delete object", format!("{name} in store {}", self.name())));
        }
        planned.push(Planned::Delete { name: name.into() });
        Ok(())
    }

    fn check_removable(&self, name: &str) -> Result<()> {
        self.inner.check_removable(name)
    }

    fn renames(&self) -> bool {
        self.inner.renames()
    }

    fn rename(&self, name: &str, to: &str) -> Result<()> {
        let mut planned = self.lock();
        let refused = |code| Err(Error::new(code, "rename object", format!("{name} in store {}", self.name())));
        if !self.exists(&planned, name)? {
            return refused(Code::NotFound);
        }
        if self.exists(&planned, to)? {
            return refused(Code::AlreadyExists);
        }
        planned.push(Planned::Rename { name: name.into(), to: to.into() });
        Ok(())
    }

    fn space(&self) -> Result<Option<StoreSpace>> {
        self.inner.space()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LocalStore, Mode, OpenStore};
    use super::*;

    #[test]
    fn nothing_changes_and_all_is_recorded() {
        let tmp = tempfile::tempdir().unwrap();
        let url = format!("file://{}", tmp.path().display());
        let store = LocalStore::open(&OpenStore { name: "s".into(), url, mode: Mode::Write }, None).unwrap();
        store.create("a", b"1").unwrap();
        let dry = DryRun::new(store.clone());
        assert_eq!(dry.create("a", b"2").unwrap_err().code(), Code::AlreadyExists);
        dry.delete("a").unwrap();
        assert_eq!(dry.delete("a").unwrap_err().code(), Code::NotFound);
        dry.create("a", b"22").unwrap();
        assert_eq!(dry.create("a", b"2").unwrap_err().code(), Code::AlreadyExists);
        assert_eq!(dry.delete("b").unwrap_err().code(), Code::NotFound);
        let (delete, create) = (Planned::Delete { name: "a".into() }, Planned::Create { name: "a".into(), size: 2 });
        assert_eq!(dry.planned(), [delete, create]);
        assert_eq!(store.read("a", 9).unwrap(), b"1");
        assert_eq!(dry.list("", None, 9).unwrap(), store.list("", None, 9).unwrap());
    }
}
