//! Disks that are full, too small, or fill up while a snapshot is written; quotas; several stores of which one fails.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bed::refloat::MIN_FREE;
use crate::bed::run::until;
use crate::bed::{Cluster, Fill, Liar, Lie, Line, Refloat, Run, SmallDisk, skip_unless_root};
use crate::stores::edit;
use crate::taking::{error_of, files, listed, take, text, why};

const MARGIN: u64 = 256 << 20;

fn on(disk: &SmallDisk, liar: &Liar) -> Refloat {
    let refloat = Refloat::new(liar.url());
    edit(&refloat, &refloat.store().display().to_string(), &disk.path().display().to_string());
    // The default is what is tested on a disk of one's own.
    edit(&refloat, MIN_FREE, "");
    refloat
}

fn remount(disk: &Path, options: &str) {
    Run::new("mount").args(["-o", &format!("remount,{options}")]).args([disk]).run().ok();
}

/// The document of a take that ended with this exit code.
#[track_caller]
fn taken(refloat: &Refloat, args: &[&str], exit: i32) -> (Value, Option<Value>) {
    let output = refloat.run(&[&["-o", "json", "snapshot", "take"], args].concat());
    assert_eq!(output.code, Some(exit), "{output}");
    let document = serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output}"));
    (document, (exit != 0).then(|| error_of(&output)))
}

#[test]
fn too_little_space_is_refused_with_the_numbers() {
    if skip_unless_root("mounts a file system") {
        return;
    }
    let cluster = Cluster::start(Line::V36);
    let made = Fill::new(&cluster).kubernetes(50);
    let liar = Liar::start(cluster.node(0).client_url());
    let disk = SmallDisk::new(64 << 20);
    let refloat = on(&disk, &liar);
    let refused = |parts: &[&str]| {
        let output = refloat.run(&["-o", "json", "snapshot", "take"]);
        let error = error_of(&output);
        assert_eq!((output.code, &error["code"]), (Some(73), &"too-little-space".into()), "{output}");
        let said = format!("{} {}", text(&error, "on"), why(&error));
        parts.iter().for_each(|part| assert!(said.contains(part), "{part} in {said}"));
        assert!(text(&error, "remedy").contains("space"), "{error}");
        assert_eq!(files(disk.path()).iter().filter(|name| *name != "fill").count(), 0);
        assert_eq!(liar.calls("Snapshot"), 0, "something was streamed");
    };
    // An empty directory on a disk without a single byte does not even get its marker.
    std::fs::create_dir(disk.path().join("sub")).unwrap();
    edit(&refloat, &disk.path().display().to_string(), &disk.path().join("sub").display().to_string());
    fill(&disk);
    refused(&["0 of 67108864 bytes free"]);
    assert_eq!(std::fs::read_dir(disk.path().join("sub")).unwrap().count(), 0);
    assert_eq!(refloat.run(&["store", "init", "local"]).code, Some(73));
    std::fs::remove_dir(disk.path().join("sub")).unwrap();
    edit(&refloat, &disk.path().join("sub").display().to_string(), &disk.path().display().to_string());

    // With room for the marker alone; then without any again; then with plenty, but less than the margin.
    std::fs::remove_file(disk.path().join("fill")).unwrap();
    refloat.run(&["store", "init", "local"]).ok();
    fill(&disk);
    refused(&["0 bytes are free of 67108864", &format!("+ {MARGIN}")]);
    std::fs::remove_file(disk.path().join("fill")).unwrap();
    let reserved = (64 << 20) / 20;
    refused(&["bytes are free of 67108864", "expected size", &format!("{reserved} that stay free (min_free)")]);

    let output = refloat.run(&["-o", "json", "snapshot", "take", "--dry-run"]);
    assert_eq!(output.code, Some(73), "{output}");
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(found["stores"][0]["ok"], false, "{found}");
    assert_eq!(found["stores"][0]["error"]["code"], "too-little-space", "{found}");

    // Exactly what is needed, with min_free out of the way, is enough.
    remount(disk.path(), "size=2g");
    assert_eq!(take(&refloat)["revision"], made.revision);
    assert_eq!(liar.calls("Snapshot"), 1);
}

