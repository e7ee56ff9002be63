//! A store that fails on purpose, by a script: what remote stores do on a bad day, for tests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Entry, Page, Store, StoreSpace};
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;

/// Which call a fault belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    Create,
    Put,
    Read,
    Open,
    List,
    Delete,
    Rename,
    Space,
}

/// What goes wrong. A fault that makes no sense for its call does nothing.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Nothing is done; the call fails.
    Fail(Code),
    /// All is done; the call fails all the same, as when the answer is lost.
    LoseAnswer(Code),
    /// A list ends after so many entries as if there were no more.
    CutList(usize),
    /// A list as it was earlier.
    StaleList(Vec<Entry>),
    /// A list without entries.
    EmptyList,
    /// Reads see only so many bytes; a create leaves so many behind and fails.
    Tear(usize),
    /// The call takes this much longer.
    Slow(Duration),
}

/// Passes on to another store, but for the scripted faults.
#[derive(Debug)]
pub struct Unreliable<S> {
    inner: S,
    script: Vec<(Call, Option<usize>, Fault)>,
    calls: Mutex<HashMap<Call, usize>>,
}

impl<S: Store> Unreliable<S> {
    pub fn new(inner: S) -> Unreliable<S> {
        Unreliable { inner, script: Vec::new(), calls: Mutex::default() }
    }

    /// The store behind it.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// The `nth` call of that kind (from 1) goes wrong.
    pub fn nth(mut self, nth: usize, call: Call, fault: Fault) -> Self {
        self.script.push((call, Some(nth), fault));
        self
    }

    /// Each call of that kind goes wrong.
    pub fn always(mut self, call: Call, fault: Fault) -> Self {
        self.script.push((call, None, fault));
        self
    }

    /// How many calls of that kind were made.
    pub fn calls(&self, call: Call) -> usize {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(&call).copied().unwrap_or(0)
    }

    /// Counts the call and gives its fault; delays and plain failures are dealt with here.
    fn enter(&self, call: Call) -> Result<Option<&Fault>> {
        let n = {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let n = calls.entry(call).or_default();
            *n += 1;
            *n
        };
        let fault =
            self.script.iter().find(|(c, nth, _)| *c == call && nth.is_none_or(|nth| nth == n)).map(|(.., f)| f);
        match fault {
            Some(Fault::Fail(code)) => Err(self.failed(call, *code)),
            Some(Fault::Slow(delay)) => {
                std::thread::sleep(*delay);
                Ok(None)
            }
            other => Ok(other),
        }
    }

    fn failed(&self, call: Call, code: Code) -> Error {
        Error::new(code, format!("{call:?} in unreliable store"), self.inner.name()).because("the script says so")
    }

    fn lose<T>(&self, call: Call, fault: Option<&Fault>, done: Result<T>) -> Result<T> {
        match (fault, done) {
            (Some(Fault::LoseAnswer(code)), Ok(_)) => Err(self.failed(call, *code)),
            (_, done) => done,
        }
    }
}

impl<S: Store> Store for Unreliable<S> {
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
        let fault = self.enter(Call::Create)?;
        if let Some(Fault::Tear(len)) = fault {
            self.inner.create(name, &bytes[..bytes.len().min(*len)])?;
            return Err(self.failed(Call::Create, Code::Io));
        }
        self.lose(Call::Create, fault, self.inner.create(name, bytes))
    }

    fn put(&self, name: &str, source: &dyn ReadAt) -> Result<()> {
        let fault = self.enter(Call::Put)?;
        if let Some(Fault::Tear(len)) = fault {
            self.inner.put(
                name,
                &Torn { len: source.len().min(*len as u64), read: |at, buf: &mut [u8]| source.read_at(at, buf) },
            )?;
            return Err(self.failed(Call::Put, Code::Io));
        }
        self.lose(Call::Put, fault, self.inner.put(name, source))
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        let fault = self.enter(Call::Read)?;
        let mut bytes = self.lose(Call::Read, fault, self.inner.read(name, limit))?;
        if let Some(Fault::Tear(len)) = fault {
            bytes.truncate(*len);
        }
        Ok(bytes)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadAt>> {
        let fault = self.enter(Call::Open)?;
        let inner = self.lose(Call::Open, fault, self.inner.open(name))?;
        match fault {
            Some(Fault::Tear(len)) => Ok(Box::new(Torn {
                len: inner.len().min(*len as u64),
                read: move |at, buf: &mut [u8]| inner.read_at(at, buf),
            })),
            _ => Ok(inner),
        }
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        let fault = self.enter(Call::List)?;
        match fault {
            Some(Fault::EmptyList) => Ok(Page::default()),
            Some(Fault::StaleList(all)) => Ok(page_of(all, prefix, after, limit)),
            _ => {
                let mut page = self.lose(Call::List, fault, self.inner.list(prefix, after, limit))?;
                if let Some(Fault::CutList(len)) = fault {
                    page.entries.truncate(*len);
                    page.next = None;
                }
                Ok(page)
            }
        }
    }

    fn delete(&self, name: &str) -> Result<()> {
        let fault = self.enter(Call::Delete)?;
        self.lose(Call::Delete, fault, self.inner.delete(name))
    }

    fn check_removable(&self, name: &str) -> Result<()> {
        self.inner.check_removable(name)
    }

    fn renames(&self) -> bool {
        self.inner.renames()
    }

    fn rename(&self, name: &str, to: &str) -> Result<()> {
        let fault = self.enter(Call::Rename)?;
        self.lose(Call::Rename, fault, self.inner.rename(name, to))
    }

    fn space(&self) -> Result<Option<StoreSpace>> {
        let fault = self.enter(Call::Space)?;
        self.lose(Call::Space, fault, self.inner.space())
    }
}

