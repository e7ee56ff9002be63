//! The state of each key on both sides, by fingerprint: 44 bytes a key, however long keys and values are.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};

use super::found::Totals;
use crate::format::check::Visitor;
use crate::format::check::keys::{AsIs, Fingerprint, SHARDS};
use crate::format::mvcc::{KeyValue, RowKey};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    A,
    B,
}

/// How a key differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// In B alone.
    Added,
    /// In both: with another value, another lease, or created at another revision.
    Changed,
    /// In A alone.
    Removed,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Added => "added",
            Kind::Changed => "changed",
            Kind::Removed => "removed",
        }
    }
}

/// A key's newest row on one side; all zero: none was seen. In halves, so that the whole entry needs no padding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Mark {
    /// Main revision; its highest bit, which no revision has, marks a tombstone.
    main: [u32; 2],
    state: [u32; 2],
}

const TOMBSTONE: u64 = 1 << 63;

impl Mark {
    fn new(row: RowKey, state: u64) -> Mark {
        let main = row.revision.main | if row.tombstone { TOMBSTONE } else { 0 };
        Mark { main: halves(main), state: halves(state) }
    }

    fn main(self) -> u64 {
        whole(self.main) & !TOMBSTONE
    }

    fn live(self) -> bool {
        let main = whole(self.main);
        main != 0 && main & TOMBSTONE == 0
    }
}

fn halves(n: u64) -> [u32; 2] {
    [(n >> 32) as u32, n as u32]
}

fn whole(halves: [u32; 2]) -> u64 {
    u64::from(halves[0]) << 32 | u64::from(halves[1])
}

type Shard = HashMap<Fingerprint, [Mark; 2], std::hash::BuildHasherDefault<AsIs>>;

/// All keys below a prefix that any row names.
pub struct Table {
    secret: RandomState,
    prefix: Vec<u8>,
    shards: Vec<Shard>,
}

impl Table {
    /// `secret` keys the fingerprints of states: 64 bits that nobody can aim at who writes the values.
    pub fn new(secret: RandomState, prefix: Vec<u8>) -> Table {
        Table { secret, prefix, shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    /// Whether the key is one that is compared. etcdutl's revision bump leaves a row with an empty key, which no
    /// client can have written.
    pub(super) fn wanted(&self, key: &[u8]) -> bool {
        !key.is_empty() && key.starts_with(&self.prefix)
    }

    /// A fingerprint of a value.
    pub(super) fn of_value(&self, value: &[u8]) -> u64 {
        self.secret.hash_one(value)
    }

    fn state(&self, kv: &KeyValue<'_>) -> u64 {
        let mut hasher = self.secret.build_hasher();
        kv.value.hash(&mut hasher);
        (kv.create_revision, kv.lease).hash(&mut hasher);
        hasher.finish()
    }

    fn see(&mut self, side: Side, row: RowKey, kv: &KeyValue<'_>) {
        if !self.wanted(kv.key) {
            return;
        }
        let key = Fingerprint::of(kv.key);
        let known = self.shards[key.shard()].get(&key).map(|marks| marks[side as usize].main());
        // Most keys that are written often have their newest row last: older ones are not hashed.
        if known.is_some_and(|main| main > row.revision.main) {
            return;
        }
        let mark = Mark::new(row, if row.tombstone { 0 } else { self.state(kv) });
        self.shards[key.shard()].entry(key).or_default()[side as usize] = mark;
    }

    fn forget(&mut self, side: Side) {
        for marks in self.shards.iter_mut().flat_map(|shard| shard.values_mut()) {
            marks[side as usize] = Mark::default();
        }
    }

    /// How a key differs; `None` where it does not. `row` must be its newest on that side, else it tells nothing.
    pub(super) fn kind(&self, side: Side, row: RowKey, key: &[u8]) -> Option<Kind> {
        let key = Fingerprint::of(key);
        let marks = self.shards[key.shard()].get(&key)?;
        let newest = marks[side as usize].main() == row.revision.main;
        if newest { kind(marks) } else { None }
    }

    /// How many keys differ in each way.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for kind in self.shards.iter().flat_map(|shard| shard.values()).filter_map(kind) {
            totals.count(kind);
        }
        totals
    }

    /// Takes the rows of one side.
    pub fn first(&mut self, side: Side) -> First<'_> {
        First { table: self, side }
    }
}

fn kind([a, b]: &[Mark; 2]) -> Option<Kind> {
    match (a.live(), b.live()) {
        (false, false) => None,
        (true, false) => Some(Kind::Removed),
        (false, true) => Some(Kind::Added),
        (true, true) => (a.state != b.state).then_some(Kind::Changed),
    }
}

/// The first look at one side.
pub struct First<'t> {
    table: &'t mut Table,
    side: Side,
}

impl Visitor for First<'_> {
    fn begin(&mut self) {
        self.table.forget(self.side);
    }

    fn row(&mut self, row: RowKey, kv: &KeyValue<'_>) {
        self.table.see(self.side, row, kv);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_44_bytes() {
        assert_eq!(std::mem::size_of::<(Fingerprint, [Mark; 2])>(), 44);
    }
}
