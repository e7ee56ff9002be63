//! bbolt's own command as oracle for pages: the same sizes and counts, and no fault that it sees and we do not.

use std::collections::BTreeMap;
use std::path::Path;

use refloat::format::check::{Checker, Options, Report};

use crate::bed::{Line, Output, Rng, bbolt, soak};
use crate::oracles::{Oracle, content, path};
use crate::page_walk::{self, Class, HEADER, Piece, Walk};

const PAGE: usize = 4096;

fn bare_check(database: &Vec<u8>) -> Report {
    let mut checker = Checker::begin(database, Options::default());
    checker.feed(database);
    checker.finish(database, false)
}

/// A database of a few hundred pages with overflow pages, several branch pages and free pages; without trailer.
fn database(oracle: &mut Oracle) -> Vec<u8> {
    let fill = oracle.fill();
    let made = fill.kubernetes(100);
    fill.large(2, 300_000);
    fill.small(6_000);
    fill.compact(made.revision);
    fill.small(300);
    let mut bytes = std::fs::read(oracle.save()).expect("read a snapshot");
    bytes.truncate(bytes.len() / 512 * 512);
    bytes
}

/// Pages by kind, from the table that `bbolt pages` prints: id, kind, items, overflow.
fn pages(file: &Path) -> BTreeMap<String, u64> {
    let mut count = BTreeMap::new();
    for line in bbolt(&["pages", path(file)]).ok().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(Ok(_)), Some(kind)) = (words.first().map(|id| id.parse::<u64>()), words.get(1)) else { continue };
        let overflow = words.get(3).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        *count.entry((*kind).to_owned()).or_default() += 1 + overflow;
    }
    count
}

#[test]
fn pages_are_counted_as_bbolt_counts_them() {
    for line in Line::ALL {
        let mut oracle = Oracle::start(line);
        for round in 0..3 {
            match round {
                0 => {}
                1 => drop(database(&mut oracle)),
                _ => oracle.fill().compact(oracle.fill().revision()),
            }
            let file = oracle.save();
            let content = content(&file);
            let pages = pages(&file);
            let all: u64 = pages.values().sum();
            let used: u64 = pages.iter().filter(|(kind, _)| *kind != "free").map(|(_, n)| n).sum();
            assert_eq!(all * PAGE as u64, content.size, "{line}, {round}: {pages:?}");
            assert_eq!(used * PAGE as u64, content.in_use, "{line}, {round}: {pages:?}");
            let mut names: Vec<_> = content.buckets.iter().map(|(name, _)| name.clone()).collect();
            names.sort();
            let listed = bbolt(&["buckets", path(&file)]).ok();
            let mut theirs: Vec<_> = listed.lines().map(str::to_owned).collect();
            theirs.sort();
            assert_eq!(names, theirs, "{line}");
            for (name, entries) in content.buckets.iter().filter(|(_, n)| *n < 2_000) {
                let keys = bbolt(&["keys", "--format=hex", path(&file), name]).ok();
                assert_eq!(keys.lines().count() as u64, *entries, "{line}: {name}");
            }
        }
    }
}

/// One seeded fault: what was done, and the bytes.
fn fault(good: &[u8], walk: &Walk<'_>, rng: &mut Rng) -> (String, Vec<u8>) {
    let mut bytes = good.to_vec();
    let headers: Vec<&Piece> = walk.pieces.iter().filter(|p| p.class == Class::Header).collect();
    let structure: Vec<&Piece> = walk.pieces.iter().filter(|p| p.class != Class::Value).collect();
    let elements: Vec<&Piece> = walk.pieces.iter().filter(|p| p.class == Class::BranchElement).collect();
    let page = |rng: &mut Rng| rng.pick(&headers).at.start;
    let last = |at: usize| at..at + PAGE;
    let what = match rng.below(9) {
        0 => {
            let piece = *rng.pick(&structure);
            let at = piece.at.start + rng.below(piece.at.len() as u64) as usize;
            let mask = 1 << rng.below(8);
            bytes[at] ^= mask;
            format!("byte {at} ({:?}) flipped by {mask}", piece.class)
        }
        1 => {
            let (a, b) = (page(rng), page(rng));
            bytes.copy_within(last(a), b);
            format!("page {} over page {}", a / PAGE, b / PAGE)
        }
        2 => {
            // As after a lost write that was renumbered: the id fits, the content does not.
            let (a, b) = (page(rng), page(rng));
            bytes.copy_within(a + 8..a + PAGE, b + 8);
            format!("content of page {} on page {}", a / PAGE, b / PAGE)
        }
        3 => {
            let at = page(rng);
            bytes[last(at)].fill(0);
            format!("page {} of zeroes", at / PAGE)
        }
        4 => {
            let (a, b) = (rng.pick(&elements).at.start + 8, rng.pick(&elements).at.start + 8);
            bytes.copy_within(a..a + 8, b);
            format!("child of the element at {a} under the one at {b}")
        }
        5 => {
            let at = page(rng);
            bytes[at + 8] = *rng.pick(&[1, 2, 4, 16]);
            format!("other flags on page {}", at / PAGE)
        }
        6 => {
            let at = page(rng);
            bytes[at + 12] = bytes[at + 12].wrapping_add(1);
            format!("one more overflow page on page {}", at / PAGE)
        }
        7 => {
            let at = page(rng);
            bytes[at + 10] = bytes[at + 10].wrapping_sub(1);
            format!("one element less on page {}", at / PAGE)
        }
        _ => {
            // Two elements change places: the order of keys breaks.
            let at = page(rng) + HEADER;
            let (first, second) = bytes[at..at + 32].split_at_mut(16);
            first.swap_with_slice(second);
            format!("first two elements of page {} swapped", at / PAGE)
        }
    };
    (what, bytes)
}

fn bbolt_is_content(output: &Output) -> bool {
    output.success() && output.stdout.trim() == "OK"
}

#[test]
fn whatever_bbolt_finds_in_a_damaged_file_we_find_too() {
    let mut oracle = Oracle::start(Line::V36);
    let good = database(&mut oracle);
    let report = bare_check(&good);
    assert!(report.ok(), "{:?}", report.findings);
    let compact = report.content.expect("content").compact_revision;
    let walk = page_walk::walk(&good, compact);
    let file = oracle.cluster.dir().join("faulty.db");
    std::fs::write(&file, &good).expect("write a file");
    assert!(bbolt_is_content(&bbolt(&["check", path(&file)])));

    let mut rng = Rng::new(17);
    let (mut both, mut ours) = (0, 0);
    for n in 0..if soak() { 2_000 } else { 120 } {
        let (what, bytes) = fault(&good, &walk, &mut rng);
        if bytes == good {
            continue;
        }
        std::fs::write(&file, &bytes).expect("write a file");
        // It answers damage with a report, an error or a panic.
        let theirs = bbolt(&["check", path(&file)]);
        let found = !bare_check(&bytes).ok();
        match (bbolt_is_content(&theirs), found) {
            (false, true) => both += 1,
            (true, true) => ours += 1,
            (false, false) => panic!("fault {n}, {what}: bbolt finds what we do not: {theirs}"),
            (true, false) => {}
        }
        if n % 20 == 0 {
            let output = oracle.refloat.run(&["db", "check", path(&file)]);
            assert_eq!(output.code, Some(if found { 65 } else { 0 }), "fault {n}, {what}: {output}");
        }
    }
    assert!(both > 20 && ours > 20, "both find {both}, we alone {ours}: the faults are too much alike");
}
