//! Imports that meet damage, a file that changes, a store that fails, a signal or kill -9: nothing unproven is ever
//! listed, nothing half-written stays, and the next import succeeds (promises 1, 5 and 11).

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::bed::refloat::MIN_FREE;
use crate::bed::run::until;
use crate::bed::{Cluster, Fill, Line, Refloat};
use crate::crash::{killed, sound, swept, swept_in};
use crate::import::{away, date, import, path, refused, save};
use crate::taking::{error_of, files, nothing_left, text, why};

fn cluster(kubernetes: bool) -> Cluster {
    let cluster = Cluster::start(Line::V36);
    match kubernetes {
        true => drop(Fill::new(&cluster).kubernetes(60)),
        false => Fill::new(&cluster).small(300),
    }
    cluster
}

#[test]
fn damage_is_refused_with_its_findings_and_nothing_is_stored() {
    let cluster = cluster(true);
    let file = save(&cluster, "snapshot.db");
    let good = fs::read(&file).expect("read");
    let refloat = away();
    refloat.run(&["store", "init", "local"]).ok();
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let cases = [
        ("a flipped byte in the middle", flipped(good.len() / 2)),
        ("a flipped byte in a meta page", flipped(24)),
        ("a flipped byte in the trailer", flipped(good.len() - 1)),
        ("cut in a page", good[..good.len() / 2 + 7].to_vec()),
        ("cut at a page", good[..good.len() / 4096 / 2 * 4096].to_vec()),
        ("the trailer cut off half", good[..good.len() - 16].to_vec()),
        ("no database at all", vec![7; 8192]),
        ("empty", Vec::new()),
    ];
    for (case, bytes) in cases {
        let bad = refloat.dir().join("bad.db");
        fs::write(&bad, bytes).expect("write");
        let output = refloat.run(&["-o", "json", "snapshot", "import", path(&bad), "--allow-unproven"]);
        let error = error_of(&output);
        assert_eq!((output.code, &error["code"]), (Some(65), &json!("data-invalid")), "{case}: {output}");
        assert!(why(&error).contains("findings") || case == "empty", "{case}: {error}");
        nothing_left(&refloat, case);
    }
    // A damaged zstd frame is damage too.
    let packed = refloat.dir().join("packed.zst");
    let mut bytes = zstd::stream::encode_all(&good[..], 1).expect("compress");
    let half = bytes.len() / 2;
    bytes.truncate(half);
    fs::write(&packed, bytes).expect("write");
    refused(&refloat, &[path(&packed)], 65);
}

/// Waits until the process has the file open.
fn has_open(pid: u32, file: &std::path::Path) -> bool {
    let opened = || {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let targets = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        targets.into_iter().any(|target| target == file).then_some(())
    };
    until(Instant::now() + Duration::from_secs(20), opened).is_some()
}

#[test]
fn a_file_that_changes_meanwhile_is_refused() {
    let cluster = cluster(true);
    let file = save(&cluster, "snapshot.db");
    for step in ["import::verified", "import::copied"] {
        let refloat = away();
        refloat.run(&["store", "init", "local"]).ok();
        date(&file);
        let touched = file.clone();
        // The step waits, so that the change comes before the last look at the file, whatever is fast or slow.
        let output = refloat.command(&["-o", "json", "snapshot", "import", path(&file)]);
        let output = output.env("FAILPOINTS", format!("{step}=sleep(1000)"));
        let output = output.meanwhile(move |pid| {
            if has_open(pid, &touched) {
                let file = fs::File::options().write(true).open(&touched).expect("open");
                file.set_modified(SystemTime::now()).expect("touch");
            }
        });
        let output = output.run();
        let error = error_of(&output);
        assert_eq!((output.code, &error["code"]), (Some(65), &json!("data-invalid")), "{step}: {output}");
        assert!(why(&error).contains("changed"), "{step}: {error}");
        nothing_left(&refloat, step);
    }
}

#[test]
fn a_canceled_import_leaves_nothing() {
    let cluster = cluster(true);
    let file = save(&cluster, "snapshot.db");
    for step in ["import::verified", "import::read_back"] {
        let refloat = away();
        refloat.run(&["store", "init", "local"]).ok();
        let opened = file.clone();
        let command = refloat.command(&["-o", "json", "snapshot", "import", path(&file)]);
        let command = command.env("FAILPOINTS", format!("{step}=sleep(1000)"));
        let command = command.meanwhile(move |pid| {
            if has_open(pid, &opened) {
                kill(Pid::from_raw(pid.try_into().expect("a process id")), Signal::SIGINT).expect("interrupt");
            }
        });
        let output = command.run();
        let said = output.stderr.contains("\"code\":\"canceled\"");
        assert_eq!((output.code, said), (Some(130), true), "{step}: {output}");
        nothing_left(&refloat, step);
        import(&refloat, &file, &[]);
    }
}