/// Fills the disk to its last byte.
fn fill(disk: &SmallDisk) {
    let mut file = std::fs::File::create(disk.path().join("fill")).expect("room for a name");
    let full = std::io::copy(&mut std::io::repeat(0), &mut file).expect_err("an end");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn a_quota_is_kept_with_its_numbers() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).large(6, 1 << 20);
    let liar = Liar::start(cluster.node(0).client_url());
    let refloat = Refloat::new(liar.url());
    let stored = take(&refloat)["size"]["stored"].as_u64().expect("a size");
    // One and a half of them.
    let quota = stored * 3 / 2048;
    edit(&refloat, "name = \"local\"\n", &format!("name = \"local\"\nmax_bytes = \"{quota}KiB\"\n"));
    let output = refloat.run(&["-o", "json", "snapshot", "take"]);
    let error = error_of(&output);
    assert_eq!((output.code, &error["code"]), (Some(73), &"too-little-space".into()), "{output}");
    let said = why(&error);
    assert!(said.contains(&format!("snapshots take {stored} bytes; ")), "{said}");
    assert!(said.contains(&format!("more would exceed max_bytes = {}", quota * 1024)), "{said}");
    assert!(text(&error, "remedy").contains("raise max_bytes"), "{error}");
    assert_eq!((liar.calls("Snapshot"), listed(&refloat, &[]).len()), (1, 1));
}

/// A member whose stream takes long enough for something to happen meanwhile, each call of it.
fn slow() -> (Cluster, Arc<Liar>) {
    let cluster = Cluster::start(Line::V36);
    let fill = Fill::new(&cluster);
    fill.kubernetes(50);
    fill.large(6, 1 << 20);
    let liar = Liar::start(cluster.node(0).client_url());
    liar.lie(Lie::Trickle { after: 100_000, bytes: 32 << 10, every: Duration::from_millis(15) });
    (cluster, Arc::new(liar))
}

/// Shrinks a disk to a mebibyte once a stream is under way.
fn shrink(disk: &SmallDisk, liar: &Arc<Liar>) -> impl FnOnce(u32) + Send + 'static {
    let (disk, liar, before) = (disk.path().to_path_buf(), Arc::clone(liar), liar.calls("Snapshot"));
    move |_| {
        let begun = until(Instant::now() + Duration::from_secs(60), || (liar.calls("Snapshot") > before).then_some(()));
        begun.expect("a stream");
        liar.be_honest();
        remount(&disk, "size=1m");
    }
}

#[test]
fn a_disk_that_fills_up_midway_leaves_nothing() {
    if skip_unless_root("mounts a file system") {
        return;
    }
    let (_cluster, liar) = slow();
    let disk = SmallDisk::new(2 << 30);
    let refloat = on(&disk, &liar);
    let output = refloat.command(&["-o", "json", "snapshot", "take"]).meanwhile(shrink(&disk, &liar)).run();
    let error = error_of(&output);
    assert_eq!((output.code, &error["code"]), (Some(74), &"io".into()), "{output}");
    assert!(why(&error).contains("No space left on device"), "{error}");
    assert!(text(&error, "remedy").contains("free space"), "{error}");
    assert_eq!(files(disk.path()), [""; 0]);
    assert_eq!(listed(&refloat, &[]), [""; 0]);
    remount(disk.path(), "size=2g");
    take(&refloat);
    assert_eq!(listed(&refloat, &[]).len(), 1);
}

