//! Started as root, refloat writes as the owner of the state directory, and still gets at what only root may read.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use crate::bed::{Cluster, Fill, Line, Refloat, skip_unless_root};
use crate::taking::{error_of, take, text, why};

/// Nobody: has an entry on every host.
const OWNER: u32 = 65534;

/// State, store and runtime directory belong to the owner; `None`, said, where this process is not root.
fn owned(cluster: &Cluster) -> Option<Refloat> {
    if skip_unless_root("only root can become somebody else") {
        return None;
    }
    let refloat = Refloat::new(cluster);
    fs::set_permissions(refloat.dir(), Permissions::from_mode(0o755)).expect("let others in");
    for path in [refloat.state(), refloat.store(), refloat.dir().join("run")] {
        give(&path, OWNER);
    }
    Some(refloat)
}

fn give(path: &Path, uid: u32) {
    chown(path, Some(uid), Some(uid)).expect("change the owner");
}

/// Everything below `dir` that is not the owner's.
fn strangers(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path).expect("look at it");
        if (meta.uid(), meta.gid()) != (OWNER, OWNER) {
            found.push(format!("{} {}:{}", path.display(), meta.uid(), meta.gid()));
        }
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).expect("list it").map(|entry| entry.expect("list it").path()));
        }
    }
    found
}

#[test]
fn what_root_starts_belongs_to_the_owner_of_the_state() {
    let cluster = Cluster::builder(Line::V36).tls(true).start();
    let Some(refloat) = owned(&cluster) else { return };
    Fill::new(&cluster).kubernetes(20);
    let pki = cluster.pki().expect("certificates");
    fs::set_permissions(&pki.client.key, Permissions::from_mode(0o600)).expect("protect the key");
    assert_eq!(fs::metadata(&pki.client.key).expect("look at the key").uid(), 0);

    let taken = take(&refloat);
    let id = text(&taken, "id");
    refloat.run(&["snapshot", "verify", "latest"]).ok();
    refloat.run(&["snapshot", "pin", "latest", "--reason", "why"]).ok();
    refloat.run(&["snapshot", "unpin", "latest"]).ok();
    refloat.run(&["snapshot", "tag", "latest", "word"]).ok();
    refloat.run(&["store", "check"]).ok();
    take(&refloat);
    refloat.run(&["prune", "--yes"]).ok();

    // Where root alone may write and read.
    let private = refloat.dir().join("private");
    fs::create_dir(&private).expect("make a directory");
    fs::set_permissions(&private, Permissions::from_mode(0o700)).expect("close it");
    let file = private.join("snapshot.db");
    refloat.run(&["snapshot", "export", id, "--to", &file.display().to_string()]).ok();
    assert_eq!(fs::metadata(&file).expect("the export").uid(), 0, "it belongs to who asked for it");
    let imported = refloat.json(&["snapshot", "import", &file.display().to_string()]);
    assert_eq!(imported["already"], true, "{imported}");
    let other = Cluster::start(Line::V36);
    Fill::new(&other).put("a", "1");
    let foreign = Refloat::new(&other);
    take(&foreign);
    let file = private.join("other.db");
    foreign.run(&["snapshot", "export", "latest", "--to", &file.display().to_string()]).ok();
    let imported = refloat.json(&["snapshot", "import", &file.display().to_string()]);
    let lineage = text(&imported["snapshot"], "lineage");
    assert_eq!(strangers(&refloat.store()), [""; 0]);
    refloat.run(&["store", "retire", lineage, "--yes"]).ok();

    assert_eq!(strangers(&refloat.store()), [""; 0]);
    assert_eq!(strangers(&refloat.state()), [""; 0]);
    // And the owner can go on with it.
    assert!(refloat.state().join("take.lock").exists() && refloat.state().join("stores.json").exists());
}

#[test]
fn a_store_is_made_for_the_owner() {
    let cluster = Cluster::start(Line::V36);
    let Some(refloat) = owned(&cluster) else { return };
    let disk = tempfile::tempdir().expect("a directory");
    fs::set_permissions(disk.path(), Permissions::from_mode(0o755)).expect("let others in");
    let store = |name: &str| {
        format!("[[store]]\nname = {name:?}\nurl = \"file://{}/{name}\"\nmin_free = \"16MiB\"\n", disk.path().display())
    };
    let refloat = refloat.config(&format!("{}{}{}", store("new"), store("empty"), store("full")));
    for name in ["empty", "full"] {
        fs::create_dir(disk.path().join(name)).expect("make a directory");
    }
    fs::write(disk.path().join("full/other"), "").expect("write a file");
    for name in ["new", "empty"] {
        refloat.run(&["store", "init", name]).ok();
        assert_eq!(strangers(&disk.path().join(name)), [""; 0]);
    }
    // What others put there is not handed out.
    let output = refloat.run(&["-o", "json", "store", "init", "full"]);
    assert_eq!(error_of(&output)["code"], "store-not-writable", "{output}");
    assert_eq!(strangers(&disk.path().join("full")).len(), 2);
    assert_eq!(strangers(&refloat.state()), [""; 0]);
}

#[test]
fn what_root_left_is_named_with_the_command_that_hands_it_over() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).put("a", "1");
    let Some(refloat) = owned(&cluster) else { return };
    take(&refloat);
    let mut entries = fs::read_dir(refloat.store()).expect("list the store").map(|entry| entry.expect("list").path());
    let lineage = entries.find(|path| path.is_dir()).expect("a lineage");
    for path in [refloat.state().join("stores.json"), lineage.clone(), lineage.join("snapshots")] {
        give(&path, 0);
        let output = refloat.run(&["-o", "json", "snapshot", "take"]);
        let error = error_of(&output);
        assert_eq!((output.code, &error["code"]), (Some(77), &"permission".into()), "{output}");
        assert!(why(&error).contains(&format!("{} belongs to root", path.display())), "{error}");
        let remedy = text(&error, "remedy");
        let command = remedy.split('`').nth(1).expect("a command");
        let words: Vec<&str> = command.split(' ').collect();
        crate::bed::run::Run::new(words[0]).args(&words[1..]).run().ok();
        take(&refloat);
    }
    // Reading needs no owner.
    give(&refloat.state().join("stores.json"), 0);
    refloat.run(&["snapshot", "list"]).ok();
}