const STEPS: [&str; 8] = [
    "import::verified",
    "import::copied",
    "import::read_back",
    "take::evidence",
    "take::data",
    "take::before_manifest",
    "take::manifest",
    "import::published",
];

#[test]
fn killed_at_each_step_then_imported_again() {
    for kubernetes in [true, false] {
        let cluster = cluster(kubernetes);
        let file = save(&cluster, "snapshot.db");
        for step in STEPS {
            let refloat = away();
            assert!(
                killed(&refloat, &["snapshot", "import", path(&file), "--pin"], step, 0),
                "{step} was never reached"
            );
            let survived = sound(&refloat, step);
            assert!(survived == 0 || ["take::manifest", "import::published"].contains(&step), "{step}");
            let again = import(&refloat, &file, &["--pin"]);
            assert_eq!(
                (&again["already"], &again["snapshot"]["pinned"]),
                (&json!(survived == 1), &json!(true)),
                "{step}"
            );
            assert_eq!(sound(&refloat, step), 1, "{step}");
            swept_but_notes(&refloat, step);
            let dirs =
                fs::read_dir(refloat.store()).expect("read").filter(|e| e.as_ref().expect("read").path().is_dir());
            assert_eq!(dirs.count(), 1, "{step}: one lineage: {:?}", files(&refloat.store()));
        }
    }
}

/// As [`swept`], after the notes of this test were looked at.
fn swept_but_notes(refloat: &Refloat, case: &str) {
    let pins = files(&refloat.store()).into_iter().filter(|n| n.contains(".pin-")).collect::<Vec<_>>();
    assert_eq!(pins.len(), 1, "{case}: {pins:?}");
    fs::remove_file(refloat.store().join(&pins[0])).expect("remove the pin");
    swept(refloat, case);
}

/// A second store beside the first one.
fn two() -> (Refloat, std::path::PathBuf) {
    let refloat = away();
    let usb = refloat.dir().join("usb");
    let url = format!("[[store]]\nname = \"usb\"\nurl = \"file://{}\"\n{MIN_FREE}\n", usb.display());
    (refloat.config(&url), usb)
}

#[test]
fn killed_on_the_way_to_the_second_store_then_whole_in_both() {
    let cluster = cluster(true);
    let file = save(&cluster, "snapshot.db");
    for (point, nth) in [("take::before_manifest", 1), ("take::manifest", 1)] {
        let (refloat, usb) = two();
        fs::create_dir(&usb).expect("make a directory");
        assert!(killed(&refloat, &["snapshot", "import", path(&file)], point, nth), "{point} was never reached");
        assert_eq!(sound(&refloat, point), 1, "the first store has it");
        let again = import(&refloat, &file, &[]);
        assert_eq!(
            (&again["already"], &again["snapshot"]["stores"]),
            (&json!(true), &json!(["local", "usb"])),
            "{point}"
        );
        assert_eq!(sound(&refloat, point), 1, "{point}");
        swept(&refloat, point);
        swept_in(&refloat, &usb, point);
    }
}

#[test]
fn a_store_that_fails_keeps_no_other_from_having_it_and_gets_it_later() {
    let cluster = cluster(true);
    let file = save(&cluster, "snapshot.db");
    let (refloat, usb) = two();
    let output = refloat.run(&["-o", "json", "snapshot", "import", path(&file)]);
    assert_eq!((output.code, &error_of(&output)["code"]), (Some(74), &json!("some-stores-failed")), "{output}");
    let document: serde_json::Value = serde_json::from_str(&output.stdout).expect("a document all the same");
    assert_eq!(document["snapshot"]["stores"], json!(["local"]));
    let id = text(&document["snapshot"], "id").to_owned();

    fs::create_dir(&usb).expect("make a directory");
    let again = import(&refloat, &file, &[]);
    assert_eq!((&again["already"], text(&again["snapshot"], "id")), (&json!(true), &*id));
    assert_eq!(again["stores"], json!([{"name": "usb", "outcome": "stored", "error": null}]));
    assert_eq!(refloat.json(&["snapshot", "show", &id])["stores"], json!(["local", "usb"]));
    assert_eq!(sound(&refloat, "both"), 1);
}

#[test]
fn too_little_room_is_known_before_a_byte_is_written() {
    let cluster = cluster(true);
    Fill::new(&cluster).large(3, 1 << 20);
    let file = save(&cluster, "snapshot.db");
    let refloat = away();
    crate::stores::edit(&refloat, MIN_FREE, "min_free = \"16MiB\"\nmax_bytes = \"1MiB\"");
    refloat.run(&["store", "init", "local"]).ok();
    let error = refused(&refloat, &[path(&file)], 73);
    assert_eq!(error["code"], "too-little-space");
    let planned = refloat.run(&["-o", "json", "snapshot", "import", path(&file), "--dry-run"]);
    assert_eq!(planned.code, Some(73), "{planned}");
}
