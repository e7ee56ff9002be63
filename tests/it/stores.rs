//! Stores that are not what the configuration means (promise 2, public reports on scripts that filled or emptied the
//! wrong file system): refused with the numbers and the remedy before the first byte is streamed, and left as they are.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;

use crate::bed::{Cluster, Fill, Liar, Line, Output, Refloat, Run, SmallDisk, skip_unless_root};
use crate::taking::{error_of, listed, take, text, why};
use crate::tree::tree;

/// One member with a little data, and the liar before it.
pub fn start() -> (Cluster, Liar) {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let liar = Liar::start(cluster.node(0).client_url());
    (cluster, liar)
}

/// Replaces a part of the configuration.
#[track_caller]
pub fn edit(refloat: &Refloat, from: &str, to: &str) {
    let before = fs::read_to_string(refloat.config_file()).expect("read the configuration");
    assert!(before.contains(from), "{from} in {before}");
    fs::write(refloat.config_file(), before.replace(from, to)).expect("write the configuration");
}

/// What take, check and list say of a store that cannot be used.
struct Refusal<'a> {
    case: &'a str,
    code: &'a str,
    exit: i32,
    /// In the causes or the name of the store.
    why: &'a [&'a str],
    remedy: &'a str,
    /// In `store list`.
    state: &'a str,
}

/// Takes, checks and lists; the store and what is beside it stays as it is, and nothing is streamed.
#[track_caller]
fn refused(refloat: &Refloat, liar: &Liar, wrap: &dyn Fn(&[&str]) -> Output, refusal: &Refusal) {
    let Refusal { case, code, exit, why: parts, remedy, state } = *refusal;
    let streams = liar.calls("Snapshot");
    let everything = || {
        let mut all = tree(refloat.dir());
        all.retain(|name, _| name != "state/take.lock");
        all
    };
    let before = everything();
    for args in [&["snapshot", "take"][..], &["store", "check"]] {
        // A directory that would do for a check has no room for a snapshot.
        if args[0] == "store" && state == "ready" {
            continue;
        }
        let output = wrap(&[&["-o", "json"], args].concat());
        assert_eq!(output.code, Some(exit), "{case}: {output}");
        let error = match args[0] {
            "store" => serde_json::from_str::<Value>(&output.stdout).expect("a document")["stores"][0]["error"].clone(),
            _ => error_of(&output),
        };
        assert_eq!(error["code"], code, "{case}: {error}");
        let said = format!("{} {}", text(&error, "on"), why(&error));
        for part in parts {
            assert!(said.contains(part), "{case}: {part:?} in {said}");
        }
        assert!(text(&error, "remedy").contains(remedy), "{case}: {remedy:?} in {error}");
    }
    let list: Value = serde_json::from_str(&wrap(&["-o", "json", "store", "list"]).ok()).expect("a document");
    assert_eq!(list["stores"][0]["state"], state, "{case}: {list}");
    assert_eq!(everything(), before, "{case}");
    assert_eq!(liar.calls("Snapshot"), streams, "{case}: something was streamed");
}