fn page_of(all: &[Entry], prefix: &str, after: Option<&str>, limit: usize) -> Page {
    let below = |name: &str| {
        let prefix = prefix.trim_end_matches('/');
        prefix.is_empty() || name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
    };
    let mut rest = all.iter().filter(|e| below(&e.name) && after.is_none_or(|a| e.name.as_str() > a));
    let entries: Vec<Entry> = rest.by_ref().take(limit).cloned().collect();
    let next = rest.next().and(entries.last()).map(|e| e.name.clone());
    Page { entries, next }
}

/// An object whose end is missing.
struct Torn<F> {
    read: F,
    len: u64,
}

impl<F: Fn(u64, &mut [u8]) -> std::io::Result<()> + Send + Sync> ReadAt for Torn<F> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.len) {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        (self.read)(offset, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LocalStore, Mode, OpenStore, list_all};
    use super::*;

    fn store() -> (tempfile::TempDir, LocalStore) {
        let tmp = tempfile::tempdir().unwrap();
        let url = format!("file://{}", tmp.path().display());
        let store = LocalStore::open(&OpenStore { name: "s".into(), url, mode: Mode::Write }, None).unwrap();
        for name in ["a/1", "a/2", "b"] {
            store.create(name, name.as_bytes()).unwrap();
        }
        (tmp, store)
    }

    #[test]
    fn faults_strike_where_the_script_says() {
        let (_tmp, store) = store();
        let old = list_all(&store).unwrap();
        store.create("c", b"new").unwrap();
        let bad = Unreliable::new(store.clone())
            .nth(2, Call::Read, Fault::Fail(Code::Io))
            .nth(3, Call::Read, Fault::Tear(1))
            .nth(1, Call::Open, Fault::Tear(2))
            .nth(1, Call::Create, Fault::LoseAnswer(Code::Io))
            .nth(2, Call::Create, Fault::Tear(1))
            .nth(1, Call::List, Fault::EmptyList)
            .nth(2, Call::List, Fault::CutList(1))
            .nth(3, Call::List, Fault::StaleList(old.clone()))
            .always(Call::Delete, Fault::Fail(Code::Io));
        assert_eq!(bad.read("b", 9).unwrap(), b"b");
        assert_eq!(bad.read("b", 9).unwrap_err().code(), Code::Io);
        assert_eq!(bad.read("a/1", 9).unwrap(), b"a");
        assert_eq!(bad.open("a/1").unwrap().len(), 2);
        assert_eq!(bad.open("a/1").unwrap().len(), 3);
        assert!(bad.create("d", b"123").is_err() && bad.create("e", b"123").is_err());
        assert_eq!((store.read("d", 9).unwrap(), store.read("e", 9).unwrap()), (b"123".to_vec(), b"1".to_vec()));
        assert_eq!(bad.list("", None, 9).unwrap(), Page::default());
        let cut = bad.list("", None, 9).unwrap();
        assert_eq!((cut.entries.len(), cut.next), (1, None));
        assert_eq!(bad.list("", None, 9).unwrap().entries, old);
        assert_eq!(bad.list("", None, 9).unwrap().entries.len(), 6);
        assert!(bad.delete("b").is_err() && bad.delete("b").is_err());
        assert_eq!((bad.calls(Call::Delete), bad.calls(Call::Space)), (2, 0));
        assert!(store.read("b", 9).is_ok());
    }

    #[test]
    fn stale_pages_are_like_fresh_ones() {
        let (_tmp, store) = store();
        let all = list_all(&store).unwrap();
        for prefix in ["", "a", "a/", "none"] {
            for after in [None, Some("a/1"), Some("a/2"), Some("z")] {
                for limit in 1..4 {
                    assert_eq!(page_of(&all, prefix, after, limit), store.list(prefix, after, limit).unwrap());
                }
            }
        }
    }
}
