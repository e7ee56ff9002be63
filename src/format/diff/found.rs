//! The differing rows, put together to counts, prefixes and keys.

use std::collections::BTreeMap;

use super::prefix;
use super::table::{Kind, Side, Table};
use crate::format::check::Visitor;
use crate::format::mvcc::{KeyValue, RowKey};

/// How many keys differ in each way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
}

impl Totals {
    pub(super) fn count(&mut self, kind: Kind) {
        match kind {
            Kind::Added => self.added += 1,
            Kind::Changed => self.changed += 1,
            Kind::Removed => self.removed += 1,
        }
    }

    pub fn any(self) -> bool {
        self != Totals::default()
    }

    /// Whether this side has rows to tell of.
    pub fn concern(self, side: Side) -> bool {
        self.changed > 0
            || match side {
                Side::A => self.removed > 0,
                Side::B => self.added > 0,
            }
    }
}

/// The differing keys of one prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrefixSum {
    pub counts: Totals,
    /// Bytes of keys and values of those that differ, in A and in B.
    pub bytes_a: u64,
    pub bytes_b: u64,
}

/// A live key on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
    /// 0 without one.
    pub lease: i64,
    /// Bytes of the value.
    pub size: u64,
    /// Fingerprint of the value, worth something only beside others of the same run.
    value: u64,
}

/// What is different about a key that both have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Value,
    Lease,
    /// It was deleted and created again.
    Created,
}

impl Changed {
    pub fn word(self) -> &'static str {
        match self {
            Changed::Value => "value",
            Changed::Lease => "lease",
            Changed::Created => "created",
        }
    }
}

/// One key that differs; its states say how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    pub a: Option<State>,
    pub b: Option<State>,
}

impl Change {
    /// `None` only before both sides were read.
    pub fn kind(&self) -> Option<Kind> {
        match (self.a, self.b) {
            (Some(_), Some(_)) => Some(Kind::Changed),
            (Some(_), None) => Some(Kind::Removed),
            (None, Some(_)) => Some(Kind::Added),
            (None, None) => None,
        }
    }

    /// What is different, where both have the key.
    pub fn changed(&self) -> Vec<Changed> {
        let (Some(a), Some(b)) = (self.a, self.b) else { return Vec::new() };
        let all = [
            (a.value != b.value || a.size != b.size, Changed::Value),
            (a.lease != b.lease, Changed::Lease),
            (a.create_revision != b.create_revision, Changed::Created),
        ];
        all.into_iter().filter_map(|(differs, what)| differs.then_some(what)).collect()
    }
}

/// All that differs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Differences {
    pub totals: Totals,
    /// In the order of their bytes.
    pub prefixes: BTreeMap<Vec<u8>, PrefixSum>,
    /// In the order of their bytes; empty unless they were asked for.
    pub keys: BTreeMap<Vec<u8>, Change>,
}

/// The second look.
pub struct Second<'t> {
    table: &'t Table,
    side: Side,
    depth: Option<usize>,
    list: bool,
    /// What `begin` goes back to, should the rows come once more from the beginning.
    before: BTreeMap<Vec<u8>, PrefixSum>,
    found: Differences,
}

impl<'t> Second<'t> {
    /// Begins with A. `list`: also the single keys, held in memory with their names.
    pub fn new(table: &'t Table, depth: Option<usize>, list: bool) -> Second<'t> {
        let found = Differences { totals: table.totals(), ..Differences::default() };
        Second { table, side: Side::A, depth, list, before: BTreeMap::new(), found }
    }

    /// The rows that follow are those of this side.
    pub fn turn(&mut self, side: Side) {
        self.side = side;
        self.before = self.found.prefixes.clone();
    }

    pub fn finish(self) -> Differences {
        self.found
    }
}

impl Visitor for Second<'_> {
    fn begin(&mut self) {
        self.found.prefixes = self.before.clone();
        // Single keys are only written over with the same.
    }