#[test]
fn what_is_no_store_is_refused_before_the_first_byte() {
    let (_cluster, liar) = start();
    type Prepare = fn(&Path);
    let table: [(Prepare, Refusal); 7] = [
        (
            |store| fs::remove_dir(store).unwrap(),
            Refusal {
                case: "missing",
                code: "store-missing",
                exit: 73,
                why: &["No such file or directory"],
                remedy: "mount ",
                state: "missing",
            },
        ),
        (
            |store| {
                fs::remove_dir(store).unwrap();
                symlink("not-there", store).unwrap();
            },
            Refusal {
                case: "a link to nothing",
                code: "store-missing",
                exit: 73,
                why: &["No such file or directory"],
                remedy: "mount ",
                state: "missing",
            },
        ),
        (
            |store| fs::write(store.join("holiday.jpg"), "photo").unwrap(),
            Refusal {
                case: "other content",
                code: "store-foreign",
                exit: 73,
                why: &["no refloat-store.json", "holiday.jpg"],
                remedy: "refloat store init local",
                state: "foreign",
            },
        ),
        (
            |store| {
                fs::remove_dir(store).unwrap();
                symlink("/", store).unwrap();
            },
            Refusal {
                case: "a link to /",
                code: "store-foreign",
                exit: 73,
                why: &["root directory of this host"],
                remedy: "nothing in / is ever touched",
                state: "foreign",
            },
        ),
        (
            |store| {
                fs::remove_dir(store).unwrap();
                symlink("/proc/self/root", store).unwrap();
            },
            Refusal {
                case: "another way to /",
                code: "store-foreign",
                exit: 73,
                why: &["root directory of this host"],
                remedy: "nothing in / is ever touched",
                state: "foreign",
            },
        ),
        (
            |store| {
                fs::remove_dir(store).unwrap();
                fs::write(store, "text").unwrap();
            },
            Refusal {
                case: "a file",
                code: "store-foreign",
                exit: 73,
                why: &["Not a directory"],
                remedy: "name a directory",
                state: "foreign",
            },
        ),
        (
            |store| fs::write(store.join("refloat-store.json"), "{\"schema\":").unwrap(),
            Refusal {
                case: "half a marker",
                code: "store-foreign",
                exit: 73,
                why: &["refloat-store.json"],
                remedy: "",
                state: "foreign",
            },
        ),
    ];
    for (prepare, refusal) in table {
        let refloat = Refloat::new(liar.url());
        prepare(&refloat.store());
        refused(&refloat, &liar, &|args| refloat.run(args), &refusal);
    }
    assert!(!Path::new("/refloat-store.json").exists());
}

#[test]
fn what_was_a_store_and_is_not_any_more_is_refused() {
    let (_cluster, liar) = start();
    let refloat = Refloat::new(liar.url());
    take(&refloat);
    let (store, aside) = (refloat.store(), refloat.dir().join("aside"));
    let marker = fs::read_to_string(store.join("refloat-store.json")).unwrap();
    let id = serde_json::from_str::<Value>(&marker).unwrap()["id"].as_str().unwrap().to_owned();
    let other = "0123456789abcdef0123456789abcdef";
    let table: [(&str, &dyn Fn(), &str); 5] = [
        ("an empty directory in its place", &|| fs::create_dir(&store).unwrap(), "now it is empty"),
        (
            "another store in its place",
            &|| {
                fs::create_dir(&store).unwrap();
                fs::write(store.join("refloat-store.json"), marker.replace(&id, other)).unwrap();
            },
            other,
        ),
        (
            "the marker is gone",
            &|| {
                Run::new("cp").args(["-a".as_ref(), aside.as_os_str(), store.as_os_str()]).run().ok();
                fs::remove_file(store.join("refloat-store.json")).unwrap();
            },
            "no refloat-store.json",
        ),
        (
            "half of the marker",
            &|| {
                Run::new("cp").args(["-a".as_ref(), aside.as_os_str(), store.as_os_str()]).run().ok();
                fs::write(store.join("refloat-store.json"), &marker[..marker.len() / 2]).unwrap();
            },
            "refloat-store.json",
        ),
        (
            "a link to a foreign directory",
            &|| {
                fs::create_dir(refloat.dir().join("photos")).unwrap();
                fs::write(refloat.dir().join("photos/a.jpg"), "").unwrap();
                symlink("photos", &store).unwrap();
            },
            "a.jpg",
        ),
    ];
    for (case, change, why) in table {
        fs::rename(&store, &aside).unwrap();
        change();
        let refusal = Refusal { case, code: "store-vanished", exit: 73, why: &[why], remedy: "", state: "vanished" };
        refused(&refloat, &liar, &|args| refloat.run(args), &refusal);
        // Reading is refused alike: a list of nothing would look like "all backups are gone, fine".
        let output = refloat.run(&["-o", "json", "snapshot", "list"]);
        assert_eq!((output.code, &error_of(&output)["code"]), (Some(73), &"store-vanished".into()), "{case}: {output}");
        match store.symlink_metadata().unwrap().is_symlink() {
            true => fs::remove_file(&store).unwrap(),
            false => fs::remove_dir_all(&store).unwrap(),
        }
        fs::rename(&aside, &store).unwrap();
    }
    // It is back: nothing has to be repaired. A person may also decide that the change is wanted.
    take(&refloat);
    assert_eq!(listed(&refloat, &[]).len(), 2);
    fs::rename(&store, &aside).unwrap();
    fs::create_dir(&store).unwrap();
    let made = refloat.json(&["store", "init", "local"]);
    assert_eq!((&made["created"], made["id"] == id), (&true.into(), false), "{made}");
    take(&refloat);
    assert_eq!(listed(&refloat, &[]).len(), 1);
}

