//! A store full of other people's things (promise 2): counted, named, and as they were after takes and sweeps.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::bed::{Cluster, Fill, Line, Refloat};
use crate::taking::{listed, take, text};
use crate::tree::{missing_or_changed, tree};

/// A little world outside of the store, with names that a careless sweep would take for its own.
fn canary(dir: &Path, own: &str) {
    fs::create_dir_all(dir.join("snapshots")).unwrap();
    fs::write(dir.join("snapshots").join(own), "canary").unwrap();
    fs::write(dir.join(".refloat-tmp-0123456789abcdef"), "canary").unwrap();
    fs::write(dir.join("refloat-store.json"), "canary").unwrap();
}

#[test]
fn foreign_things_are_counted_and_never_touched() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(100);
    let refloat = Refloat::new(cluster.node(0));
    let good = take(&refloat);
    let (id, lineage) = (text(&good, "id").to_owned(), text(&good, "lineage").to_owned());
    let (store, outside) = (refloat.store(), refloat.dir().join("outside"));
    let snapshots = store.join(&lineage).join("snapshots");
    // Names of unfinished data of this very node, which are swept where they are regular files.
    let leftover = |n: u32| format!("{}.db.zst", id.replacen("0001-00", &format!("0001-0{n}"), 1));
    canary(&outside, &leftover(1));

    let mut foreign = 0;
    let mut plant = |dir: &Path, name: &OsStr| {
        fs::write(dir.join(name), "foreign").unwrap();
        foreign += 1;
    };
    for dir in [&store, &snapshots, &store.join(&lineage)] {
        let long = "x".repeat(255);
        let names: [&[u8]; 8] = [b"new\nline", b"-rf", b"--", b"\xff\xfe", long.as_bytes(), b"a b", b"..x", b".db.zst"];
        names.iter().for_each(|name| plant(dir, OsStr::from_bytes(name)));
    }
    // As the data of a snapshot, but in another form.
    let almost = [format!("{id}.db"), format!("{id}.db.zst.bak"), format!("{id}.json~"), format!("{id}.DB.ZST")];
    almost.iter().for_each(|name| plant(&snapshots, OsStr::new(name)));
    fs::create_dir_all(store.join("photos/2026")).unwrap();
    plant(&store.join("photos/2026"), OsStr::new(".refloat-tmp-0123456789abcdef"));
    plant(&store.join("photos"), OsStr::new(&leftover(1)));
    // Links, directories and FIFOs under names that are ours.
    symlink(outside.join("snapshots").join(leftover(1)), snapshots.join(leftover(1))).unwrap();
    symlink("/", snapshots.join(leftover(2))).unwrap();
    fs::create_dir(snapshots.join(leftover(3))).unwrap();
    fs::write(snapshots.join(leftover(3)).join(leftover(3)), "canary").unwrap();
    mkfifo(&snapshots.join(leftover(4)), Mode::S_IRWXU).unwrap();
    symlink(&outside, store.join("0123456789abcdef")).unwrap();
    symlink("../outside", store.join("out")).unwrap();
    symlink(outside.join("refloat-store.json"), store.join(".refloat-tmp-1123456789abcdef")).unwrap();
    fs::create_dir(store.join(".refloat-tmp-2123456789abcdef")).unwrap();
    fs::write(store.join(".refloat-tmp-2123456789abcdef/x"), "canary").unwrap();
    mkfifo(&store.join(".refloat-tmp-3123456789abcdef"), Mode::S_IRWXU).unwrap();
    // This one is ours to remove; a file that has another name outside is not, whatever it is called here.
    fs::write(snapshots.join(leftover(5)), "half").unwrap();
    fs::hard_link(outside.join("snapshots").join(leftover(1)), snapshots.join(leftover(6))).unwrap();
    fs::hard_link(outside.join("refloat-store.json"), store.join(".refloat-tmp-4123456789abcdef")).unwrap();

    let list = refloat.json(&["snapshot", "list", "--foreign"]);
    let count = list["foreign"].as_u64().expect("a count");
    // Beside the files: links, a FIFO and a directory's file under names that are ours elsewhere.
    assert!(count >= foreign, "{count} of {foreign}: {list}");
    let names = list["foreign_names"].as_array().expect("names");
    for shown in ["new\\x0aline", "-rf", "\\xff\\xfe", "0123456789abcdef", "out"] {
        assert!(names.iter().any(|name| name == shown), "{shown}: {list}");
    }
    // For people: one line each, and no escape sequence gets through.
    let table = refloat.run(&["snapshot", "list", "--foreign"]).ok();
    assert!(table.contains("new\\x0aline") && !table.contains("new\nline"), "{table}");

    let (inside, beside) = (tree(&store), tree(&outside));
    let output = refloat.run(&["snapshot", "take"]);
    assert!(output.success(), "{output}");
    let relative = |n: u32| OsString::from(format!("{lineage}/snapshots/{}", leftover(n)));
    assert_eq!(missing_or_changed(&inside, &tree(&store)), [relative(5)], "{output}");
    let said = output.stderr.lines().find(|line| line.contains(&leftover(6)));
    assert!(said.is_some_and(|line| line.contains("warning: left") && line.contains("2 names")), "{output}");
    let said = output.stderr.lines().find(|line| line.contains(".refloat-tmp-4123456789abcdef"));
    assert!(said.is_some_and(|line| line.contains("2 names")), "{output}");
    assert_eq!(tree(&outside), beside);

    refloat.run(&["store", "check"]).ok();
    refloat.run(&["store", "init", "local"]).ok();
    refloat.run(&["snapshot", "verify", "--all"]).ok();
    assert_eq!(listed(&refloat, &[]).len(), 2);
    assert_eq!(refloat.json(&["snapshot", "list"])["foreign"].as_u64(), Some(count));
    assert_eq!(missing_or_changed(&inside, &tree(&store)), [relative(5)]);
    assert_eq!(tree(&outside), beside);
}
