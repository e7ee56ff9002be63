//! The ledger after a power loss at any moment: each acknowledged batch is there, and nothing is there in half.

use std::path::Path;

use jiff::Timestamp;

use super::*;
use crate::fs::trace::{Action, Op, Trace};
use crate::fs::{Dir, Holder};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn open(path: &Path) -> Opened {
    Ledger::open(&Dir::open(path).unwrap(), &Holder::current("test", "cp1")).unwrap()
}

/// Two entries, so that half of a batch would show.
fn batch(n: u32) -> Vec<Entry> {
    let entry = |kind: &str| Entry { kind: kind.into(), schema: n, bytes: vec![n as u8; 30] };
    vec![entry("first"), entry("second")]
}

fn numbers(records: &[Record]) -> Vec<u32> {
    assert!(
        records.chunks(2).all(|pair| pair.len() == 2 && pair[0].entry.schema == pair[1].entry.schema),
        "half a batch"
    );
    records.iter().step_by(2).map(|record| record.entry.schema).collect()
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Append(u32),
    /// Three at once, with one sync.
    Group(u32),
    Rotate(u32),
    /// The next such action fails.
    Fail(Action, i32),
}

/// Runs the steps; whatever is acknowledged is marked. Then looks at each state that a power loss may leave.
/// Gives how many there were.
fn survives(steps: &[Step]) -> usize {
    let tmp = tempfile::tempdir().unwrap();
    let dir = Dir::open(tmp.path()).unwrap();
    let trace = Trace::start(&dir).unwrap();
    let mut ledger = Ledger::open(&dir, &Holder::current("test", "cp1")).unwrap().ledger;
    // What may be found after so many marks: the states from the last one acknowledged to the last one asked for.
    let mut asked: Vec<Vec<u32>> = vec![Vec::new()];
    let mut acknowledged = vec![0];
    let mut now: Vec<u32> = Vec::new();
    for step in steps {
        let (mut wanted, results) = (
            now.clone(),
            match step {
                Step::Fail(action, errno) => {
                    trace.fail(*action, *errno);
                    continue;
                }
                Step::Append(n) => vec![ledger.append(&batch(*n), Timestamp::UNIX_EPOCH).is_ok()],
                Step::Group(n) => {
                    let batches: Vec<_> = (*n..n + 3).map(|n| (batch(n), Timestamp::UNIX_EPOCH)).collect();
                    ledger.append_all(&batches).iter().map(Result::is_ok).collect()
                }
                Step::Rotate(n) => vec![ledger.rotate(&batch(*n), Timestamp::UNIX_EPOCH).is_ok()],
            },
        );
        let first = match step {
            Step::Append(n) | Step::Group(n) | Step::Rotate(n) => *n,
            Step::Fail(..) => continue,
        };
        for (n, ok) in (first..).zip(results) {
            if matches!(step, Step::Rotate(_)) {
                wanted.clear();
            }
            wanted.push(n);
            asked.push(wanted.clone());
            if ok {
                now = wanted.clone();
                acknowledged.push(asked.len() - 1);
                trace.mark();
            } else {
                wanted = now.clone();
            }
        }
    }
    drop(ledger);
    assert_eq!(numbers(&open(tmp.path()).records), now, "without any loss");

    let losses = trace.losses();
    for loss in &losses {
        // In memory where that can be had: thousands of them are opened, and each opening waits for the disk.
        let tmp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        loss.disk.restore(tmp.path()).unwrap();
        let Opened { mut ledger, records, repaired } = open(tmp.path());
        let found = numbers(&records);
        let until = acknowledged.get(loss.marks + 1).map_or(asked.len() - 1, |last| *last);
        // A group is acknowledged one by one, but may be there as a whole.
        let until = asked.len().min(until + 3);
        let allowed = &asked[acknowledged[loss.marks]..until];
        let case = format!("{steps:?}: {}: {} acknowledged", loss.case, loss.marks);
        assert!(allowed.contains(&found), "{case}: found {found:?}, allowed {allowed:?}");
        assert!(
            repaired.is_none_or(|repaired| !repaired.lost()),
            "{case}: nothing acknowledged is lost, and it says so"
        );
        // It goes on from there.
        ledger.append(&batch(99), Timestamp::UNIX_EPOCH).unwrap();
        drop(ledger);
        assert_eq!(numbers(&open(tmp.path()).records), [found, vec![99]].concat(), "{case}");
    }
    losses.len()
}

#[test]
fn whatever_was_acknowledged_is_there() {
    use Step::{Append, Group, Rotate};
    let states = survives(&[Append(1), Append(2), Group(3), Rotate(10), Append(11), Rotate(20), Rotate(30), Group(31)]);
    assert!(states > 40, "only {states}");
}

#[test]
fn also_when_a_write_or_a_sync_fails_on_the_way() {
    use Step::{Append, Fail, Group, Rotate};
    for (action, errno) in [(Action::Write, EIO), (Action::Write, ENOSPC), (Action::Sync, EIO), (Action::SyncDir, EIO)]
    {
        for repair in [None, Some(Action::SetLen), Some(Action::Sync), Some(Action::SyncDir)] {
            let fault = Fail(action, errno);
            let second = repair.map(|action| Fail(action, EIO));
            let steps = |more: &[Step]| -> Vec<Step> {
                [Append(1), fault].into_iter().chain(second).chain(more.iter().copied()).collect()
            };
            survives(&steps(&[Append(2), Append(3), Append(4)]));
            survives(&steps(&[Group(2), Append(7), Append(8)]));
            survives(&steps(&[Rotate(10), Append(11), Append(12), Rotate(20), Append(21)]));
        }
    }
}

#[test]
fn after_a_failed_sync_nothing_is_synced_that_was_not_written_anew() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = Dir::open(tmp.path()).unwrap();
    let mut ledger = open(tmp.path()).ledger;
    let trace = Trace::start(&dir).unwrap();
    trace.fail(Action::Sync, EIO);
    let end = ledger.size();
    assert!(ledger.append(&batch(1), Timestamp::UNIX_EPOCH).is_err());
    let ops = trace.ops();
    let failed = ops.iter().position(|op| matches!(op, Op::FailedSync { .. })).unwrap();
    let after = ops[failed + 1..].iter().find(|op| !matches!(op, Op::SyncDir { .. }));
    assert!(matches!(after, Some(Op::SetLen { len, .. }) if *len == end), "{after:?}");
    assert_eq!(ledger.append(&batch(2), Timestamp::UNIX_EPOCH).unwrap(), 2, "numbers are used again");
}
