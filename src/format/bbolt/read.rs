//! A read-only database: buckets by name, cursors that seek and go forward.
//!
//! For tools that look things up. It trusts nothing: depth is bounded, keys must ascend over the whole walk
//! (so a cycle ends), a page is read only as far as the file goes. The full check is in `check`.

use super::meta::{Meta, MetaFault, Metas};
use super::node::{Branch, ELEMENT, Item, Leaf, NodeFault, extent};
use super::page::{HEADER, Header, Kind, le64};
use crate::format::ReadAt;
use thiserror::Error;

/// etcd's trees are 4 deep at most; bbolt has no limit of its own.
const MAX_DEPTH: usize = 64;

/// Bytes of overflow beyond what a page's elements need that are still read: the check of the whole page names them.
pub const SLACK: u64 = 1 << 20;

#[derive(Debug, Error)]
pub enum ReadFault {
    #[error("read failed")]
    Io(#[from] std::io::Error),
    #[error("no valid meta page: page 0: {0}; page 1: {1}")]
    NoMeta(MetaFault, MetaFault),
    #[error("page {page} lies beyond the end of the database")]
    Beyond { page: u64 },
    #[error("page {page}: {fault}")]
    Node { page: u64, fault: NodeFault },
    #[error("page {page}: keys do not ascend or the tree is deeper than {MAX_DEPTH}")]
    Tree { page: u64 },
    #[error("page {page} has {overflow} overflow pages, far more than its elements need")]
    Overflow { page: u64, overflow: u32 },
    #[error("page {page} has {len} bytes, more than there is memory for")]
    Memory { page: u64, len: u64 },
    #[error("a bucket's value has {0} bytes, which is neither a reference nor a page")]
    BucketValue(usize),
}

/// An open database file.
pub struct Db<'a> {
    file: &'a dyn ReadAt,
    pub meta: Meta,
    pub metas: Metas,
}

/// Where a bucket begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    Page(u64),
    /// The page image from within the parent's leaf.
    Inline(Vec<u8>),
}

/// A bucket of the top level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    pub root: Root,
    pub sequence: u64,
}

impl Bucket {
    /// Value of a bucket's entry: root page u64, sequence u64, and the page itself when the root is 0.
    pub fn parse(value: &[u8]) -> Result<Bucket, ReadFault> {
        let (Some(root), Some(sequence)) = (le64(value, 0), le64(value, 8)) else {
            return Err(ReadFault::BucketValue(value.len()));
        };
        match root {
            0 => Ok(Bucket { root: Root::Inline(value[16..].to_vec()), sequence }),
            page if value.len() == 16 => Ok(Bucket { root: Root::Page(page), sequence }),
            _ => Err(ReadFault::BucketValue(value.len())),
        }
    }
}

