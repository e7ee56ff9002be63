//! Where stores and state lie: behind links, seen from odd working directories, moved while a snapshot is under way.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bed::run::until;
use crate::bed::{Fill, Lie, Refloat, Run};
use crate::stores::{edit, start};
use crate::taking::{error_of, files, listed, take, text, why};
use crate::tree::tree;

#[test]
fn a_link_to_a_store_works_and_the_real_path_is_shown() {
    let (_cluster, liar) = start();
    let refloat = Refloat::new(liar.url());
    let real = refloat.dir().join("disk/backups");
    fs::create_dir_all(&real).unwrap();
    fs::remove_dir(refloat.store()).unwrap();
    symlink("disk/backups", refloat.store()).unwrap();
    let real = real.canonicalize().unwrap();
    let made = refloat.json(&["store", "init", "local"]);
    assert_eq!(made["location"], real.display().to_string());
    take(&refloat);
    assert_eq!(files(&real).len() + 1, tree(&real).values().filter(|leaf| !leaf.content.is_empty()).count());
    assert!(files(&real).iter().any(|name| name.ends_with(".db.zst")));
    // An error names both.
    fs::remove_file(real.join("refloat-store.json")).unwrap();
    let on = error_of(&refloat.run(&["-o", "json", "snapshot", "take"]))["on"].to_string();
    assert!(on.contains(&format!("{} (configured as {})", real.display(), refloat.store().display())), "{on}");
}

#[test]
fn two_stores_that_are_one_directory_are_no_two_copies() {
    let (_cluster, liar) = start();
    let refloat = Refloat::new(liar.url());
    symlink(refloat.store(), refloat.dir().join("again")).unwrap();
    let url = format!("file://{}", refloat.dir().join("again").display());
    let refloat = refloat.config(&format!("[[store]]\nname = \"again\"\nurl = \"{url}\"\nmin_free = \"16MiB\"\n"));
    let output = refloat.run(&["-o", "json", "snapshot", "take"]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output}"));
    assert_eq!((output.code, &error_of(&output)["code"]), (Some(74), &"some-stores-failed".into()), "{output}");
    assert_eq!(document["snapshot"]["stores"], serde_json::json!(["local"]));
    let failed = document["stores"].as_array().expect("stores").iter().find(|s| s["name"] == "again").expect("it");
    assert_eq!(failed["error"]["code"], "config", "{failed}");
    assert!(why(&failed["error"]).contains("is also store local"), "{failed}");
    assert_eq!(refloat.json(&["snapshot", "list"])["snapshots"][0]["stores"], serde_json::json!(["local"]));
}

#[test]
fn what_happens_to_a_store_while_a_snapshot_is_streamed() {
    let (cluster, liar) = start();
    Fill::new(&cluster).large(1, 1 << 20);
    let liar = Arc::new(liar);
    let refloat = Refloat::new(liar.url());
    take(&refloat);
    let (store, before) = (refloat.store(), files(&refloat.store()));
    let marker = store.join("refloat-store.json");
    let text = fs::read(&marker).unwrap();
    let while_streamed = |act: Box<dyn FnOnce() + Send>| {
        liar.lie(Lie::Trickle { after: 0, bytes: 16 << 10, every: Duration::from_millis(20) });
        let (shared, calls) = (Arc::clone(&liar), liar.calls("Snapshot"));
        let run = refloat.command(&["-o", "json", "snapshot", "take"]).meanwhile(move |_| {
            let minute = Instant::now() + Duration::from_secs(60);
            until(minute, || (shared.calls("Snapshot") > calls).then_some(())).expect("a stream");
            act();
        });
        let output = run.run();
        liar.be_honest();
        output
    };
    // The marker goes: nothing is written any more, not even evidence.
    let gone = marker.clone();
    let output = while_streamed(Box::new(move || fs::remove_file(gone).unwrap()));
    assert_eq!((output.code, &error_of(&output)["code"]), (Some(73), &"store-vanished".into()), "{output}");
    fs::write(&marker, text).unwrap();
    assert_eq!(files(&store), before);
    // Another directory takes its place: the handle still leads to the store, and the other one stays as it is.
    let aside = refloat.dir().join("aside");
    let (from, to) = (store.clone(), aside.clone());
    let output = while_streamed(Box::new(move || {
        fs::rename(&from, to).unwrap();
        fs::create_dir(&from).unwrap();
    }));
    assert!(output.success(), "{output}");
    assert_eq!((files(&aside).len(), tree(&store).len()), (before.len() + 2, 0));
    assert_eq!(refloat.run(&["snapshot", "list"]).code, Some(73));
    fs::remove_dir(&store).unwrap();
    fs::rename(&aside, &store).unwrap();
    assert_eq!(listed(&refloat, &[]).len(), 2);
}

