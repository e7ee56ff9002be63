//! One leaf's rows: their shape, their place in history, and the sum of those that count.

use super::finding::Findings;
use super::keys::{Fingerprint, Keys, Newest, Seen};
use super::leaves::Found;
use super::report::Visitor;
use crate::format::bbolt::Leaf;
use crate::format::mvcc::{KeyValue, Revision, RowKey, row_fault};
use std::collections::HashSet;

/// Rows whose lease has no row of its own are kept up to this many; beyond, they are only counted once.
const LEASELESS_KEPT: usize = 100_000;

/// What decides whether a row counts, and what is gathered over all leaves.
pub struct Rows<'v> {
    /// Rows above this revision are passed over.
    pub at: u64,
    pub compact: u64,
    /// The file's own compact revision: above it no change may be missing.
    pub history: u64,
    pub keys: Keys,
    pub leases: HashSet<i64>,
    pub leaseless: Vec<(Fingerprint, u64)>,
    pub wanted_key: Vec<u8>,
    pub wanted: Option<(u64, Option<Vec<u8>>)>,
    pub rows: u64,
    pub tombstones: u64,
    /// Main revisions at or below the compact revision that were counted and then superseded.
    pub superseded: Vec<u64>,
    pub visitor: Option<&'v mut dyn Visitor>,
}

impl Rows<'_> {
    /// Reads all rows of a leaf for the first time.
    ///
    /// Fingerprints come first and the table of keys after them, row by row: its entries lie anywhere in memory, and
    /// the processor waits for many of them at once only where nothing long stands between two.
    pub fn first_pass(&mut self, page: u64, leaf: &Leaf<'_>, findings: &mut Findings) -> Found {
        let mut found = Found::default();
        let mut rows = Vec::with_capacity(leaf.len());
        for item in leaf.items() {
            if item.bucket {
                findings.add(Some(page), "row", "a bucket within the key bucket");
                continue;
            }
            let Some(row) = RowKey::parse(item.key) else {
                findings.add(Some(page), "row", format!("row key of {} bytes is not a revision", item.key.len()));
                continue;
            };
            let kv = match KeyValue::decode(item.value) {
                Ok(kv) => kv,
                Err(fault) => {
                    findings.add(Some(page), "row", format!("revision {}: {fault}", row.revision.main));
                    continue;
                }
            };
            if let Some(fault) = row_fault(row, &kv) {
                findings.add(Some(page), "row", fault);
            }
            if let Some(gap) = found.rows.and_then(|(_, last)| gap(last, row.revision, self.history)) {
                findings.add(Some(page), "history", gap);
            }
            found.rows = Some((found.rows.map_or(row.revision, |(first, _)| first), row.revision));
            if row.revision.main > self.at {
                continue;
            }
            self.rows += 1;
            self.tombstones += u64::from(row.tombstone);
            if let Some(visitor) = &mut self.visitor {
                visitor.row(row, &kv);
            }
            rows.push((row, kv, Fingerprint::of(kv.key), item));
        }
        let mut sum = Sum::default();
        let counted = rows.iter().map(|(row, kv, key, _)| self.see(page, *row, kv, *key, findings)).collect::<Vec<_>>();
        for ((.., item), _) in rows.iter().zip(counted).filter(|(_, counts)| *counts) {
            sum.add(item.key, item.value);
        }
        (found.crc, found.bytes) = (sum.crc, sum.bytes);
        found
    }

    /// Notes a row in the history of its key; true when it counts as far as is known now.
    fn see(&mut self, page: u64, row: RowKey, kv: &KeyValue<'_>, key: Fingerprint, findings: &mut Findings) -> bool {
        let main = row.revision.main;
        let version = if row.tombstone { 0 } else { kv.version.clamp(1, i64::from(u32::MAX)) as u32 };
        if kv.key == self.wanted_key && self.wanted.as_ref().is_none_or(|(newest, _)| *newest < main) {
            self.wanted = Some((main, (!row.tombstone).then(|| kv.value.to_vec())));
        }
        if kv.lease != 0 && !self.leases.contains(&kv.lease) && self.leaseless.len() < LEASELESS_KEPT {
            self.leaseless.push((key, main));
        }
        let newest = match self.keys.see(key, main, version) {
            Seen::First => true,
            Seen::Newer(older) => {
                if let Some(fault) = chain_fault(older, row, kv) {
                    findings.add(Some(page), "history", fault);
                }
                if older.main <= self.compact && !older.tombstone() {
                    self.superseded.push(older.main);
                }
                true
            }
            Seen::Older(_) => false,
            Seen::Twice => {
                findings.add(Some(page), "history", format!("one key twice in revision {main}"));
                true
            }
        };
        counts(row, self.compact, newest, false)
    }

    /// Sums a leaf once more, now that the newest row of each key is known. `all_gone`: no key is alive, in
    /// which case etcd does not filter.
    pub fn second_pass(&self, leaf: &Leaf<'_>, all_gone: bool) -> (u32, u64) {
        let mut sum = Sum::default();
        for item in leaf.items() {
            let (Some(row), Ok(kv)) = (RowKey::parse(item.key), KeyValue::decode(item.value)) else { continue };
            if row.revision.main > self.at {
                continue;
            }
            let newest = row.revision.main > self.compact
                || self.keys.newest(Fingerprint::of(kv.key)).is_some_and(|n| n.main == row.revision.main);
            if counts(row, self.compact, newest, all_gone) {
                sum.add(item.key, item.value);
            }
        }
        (sum.crc, sum.bytes)
    }

    /// Live keys that are bound to a lease which has no row: such a key would never expire.
    pub fn keys_without_lease(&self) -> u64 {
        self.leaseless.iter().filter(|(key, main)| self.keys.newest(*key).is_some_and(|n| n.main == *main)).count()
            as u64
    }
}

