//! The ledger on a real file system: what is appended is there again, whatever happened to the file in between.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::error::Code;
use crate::fs::{Dir, Holder, STAGED_PREFIX};

fn try_open(path: &Path) -> crate::error::Result<Opened> {
    Ledger::open(&Dir::open(path).unwrap(), &Holder::current("test", "cp1"))
}

fn open(path: &Path) -> Opened {
    try_open(path).unwrap()
}

fn entry(n: u8) -> Entry {
    Entry { kind: "test".into(), schema: u32::from(n), bytes: vec![n; usize::from(n)] }
}

fn at(second: i64) -> Timestamp {
    Timestamp::new(second, 1).unwrap()
}

fn numbers(records: &[Record]) -> Vec<u8> {
    records.iter().map(|r| r.entry.schema as u8).collect()
}

fn folder(tmp: &tempfile::TempDir) -> PathBuf {
    tmp.path().join("ledger")
}

fn names(tmp: &tempfile::TempDir) -> Vec<String> {
    let entries = Dir::open(&folder(tmp)).unwrap().entries().unwrap();
    entries.iter().map(|e| e.name.to_string_lossy().into()).collect()
}

/// A ledger with batches of one entry each, and the file's bytes after each of them, from none on.
fn made(batches: &[u8]) -> (tempfile::TempDir, Vec<usize>) {
    let tmp = tempfile::tempdir().unwrap();
    let mut ledger = open(tmp.path()).ledger;
    let mut ends = vec![ledger.size() as usize];
    for n in batches {
        ledger.append(&[entry(*n)], at(0)).unwrap();
        ends.push(ledger.size() as usize);
    }
    (tmp, ends)
}

#[test]
fn what_was_appended_is_read_again_with_its_numbers_and_times() {
    let tmp = tempfile::tempdir().unwrap();
    let opened = open(tmp.path());
    assert!(opened.records.is_empty() && opened.repaired.is_none());
    let mut ledger = opened.ledger;
    assert_eq!(ledger.append(&[], at(1)).unwrap(), 0);
    assert_eq!(ledger.append(&[entry(1), entry(2)], at(1)).unwrap(), 2);
    assert_eq!(ledger.append(&[entry(3)], at(2)).unwrap(), 3);
    let size = ledger.size();
    drop(ledger);
    let Opened { ledger, records, repaired } = open(tmp.path());
    assert_eq!((ledger.size(), repaired), (size, None));
    let want = [(1, at(1), entry(1)), (2, at(1), entry(2)), (3, at(2), entry(3))];
    assert_eq!(records, want.map(|(seq, at, entry)| Record { seq, at, entry }));
    assert_eq!(names(&tmp), ["00000001.log"]);
}

#[test]
fn the_second_hears_who_has_it() {
    let tmp = tempfile::tempdir().unwrap();
    let first = open(tmp.path());
    let err = try_open(tmp.path()).unwrap_err();
    assert_eq!(err.code(), Code::LockHeld);
    assert!(err.line().contains(&format!("held by test (pid {} on cp1", std::process::id())), "{}", err.line());
    drop(first);
    open(tmp.path());
}

#[test]
fn whoever_only_looks_needs_no_lock_and_changes_nothing() {
    let (tmp, _) = made(&[1, 2]);
    let dir = Dir::open(tmp.path()).unwrap();
    let mut ledger = open(tmp.path()).ledger;
    assert_eq!(numbers(&read(&dir).unwrap()), [1, 2]);
    ledger.rotate(&[entry(3)], at(0)).unwrap();
    assert_eq!(numbers(&read(&dir).unwrap()), [3]);
    // A torn end is passed over, an unreadable file makes way for the one before, and both stay as they are.
    let newest = folder(&tmp).join("00000002.log");
    let bytes = std::fs::read(&newest).unwrap();
    for (damaged, want) in [([&bytes[..], b"RFLB"].concat(), [3].as_slice()), (bytes[..50].to_vec(), &[1, 2])] {
        std::fs::write(&newest, &damaged).unwrap();
        assert_eq!(numbers(&read(&dir).unwrap()), want);
        assert_eq!(std::fs::read(&newest).unwrap(), damaged);
    }
    std::fs::remove_file(folder(&tmp).join("00000001.log")).unwrap();
    assert_eq!(read(&dir).unwrap_err().code(), Code::DataInvalid);
    let none = tempfile::tempdir().unwrap();
    assert_eq!(read(&Dir::open(none.path()).unwrap()).unwrap(), []);
    assert_eq!(std::fs::read_dir(none.path()).unwrap().count(), 0);
}

