//! The model itself, and what this ring promises held against it.

use std::io::Write;

use super::super::trace::{Action, Trace};
use super::super::{Dir, Staged};
use super::*;
use crate::error::Result;

/// Does something to a directory with a file `f` that holds `old`, and gives all outcomes as (marks, what `f` holds).
fn outcomes(act: impl FnOnce(&Dir, &Trace) -> Result<()>) -> Vec<(usize, Option<Vec<u8>>)> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = Dir::open(tmp.path()).unwrap();
    dir.create("f", b"old").unwrap();
    let trace = Trace::start(&dir).unwrap();
    act(&dir, &trace).unwrap();
    let mut found: Vec<_> = trace.losses().iter().map(|loss| (loss.marks, content(loss, "f"))).collect();
    found.sort();
    found.dedup();
    found
}

fn content(loss: &Loss, name: &str) -> Option<Vec<u8>> {
    let tmp = tempfile::tempdir().unwrap();
    loss.disk.restore(tmp.path()).unwrap();
    std::fs::read(tmp.path().join(name)).ok()
}

fn holds(marks: usize, bytes: &[u8]) -> (usize, Option<Vec<u8>>) {
    (marks, Some(bytes.to_vec()))
}

#[test]
fn a_replaced_file_has_the_old_bytes_or_the_new_ones_and_the_new_ones_once_it_returned() {
    let found = outcomes(|dir, trace| {
        dir.replace("f", b"new and longer")?;
        trace.mark();
        Ok(())
    });
    assert_eq!(found, [holds(0, b"new and longer"), holds(0, b"old"), holds(1, b"new and longer")]);
}

#[test]
fn a_published_file_is_whole_or_not_there() {
    for named in [false, true] {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        let trace = Trace::start(&dir).unwrap();
        let staged = if named { Staged::named(&dir) } else { Staged::new(&dir) }.unwrap();
        staged.file().write_all(b"bytes").unwrap();
        dir.create_dirs("a/b").unwrap();
        staged.publish(&dir, "a/b/f").unwrap();
        trace.mark();
        let losses = trace.losses();
        for loss in &losses {
            let found = content(loss, "a/b/f");
            let whole = found.as_deref() == Some(b"bytes");
            assert!(whole || (found.is_none() && loss.marks == 0), "{}: {found:?}", loss.case);
        }
        assert!(losses.iter().any(|l| l.marks == 0 && content(l, "a/b/f").is_some()), "it may be there early");
        assert!(losses.iter().any(|l| content(l, "a/b/f").is_none()));
    }
}

#[test]
fn a_removed_or_renamed_file_stays_so() {
    let found = outcomes(|dir, trace| {
        dir.remove_file("f")?;
        trace.mark();
        Ok(())
    });
    assert_eq!(found, [(0, None), holds(0, b"old"), (1, None)]);
    // Into another directory it may have both names for a while, but never none.
    let tmp = tempfile::tempdir().unwrap();
    let dir = Dir::open(tmp.path()).unwrap();
    dir.create("f", b"old").unwrap();
    dir.create_dirs("trash").unwrap();
    let trace = Trace::start(&dir).unwrap();
    dir.rename_file("f", "trash/f").unwrap();
    trace.mark();
    for loss in trace.losses() {
        let (before, after) = (content(&loss, "f"), content(&loss, "trash/f"));
        assert!(before.is_some() || after.is_some(), "{}", loss.case);
        assert!(loss.marks == 0 || (before.is_none() && after.is_some()), "{}", loss.case);
    }
}

/// What the model is for: it finds an order that is wrong.
#[test]
fn what_is_acknowledged_before_its_sync_is_found_out() {
    let found = outcomes(|dir, trace| {
        let file = dir.open_writable("f")?;
        file.write_all_at(b"NEW!", 0)?;
        trace.mark();
        file.sync()?;
        trace.mark();
        Ok(())
    });
    let torn: [&[u8]; 5] = [b"NEW!", b"NEd", b"\0\0W!", b"\0\0\0\0", b"old"];
    for early in torn {
        assert!(found.contains(&holds(1, early)), "{early:?}: {found:?}");
    }
    assert_eq!(found.iter().filter(|(marks, _)| *marks == 2).collect::<Vec<_>>(), [&holds(2, b"NEW!")]);
}

#[test]
fn a_failed_sync_loses_what_was_written_and_a_second_one_does_not_bring_it_back() {
    let found = outcomes(|dir, trace| {
        let file = dir.open_writable("f")?;
        trace.fail(Action::Sync, 5);
        file.write_all_at(b"NEW!", 0)?;
        assert!(file.sync().is_err());
        file.sync()?;
        trace.mark();
        Ok(())
    });
    assert!(found.contains(&holds(1, b"old")), "{found:?}");
    assert!(!found.contains(&holds(1, b"NEW!")), "{found:?}");
}

#[test]
fn traces_of_other_places_are_not_mixed_in() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let trace = Trace::start(&Dir::open(ours.path()).unwrap()).unwrap();
    Dir::open(theirs.path()).unwrap().create("f", b"x").unwrap();
    assert_eq!(trace.ops(), []);
    Dir::open(ours.path()).unwrap().create("f", b"x").unwrap();
    assert!(matches!(trace.ops()[..], [Op::SyncFile { .. }, Op::Link { .. }, Op::SyncDir { .. }]), "{:?}", trace.ops());
}
