//! The key space as it stood at one revision, read from a database file.
//!
//! A file holds every change since its compact revision, so any revision from there to its newest can be seen.

use std::collections::BTreeMap;

use thiserror::Error;

use super::bbolt::{Db, ReadFault};
use super::buckets::Meta;
use super::mvcc::{self, KeyValue, KeyValueFault, RowKey};

#[derive(Debug, Error)]
pub enum KeyspaceFault {
    #[error(transparent)]
    Read(#[from] ReadFault),
    #[error("there is no bucket `{0}`")]
    NoBucket(&'static str),
    #[error("row {0:?} is not a revision")]
    RowKey(Vec<u8>),
    #[error("revision {main}: {fault}")]
    Row { main: u64, fault: KeyValueFault },
    #[error("{0}")]
    Meta(String),
    #[error("revision {wanted} lies outside of what the file holds: {compact} to {newest}")]
    OutOfReach { wanted: u64, compact: u64, newest: u64 },
}

/// A key without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub key: Vec<u8>,
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
    /// 0 without one.
    pub lease: i64,
    /// Bytes of the value.
    pub size: u64,
}

impl Key {
    fn of(kv: &KeyValue<'_>) -> Key {
        Key {
            key: kv.key.to_vec(),
            create_revision: kv.create_revision,
            mod_revision: kv.mod_revision,
            version: kv.version,
            lease: kv.lease,
            size: kv.value.len() as u64,
        }
    }
}

/// Live keys that begin with `prefix`, in the order of their bytes, and the revision they stand at.
pub fn keys(db: &Db<'_>, prefix: &[u8], at: Option<u64>) -> Result<(u64, Vec<Key>), KeyspaceFault> {
    let mut live: BTreeMap<Vec<u8>, Key> = BTreeMap::new();
    let newest = walk(db, at, &mut |tombstone, kv| {
        if !kv.key.starts_with(prefix) {
            return;
        }
        if tombstone {
            live.remove(kv.key);
        } else {
            live.insert(kv.key.to_vec(), Key::of(kv));
        }
    })?;
    Ok((newest, live.into_values().collect()))
}

/// One key with its value; `None` when it does not exist at that revision.
pub fn get(db: &Db<'_>, key: &[u8], at: Option<u64>) -> Result<Option<(Key, Vec<u8>)>, KeyspaceFault> {
    let mut found = None;
    walk(db, at, &mut |tombstone, kv| {
        if kv.key == key {
            found = (!tombstone).then(|| (Key::of(kv), kv.value.to_vec()));
        }
    })?;
    Ok(found)
}

/// Visits every row up to a revision, oldest first; gives the revision.
fn walk(db: &Db<'_>, at: Option<u64>, visit: &mut dyn FnMut(bool, &KeyValue<'_>)) -> Result<u64, KeyspaceFault> {
    let compact = compact_revision(db)?;
    let bucket = db.bucket(mvcc::BUCKET)?.ok_or(KeyspaceFault::NoBucket("key"))?;
    let mut cursor = db.cursor(&bucket);
    // A member that nobody has written to stands at revision 1.
    let mut newest = compact.max(1);
    while let Some(item) = cursor.next()? {
        let row = RowKey::parse(item.key).ok_or_else(|| KeyspaceFault::RowKey(item.key.to_vec()))?;
        let main = row.revision.main;
        newest = newest.max(main);
        if at.is_some_and(|at| main > at) {
            continue;
        }
        let kv = KeyValue::decode(item.value).map_err(|fault| KeyspaceFault::Row { main, fault })?;
        // etcdutl's revision bump leaves a row with an empty key, which no client can have written.
        if !kv.key.is_empty() {
            visit(row.tombstone, &kv);
        }
    }
    match at {
        Some(wanted) if wanted < compact || wanted > newest => {
            Err(KeyspaceFault::OutOfReach { wanted, compact, newest })
        }
        Some(wanted) => Ok(wanted),
        None => Ok(newest),
    }
}

fn compact_revision(db: &Db<'_>) -> Result<u64, KeyspaceFault> {
    let bucket = db.bucket(b"meta")?.ok_or(KeyspaceFault::NoBucket("meta"))?;
    let (mut cursor, mut meta) = (db.cursor(&bucket), Meta::default());
    while let Some(item) = cursor.next()? {
        meta.take(item.key, item.value).map_err(KeyspaceFault::Meta)?;
    }
    Ok(meta.compact_revision())
}