#[test]
fn a_batch_that_is_too_large_changes_nothing() {
    let (tmp, _) = made(&[1]);
    let mut ledger = open(tmp.path()).ledger;
    let large = Entry { bytes: vec![0; BODY_MAX], ..entry(1) };
    assert_eq!(ledger.append(&[large], at(0)).unwrap_err().code(), Code::Internal);
    assert_eq!(ledger.append(&[entry(2)], at(0)).unwrap(), 2);
    drop(ledger);
    assert_eq!(numbers(&open(tmp.path()).records), [1, 2]);
}

#[test]
fn cut_at_each_byte_it_opens_and_goes_on() {
    let (tmp, ends) = made(&[1, 2, 3]);
    let path = folder(&tmp).join("00000001.log");
    let bytes = std::fs::read(&path).unwrap();
    for cut in ends[0]..bytes.len() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder(&tmp)).unwrap();
        std::fs::write(folder(&tmp).join("00000001.log"), &bytes[..cut]).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        let mut want: Vec<u8> = (1..=whole as u8).collect();
        let Opened { mut ledger, records, repaired } = open(tmp.path());
        assert_eq!(numbers(&records), want, "{cut}");
        let torn = &bytes[ends[whole]..cut];
        let repairs = repaired.map(|r| r.repairs).unwrap_or_default();
        assert_eq!(repairs.len(), usize::from(!torn.is_empty()), "{cut}");
        for repair in repairs {
            assert_eq!(
                (repair.file.as_str(), repair.offset, repair.cut),
                ("00000001.log", ends[whole] as u64, torn.len() as u64)
            );
            assert!(!repair.lost);
            assert_eq!(std::fs::read(folder(&tmp).join(repair.kept.unwrap())).unwrap(), torn);
        }
        assert_eq!(ledger.append(&[entry(9)], at(0)).unwrap(), whole as u64 + 1);
        drop(ledger);
        want.push(9);
        let again = open(tmp.path());
        assert_eq!((numbers(&again.records), again.repaired), (want, None), "{cut}");
    }
}

#[test]
fn each_flipped_byte_costs_what_stands_behind_it_and_is_told() {
    let (tmp, ends) = made(&[1, 2, 3]);
    let bytes = std::fs::read(folder(&tmp).join("00000001.log")).unwrap();
    for flip in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[flip] ^= 1 << (flip % 8);
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder(&tmp)).unwrap();
        std::fs::write(folder(&tmp).join("00000001.log"), &bad).unwrap();
        let Opened { records, repaired, .. } = open(tmp.path());
        let whole = ends.iter().filter(|end| **end <= flip).count().saturating_sub(1);
        assert_eq!(numbers(&records), (1..=whole as u8).collect::<Vec<_>>(), "{flip}");
        let repaired = repaired.unwrap();
        // Whether the last one had been acknowledged nothing can tell.
        assert_eq!(repaired.lost(), flip < ends[2], "{flip}: {repaired}");
        let kept = repaired.repairs[0].kept.as_ref().unwrap();
        let from = if flip < ends[0] { 0 } else { ends[whole] };
        assert_eq!(std::fs::read(folder(&tmp).join(kept)).unwrap(), bad[from..], "{flip}");
        assert_eq!(open(tmp.path()).repaired, None, "{flip}");
    }
}

