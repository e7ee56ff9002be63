//! The ledger on a disk that fills up, and killed at each of its steps (promise 11).

use std::io::Write;
use std::path::Path;

use jiff::Timestamp;
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt;

use refloat::error::{Code, Result};
use refloat::fs::{Dir, Holder};
use refloat::ledger::{Entry, Ledger, Opened};

use crate::bed::{SmallDisk, skip_unless_root};

fn open(path: &Path) -> Result<Opened> {
    Ledger::open(&Dir::open(path)?, &Holder::current("test", "cp1"))
}

fn entry(n: u32, size: usize) -> Entry {
    Entry { kind: "test".into(), schema: n, bytes: vec![7; size] }
}

fn numbers(opened: &Opened) -> Vec<u32> {
    opened.records.iter().map(|r| r.entry.schema).collect()
}

/// Takes all the room that is left, and gives it back when it is removed.
fn fill(disk: &SmallDisk) -> std::path::PathBuf {
    let path = disk.path().join("filler");
    let mut file = std::fs::File::create(&path).expect("create filler");
    let block = vec![1; 4096];
    while file.write_all(&block).is_ok() {}
    path
}

#[test]
fn on_a_full_disk_the_reserve_is_used_and_then_nothing_is_half_written() {
    if skip_unless_root("mounts a file system") {
        return;
    }
    let disk = SmallDisk::new(8 << 20);
    let mut ledger = open(disk.path()).expect("open ledger").ledger;
    ledger.append(&[entry(0, 3000)], Timestamp::UNIX_EPOCH).expect("append with room");
    let filler = fill(&disk);

    let before = ledger.size();
    let mut next = 1;
    let err = loop {
        match ledger.append(&[entry(next, 3000)], Timestamp::UNIX_EPOCH) {
            Ok(_) => next += 1,
            Err(e) => break e,
        }
    };
    assert_eq!(err.code(), Code::TooLittleSpace, "{}", err.line());
    assert!(ledger.size() - before >= 1 << 20, "only {} bytes of the reserve", ledger.size() - before);
    let file = disk.path().join("ledger/00000001.log");
    assert_eq!(std::fs::metadata(&file).expect("ledger file").len(), ledger.size());
    // A smaller one may still fit; a new file does not, and the current one goes on.
    let err = ledger.rotate(&[entry(1000, 3000)], Timestamp::UNIX_EPOCH).expect_err("a new file on a full disk");
    assert_eq!(err.code(), Code::TooLittleSpace, "{}", err.line());
    assert!(ledger.append(&[entry(next, 3000)], Timestamp::UNIX_EPOCH).is_err());
    drop(ledger);

    // It opens on a full disk, with everything that was acknowledged.
    let opened = open(disk.path()).expect("open on a full disk");
    assert_eq!((numbers(&opened), &opened.repaired), ((0..next).collect(), &None));
    let mut ledger = opened.ledger;
    assert!(ledger.append(&[entry(next, 3000)], Timestamp::UNIX_EPOCH).is_err());

    std::fs::remove_file(&filler).expect("remove filler");
    ledger.append(&[entry(next, 3000)], Timestamp::UNIX_EPOCH).expect("append once there is room");
    // The reserve is there again.
    fill(&disk);
    for more in 1..=300 {
        ledger.append(&[entry(next + more, 3000)], Timestamp::UNIX_EPOCH).expect("append into the new reserve");
    }
    drop(ledger);
    assert_eq!(numbers(&open(disk.path()).expect("open")), (0..=next + 300).collect::<Vec<_>>());
}

#[test]
fn a_torn_end_keeps_nobody_from_starting_on_a_full_disk() {
    if skip_unless_root("mounts a file system") {
        return;
    }
    let disk = SmallDisk::new(4 << 20);
    drop(open(disk.path()).expect("open ledger").ledger.append(&[entry(1, 10)], Timestamp::UNIX_EPOCH));
    let file = disk.path().join("ledger/00000001.log");
    let whole = std::fs::metadata(&file).expect("ledger file").len();
    let torn = std::fs::File::options().append(true).open(&file).and_then(|mut f| f.write_all(&[9; 20_000]));
    torn.expect("tear its end");
    let filler = fill(&disk);
    let opened = open(disk.path()).expect("open on a full disk");
    assert_eq!(numbers(&opened), [1]);
    let repair = &opened.repaired.expect("a repair").repairs[0];
    assert_eq!((repair.offset, repair.cut, &repair.kept), (whole, 20_000, &None));
    drop(opened.ledger);

    // Where there is no room for even the first file, it is said as such; later it works.
    std::fs::remove_file(&file).expect("remove ledger file");
    std::fs::remove_file(&filler).expect("remove filler");
    fill(&disk);
    assert_eq!(open(disk.path()).expect_err("no room").code(), Code::TooLittleSpace);
    std::fs::remove_file(&filler).expect("remove filler");
    open(disk.path()).expect("open once there is room");
}

