//! The checker against histories made here, a plain re-statement of etcd's rule, and seeded damage.

use super::*;
use crate::format::bbolt::build::{Rows, database};
use crate::format::mvcc::RowKey;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn varint(out: &mut Vec<u8>, tag: u8, mut n: u64) {
    if n == 0 {
        return;
    }
    out.push(tag);
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn bytes(out: &mut Vec<u8>, tag: u8, data: &[u8]) {
    if !data.is_empty() {
        varint(out, tag, data.len() as u64);
        out.extend_from_slice(data);
    }
}

/// A store with etcd's rules for create revisions, versions and tombstones.
#[derive(Default)]
struct Model {
    main: u64,
    live: BTreeMap<u8, (u64, u64)>,
    rows: Vec<(u64, u64, bool, u8, Vec<u8>)>,
    compact: u64,
}

impl Model {
    /// One transaction: `None` deletes. Changes nothing when there is nothing to delete.
    fn txn(&mut self, changes: &[(u8, Option<Vec<u8>>)]) {
        let (main, mut sub) = (self.main.max(1) + 1, 0);
        for (key, value) in changes {
            let mut kv = Vec::new();
            let name = format!("/registry/{key}").into_bytes();
            bytes(&mut kv, 0x0a, &name);
            match value {
                Some(value) => {
                    let entry = self.live.entry(*key).or_insert((main, 0));
                    entry.1 += 1;
                    varint(&mut kv, 0x10, entry.0);
                    varint(&mut kv, 0x18, main);
                    varint(&mut kv, 0x20, entry.1);
                    bytes(&mut kv, 0x2a, value);
                }
                None if self.live.remove(key).is_none() => continue,
                None => {}
            }
            self.rows.push((main, sub, value.is_none(), *key, kv));
            sub += 1;
        }
        if sub > 0 {
            self.main = main;
        }
    }

    /// Forgets rows as etcd does: at or below `revision` only the newest of each key stays, and no tombstone
    /// but (in newer versions) one at the revision itself.
    fn compact(&mut self, revision: u64) {
        self.compact = revision;
        let keep = self.newest(revision);
        self.rows.retain(|(main, sub, dead, ..)| {
            *main > revision || (*dead && *main == revision) || (!*dead && keep.contains(&(*main, *sub)))
        });
    }

    fn newest(&self, at: u64) -> Vec<(u64, u64)> {
        let mut newest = BTreeMap::new();
        for (main, sub, dead, key, _) in self.rows.iter().filter(|row| row.0 <= at) {
            newest.insert(*key, (*main, *sub, *dead));
        }
        newest.into_values().filter(|n| !n.2).map(|n| (n.0, n.1)).collect()
    }

    /// HashKV by the letter of the rule.
    fn hash(&self, at: u64) -> u32 {
        let keep = self.newest(at);
        let mut sum = crc32c::crc32c(b"key");
        for (main, sub, dead, _, kv) in &self.rows {
            let dropped = *main <= self.compact && !keep.is_empty() && !keep.contains(&(*main, *sub));
            if *main > at || dropped || (*dead && *main == self.compact) {
                continue;
            }
            sum = crc32c::crc32c_append(sum, &row_key(*main, *sub, *dead));
            sum = crc32c::crc32c_append(sum, kv);
        }
        sum
    }

    fn file(&self, page_size: usize, fan_out: usize) -> Vec<u8> {
        let key: Rows = self.rows.iter().map(|(m, s, dead, _, kv)| (row_key(*m, *s, *dead), kv.clone())).collect();
        let mut meta: Rows = vec![(b"consistent_index".to_vec(), 9u64.to_be_bytes().to_vec())];
        if self.compact > 0 {
            meta.push((b"finishedCompactRev".to_vec(), row_key(self.compact, 0, false)));
        }
        let member = (b"1f".to_vec(), br#"{"id":31,"peerURLs":["http://a"]}"#.to_vec());
        database(page_size, fan_out, &[(b"key", key), (b"meta", meta), (b"members", vec![member])])
    }
}

fn row_key(main: u64, sub: u64, dead: bool) -> Vec<u8> {
    let mut key = RowKey::first_of(main).to_vec();
    key[9..].copy_from_slice(&sub.to_be_bytes());
    if dead {
        key.push(b't');
    }
    key
}

fn check(file: &[u8], piece: usize, options: Options) -> Report {
    finish(file, piece, options, false)
}

fn finish(file: &[u8], piece: usize, options: Options, proven: bool) -> Report {
    let mut checker = Checker::begin(&file, options);
    for part in file.chunks(piece.max(1)) {
        checker.feed(part);
    }
    checker.finish(&file, proven)
}

fn sample() -> Model {
    let mut model = Model::default();
    for i in 0..300u32 {
        let key = (i % 37) as u8;
        let value = (i % 11 != 5).then(|| vec![i as u8; (i % 90) as usize]);
        model.txn(&[(key, value), (100 + key, Some(vec![1]))]);
        if i == 150 {
            model.compact(120);
        }
    }
    model
}

#[test]
fn a_sound_file_has_no_findings_and_says_what_it_holds() {
    let model = sample();
    let file = model.file(1024, 9);
    let report = check(&file, 4096, Options { wanted_key: b"/registry/101".to_vec(), ..Options::default() });
    assert_eq!(report.findings, []);
    let content = report.content.unwrap();
    assert_eq!((content.revision, content.compact_revision), (model.main, 120));
    assert_eq!((content.live_keys, content.rows), (model.live.len() as u64, model.rows.len() as u64));
    assert_eq!(content.in_use, file.len() as u64);
    assert_eq!(content.wanted, Some(vec![1]));
    assert_eq!(content.members.len(), 1);
    assert_eq!(report.hash_kv.map(|h| h.hash), Some(model.hash(model.main)));
}

#[test]
fn an_empty_store_is_sound() {
    let model = Model::default();
    let report = check(&model.file(4096, 9), 100, Options::default());
    assert_eq!(report.findings, []);
    assert_eq!(report.hash_kv, Some(HashKv { hash: crc32c::crc32c(b"key"), revision: 1, compact_revision: 0 }));
}

proptest! {
    #[test]
    fn hash_is_etcds_rule(
        seed in proptest::collection::vec((0u8..12, any::<bool>(), 0usize..60), 1..120),
        compact_at in proptest::option::of(0u64..100),
        back in 0u64..40,
        fan_out in 2usize..12,
        piece in 1usize..5000,
    ) {
        let mut model = Model::default();
        for (i, (key, delete, size)) in seed.iter().enumerate() {
            let value = (!delete).then(|| vec![i as u8; *size]);
            model.txn(&[(*key, value), (key + 20, (i % 7 != 0).then(Vec::new))]);
        }
        if let Some(c) = compact_at.filter(|c| *c > 0 && *c < model.main) {
            model.compact(c);
        }
        let at = model.main.saturating_sub(back).max(model.compact);
        let file = model.file(1024, fan_out);
        let report = check(&file, piece, Options { revision: Some(at), ..Options::default() });
        prop_assert_eq!(&report.findings, &[]);
        prop_assert_eq!(report.hash_kv.map(|h| h.hash), Some(model.hash(at)));
    }

    #[test]
    fn noise_never_panics(at in proptest::collection::vec((0usize..40_000, any::<u8>()), 1..12), cut in 0usize..60_000) {
        let mut file = sample().file(1024, 9);
        for (i, byte) in at {
            let i = i % file.len();
            file[i] = byte;
        }
        file.truncate(cut.max(1));
        let _ = check(&file, 1500, Options::default());
    }
}

/// Every byte of the file that has a meaning beyond a user's own data: page headers up to the end of the
/// elements, bucket values, row keys that no compaction has touched.
#[test]
fn every_flipped_structural_byte_is_found_without_a_trailer() {
    let mut model = Model::default();
    for i in 0..60u32 {
        model.txn(&[((i % 13) as u8, (i % 9 != 4).then(|| vec![7; (i % 30) as usize]))]);
    }
    let file = model.file(1024, 9);
    assert_eq!(check(&file, 4096, Options::default()).findings, []);
    let mut structural: Vec<usize> = (0..80).chain(1024..1104).collect();
    for start in (2048..file.len()).step_by(1024) {
        let count = usize::from(file[start + 10]);
        structural.extend(start..start + 16 + count * 16);
        let leaf = file[start + 8] == 2;
        for i in 0..count {
            let at = start + 16 + i * 16;
            let word = |n: usize| u32::from_le_bytes(file[at + n..at + n + 4].try_into().unwrap()) as usize;
            let (pos, key_size) = if leaf { (word(4), word(8)) } else { (word(0), word(4)) };
            // Keys of rows, of branches, of buckets; and for buckets their values.
            let value = if leaf && word(0) == 1 { word(12) } else { 0 };
            structural.extend(at + pos..at + pos + key_size + value);
        }
    }
    let mut missed = Vec::new();
    for at in structural {
        for flip in [0x01, 0x80, 0xff] {
            let mut bad = file.clone();
            bad[at] ^= flip;
            if check(&bad, 4096, Options::default()).ok() {
                missed.push((at / 1024, at % 1024, flip));
            }
        }
    }
    assert_eq!(missed, []);
}

#[test]
fn damage_is_named_with_its_page_and_all_of_it() {
    let model = sample();
    let good = model.file(1024, 9);
    let mut bad = good.clone();
    bad[2 * 1024] ^= 1;
    bad[7 * 1024 + 8] = 0x10;
    bad.truncate(bad.len() - 1);
    let report = check(&bad, 4096, Options::default());
    assert!(report.findings.iter().any(|f| f.check == "meta" && f.message.contains("need")), "{:?}", report.findings);

    let mut bad = good;
    bad[2 * 1024] ^= 1;
    bad[7 * 1024 + 8] = 0x10;
    let report = finish(&bad, 4096, Options::default(), true);
    let pages: Vec<_> = report.findings.iter().filter_map(|f| f.page).collect();
    assert!(pages.contains(&2) && pages.contains(&7), "{:?}", report.findings);
    assert_eq!(report.hash_kv, None);
}

#[test]
fn a_missing_change_is_a_finding() {
    let mut model = sample();
    let lost = model.rows.len() - 20;
    model.rows.remove(lost);
    let report = finish(&model.file(1024, 9), 4096, Options::default(), true);
    assert!(report.findings.iter().any(|f| f.check == "history"), "{:?}", report.findings);
}

#[test]
fn hints_change_nothing_and_wrong_ones_are_noticed() {
    let file = sample().file(1024, 9);
    let mut collector = Collector::default();
    collector.feed(&file);
    let hints = collector.finish();
    let plain = check(&file, 4096, Options::default());
    let hinted = check(&file, 4096, Options { hints: hints.clone(), ..Options::default() });
    assert!(!hinted.misled && hinted.ok());
    assert_eq!(hinted.hash_kv, plain.hash_kv);

    // A file whose branch page points elsewhere than the hint: the hint must not hide it.
    let branch = (2048..file.len()).step_by(1024).find(|at| file[at + 8] == 1).expect("a branch page");
    let mut other = file.clone();
    other[branch + 24] ^= 1;
    assert!(check(&other, 4096, Options { hints: hints.clone(), ..Options::default() }).misled);
    assert!(!check(&other, 4096, Options::default()).ok());

    // And hints of another database for a sound file.
    let mut collector = Collector::default();
    collector.feed(&other);
    assert!(check(&file, 4096, Options { hints: collector.finish(), ..Options::default() }).misled);
}