#[test]
fn where_it_is_run_from_does_not_matter() {
    let (_cluster, liar) = start();
    let refloat = Refloat::new(liar.url());
    refloat.command(&["snapshot", "take"]).dir("/").run().ok();
    // A directory that is removed while a program is in it, as after a failed `cd`.
    let gone = refloat.dir().join("gone");
    let inside = |args: &[&str]| {
        fs::create_dir(&gone).unwrap();
        let script = "rmdir \"$PWD\"; exec \"$@\"";
        let program = env!("CARGO_BIN_EXE_refloat");
        Run::new("bash")
            .args(["-c", script, "bash", program, "--config"])
            .args([refloat.config_file()])
            .args(args)
            .dir(&gone)
            .run()
    };
    inside(&["snapshot", "take"]).ok();
    let names = files(&refloat.store());
    assert_eq!(names.iter().filter(|n| n.ends_with(".db.zst")).count(), 2, "{names:?}");
    assert_eq!(listed(&refloat, &[]).len(), 2);
    inside(&["snapshot", "verify", "latest"]).ok();
    let output = inside(&["-o", "json", "snapshot", "export", "latest", "--to", "x.db"]);
    assert_eq!((output.code, &error_of(&output)["code"]), (Some(73), &"cannot-create".into()), "{output}");

    // Neither is a path that depends on it accepted.
    let url = format!("file://{}", refloat.store().display());
    for relative in ["store", "./store", "file:store", "file://store"] {
        edit(&refloat, &url, relative);
        let output = refloat.command(&["-o", "json", "snapshot", "take"]).dir(refloat.dir()).run();
        assert_eq!((output.code, &error_of(&output)["code"]), (Some(78), &"config".into()), "{relative}: {output}");
        edit(&refloat, &format!("\"{relative}\""), &format!("\"{url}\""));
    }
}

#[test]
fn a_broken_state_directory_is_named() {
    let (_cluster, liar) = start();
    let refloat = Refloat::new(liar.url());
    take(&refloat);
    let known = refloat.state().join("stores.json");
    let whole = fs::read(&known).unwrap();
    let streams = liar.calls("Snapshot");
    for torn in [&whole[..0], &whole[..whole.len() / 2], b"[]", &[0; 100]] {
        fs::write(&known, torn).unwrap();
        for args in [&["snapshot", "take"][..], &["snapshot", "list"], &["store", "list"], &["store", "init", "local"]]
        {
            let output = refloat.run(&[&["-o", "json"], args].concat());
            let error = error_of(&output);
            assert_eq!((output.code, &error["code"]), (Some(65), &"data-invalid".into()), "{args:?}: {output}");
            assert_eq!(text(&error, "on"), known.display().to_string());
            assert!(text(&error, "remedy").contains("remove this file"), "{error}");
        }
        assert_eq!(fs::read(&known).unwrap(), torn, "nothing is repaired behind one's back");
    }
    // The remedy works.
    fs::remove_file(&known).unwrap();
    take(&refloat);
    let state = format!("state = {:?}", refloat.state());
    fs::write(refloat.dir().join("file"), "").unwrap();
    edit(&refloat, &state, &format!("state = {:?}", refloat.dir().join("file/state")));
    let output = refloat.run(&["-o", "json", "snapshot", "take"]);
    let error = error_of(&output);
    assert_eq!((output.code, &error["code"]), (Some(73), &"cannot-create".into()), "{output}");
    assert!(text(&error, "remedy").contains("[paths] state"), "{error}");
    // What only reads needs none.
    assert_eq!(listed(&refloat, &[]).len(), 2);
    assert_eq!(liar.calls("Snapshot"), streams + 1);
}
