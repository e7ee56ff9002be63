//! Real file systems, frozen: nothing ends the kernel's wait there but the thaw.
//!
//! A process of which a thread is held so goes on and ends its work, but the kernel keeps it until the thaw. So a test
//! looks at what was done while the disk is still frozen, and only then thaws it.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::bed::refloat::MIN_FREE;
use crate::bed::run::until;
use crate::bed::{Cluster, Fill, FreezableDisk, Line, Output, Refloat, skip_unless_root};
use crate::stores::edit;
use crate::taking::{files, listed, take};

const STALL: &str = "[snapshot]\nstall_timeout = \"3s\"\n";

fn second(at: &Path) -> String {
    format!("[[store]]\nname = \"second\"\nurl = \"file://{}\"\n{MIN_FREE}\n", at.display())
}

/// Runs while the disk is frozen, and thaws it once `seen`, which must be before.
#[track_caller]
fn frozen(refloat: &Refloat, disk: &FreezableDisk, args: &[&str], seen: impl Fn(&str) -> bool) -> Output {
    let log = refloat.dir().join("stderr.log");
    let ice = disk.freeze();
    let program = env!("CARGO_BIN_EXE_refloat");
    let script = format!("exec \"$@\" 2>{:?}", log.display().to_string());
    let run = crate::bed::Run::new("bash").args(["-c", &script, "bash", program, "--config"]);
    let run = run.args([refloat.config_file()]).args(["-o", "json"]).args(args);
    let output = std::thread::scope(|scope| {
        let running = scope.spawn(|| run.run());
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let done = until(Instant::now() + Duration::from_secs(60), || seen(&said()).then_some(()));
        assert!(done.is_some(), "not before the thaw: {}", said());
        drop(ice);
        running.join().expect("no panic")
    });
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    std::fs::remove_file(&log).unwrap();
    Output { stderr: said, ..output }
}

#[test]
fn a_frozen_store_is_left_out_and_comes_back() {
    if skip_unless_root("freezes a file system") {
        return;
    }
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(200);
    let disk = FreezableDisk::new(512);
    let refloat = Refloat::new(cluster.node(0));
    let at = disk.path().join("store");
    std::fs::create_dir(&at).unwrap();
    let refloat = refloat.config(&format!("{}{STALL}", second(&at)));
    take(&refloat);
    let manifests =
        || files(&refloat.store()).iter().filter(|f| f.contains("/snapshots/") && f.ends_with(".json")).count();
    let before = manifests();
    // Second, then first: the one whose disk takes the stream.
    for _ in 0..2 {
        let now = manifests();
        let output = frozen(&refloat, &disk, &["snapshot", "take"], |_| manifests() > now);
        assert_eq!(output.code, Some(74), "{output}");
        assert!(output.stdout.contains("store-hung"), "{output}");
        let text = std::fs::read_to_string(refloat.config_file()).unwrap();
        let (local, other) = (refloat.store().display().to_string(), at.display().to_string());
        if text.find(&local) < text.find(&other) {
            edit(&refloat, &format!("file://{local}\""), "file:///swap\"");
            edit(&refloat, &format!("file://{other}\""), &format!("file://{local}\""));
            edit(&refloat, "file:///swap\"", &format!("file://{other}\""));
        }
    }
    assert_eq!(manifests(), before + 2);
    let taken = take(&refloat);
    assert_eq!(taken["stores"].as_array().map(Vec::len), Some(2), "{taken}");
    assert_eq!(refloat.json(&["snapshot", "verify", "--all"])["ok"], true);
    assert_eq!(refloat.json(&["snapshot", "list"])["unfinished"], serde_json::json!([]));
}

#[test]
fn a_frozen_store_alone_and_a_frozen_state_directory_end_the_take() {
    if skip_unless_root("freezes a file system") {
        return;
    }
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(200);
    let disk = FreezableDisk::new(512);
    for (key, code) in [("store", "store-hung"), ("state", "state-hung")] {
        let refloat = Refloat::new(cluster.node(0)).config(STALL);
        let at = disk.path().join(key);
        std::fs::create_dir(&at).unwrap();
        let old = refloat.dir().join(key);
        edit(&refloat, &format!("{}\"", old.display()), &format!("{}\"", at.display()));
        take(&refloat);
        let output = frozen(&refloat, &disk, &["snapshot", "take"], |said| said.contains(code));
        assert_eq!(output.code, Some(74), "{output}");
        assert_eq!(listed(&refloat, &[]).len(), 1);
        take(&refloat);
        assert_eq!(listed(&refloat, &[]).len(), 2);
        assert_eq!(refloat.json(&["snapshot", "list"])["unfinished"], serde_json::json!([]));
    }
}