/// etcd's rule for one row of HashKV.
fn counts(row: RowKey, compact: u64, newest: bool, all_gone: bool) -> bool {
    let main = row.revision.main;
    if row.tombstone && main == compact {
        return false;
    }
    main > compact || all_gone || (newest && !row.tombstone)
}

/// A newer put against an older row of the same key, whether or not rows lie between them.
fn chain_fault(older: Newest, row: RowKey, kv: &KeyValue<'_>) -> Option<String> {
    let main = row.revision.main;
    let same_life = kv.create_revision as u64 <= older.main;
    if row.tombstone || !same_life {
        return None;
    }
    if older.tombstone() {
        return Some(format!(
            "key at revision {main} says it was created at {}, but was deleted at {}",
            kv.create_revision, older.main
        ));
    }
    let (before, now) = (i64::from(older.version), kv.version);
    let room = (main - older.main) as i64;
    (now <= before || now - before > room)
        .then(|| format!("key has version {before} at revision {} and version {now} at revision {main}", older.main))
}

/// Above the compact revision no change is missing: main revisions follow each other, and so do the sub
/// revisions within each.
pub fn gap(before: Revision, after: Revision, compact: u64) -> Option<String> {
    if before.main <= compact {
        // The first row above the compact revision begins the next main revision.
        let first = compact.max(1) + 1;
        let begins = after.main <= compact || (after.main == first && after.sub == 0);
        return (!begins).then(|| format!("revisions {first} to {} are missing or incomplete", after.main));
    }
    let next_main = after.main == before.main + 1 && after.sub == 0;
    let next_sub = after.main == before.main && after.sub == before.sub + 1;
    (!next_main && !next_sub)
        .then(|| format!("revision {}.{} is followed by {}.{}", before.main, before.sub, after.main, after.sub))
}

#[derive(Default)]
struct Sum {
    crc: u32,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.crc = crc32c::crc32c_append(crc32c::crc32c_append(self.crc, key), value);
        self.bytes += (key.len() + value.len()) as u64;
    }
}