#[test]
fn zeros_at_the_end_are_cut_and_not_kept() {
    let (tmp, ends) = made(&[1]);
    let file = std::fs::File::options().write(true).open(folder(&tmp).join("00000001.log")).unwrap();
    file.set_len(ends[1] as u64 + 5000).unwrap();
    let repaired = open(tmp.path()).repaired.unwrap();
    assert_eq!((repaired.repairs[0].cut, &repaired.repairs[0].kept, repaired.lost()), (5000, &None, false));
    assert_eq!(
        repaired.to_string(),
        format!(
            "ledger/00000001.log: it ended in zeros: 5000 bytes from byte {} on were cut off and not kept",
            ends[1]
        )
    );
    assert_eq!(names(&tmp), ["00000001.log"]);
}

#[test]
fn a_rotation_keeps_two_files_and_reading_begins_at_the_newest() {
    let (tmp, _) = made(&[1, 2]);
    let mut ledger = open(tmp.path()).ledger;
    for n in [10, 20, 30] {
        ledger.rotate(&[entry(n), entry(n + 1)], at(3)).unwrap();
        ledger.append(&[entry(n + 2)], at(4)).unwrap();
    }
    assert_eq!(ledger.append(&[], at(4)).unwrap(), 11, "numbers go on");
    drop(ledger);
    assert_eq!(names(&tmp), ["00000003.log", "00000004.log"]);
    let opened = open(tmp.path());
    assert_eq!(numbers(&opened.records), [30, 31, 32]);
    assert_eq!(opened.records[0].seq, 9);
}

#[test]
fn an_unreadable_newest_file_gives_way_to_the_one_before() {
    let (tmp, _) = made(&[1, 2]);
    let mut ledger = open(tmp.path()).ledger;
    ledger.rotate(&[entry(10)], at(0)).unwrap();
    drop(ledger);
    let newest = folder(&tmp).join("00000002.log");
    let bytes = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, &bytes[..bytes.len() - 1]).unwrap();
    let Opened { mut ledger, records, repaired } = open(tmp.path());
    assert_eq!(numbers(&records), [1, 2]);
    let repaired = repaired.unwrap();
    assert!(
        repaired.lost() && repaired.to_string().contains("00000002.log: its first batch is not whole"),
        "{repaired}"
    );
    assert_eq!(
        std::fs::read(folder(&tmp).join(repaired.repairs[0].kept.as_ref().unwrap())).unwrap().len(),
        bytes.len() - 1
    );
    ledger.append(&[entry(3)], at(0)).unwrap();
    ledger.rotate(&[entry(11)], at(0)).unwrap();
    drop(ledger);
    assert_eq!(numbers(&open(tmp.path()).records), [11]);
    // None can be read: it begins anew, and says so.
    for name in ["00000001.log", "00000002.log"] {
        std::fs::write(folder(&tmp).join(name), b"RFLT").unwrap();
    }
    let opened = open(tmp.path());
    assert_eq!((opened.records.len(), opened.repaired.unwrap().repairs.len()), (0, 2));
    drop(opened.ledger);
    assert_eq!(open(tmp.path()).repaired, None);
}

