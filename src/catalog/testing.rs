//! Test helpers: a store in memory, and snapshots made up of a few words.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;

use super::manifest::{Codec, Manifest, SCHEMA, Sha256, Size, check};
use super::value::{Digest, LineageId, Node, TimelineId};
use super::{EtcdId, SnapshotId};
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::store::{Entry, Page, Store, StoreSpace};

/// Keeps objects in memory; can be told to fail.
#[derive(Default)]
pub(crate) struct MemStore {
    pub name: String,
    pub objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Names that are listed, but are links, devices or the like.
    pub irregular: Vec<String>,
    /// A read of such a name fails with this code.
    pub broken: Mutex<BTreeMap<String, Code>>,
    /// Changes each page before it is given out: a store that lies.
    pub twist: Option<fn(Page) -> Page>,
    /// After so many renames there is no room for another name.
    pub names_left: Mutex<Option<usize>>,
    /// Reads that were made.
    pub reads: std::sync::atomic::AtomicUsize,
}

struct Slice(Vec<u8>);

impl ReadAt for Slice {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let from = usize::try_from(offset).unwrap();
        let part = self.0.get(from..from + buf.len()).ok_or(std::io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(part);
        Ok(())
    }
}

impl MemStore {
    pub fn new(name: &str) -> Self {
        MemStore { name: name.into(), ..MemStore::default() }
    }

    pub fn put_text(&self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.objects.lock().unwrap().insert(name.into(), bytes.into());
    }

    pub fn has(&self, name: &str) -> bool {
        self.objects.lock().unwrap().contains_key(name)
    }

    /// Data and manifest of a snapshot.
    pub fn publish(&self, manifest: &Manifest) {
        self.put_text(&manifest.data_name().to_string(), vec![0; usize::try_from(manifest.size.stored).unwrap()]);
        self.put_text(&manifest.name().to_string(), manifest.to_bytes().unwrap());
    }
}

impl Store for MemStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn location(&self) -> String {
        format!("memory:{}", self.name)
    }

    fn id(&self) -> &str {
        "00000000000000000000000000000000"
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut objects = self.objects.lock().unwrap();
        if objects.contains_key(name) {
            return Err(Error::new(Code::AlreadyExists, "create object", name));
        }
        objects.insert(name.into(), bytes.into());
        Ok(())
    }

    fn put(&self, name: &str, source: &dyn ReadAt) -> Result<()> {
        let mut bytes = vec![0; usize::try_from(source.len()).unwrap()];
        source.read_at(0, &mut bytes).map_err(|e| Error::io("read", name, e))?;
        self.create(name, &bytes)
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if let Some(code) = self.broken.lock().unwrap().get(name) {
            return Err(Error::new(*code, "read object", name));
        }
        match self.objects.lock().unwrap().get(name) {
            None => Err(Error::new(Code::NotFound, "read object", name)),
            Some(bytes) if bytes.len() as u64 > limit => {
                Err(Error::new(Code::DataInvalid, "read object", name).because("it is too large"))
            }
            Some(bytes) => Ok(bytes.clone()),
        }
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadAt>> {
        Ok(Box::new(Slice(self.read(name, u64::MAX)?)))
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        use std::ops::Bound;
        if let Some(code) = self.broken.lock().unwrap().get("list") {
            return Err(Error::new(*code, "list", &*self.name));
        }
        let objects = self.objects.lock().unwrap();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut page = Page::default();
        let matching = objects.range::<str, _>((from, Bound::Unbounded)).filter(|(name, _)| name.starts_with(prefix));
        for (name, bytes) in matching {
            if page.entries.len() == limit {
                page.next = page.entries.last().map(|e| e.name.clone());
                break;
            }
            let irregular = self.irregular.contains(name);
            let modified = Timestamp::UNIX_EPOCH;
            page.entries.push(Entry { name: name.clone(), size: bytes.len() as u64, modified, irregular });
        }
        Ok(self.twist.map_or_else(|| page.clone(), |twist| twist(page.clone())))
    }

    fn delete(&self, name: &str) -> Result<()> {
        match self.objects.lock().unwrap().remove(name) {
            Some(_) => Ok(()),
            None => Err(Error::new(Code::NotFound, "delete object", name)),
        }
    }

    fn renames(&self) -> bool {
        true
    }

    fn rename(&self, name: &str, to: &str) -> Result<()> {
        if let Some(left) = self.names_left.lock().unwrap().as_mut() {
            let full = || Error::io("rename object", to, std::io::Error::from_raw_os_error(28));
            *left = left.checked_sub(1).ok_or_else(full)?;
        }
        let mut objects = self.objects.lock().unwrap();
        if objects.contains_key(to) {
            return Err(Error::new(Code::AlreadyExists, "rename object", to));
        }
        let bytes = objects.remove(name).ok_or_else(|| Error::new(Code::NotFound, "rename object", name))?;
        objects.insert(to.into(), bytes);
        Ok(())
    }

    fn space(&self) -> Result<Option<StoreSpace>> {
        Ok(None)
    }
}

pub(crate) const LINEAGE: LineageId = LineageId([0xaa; 8]);

pub(crate) fn node(text: &str) -> Node {
    text.parse().unwrap()
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

/// A verified snapshot: everything else follows from these four.
pub(crate) fn snapshot(timeline: u16, revision: i64, seconds: i64, by: &str) -> Manifest {
    let taken_at = at(seconds);
    Manifest {
        schema: SCHEMA,
        id: SnapshotId::new(timeline, revision, taken_at, node(by)).unwrap(),
        lineage: LINEAGE,
        timeline: TimelineId { number: timeline, hex: if timeline == 0 { [0; 4] } else { [timeline as u8; 4] } },
        cluster_id: Some(EtcdId(0xcafe)),
        node: node(by),
        member_id: Some(EtcdId(1)),
        member_name: Some(by.into()),
        revision,
        compact_revision: 0,
        taken_at,
        finished_at: at(seconds + 5),
        size: Size { db: 4096, in_use: Some(2048), stored: 3 },
        sha256: Sha256 { db: Digest([1; 32]), stored: Digest([2; 32]) },
        codec: Codec::Zstd,
        recipients: Vec::new(),
        hash_kv: None,
        agreement: Vec::new(),
        tail: Some(Digest([revision as u8; 32])),
        etcd_version: Some("3.6.16".into()),
        storage_version: None,
        cluster_version: None,
        raft_term: None,
        raft_index: None,
        keys: Some(1),
        leases: Some(0),
        alarms: Vec::new(),
        checks: check::REQUIRED.map(String::from).to_vec(),
        not_checked: Vec::new(),
        tags: Vec::new(),
        imported: None,
    }
}
