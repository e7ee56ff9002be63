//! Rows of etcd's `key` bucket: one per change of a user key.
//!
//! Row key: 8 bytes main revision (big-endian), `_`, 8 bytes sub revision, and `t` behind it for a tombstone.
//! Row value: mvccpb.KeyValue {key=1, create_revision=2, mod_revision=3, version=4, value=5, lease=6}, zero
//! fields left out; a tombstone's has `key` alone. Source: etcd `server/storage/mvcc/revision.go`,
//! `api/mvccpb/kv.proto`.

use super::proto::{Fields, ProtoFault, Value};
use thiserror::Error;

/// Name of the bucket, which also seeds HashKV.
pub const BUCKET: &[u8] = b"key";

/// Where a change stands in history: all changes of one transaction share `main`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision {
    pub main: u64,
    pub sub: u64,
}

/// A row's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    pub revision: Revision,
    pub tombstone: bool,
}

impl RowKey {
    /// `None` when the bytes have another shape. Revisions above `i64::MAX` do not exist in etcd.
    pub fn parse(bytes: &[u8]) -> Option<RowKey> {
        let tombstone = match bytes.len() {
            17 => false,
            18 if bytes[17] == b't' => true,
            _ => return None,
        };
        if bytes[8] != b'_' {
            return None;
        }
        let main = u64::from_be_bytes(bytes[..8].try_into().ok()?);
        let sub = u64::from_be_bytes(bytes[9..17].try_into().ok()?);
        if main > i64::MAX as u64 || sub > i64::MAX as u64 {
            return None;
        }
        Some(RowKey { revision: Revision { main, sub }, tombstone })
    }

    /// The first possible row key of a main revision, to seek with.
    pub fn first_of(main: u64) -> [u8; 17] {
        let mut key = [0; 17];
        key[..8].copy_from_slice(&main.to_be_bytes());
        key[8] = b'_';
        key
    }
}

/// A row's value, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyValue<'a> {
    pub key: &'a [u8],
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
    pub value: &'a [u8],
    pub lease: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyValueFault {
    #[error("value is not a KeyValue: {0}")]
    Proto(#[from] ProtoFault),
    #[error("value is not a KeyValue: field {0} has an unexpected type, number or place")]
    Field(u64),
}

impl<'a> KeyValue<'a> {
    /// Takes the canonical form alone, fields once and ascending: what every etcd version writes.
    pub fn decode(bytes: &'a [u8]) -> Result<KeyValue<'a>, KeyValueFault> {
        let mut kv = KeyValue::default();
        let mut last = 0;
        for field in Fields::new(bytes) {
            let (number, value) = field?;
            if number <= last {
                return Err(KeyValueFault::Field(number));
            }
            last = number;
            match (number, value) {
                (1, Value::Bytes(b)) => kv.key = b,
                (2, Value::Varint(n)) => kv.create_revision = n as i64,
                (3, Value::Varint(n)) => kv.mod_revision = n as i64,
                (4, Value::Varint(n)) => kv.version = n as i64,
                (5, Value::Bytes(b)) => kv.value = b,
                (6, Value::Varint(n)) => kv.lease = n as i64,
                _ => return Err(KeyValueFault::Field(number)),
            }
        }
        Ok(kv)
    }
}

/// What is wrong with one row, apart from its neighbours; `None` when nothing is.
pub fn row_fault(row: RowKey, kv: &KeyValue<'_>) -> Option<String> {
    let main = row.revision.main as i64;
    if row.tombstone {
        let bare = kv.create_revision == 0 && kv.mod_revision == 0 && kv.version == 0 && kv.lease == 0;
        return (!bare || !kv.value.is_empty())
            .then(|| format!("tombstone at revision {main} carries more than its key"));
    }
    if kv.mod_revision != main {
        // etcdutl's revision bump leaves one empty row at the bumped revision (research: etcdutl restore).
        let bump_marker = *kv == KeyValue::default();
        return (!bump_marker).then(|| format!("row at revision {main} says mod revision {}", kv.mod_revision));
    }
    if kv.create_revision < 1 || kv.create_revision > kv.mod_revision {
        return Some(format!("row at revision {main} says create revision {}", kv.create_revision));
    }
    let span = kv.mod_revision - kv.create_revision;
    // The first version is the creation itself; each later one took at least one revision more.
    let fits = if span == 0 { kv.version == 1 } else { kv.version >= 2 && kv.version <= span + 1 };
    (!fits).then(|| format!("row at revision {main}, created at {}, says version {}", kv.create_revision, kv.version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn row_keys() {
        let mut bytes = RowKey::first_of(7).to_vec();
        assert_eq!(RowKey::parse(&bytes).map(|r| (r.revision.main, r.revision.sub, r.tombstone)), Some((7, 0, false)));
        bytes.push(b't');
        assert!(RowKey::parse(&bytes).is_some_and(|r| r.tombstone));
        bytes[17] = b'x';
        assert_eq!(RowKey::parse(&bytes), None);
        bytes.pop();
        bytes[8] = b'-';
        assert_eq!(RowKey::parse(&bytes), None);
        assert_eq!(RowKey::parse(&[0xff; 17]), None);
        assert_eq!(RowKey::parse(b""), None);
    }

    #[test]
    fn key_values() {
        let bytes = [0x0a, 1, b'a', 0x10, 2, 0x18, 3, 0x20, 2, 0x2a, 1, b'v', 0x30, 9];
        let kv = KeyValue::decode(&bytes).unwrap();
        assert_eq!(kv, KeyValue { key: b"a", create_revision: 2, mod_revision: 3, version: 2, value: b"v", lease: 9 });
        assert_eq!(KeyValue::decode(&[0x10, 2, 0x0a, 1, b'a']), Err(KeyValueFault::Field(1)));
        assert_eq!(KeyValue::decode(&[0x38, 2]), Err(KeyValueFault::Field(7)));
        assert_eq!(KeyValue::decode(&[0x0a, 9]), Err(KeyValueFault::Proto(ProtoFault::Truncated)));
    }

    #[test]
    fn row_faults() {
        let row = |main, tombstone| RowKey { revision: Revision { main, sub: 0 }, tombstone };
        let kv = |create, modified, version| KeyValue {
            key: b"k",
            create_revision: create,
            mod_revision: modified,
            version,
            ..Default::default()
        };
        for (main, create, modified, version, good) in [
            (5, 5, 5, 1, true),
            (5, 3, 5, 2, true),
            (5, 3, 5, 3, true),
            (5, 3, 5, 4, false),
            (5, 3, 5, 1, false),
            (5, 5, 5, 2, false),
            (5, 6, 5, 1, false),
            (5, 0, 5, 1, false),
            (6, 5, 5, 1, false),
        ] {
            assert_eq!(
                row_fault(row(main, false), &kv(create, modified, version)).is_none(),
                good,
                "{main} {create} {version}"
            );
        }
        assert!(row_fault(row(9, true), &KeyValue { key: b"k", ..Default::default() }).is_none());
        assert!(row_fault(row(9, true), &kv(1, 9, 1)).is_some());
        assert!(row_fault(row(9, false), &KeyValue::default()).is_none(), "the bump marker");
    }

    proptest! {
        #[test]
        fn decode_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = KeyValue::decode(&bytes);
            let _ = RowKey::parse(&bytes);
        }
    }
}