    fn row(&mut self, row: RowKey, kv: &KeyValue<'_>) {
        if row.tombstone || !self.table.wanted(kv.key) {
            return;
        }
        let Some(kind) = self.table.kind(self.side, row, kv.key) else { return };
        let bytes = (kv.key.len() + kv.value.len()) as u64;
        let under = prefix::of(kv.key, self.depth);
        if !self.found.prefixes.contains_key(under) {
            self.found.prefixes.insert(under.to_vec(), PrefixSum::default());
        }
        if let Some(sum) = self.found.prefixes.get_mut(under) {
            match self.side {
                Side::A => sum.bytes_a += bytes,
                Side::B => sum.bytes_b += bytes,
            }
            // A changed key comes past on both sides.
            if (self.side, kind) != (Side::A, Kind::Changed) {
                sum.counts.count(kind);
            }
        }
        if self.list {
            let state = State {
                create_revision: kv.create_revision,
                mod_revision: kv.mod_revision,
                version: kv.version,
                lease: kv.lease,
                size: kv.value.len() as u64,
                value: self.table.of_value(kv.value),
            };
            let change = self.found.keys.entry(kv.key.to_vec()).or_default();
            match self.side {
                Side::A => change.a = Some(state),
                Side::B => change.b = Some(state),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::RandomState;

    use proptest::prelude::*;

    use super::*;
    use crate::format::mvcc::Revision;

    /// A row as a history wrote it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Row {
        main: u64,
        tombstone: bool,
        key: Vec<u8>,
        create: i64,
        version: i64,
        value: Vec<u8>,
        lease: i64,
    }

    #[derive(Debug, Clone)]
    enum Op {
        Put {
            key: u8,
            value: u8,
            lease: bool,
        },
        Delete {
            key: u8,
        },
        /// The same value in a new life.
        Again {
            key: u8,
        },
    }

    #[derive(Debug, Clone, Default)]
    struct History {
        main: u64,
        rows: Vec<Row>,
        live: BTreeMap<Vec<u8>, Row>,
    }

    fn name(key: u8) -> Vec<u8> {
        let text = match key % 4 {
            0 => format!("/registry/pods/default/{key}"),
            1 => format!("/registry/nodes/{key}"),
            2 => format!("/other/deep/path/{key}"),
            _ => format!("plain{key}"),
        };
        text.into_bytes()
    }

    impl History {
        fn apply(&mut self, op: &Op) {
            match op {
                Op::Put { key, value, lease } => {
                    self.put(name(*key), vec![*value; usize::from(*value)], i64::from(*lease) * 77)
                }
                Op::Delete { key } => self.delete(name(*key)),
                Op::Again { key } => {
                    let Some(row) = self.live.get(&name(*key)).cloned() else { return };
                    self.delete(row.key.clone());
                    self.put(row.key, row.value, row.lease);
                }
            }
        }

        fn put(&mut self, key: Vec<u8>, value: Vec<u8>, lease: i64) {
            self.main += 1;
            let (create, version) =
                self.live.get(&key).map_or((self.main as i64, 1), |row| (row.create, row.version + 1));
            let row = Row { main: self.main, tombstone: false, key: key.clone(), create, version, value, lease };
            self.rows.push(row.clone());
            self.live.insert(key, row);
        }

        fn delete(&mut self, key: Vec<u8>) {
            if self.live.remove(&key).is_some() {
                self.main += 1;
                let row =
                    Row { main: self.main, tombstone: true, key, create: 0, version: 0, value: Vec::new(), lease: 0 };
                self.rows.push(row);
            }
        }

        /// What a compaction at the newest revision leaves.
        fn compact(&mut self) {
            self.rows = self.live.values().cloned().collect();
        }
    }

    fn show(visitor: &mut dyn Visitor, rows: &[Row], shift: usize) {
        visitor.begin();
        for i in 0..rows.len() {
            // Pages lie in no order: some permutation.
            let row = &rows[(i * 7919 + shift) % rows.len()];
            let kv = KeyValue {
                key: &row.key,
                create_revision: row.create,
                mod_revision: if row.tombstone { 0 } else { row.main as i64 },
                version: row.version,
                value: &row.value,
                lease: row.lease,
            };
            let key = RowKey { revision: Revision { main: row.main, sub: 0 }, tombstone: row.tombstone };
            visitor.row(key, &kv);
        }
    }

    fn differences(a: &[Row], b: &[Row], prefix: &[u8], shift: usize) -> Differences {
        let mut table = Table::new(RandomState::new(), prefix.to_vec());
        show(&mut table.first(Side::A), a, shift);
        // Misled once: what was shown before the second beginning must not count.
        show(&mut table.first(Side::B), a, shift);
        show(&mut table.first(Side::B), b, shift);
        let mut second = Second::new(&table, None, true);
        show(&mut second, a, shift);
        show(&mut second, a, shift);
        second.turn(Side::B);
        show(&mut second, b, shift);
        show(&mut second, b, shift);
        second.finish()
    }

    type Told = (Kind, Vec<Changed>, Option<i64>, Option<i64>);

    /// The same by two maps and nothing clever.
    fn model(a: &History, b: &History, prefix: &[u8]) -> BTreeMap<Vec<u8>, Told> {
        let mut told = BTreeMap::new();
        for (key, row) in a.live.iter().filter(|(key, _)| key.starts_with(prefix)) {
            match b.live.get(key) {
                None => {
                    told.insert(key.clone(), (Kind::Removed, vec![], Some(row.main as i64), None));
                }
                Some(now) => {
                    let mut changed = Vec::new();
                    if row.value != now.value {
                        changed.push(Changed::Value);
                    }
                    if row.lease != now.lease {
                        changed.push(Changed::Lease);
                    }
                    if row.create != now.create {
                        changed.push(Changed::Created);
                    }
                    if !changed.is_empty() {
                        let mains = (Some(row.main as i64), Some(now.main as i64));
                        told.insert(key.clone(), (Kind::Changed, changed, mains.0, mains.1));
                    }
                }
            }
        }
        for (key, row) in b.live.iter().filter(|(key, _)| key.starts_with(prefix) && !a.live.contains_key(*key)) {
            told.insert(key.clone(), (Kind::Added, vec![], None, Some(row.main as i64)));
        }
        told
    }

    fn op() -> impl Strategy<Value = Op> {
        let key = 0..12u8;
        prop_oneof![
            4 => (key.clone(), 0..3u8, any::<bool>()).prop_map(|(key, value, lease)| Op::Put { key, value, lease }),
            2 => key.clone().prop_map(|key| Op::Delete { key }),
            1 => key.prop_map(|key| Op::Again { key }),
        ]
    }

    fn check(a: &History, b: &History, prefix: &[u8], shift: usize) {
        let found = differences(&a.rows, &b.rows, prefix, shift);
        let told: BTreeMap<Vec<u8>, Told> = found
            .keys
            .iter()
            .map(|(key, change)| {
                let kind = change.kind().unwrap();
                let mains = (change.a.map(|s| s.mod_revision), change.b.map(|s| s.mod_revision));
                (key.clone(), (kind, change.changed(), mains.0, mains.1))
            })
            .collect();
        let expected = model(a, b, prefix);
        assert_eq!(told, expected);

        let mut prefixes: BTreeMap<Vec<u8>, PrefixSum> = BTreeMap::new();
        let mut totals = Totals::default();
        for (key, (kind, ..)) in &expected {
            totals.count(*kind);
            let sum = prefixes.entry(prefix::of(key, None).to_vec()).or_default();
            sum.counts.count(*kind);
            let bytes = |history: &History| history.live.get(key).map_or(0, |row| (key.len() + row.value.len()) as u64);
            sum.bytes_a += bytes(a);
            sum.bytes_b += bytes(b);
        }
        assert_eq!((found.totals, found.prefixes), (totals, prefixes));
    }

    proptest! {
        #[test]
        fn as_two_maps_say(
            common in prop::collection::vec(op(), 0..30),
            only_a in prop::collection::vec(op(), 0..8),
            only_b in prop::collection::vec(op(), 0..30),
            compacted in any::<bool>(),
            shift in 0..1000usize,
        ) {
            let mut a = History::default();
            common.iter().for_each(|op| a.apply(op));
            let mut b = a.clone();
            only_a.iter().for_each(|op| a.apply(op));
            only_b.iter().for_each(|op| b.apply(op));
            if compacted {
                b.compact();
            }
            for prefix in [&b""[..], b"/registry/", b"/registry/nodes/1", b"none"] {
                check(&a, &b, prefix, shift);
            }
        }
    }

    #[test]
    fn nothing_against_all_and_itself() {
        let (mut full, empty) = (History::default(), History::default());
        (0..12).for_each(|key| full.apply(&Op::Put { key, value: 1, lease: key == 3 }));
        check(&empty, &full, b"", 0);
        check(&full, &empty, b"", 0);
        let same = differences(&full.rows, &full.rows, b"", 0);
        assert!(!same.totals.any() && same.keys.is_empty() && same.prefixes.is_empty());
        assert!(!same.totals.concern(Side::A) && !same.totals.concern(Side::B));
        // The same value once more is no difference.
        let mut again = full.clone();
        again.apply(&Op::Put { key: 3, value: 1, lease: true });
        assert_eq!(differences(&full.rows, &again.rows, b"", 0).totals, Totals::default());
    }

    #[test]
    fn keys_are_not_kept_unless_asked_for() {
        let mut full = History::default();
        full.apply(&Op::Put { key: 1, value: 1, lease: false });
        let mut table = Table::new(RandomState::new(), Vec::new());
        show(&mut table.first(Side::A), &full.rows, 0);
        let mut second = Second::new(&table, Some(1), false);
        show(&mut second, &full.rows, 0);
        let found = second.finish();
        assert!(found.keys.is_empty());
        assert_eq!(found.prefixes.keys().collect::<Vec<_>>(), [b"/registry"]);
    }
}
