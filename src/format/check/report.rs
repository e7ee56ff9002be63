//! What a check is asked for, and what it answers.

use super::finding::Finding;
use super::hints::Hints;
use crate::format::buckets::{Member, Meta};
use crate::format::mvcc::{KeyValue, RowKey};

/// What to look for beside faults.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A user key whose newest value is wanted, such as the kube-system namespace's.
    pub wanted_key: Vec<u8>,
    /// Compute HashKV as at this revision instead of the newest.
    pub revision: Option<u64>,
    /// Compute HashKV as a member would that was compacted to here, instead of what the file says.
    pub compact_revision: Option<u64>,
    /// Branch pages that were gathered beforehand; need not be trusted.
    pub hints: Hints,
}

/// Wants to see the rows of the `key` bucket while they are checked.
pub trait Visitor {
    /// Nothing seen so far counts: the rows come from the beginning.
    fn begin(&mut self);

    /// A row at or below the wanted revision whose shape is sound. Rows come in the order of the file's pages, which
    /// is not that of revisions. What was shown means something only when the check ends without a finding.
    fn row(&mut self, row: RowKey, kv: &KeyValue<'_>);
}

/// etcd's hash over the key space, with the two revisions without which it means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HashKv {
    pub hash: u32,
    pub revision: u64,
    /// 0 when never compacted.
    pub compact_revision: u64,
}

/// What the file holds.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// Bytes.
    pub page_size: u32,
    pub txid: u64,
    /// Bytes up to the high-water mark, and those on reachable pages.
    pub size: u64,
    pub in_use: u64,
    pub revision: u64,
    pub compact_revision: u64,
    pub rows: u64,
    pub tombstones: u64,
    pub live_keys: u64,
    pub keys_without_lease: u64,
    pub leases: u64,
    pub meta: Meta,
    pub members: Vec<Member>,
    /// Member id and alarm name.
    pub alarms: Vec<(u64, String)>,
    pub cluster_version: Option<String>,
    /// The newest value of the wanted key.
    pub wanted: Option<Vec<u8>>,
    /// Bucket names with the number of their entries; for `key` the rows.
    pub buckets: Vec<(String, u64)>,
}

/// The outcome of a check.
#[derive(Debug)]
pub struct Report {
    /// Empty: the file is sound.
    pub findings: Vec<Finding>,
    /// Unusual, and proven to be what was sent.
    pub notes: Vec<Finding>,
    /// Absent when no tree could be walked.
    pub content: Option<Content>,
    /// Absent when any finding makes it meaningless.
    pub hash_kv: Option<HashKv>,
    /// A hint was not what the file holds: nothing of this report means anything, check again without hints.
    pub misled: bool,
}

impl Report {
    pub fn ok(&self) -> bool {
        self.findings.is_empty()
    }
}
