//! What a database file says about which cluster and which history it comes from (design §7).

use crate::catalog::{Digest, TailAt, TailHasher, UidEvidence};
use crate::format::bbolt::{Db, ReadFault};
use crate::format::kubernetes::{Stored, decode};
use crate::format::mvcc::{self, RowKey};
use crate::format::{Head, ReadAt};

/// Where Kubernetes keeps the namespace whose UID names the cluster.
pub fn namespace_key(prefix: &str) -> Vec<u8> {
    format!("{prefix}/namespaces/kube-system").into_bytes()
}

/// The UID of the kube-system namespace, from its newest value.
pub fn uid(value: Option<&[u8]>) -> UidEvidence {
    match value.map(decode) {
        Some(Stored::Object(object)) if !object.uid.is_empty() => UidEvidence::Readable(object.uid),
        Some(Stored::Encrypted(_)) => UidEvidence::Encrypted,
        Some(_) | None => UidEvidence::Absent,
    }
}

/// The rows that a file has at one main revision, as [`TailHasher`] sums them.
pub fn tail_at(file: &dyn ReadAt, db_len: u64, revision: u64, compact_revision: u64) -> TailAt {
    match rows_at(&Head::new(file, db_len), revision) {
        Err(_) => TailAt::Unknown,
        Ok(Some(digest)) => TailAt::Rows(digest),
        Ok(None) if revision <= compact_revision => TailAt::Compacted,
        Ok(None) => TailAt::NoRows,
    }
}

fn rows_at(file: &dyn ReadAt, revision: u64) -> Result<Option<Digest>, ReadFault> {
    let db = Db::open(file)?;
    let Some(bucket) = db.bucket(mvcc::BUCKET)? else { return Ok(None) };
    let mut cursor = db.cursor(&bucket);
    cursor.seek(&RowKey::first_of(revision))?;
    let mut hasher = TailHasher::default();
    while let Some(item) = cursor.next()? {
        if RowKey::parse(item.key).is_none_or(|row| row.revision.main != revision) {
            break;
        }
        hasher.row(item.key, item.value);
    }
    Ok(hasher.finish())
}