/// What the child does, and what is in the ledger after each step.
const STEPS: [(&str, u32, &[u32]); 10] = [
    ("append", 1, &[1]),
    ("append", 2, &[1, 2]),
    ("rotate", 10, &[10]),
    ("append", 3, &[10, 3]),
    ("rotate", 20, &[20]),
    ("append", 4, &[20, 4]),
    ("rotate", 30, &[30]),
    ("append", 5, &[30, 5]),
    ("append", 6, &[30, 5, 6]),
    ("rotate", 40, &[40]),
];
const STATE: &str = "REFLOAT_TEST_LEDGER_STATE";

/// Not a test of its own: what [`killed_at_each_step`] runs, and kills.
#[test]
fn child_of_killed_at_each_step() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let state = Path::new(&state);
    let _failpoints = fail::FailScenario::setup();
    let mut ledger = open(state).expect("open ledger").ledger;
    let mut said = std::fs::File::create(state.join("said")).expect("create");
    for (what, n, _) in STEPS {
        let entries = [entry(n, 50)];
        match what {
            "append" => drop(ledger.append(&entries, Timestamp::UNIX_EPOCH).expect("append")),
            _ => ledger.rotate(&entries, Timestamp::UNIX_EPOCH).expect("rotate"),
        }
        said.write_all(b"x").expect("say");
    }
}

/// Runs the child until it is killed at that point for the nth time (from 0); false when it ended well before.
fn killed(state: &Path, point: &str, nth: usize) -> bool {
    let action = if nth == 0 { "return".to_string() } else { format!("{nth}*off->return") };
    let output = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "ledger::child_of_killed_at_each_step"])
        .env(STATE, state)
        .env("FAILPOINTS", format!("{point}={action}"))
        .output()
        .expect("run the child");
    let killed = output.status.signal() == Some(Signal::SIGKILL as i32);
    assert!(killed || output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    killed
}

#[test]
fn killed_at_each_step() {
    let points = [
        ("ledger::writing", 6),
        ("ledger::written", 6),
        ("ledger::synced", 6),
        ("ledger::rotating", 4),
        ("fs::before_name", 5),
        ("fs::after_name", 5),
        ("ledger::rotated", 4),
        ("ledger::removed", 3),
    ];
    for (point, times) in points {
        let mut passed = 0;
        loop {
            let tmp = tempfile::tempdir().expect("temporary directory");
            if !killed(tmp.path(), point, passed) {
                break;
            }
            let done = std::fs::read(tmp.path().join("said")).map_or(0, |said| said.len());
            let after = |steps: usize| steps.checked_sub(1).map_or(vec![], |last| STEPS[last].2.to_vec());
            let Opened { mut ledger, records, repaired } = open(tmp.path()).expect("open after the kill");
            let found: Vec<u32> = records.iter().map(|r| r.entry.schema).collect();
            let case = format!("{point} {passed}: {done} steps were acknowledged, found {found:?}");
            assert!(found == after(done) || found == after(done + 1), "{case}");
            // A killed process loses nothing that it has written: nothing is torn.
            assert_eq!(repaired, None, "{case}");
            ledger.append(&[entry(99, 1)], Timestamp::UNIX_EPOCH).expect("append");
            ledger.rotate(&[entry(100, 1)], Timestamp::UNIX_EPOCH).expect("rotate");
            drop(ledger);
            assert_eq!(numbers(&open(tmp.path()).expect("open again")), [100], "{case}");
            let files = std::fs::read_dir(tmp.path().join("ledger")).expect("list").count();
            assert_eq!(files, 2, "{case}");
            passed += 1;
        }
        assert_eq!(passed, times, "{point}");
    }
}

/// Killed while it mends a torn end: the next start does it again.
#[test]
fn killed_while_mending() {
    for point in ["ledger::kept", "ledger::cut", "ledger::aside"] {
        let tmp = tempfile::tempdir().expect("temporary directory");
        let mut ledger = open(tmp.path()).expect("open").ledger;
        ledger.append(&[entry(1, 1)], Timestamp::UNIX_EPOCH).expect("append");
        ledger.rotate(&[entry(2, 1)], Timestamp::UNIX_EPOCH).expect("rotate");
        drop(ledger);
        let newest = tmp.path().join("ledger/00000002.log");
        let torn = std::fs::File::options().append(true).open(&newest).and_then(|mut f| f.write_all(b"RFLB torn"));
        torn.expect("tear its end");
        let damaged = point == "ledger::aside";
        if damaged {
            std::fs::write(&newest, b"nothing").expect("damage it");
        }
        assert!(killed(tmp.path(), point, 0), "{point}");
        let opened = open(tmp.path()).expect("open after the kill");
        assert_eq!(numbers(&opened), if damaged { [1] } else { [2] }, "{point}");
        assert_eq!(opened.repaired.is_some(), point == "ledger::kept", "{point}");
        let kept = std::fs::read_dir(tmp.path().join("ledger")).expect("list").filter(|e| {
            let name = e.as_ref().expect("entry").file_name().into_string().expect("UTF-8");
            name.contains(".torn-") || name.contains(".damaged-")
        });
        assert!(kept.count() >= 1, "{point}: what was cut is kept");
    }
}