impl<'a> Db<'a> {
    pub fn open(file: &'a dyn ReadAt) -> Result<Db<'a>, ReadFault> {
        let metas = Metas::read(file)?;
        let none = |m: Result<Meta, MetaFault>| m.err().unwrap_or(MetaFault::Short);
        let meta = metas.chosen().ok_or(ReadFault::NoMeta(none(metas.each[0]), none(metas.each[1])))?;
        Ok(Db { file, meta, metas })
    }

    /// A page with its overflow, bounded by the high-water mark and by the file.
    pub fn page(&self, id: u64) -> Result<Vec<u8>, ReadFault> {
        let size = u64::from(self.meta.page_size);
        let beyond = ReadFault::Beyond { page: id };
        let fits = |pages: u64| {
            let end = id.checked_add(pages).filter(|end| *end <= self.meta.high_water)?;
            end.checked_mul(size).filter(|end| *end <= self.file.len())
        };
        if id < 2 || fits(1).is_none() {
            return Err(beyond);
        }
        let mut page = vec![0; size as usize];
        self.file.read_at(id * size, &mut page)?;
        let header = Header::parse(&page[..HEADER]).unwrap_or(Header { id: 0, flags: 0, count: 0, overflow: 0 });
        if header.overflow > 0 && header.id == id {
            if fits(header.pages()).is_none() {
                return Err(beyond);
            }
            let len = header.pages() * size;
            if len > self.needed(id, &header)?.saturating_add(SLACK) {
                return Err(ReadFault::Overflow { page: id, overflow: header.overflow });
            }
            page.try_reserve_exact((len - size) as usize).map_err(|_| ReadFault::Memory { page: id, len })?;
            page.resize(len as usize, 0);
            self.file.read_at((id + 1) * size, &mut page[size as usize..])?;
        }
        Ok(page)
    }

    /// Bytes that a page's elements take by their own account, so that a damaged header alone makes nobody read
    /// gigabytes. Never more than the elements' array is held for it.
    fn needed(&self, id: u64, header: &Header) -> Result<u64, ReadFault> {
        let start = id * u64::from(self.meta.page_size) + HEADER as u64;
        if header.kind() == Some(Kind::Freelist) {
            let mut first = [0; 8];
            self.file.read_at(start, &mut first)?;
            let count = if header.count == u16::MAX { u64::from_le_bytes(first) } else { header.count.into() };
            return Ok(count.saturating_add(1).saturating_mul(8));
        }
        let mut elements = vec![0; usize::from(header.count) * ELEMENT];
        if start + elements.len() as u64 > self.file.len() {
            return Err(ReadFault::Node { page: id, fault: NodeFault::Count(header.count) });
        }
        self.file.read_at(start, &mut elements)?;
        Ok(extent(header, &elements))
    }

    /// The top-level buckets in order of their names.
    pub fn buckets(&self) -> Result<Vec<(Vec<u8>, Bucket)>, ReadFault> {
        let top = Bucket { root: Root::Page(self.meta.root), sequence: self.meta.root_sequence };
        let mut cursor = self.cursor(&top);
        let mut buckets = Vec::new();
        while let Some(item) = cursor.next()? {
            if item.bucket {
                buckets.push((item.key.to_vec(), Bucket::parse(item.value)?));
            }
        }
        Ok(buckets)
    }

    pub fn bucket(&self, name: &[u8]) -> Result<Option<Bucket>, ReadFault> {
        Ok(self.buckets()?.into_iter().find(|(n, _)| n == name).map(|(_, b)| b))
    }

    /// A cursor before the first entry.
    pub fn cursor<'b>(&'b self, bucket: &Bucket) -> Cursor<'b> {
        Cursor { db: self, root: bucket.root.clone(), stack: Vec::new(), started: false, last: Vec::new(), pages: 0 }
    }
}

struct Level {
    id: u64,
    page: Vec<u8>,
    leaf: bool,
    index: usize,
}

/// Goes forward through one bucket.
pub struct Cursor<'a> {
    db: &'a Db<'a>,
    root: Root,
    stack: Vec<Level>,
    started: bool,
    last: Vec<u8>,
    /// Pages read since the last seek: a sound tree has each page once.
    pages: u64,
}