#[test]
fn one_store_that_fails_does_not_fail_the_others() {
    if skip_unless_root("mounts a file system") {
        return;
    }
    let (_cluster, liar) = slow();
    liar.be_honest();
    let disk = SmallDisk::new(2 << 30);
    let second =
        format!("[[store]]\nname = \"usb\"\nurl = \"file://{}\"\nmin_free = \"16MiB\"\n", disk.path().display());
    let refloat = Refloat::new(liar.url()).config(&second);
    let outcomes = |document: &Value| {
        let stores = document["stores"].as_array().expect("stores").iter();
        let mut all: Vec<Value> = stores.map(|s| json!([s["name"], s["outcome"], s["error"]["code"]])).collect();
        all.sort_by_key(ToString::to_string);
        Value::from(all)
    };
    let (document, _) = taken(&refloat, &[], 0);
    assert_eq!(outcomes(&document), json!([["local", "stored", null], ["usb", "stored", null]]));
    assert_eq!(document["snapshot"]["stores"], json!(["local", "usb"]));
    assert_eq!(files(&refloat.store()), files(disk.path()));

    // Whichever is gone, the other one gets the snapshot, and the exit code says that not all is well.
    for (gone, name, other) in [(disk.path().to_path_buf(), "usb", "local"), (refloat.store(), "local", "usb")] {
        let marker = gone.join("refloat-store.json");
        let text = std::fs::read(&marker).unwrap();
        std::fs::remove_file(&marker).unwrap();
        let (document, error) = taken(&refloat, &[], 74);
        let mut expected = [json!([name, "failed", "store-vanished"]), json!([other, "stored", null])];
        expected.sort_by_key(ToString::to_string);
        assert_eq!(outcomes(&document), json!(expected));
        assert_eq!(document["snapshot"]["stores"], json!([other]));
        let error = error.expect("an error");
        assert_eq!(error["code"], "some-stores-failed");
        assert!(why(&error).contains(name), "{error}");
        // Told on purpose to use the good one, all is well; told to use the bad one, nothing is.
        taken(&refloat, &["--store", other], 0);
        let output = refloat.run(&["-o", "json", "snapshot", "take", "--store", name]);
        assert_eq!((output.code, &error_of(&output)["code"]), (Some(73), &"store-vanished".into()), "{output}");
        // A list says which store it does not know about.
        let output = refloat.run(&["snapshot", "list"]);
        assert!(output.success() && output.stderr.contains(&format!("store {name}: ")), "{output}");
        std::fs::write(&marker, text).unwrap();
    }
    assert_eq!(listed(&refloat, &[]).len(), 5);

    // The copy fails half-way: it is not there, and what is there is verified.
    let before = files(disk.path());
    liar.lie(Lie::Trickle { after: 100_000, bytes: 32 << 10, every: Duration::from_millis(15) });
    let used = Run::new("du").args(["-sm"]).args([disk.path()]).run().ok();
    let used: u64 = used.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    let (path, shared) = (disk.path().to_path_buf(), Arc::clone(&liar));
    let calls = liar.calls("Snapshot");
    let run = refloat.command(&["-o", "json", "snapshot", "take"]).meanwhile(move |_| {
        let begun =
            until(Instant::now() + Duration::from_secs(60), || (shared.calls("Snapshot") > calls).then_some(()));
        begun.expect("a stream");
        remount(&path, &format!("size={}m", used + 1));
    });
    let output = run.run();
    assert_eq!(output.code, Some(74), "{output}");
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(outcomes(&document), json!([["local", "stored", null], ["usb", "failed", "io"]]));
    assert_eq!(files(disk.path()).len(), before.len(), "{:?}", files(disk.path()));
    assert_eq!(refloat.json(&["snapshot", "list"])["unfinished"], json!([]));

    // The store that takes the stream fills up: the other one takes it then.
    remount(disk.path(), "size=2g");
    let (first, second) = (refloat.store().display().to_string(), disk.path().display().to_string());
    edit(&refloat, &first, "SWAP");
    edit(&refloat, &second, &first);
    edit(&refloat, "SWAP", &second);
    let (path, shared, calls) = (disk.path().to_path_buf(), Arc::clone(&liar), liar.calls("Snapshot"));
    let run = refloat.command(&["-o", "json", "snapshot", "take"]).meanwhile(move |_| {
        let begun =
            until(Instant::now() + Duration::from_secs(60), || (shared.calls("Snapshot") > calls).then_some(()));
        begun.expect("a stream");
        shared.be_honest();
        remount(&path, &format!("size={}m", used + 1));
    });
    let output = run.run();
    assert_eq!(output.code, Some(74), "{output}");
    let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output}"));
    assert_eq!(outcomes(&document), json!([["local", "failed", "io"], ["usb", "stored", null]]));
    assert_eq!(files(disk.path()).len(), before.len(), "{:?}", files(disk.path()));
}