#[test]
fn a_disk_that_is_not_mounted_is_not_its_mount_point() {
    if skip_unless_root("mounts a file system") {
        return;
    }
    let (_cluster, liar) = start();
    let refloat = Refloat::new(liar.url());
    let disk = SmallDisk::new(2 << 30);
    edit(&refloat, &refloat.store().display().to_string(), &disk.path().display().to_string());
    take(&refloat);
    Run::new("umount").args([disk.path()]).run().ok();
    let refusal = Refusal {
        case: "unmounted",
        code: "store-vanished",
        exit: 73,
        why: &["now it is empty"],
        remedy: "mount the disk that holds the store",
        state: "vanished",
    };
    refused(&refloat, &liar, &|args| refloat.run(args), &refusal);
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
    // So that dropping it finds what to unmount.
    Run::new("mount").args(["-t", "tmpfs", "refloat-test"]).args([disk.path()]).run().ok();
}

#[test]
fn what_cannot_be_written_is_refused() {
    let (_cluster, liar) = start();
    let not_writable =
        |case, why| Refusal { case, code: "store-not-writable", exit: 73, why, remedy: "write access", state: "ready" };
    // Without write permission, and for root also without root's way around it.
    let refloat = Refloat::new(liar.url());
    take(&refloat);
    fs::set_permissions(refloat.store(), fs::Permissions::from_mode(0o500)).unwrap();
    let bounded = |args: &[&str]| {
        let program = env!("CARGO_BIN_EXE_refloat");
        let (keep, config) = (["--bounding-set=-dac_override,-dac_read_search"], refloat.config_file());
        match nix::unistd::geteuid().is_root() {
            true => Run::new("setpriv").args(keep).args([program]),
            false => Run::new(program),
        }
        .args(["--config".as_ref(), config.as_os_str()])
        .args(args)
        .run()
    };
    refused(&refloat, &liar, &bounded, &not_writable("mode 0500", &["Permission denied"]));
    assert_eq!(bounded(&["store", "check"]).code, Some(73));
    // Reading needs no right to write.
    assert!(bounded(&["snapshot", "list"]).ok().contains("verified"));
    let verified = bounded(&["-o", "json", "snapshot", "verify", "latest"]).json();
    assert_eq!(verified["ok"], true, "{verified}");
    fs::set_permissions(refloat.store(), fs::Permissions::from_mode(0o700)).unwrap();

    if skip_unless_root("mounts a file system") {
        return;
    }
    let disk = SmallDisk::new(2 << 30);
    let refloat = Refloat::new(liar.url());
    edit(&refloat, &refloat.store().display().to_string(), &disk.path().display().to_string());
    take(&refloat);
    Run::new("mount").args(["-o", "remount,ro"]).args([disk.path()]).run().ok();
    let refusal = not_writable("mounted read-only", &["Read-only file system"]);
    refused(&refloat, &liar, &|args| refloat.run(args), &refusal);
    assert_eq!(refloat.run(&["store", "check"]).code, Some(73));
    assert_eq!(listed(&refloat, &[]).len(), 1);
}