#[test]
fn a_file_of_a_newer_version_is_left_alone() {
    let (tmp, _) = made(&[1]);
    let path = folder(&tmp).join("00000001.log");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 2;
    let sum = crc32c::crc32c(&bytes[..12]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let err = try_open(tmp.path()).unwrap_err();
    assert_eq!(err.code(), Code::DataInvalid);
    assert!(err.line().contains("it has version 2"), "{}", err.line());
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn temporary_names_go_and_foreign_ones_stay() {
    let (tmp, _) = made(&[1]);
    let dead = format!("{STAGED_PREFIX}0123456789abcdef");
    for name in [dead.as_str(), "notes", "1.log", "0000000x.log", "00000009.log.torn-00000000"] {
        std::fs::write(folder(&tmp).join(name), b"x").unwrap();
    }
    let mut ledger = open(tmp.path()).ledger;
    ledger.rotate(&[], at(0)).unwrap();
    ledger.rotate(&[], at(0)).unwrap();
    let want = ["00000002.log", "00000003.log", "00000009.log.torn-00000000", "0000000x.log", "1.log", "notes"];
    assert_eq!(names(&tmp), want);
}

#[test]
fn a_link_in_the_place_of_a_file_or_the_folder_is_not_followed() {
    let (tmp, _) = made(&[1]);
    let elsewhere = tempfile::tempdir().unwrap();
    let path = folder(&tmp).join("00000001.log");
    std::fs::rename(&path, elsewhere.path().join("log")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("log"), &path).unwrap();
    let before = std::fs::read(elsewhere.path().join("log")).unwrap();
    // Not a file, so not a ledger file: the name is taken, which is said.
    assert_eq!(try_open(tmp.path()).unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(std::fs::read(elsewhere.path().join("log")).unwrap(), before);
    std::fs::rename(folder(&tmp), tmp.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", folder(&tmp)).unwrap();
    assert!(try_open(tmp.path()).is_err());
}

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Vec<u8>>),
    Rotate(Vec<u8>),
    Reopen,
    /// The end is torn by so many bytes of something.
    Tear(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let batch = || prop::collection::vec(1..60u8, 0..4);
    let step = prop_oneof![
        6 => prop::collection::vec(batch(), 1..4).prop_map(Step::Append),
        1 => batch().prop_map(Step::Rotate),
        2 => Just(Step::Reopen),
        1 => any::<u8>().prop_map(Step::Tear),
    ];
    prop::collection::vec(step, 1..14)
}

fn entries(batch: &[u8]) -> Vec<Entry> {
    batch.iter().map(|n| entry(*n)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    /// The model is a list of entries that begins anew with each rotation.
    #[test]
    fn it_behaves_like_a_list(steps in steps()) {
        let tmp = tempfile::tempdir().unwrap();
        let mut ledger = open(tmp.path()).ledger;
        let (mut model, mut seq) = (Vec::new(), 0);
        let mut file = 1;
        for step in steps {
            match step {
                Step::Append(batches) => {
                    let asked: Vec<_> = batches.iter().map(|b| (entries(b), at(0))).collect();
                    for (batch, done) in batches.iter().zip(ledger.append_all(&asked)) {
                        seq += batch.len() as u64;
                        prop_assert_eq!(done.unwrap(), seq);
                    }
                    model.extend(batches.concat());
                }
                Step::Rotate(batch) => {
                    ledger.rotate(&entries(&batch), at(0)).unwrap();
                    seq += batch.len() as u64;
                    model = batch;
                    file += 1;
                }
                Step::Reopen | Step::Tear(_) => {
                    drop(ledger);
                    if let Step::Tear(n) = step {
                        let path = folder(&tmp).join(format!("{file:08}.log"));
                        let mut bytes = std::fs::read(&path).unwrap();
                        bytes.extend([b"RFLB".as_slice(), &vec![n; usize::from(n)]].concat());
                        std::fs::write(&path, bytes).unwrap();
                    }
                    let opened = open(tmp.path());
                    prop_assert_eq!(numbers(&opened.records), model.clone());
                    prop_assert_eq!(opened.records.last().map_or(seq, |r| r.seq), seq);
                    prop_assert_eq!(opened.repaired.is_some(), matches!(step, Step::Tear(_)));
                    ledger = opened.ledger;
                }
            }
        }
        drop(ledger);
        prop_assert_eq!(numbers(&open(tmp.path()).records), model);
    }
}

#[test]
fn the_writer_answers_in_order_and_lets_go_when_closed() {
    let tmp = tempfile::tempdir().unwrap();
    let writer = Writer::start(open(tmp.path()).ledger);
    let first = writer.size();
    let appends: Vec<_> = (1..=40).map(|n| writer.append(vec![entry(n)], at(0))).collect();
    let rotated = writer.rotate(vec![entry(50)], at(0));
    let last = writer.append(vec![entry(51)], at(0));
    for (n, answer) in (1..).zip(appends) {
        assert_eq!(answer.blocking_recv().unwrap().unwrap(), n);
    }
    rotated.blocking_recv().unwrap().unwrap();
    assert_eq!(last.blocking_recv().unwrap().unwrap(), 42);
    assert_eq!(writer.waiting_since(), None);
    assert!(writer.size() > first);
    // Nobody waits for this one; closing does.
    drop(writer.append(vec![entry(52)], at(0)));
    writer.close(Duration::from_secs(60)).unwrap();
    assert_eq!(numbers(&open(tmp.path()).records), [50, 51, 52]);
}
