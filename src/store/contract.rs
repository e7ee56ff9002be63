//! What every store can do, whatever is behind it.

use crate::error::{Code, Error, Result};
use crate::format::ReadAt;

/// One object, or something in the way of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path below the store's root with `/` between parts. Control characters, backslashes and bytes that are not
    /// UTF-8 are shown as `\xNN`; a directory that is not entered ends with `/`. Both are irregular.
    pub name: String,
    /// Bytes.
    pub size: u64,
    pub modified: jiff::Timestamp,
    /// A link, a device, a name that is not UTF-8: nothing that refloat writes. Never opened, never removed.
    pub irregular: bool,
}

/// A part of a listing, in ascending order of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// Pass this as `after` to go on; `None` at the end.
    pub next: Option<String>,
}

/// Space of the file system or bucket that holds a store, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSpace {
    pub total: u64,
    /// What this process may still use.
    pub free: u64,
}

/// Blocking by design: callers on an async thread go through `spawn_blocking`.
pub trait Store: Send + Sync {
    /// The name from the configuration.
    fn name(&self) -> &str;
    /// The URL or real path, for people.
    fn location(&self) -> String;
    /// The id in the marker.
    fn id(&self) -> &str;
    /// Creates a small object durably; `Code::AlreadyExists` when the name is taken.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<()>;
    /// Creates a large object durably from another one's bytes; `Code::AlreadyExists` when the name is taken.
    fn put(&self, name: &str, source: &dyn ReadAt) -> Result<()>;
    /// The whole object, refused when larger than `limit` bytes; `Code::NotFound` when absent.
    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>>;
    /// The same for several objects, in their order: cheaper where each call has a price of its own.
    fn read_each(&self, names: Vec<String>, limit: u64) -> Vec<Result<Vec<u8>>> {
        names.iter().map(|name| self.read(name, limit)).collect()
    }
    /// Ranged access; `Code::NotFound` when absent.
    fn open(&self, name: &str) -> Result<Box<dyn ReadAt>>;
    /// Objects below the directory `prefix` (empty: all; a final `/` may be left out), after the name `after`, at
    /// most `limit`. A prefix that is not there has no objects; one that cannot be read is an error.
    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page>;
    /// Removes one object; `Code::NotFound` when absent.
    fn delete(&self, name: &str) -> Result<()>;
    /// Refuses what [`Store::delete`] and [`Store::rename`] would refuse, before anything is done.
    fn check_removable(&self, name: &str) -> Result<()> {
        self.open(name).map(drop)
    }
    /// Whether [`Store::rename`] works: removed objects can then wait in a trash.
    fn renames(&self) -> bool {
        false
    }
    /// Gives one object another name, durably, without writing its bytes again; `Code::NotFound` when absent,
    /// `Code::AlreadyExists` when the new name is taken.
    fn rename(&self, name: &str, to: &str) -> Result<()> {
        Err(Error::new(Code::Internal, "rename object", format!("{name} to {to} in store {}", self.name()))
            .because("this kind of store cannot"))
    }
    /// `None` where the backend has no such notion.
    fn space(&self) -> Result<Option<StoreSpace>>;
}

/// Names in the first request, and at most. A local store reads its directories anew for each page and holds all names
/// that are still to come meanwhile: so few pages, and the smaller the more there is to come.
const FIRST_PAGE: usize = 1000;
const LARGEST_PAGE: usize = 50_000;

/// Sees all objects of a store, page by page, in ascending order. A list that does not go forward, or is out of order,
/// is `ListingInDoubt`: nothing may be concluded from it, nor from what was seen.
pub fn each_entry(store: &dyn Store, see: &mut dyn FnMut(Entry)) -> Result<()> {
    let doubt = |why: &str| {
        Error::new(Code::ListingInDoubt, "read list", store.location())
            .because(why.to_string())
            .remedy("try again; nothing is concluded from this list")
    };
    let mut last: Option<String> = None;
    let mut after: Option<String> = None;
    let mut size = FIRST_PAGE;
    loop {
        let page = store.list("", after.as_deref(), size)?;
        size = LARGEST_PAGE.min(size * 2);
        for entry in page.entries {
            if last.as_ref().is_some_and(|l| *l >= entry.name) {
                return Err(doubt("names come twice or out of order"));
            }
            last = Some(entry.name.clone());
            see(entry);
        }
        match page.next {
            None => return Ok(()),
            Some(next) if after.as_ref().is_some_and(|a| *a >= next) => {
                return Err(doubt("the list does not go on"));
            }
            next => after = next,
        }
    }
}

/// All objects of a store at once.
#[cfg(test)]
pub(super) fn list_all(store: &dyn Store) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    each_entry(store, &mut |entry| all.push(entry))?;
    Ok(all)
}