impl Cursor<'_> {
    /// Moves so that the next entry is the first one with a key not below `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<(), ReadFault> {
        self.stack.clear();
        self.last.clear();
        self.pages = 0;
        self.started = true;
        self.descend(None, Some(key))
    }

    /// Walks down from a page (or the root) to a leaf: leftmost, or towards `key`.
    fn descend(&mut self, from: Option<u64>, key: Option<&[u8]>) -> Result<(), ReadFault> {
        let (mut id, mut page) = match (from, &self.root) {
            (Some(id), _) => (id, self.db.page(id)?),
            (None, Root::Page(id)) => (*id, self.db.page(*id)?),
            (None, Root::Inline(page)) => (0, page.clone()),
        };
        loop {
            self.pages += 1;
            if self.stack.len() >= MAX_DEPTH || self.pages > self.db.meta.high_water {
                return Err(ReadFault::Tree { page: id });
            }
            let node = |fault| ReadFault::Node { page: id, fault };
            if Header::parse(&page).and_then(|h| h.kind()) == Some(Kind::Branch) {
                let branch = Branch::parse(&page, id).map_err(node)?;
                // The last child whose lower bound is not above the key.
                let index =
                    key.map_or(0, |key| branch.children().take_while(|(low, _)| *low <= key).count().max(1) - 1);
                let (_, child) = branch.child(index).ok_or(ReadFault::Tree { page: id })?;
                self.stack.push(Level { id, page, leaf: false, index });
                (id, page) = (child, self.db.page(child)?);
            } else {
                let leaf = Leaf::parse(&page, id).map_err(node)?;
                let index = key.map_or(0, |key| leaf.items().take_while(|item| item.key < key).count());
                self.stack.push(Level { id, page, leaf: true, index });
                return Ok(());
            }
        }
    }

    /// The next entry, or `None` at the end.
    #[allow(clippy::should_implement_trait)] // lends from the cursor's own page
    pub fn next(&mut self) -> Result<Option<Item<'_>>, ReadFault> {
        if !self.started {
            self.started = true;
            self.descend(None, None)?;
        }
        loop {
            let Some(level) = self.stack.last_mut() else { return Ok(None) };
            let index = level.index;
            if level.leaf {
                if index < Leaf::again(&level.page).len() {
                    level.index += 1;
                    break;
                }
                self.stack.pop();
                if let Some(parent) = self.stack.last_mut() {
                    parent.index += 1;
                }
            } else {
                match Branch::again(&level.page).child(index) {
                    Some((_, child)) => self.descend(Some(child), None)?,
                    None => {
                        self.stack.pop();
                        if let Some(parent) = self.stack.last_mut() {
                            parent.index += 1;
                        }
                    }
                }
            }
        }
        let Some(level) = self.stack.last() else { return Ok(None) };
        let id = level.id;
        let Some(item) = Leaf::again(&level.page).item(level.index - 1) else { return Ok(None) };
        // Ascending over page borders too: this is what ends a walk through a cycle.
        if item.key <= &self.last[..] {
            return Err(ReadFault::Tree { page: id });
        }
        self.last.clear();
        self.last.extend_from_slice(item.key);
        Ok(Some(item))
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::database;
    use super::*;

    fn rows(n: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        (0..n).map(|i| (format!("{i:05}").into_bytes(), vec![b'v'; 10])).collect()
    }

    #[test]
    fn walks_and_seeks_through_levels() {
        let file = database(1024, 7, &[(b"key", rows(500)), (b"meta", rows(0))]);
        let db = Db::open(&file).unwrap();
        assert_eq!(db.buckets().unwrap().len(), 2);
        let key = db.bucket(b"key").unwrap().unwrap();
        let mut cursor = db.cursor(&key);
        let mut n = 0;
        while let Some(item) = cursor.next().unwrap() {
            assert_eq!(item.key, format!("{n:05}").as_bytes());
            n += 1;
        }
        assert_eq!(n, 500);
        for (seek, found) in [("00000", Some("00000")), ("00123x", Some("00124")), ("0", Some("00000")), ("9", None)] {
            cursor.seek(seek.as_bytes()).unwrap();
            assert_eq!(cursor.next().unwrap().map(|i| i.key.to_vec()), found.map(|f| f.as_bytes().to_vec()), "{seek}");
        }
        assert!(db.cursor(&db.bucket(b"meta").unwrap().unwrap()).next().unwrap().is_none());
    }

    #[test]
    fn a_cycle_and_a_page_beyond_the_end_are_errors() {
        let file = database(1024, 7, &[(b"key", rows(30))]);
        let db = Db::open(&file).unwrap();
        let Root::Page(root) = db.bucket(b"key").unwrap().unwrap().root else { panic!("not inline") };
        // The second child of the root branch becomes the first leaf again, then the branch itself.
        let at = root as usize * 1024 + 16 + 16 + 8;
        for target in [2u64, root, 1 << 40] {
            let mut bad = file.clone();
            bad[at..at + 8].copy_from_slice(&target.to_le_bytes());
            let db = Db::open(&bad).unwrap();
            let mut cursor = db.cursor(&db.bucket(b"key").unwrap().unwrap());
            let mut steps = 0;
            let fault = loop {
                match cursor.next() {
                    Ok(Some(_)) => steps += 1,
                    Ok(None) => panic!("walked through {target}"),
                    Err(fault) => break fault,
                }
                assert!(steps < 100);
            };
            assert!(matches!(fault, ReadFault::Tree { .. } | ReadFault::Beyond { .. }), "{fault}");
        }
    }
}
