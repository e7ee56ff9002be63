//! Prune where everything around it has gone wrong (promise 2): a full disk, any working directory, a store that is
//! swapped between the last look and the act, other people's things under its names. Whatever happens, a little world
//! outside stays as it was, by hash and link count, and the kernel saw no call that could have reached it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::bed::{Output, Refloat, Run, SmallDisk, skip_unless_root};
use crate::forge::{Forge, Like};
use crate::pattern::{Hold, pattern};
use crate::taking::{error_of, listed, text, why};
use crate::traced::Traced;
use crate::tree::{Tree, missing_or_changed, tree};

const HOUR: i64 = 3600;
const LAST_1: &str =
    "retention = { keep_last = 1, keep_within = \"0s\", keep_hourly = 0, keep_daily = 0, min_keep = 1 }\n";

/// A store with one snapshot that stays and some that go, beside a world that no prune may touch.
struct World {
    refloat: Refloat,
    canary: PathBuf,
    before: Tree,
    lineage: String,
    /// Oldest first.
    old: Vec<String>,
    newest: String,
    traced: Traced,
}

impl World {
    /// With this many snapshots beside the really taken one that go, and more settings of the store.
    fn new(old: i64, settings: &str) -> World {
        let (refloat, real) = pattern();
        let refloat = refloat.config(LAST_1).config(settings);
        let forge = Forge::new(&refloat, &real);
        let mut gone = vec![text(&real, "id").to_owned()];
        gone.extend((1..=old).rev().map(|n| forge.make(&Like::ago(n * HOUR))));
        let newest = forge.make(&Like::ago(0));
        let lineage = forge.lineage().to_owned();
        let canary = refloat.dir().join("canary");
        // The same names as in the store: what is reached by mistake is found.
        for dir in ["snapshots", "trash"] {
            let dir = canary.join(&lineage).join(dir);
            fs::create_dir_all(&dir).unwrap();
            for id in gone.iter().chain([&newest]) {
                fs::write(dir.join(format!("{id}.json")), "canary").unwrap();
                fs::write(dir.join(format!("{id}.db.zst")), "canary").unwrap();
            }
        }
        fs::write(canary.join(".refloat-tmp-0123456789abcdef"), "canary").unwrap();
        let traced = Traced::new(&refloat);
        let before = tree(&canary);
        World { refloat, canary, before, lineage, old: gone, newest, traced }
    }

    fn snapshots(&self) -> PathBuf {
        self.refloat.store().join(&self.lineage).join("snapshots")
    }

    fn trash(&self) -> PathBuf {
        self.refloat.store().join(&self.lineage).join("trash")
    }

    fn prune(&self) -> Run {
        self.traced.command(&self.refloat, &["-o", "json", "prune", "--yes"])
    }

    /// The world outside is as it was, and no call left the store, which is really at `roots`.
    #[track_caller]
    fn unharmed(&self, case: &str, roots: &[&Path]) -> usize {
        assert_eq!(tree(&self.canary), self.before, "{case}");
        self.traced.beneath(roots)
    }

    /// All is well again: what was left over is done now.
    #[track_caller]
    fn finishes(&self, case: &str) {
        let output = self.prune().run();
        assert_eq!(output.code, Some(0), "{case}: {output}");
        assert_eq!(listed(&self.refloat, &[]), [self.newest.as_str()], "{case}");
        let list = self.refloat.json(&["snapshot", "list"]);
        assert_eq!((&list["unfinished"], &list["unreadable"]), (&json!([]), &json!([])), "{case}");
        self.unharmed(case, &[&self.refloat.store().canonicalize().unwrap()]);
    }
}

/// What was refused: names and reasons in one text.
#[track_caller]
fn refused(output: &Output, case: &str) -> String {
    assert_eq!(output.code, Some(73), "{case}: {output}");
    let error = error_of(output);
    assert_eq!(error["code"], "refused", "{case}: {output}");
    why(&error)
}

fn mount(args: &[&str], at: &[&Path]) {
    Run::new("mount").args(args).args(at).run().ok();
}

fn unmount(at: &Path) {
    Run::new("umount").args(["-l".as_ref(), at.as_os_str()]).run().ok();
}

/// Three places to stand in, of which one is gone.
fn from(cwd: &str, world: &World) -> Run {
    match cwd {
        "deleted" => {
            let gone = world.refloat.dir().join("gone");
            fs::create_dir(&gone).unwrap();
            let script = "cd \"$1\" && rmdir \"$1\" && shift && exec \"$@\"";
            let log = world.refloat.dir().join("strace.log");
            let run = Run::new("sh").args(["-c", script, "sh"]).args([gone.as_os_str(), "strace".as_ref()]);
            let run =
                run.args(["-f", "-y", "-qq", "-e", "trace=unlink,unlinkat,rmdir,rename,renameat,renameat2", "-o"]);
            let run = run.args([log.as_os_str(), env!("CARGO_BIN_EXE_refloat").as_ref(), "--config".as_ref()]);
            run.args([world.refloat.config_file()]).args(["-o", "json", "prune", "--yes"])
        }
        "canary" => world.prune().dir(&world.canary),
        other => world.prune().dir(other),
    }
}

#[test]
fn a_full_store_is_pruned_from_wherever_it_is_called() {
    if skip_unless_root("mounts a file system") {
        return;
    }
    // Blocks are used up, or not even a name can be made; with a trash already there, or without.
    for (cwd, trash, names) in [
        ("/", false, true),
        ("canary", false, false),
        ("deleted", true, false),
        ("/", true, true),
        ("deleted", false, false),
    ] {
        let case = format!("from {cwd}, trash {trash}, out of names {names}");
        let world = World::new(3, "");
        // What is full is the store's own disk; the store moves there and is found through a link.
        let (store, disk) = (world.refloat.store(), SmallDisk::new(4 << 20));
        Run::new("cp").args(["-a".into(), store.join("."), disk.path().into()]).run().ok();
        fs::rename(&store, world.refloat.dir().join("aside")).unwrap();
        symlink(disk.path(), &store).unwrap();
        crate::stores::edit(&world.refloat, crate::bed::refloat::MIN_FREE, "min_free = \"0B\"");
        if trash {
            fs::create_dir(world.trash()).unwrap();
        }
        if names {
            let used = nix::sys::statvfs::statvfs(disk.path()).unwrap();
            let options = format!("remount,nr_inodes={}", used.files() - used.files_free());
            mount(&["-o", &options], &[disk.path()]);
            assert!(fs::write(disk.path().join("one-more"), "").is_err());
        } else {
            let mut file = fs::File::create(disk.path().join("fill")).unwrap();
            std::io::copy(&mut std::io::repeat(0), &mut file).expect_err("an end");
        }
        let output = from(cwd, &world).run();
        assert_eq!(output.code, Some(0), "{case}: {output}");
        let document: Value = output.document();
        assert_eq!(document["removed"].as_array().map(Vec::len), Some(4), "{case}: {document}");
        let way = if names && !trash { "freed" } else { "to_trash" };
        assert!(document[way].as_u64() > Some(0), "{case}: {document}");
        assert_eq!(listed(&world.refloat, &[]), [world.newest.as_str()], "{case}");
        assert!(world.unharmed(&case, &[disk.path()]) > 4, "{case}");
        let _ = fs::remove_file(disk.path().join("fill"));
        world.finishes(&case);
    }
}

/// What happens to the store between the last look and the first act.
struct Swap {
    case: &'static str,
    /// What it says.
    why: &'static str,
    act: fn(&World),
    undo: fn(&World),
}

fn aside(world: &World) -> PathBuf {
    world.refloat.dir().join("aside")
}

fn away(world: &World) {
    fs::rename(world.refloat.store(), aside(world)).unwrap();
}

fn back(world: &World) {
    let store = world.refloat.store();
    match store.symlink_metadata() {
        Ok(m) if m.is_dir() => fs::remove_dir_all(&store).unwrap(),
        Ok(_) => fs::remove_file(&store).unwrap(),
        Err(_) => {}
    }
    fs::rename(aside(world), store).unwrap();
}

fn copy_of(world: &World, marker: bool) {
    away(world);
    let store = world.refloat.store();
    Run::new("cp").args(["-a".into(), aside(world), store.clone()]).run().ok();
    if !marker {
        fs::remove_file(store.join("refloat-store.json")).unwrap();
    }
}

const SWAPS: [Swap; 9] = [
    Swap {
        case: "a link to /",
        why: "leads to another directory now (/)",
        act: |w| {
            away(w);
            symlink("/", w.refloat.store()).unwrap();
        },
        undo: back,
    },
    Swap {
        case: "a link to somebody else's directory",
        why: "leads to another directory now",
        act: |w| {
            away(w);
            symlink(&w.canary, w.refloat.store()).unwrap();
        },
        undo: back,
    },
    Swap { case: "nothing", why: "leads nowhere now", act: away, undo: back },
    Swap { case: "a copy of itself", why: "leads to another directory now", act: |w| copy_of(w, true), undo: back },
    Swap { case: "one without a marker", why: "another directory now", act: |w| copy_of(w, false), undo: back },
    Swap {
        case: "a renamed parent",
        why: "leads nowhere now",
        act: |w| fs::rename(w.refloat.dir().join("parent"), w.refloat.dir().join("moved")).unwrap(),
        undo: |w| fs::rename(w.refloat.dir().join("moved"), w.refloat.dir().join("parent")).unwrap(),
    },
    Swap {
        case: "mounted over",
        why: "leads to another directory now",
        act: |w| mount(&["--bind"], &[&w.canary, &w.refloat.store()]),
        undo: |w| unmount(&w.refloat.store()),
    },
    Swap {
        case: "its marker is gone",
        why: "the marker of store",
        act: |w| fs::rename(w.refloat.store().join("refloat-store.json"), aside(w)).unwrap(),
        undo: |w| fs::rename(aside(w), w.refloat.store().join("refloat-store.json")).unwrap(),
    },
    Swap {
        case: "another store's marker",
        why: "now it is store",
        act: |w| {
            let marker = w.refloat.store().join("refloat-store.json");
            fs::copy(&marker, aside(w)).unwrap();
            let text = json!({ "schema": 1, "id": "0".repeat(32), "created_at": "2026-01-01T00:00:00Z" });
            fs::write(marker, text.to_string()).unwrap();
        },
        undo: |w| fs::rename(aside(w), w.refloat.store().join("refloat-store.json")).unwrap(),
    },
];

#[test]
fn a_store_that_is_swapped_before_the_act_is_left_alone() {
    if skip_unless_root("mounts a directory over another one") {
        return;
    }
    for Swap { case, why, act, undo } in SWAPS {
        let world = World::new(2, "");
        if case == "a renamed parent" {
            let (store, parent) = (world.refloat.store(), world.refloat.dir().join("parent"));
            fs::create_dir(&parent).unwrap();
            fs::rename(&store, parent.join("store")).unwrap();
            symlink(parent.join("store"), &store).unwrap();
        }
        let inside = tree(&world.refloat.store().canonicalize().unwrap());
        let hold = Hold::at("prune::looked", world.refloat.dir());
        let run = world.prune().env("FAILPOINTS", hold.failpoints());
        let output = std::thread::scope(|scope| {
            scope.spawn(|| hold.meanwhile(|| act(&world)));
            run.run()
        });
        let said = refused(&output, case);
        assert!(said.contains(why), "{case}: {said}");
        assert!(said.contains(&world.old[0]), "{case}: {said}");
        assert_eq!(world.unharmed(case, &[]), 0, "{case}");
        undo(&world);
        // Nothing was removed, in no place.
        let now = tree(&world.refloat.store().canonicalize().unwrap());
        let changed: Vec<_> =
            missing_or_changed(&inside, &now).into_iter().filter(|name| name != "refloat-store.json").collect();
        assert_eq!(changed, [""; 0], "{case}");
        world.finishes(case);
    }
}

#[test]
fn what_is_swapped_within_a_store_is_refused_by_its_name() {
    if skip_unless_root("mounts a directory over another one") {
        return;
    }
    type Act = fn(&World);
    let folders: [(&str, &str, Act, Act); 3] = [
        (
            "its folder is a link",
            "symbolic",
            |w| {
                fs::rename(w.snapshots(), aside(w)).unwrap();
                symlink(w.canary.join(&w.lineage).join("snapshots"), w.snapshots()).unwrap();
            },
            |w| {
                fs::remove_file(w.snapshots()).unwrap();
                fs::rename(aside(w), w.snapshots()).unwrap();
            },
        ),
        (
            "its folder is mounted over",
            "cross-device",
            |w| mount(&["--bind"], &[&w.canary.join(&w.lineage).join("snapshots"), &w.snapshots()]),
            |w| unmount(&w.snapshots()),
        ),
        (
            "the trash is a link",
            "symbolic",
            |w| symlink(w.canary.join(&w.lineage).join("trash"), w.trash()).unwrap(),
            |w| fs::remove_file(w.trash()).unwrap(),
        ),
    ];
    for (case, why, act, undo) in folders {
        let world = World::new(2, "");
        let before = tree(&world.refloat.store());
        let hold = Hold::at("prune::looked", world.refloat.dir());
        let run = world.prune().env("FAILPOINTS", hold.failpoints());
        let output = std::thread::scope(|scope| {
            scope.spawn(|| hold.meanwhile(|| act(&world)));
            run.run()
        });
        let said = refused(&output, case);
        assert!(said.to_lowercase().contains(why), "{case}: {said}");
        world.old.iter().for_each(|id| assert!(said.contains(id), "{case}: {id} in {said}"));
        world.unharmed(case, &[&world.refloat.store()]);
        undo(&world);
        assert_eq!(missing_or_changed(&before, &tree(&world.refloat.store())), [""; 0], "{case}");
        world.finishes(case);
    }
}

/// What stands under a name of ours: made from the name, its way there and a place outside.
type Plant = fn(&Path, &Path);

const fn plants() -> [(&'static str, Plant); 4] {
    [
        ("a link", |at, outside| symlink(outside, at).unwrap()),
        ("a link to nowhere", |at, _| symlink("nowhere", at).unwrap()),
        ("a directory", |at, _| {
            fs::create_dir(at).unwrap();
            fs::write(at.join("inside"), "canary").unwrap();
        }),
        ("a FIFO", |at, _| mkfifo(at, nix::sys::stat::Mode::S_IRWXU).unwrap()),
    ]
}

fn unplant(at: &Path) {
    match at.symlink_metadata().unwrap().is_dir() {
        true => fs::remove_dir_all(at).unwrap(),
        false => fs::remove_file(at).unwrap(),
    }
}

#[test]
fn a_trash_that_is_none_stops_the_removal_before_it_begins() {
    for (case, plant) in plants() {
        let world = World::new(2, "");
        let before = tree(&world.refloat.store());
        plant(&world.trash(), &world.canary.join(&world.lineage).join("trash"));
        let planted = tree(&world.refloat.store());
        let output = world.refloat.run(&["-o", "json", "prune", "--yes"]);
        let said = match case {
            // Whatever it is: no name can be made in it.
            "a directory" => {
                assert_eq!(output.code, Some(0), "{output}");
                assert!(world.trash().join("inside").exists());
                continue;
            }
            _ => refused(&output, case),
        };
        assert!(said.contains("trash") && said.contains(&world.old[0]), "{case}: {said}");
        assert_eq!(tree(&world.refloat.store()), planted, "{case}");
        assert_eq!(tree(&world.canary), world.before, "{case}");
        unplant(&world.trash());
        assert_eq!(tree(&world.refloat.store()), before, "{case}");
        let done = world.refloat.json(&["prune", "--yes"]);
        assert_eq!(done["removed"].as_array().map(Vec::len), Some(3), "{case}: {done}");
    }
}

#[test]
fn what_stands_under_our_names_is_refused_and_the_rest_is_done() {
    if skip_unless_root("reads the log of strace") {
        return;
    }
    // Of each snapshot one part is not what refloat wrote.
    let world = World::new(17, "");
    let outside = world.canary.join(&world.lineage).join("snapshots");
    let (snapshots, trash) = (world.snapshots(), world.trash());
    fs::create_dir(&trash).unwrap();
    let mut planted: Vec<(PathBuf, Option<PathBuf>)> = Vec::new();
    let mut held: Vec<(String, String)> = Vec::new();
    let kept = world.refloat.dir().join("kept");
    fs::create_dir(&kept).unwrap();
    let mut ids = world.old.iter().cloned();
    let mut next = || ids.next().expect("enough snapshots");
    let mut put = |name: String, case: String, id: &str, plant: &dyn Fn(&Path)| {
        let (at, was) = (snapshots.join(&name), kept.join(&name));
        let was = at.exists().then(|| fs::rename(&at, &was).map(|()| was).unwrap());
        plant(&at);
        planted.push((at, was));
        held.push((id.to_owned(), case));
    };
    for end in ["json", "db.zst"] {
        for (case, plant) in plants() {
            let id = next();
            let name = format!("{id}.{end}");
            put(name.clone(), format!("{case} as {end}"), &id, &|at| plant(at, &outside.join(&name)));
        }
    }
    // A pin that is not what it was may still be meant.
    for (case, plant) in plants() {
        let id = next();
        let name = format!("{id}.pin-20260101T000000000Z.json");
        put(name, format!("{case} as a pin"), &id, &|at| plant(at, &outside.join(format!("{id}.json"))));
    }
    // A second name of a file outside, and one outside of a file of ours.
    for name in ["json", "db.zst", "tag-20260101T000000000Z.json"] {
        let id = next();
        let (own, theirs) = (snapshots.join(format!("{id}.{name}")), world.refloat.dir().join(format!("{id}.{name}")));
        if name.starts_with("tag") {
            let at = "2026-01-01T00:00:00Z";
            let note = json!({ "schema": 1, "id": id, "at": at, "node": "test", "kind": "tag", "tags": ["a"] });
            fs::write(&own, note.to_string()).unwrap();
        }
        fs::hard_link(&own, &theirs).unwrap();
        held.push((id, format!("two names of {name}")));
    }
    // In the trash, long over: each beside its manifest.
    let over = "20200101T000000000Z";
    let gone = world.newest.replacen("0001-00", "0001-07", 1);
    fs::copy(snapshots.join(format!("{}.json", world.newest)), trash.join(format!("{over}-{gone}.json"))).unwrap();
    fs::hard_link(trash.join(format!("{over}-{gone}.json")), world.refloat.dir().join("trashed.json")).unwrap();
    symlink(outside.join(format!("{}.db.zst", world.newest)), trash.join(format!("{over}-{gone}.db.zst"))).unwrap();
    let odd: [&[u8]; 7] = [b"new\nline", b"-rf", b"..x", b"\xff\xfe", &[b'x'; 255], b"a b", b"*"];
    for dir in [&snapshots, &trash, &world.refloat.store()] {
        for name in odd {
            fs::write(dir.join(OsStr::from_bytes(name)), "foreign").unwrap();
        }
    }
    let sound: Vec<String> = ids.collect();
    assert_eq!(sound.len(), 3, "some are as they were");

    let before = tree(&world.refloat.store());
    let output = world.prune().run();
    let said = refused(&output, "planted");
    let changed = missing_or_changed(&before, &tree(&world.refloat.store()));
    let mut expected: Vec<String> =
        sound.iter().flat_map(|id| [format!("{id}.db.zst"), format!("{id}.json")]).collect();
    expected.sort();
    let changed: Vec<String> =
        changed.iter().map(|name| Path::new(name).file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(changed, expected, "{output}");
    assert!(world.unharmed("planted", &[&world.refloat.store()]) >= 6);
    let document: Value = output.document();
    let unreadable = document["stores"][0]["unreadable"].to_string();
    for (id, case) in &held {
        // A manifest that is none makes its data a leftover, which is not removed either.
        assert!(said.contains(id.as_str()) || unreadable.contains(id.as_str()), "{case} of {id}: {output}");
    }
    assert!(said.contains(&gone), "the trash: {said}");

    // As it was before: everything goes.
    for (at, was) in planted {
        unplant(&at);
        was.into_iter().for_each(|was| fs::rename(was, &at).unwrap());
    }
    for entry in fs::read_dir(world.refloat.dir()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "json" || e == "zst") {
            fs::remove_file(path).unwrap();
        }
    }
    world.finishes("unplanted");
    assert!(!trash.join(format!("{over}-{gone}.json")).exists());
    assert!(trash.join(format!("{over}-{gone}.db.zst")).symlink_metadata().is_ok(), "a link is nobody's rest");
    assert!(trash.join("-rf").exists() && snapshots.join(OsStr::from_bytes(b"new\nline")).exists());
}

#[test]
fn a_store_that_is_not_there_is_not_made_up() {
    let world = World::new(1, "");
    let before = tree(&world.refloat.store());
    away(&world);
    for cwd in [Path::new("/"), &world.canary] {
        let output = world.refloat.command(&["-o", "json", "prune", "--yes"]).dir(cwd).run();
        assert_eq!((output.code, &error_of(&output)["code"]), (Some(73), &"store-missing".into()), "{output}");
        assert!(!world.refloat.store().exists());
    }
    fs::create_dir(world.refloat.store()).unwrap();
    let output = world.refloat.run(&["-o", "json", "prune", "--yes"]);
    assert_eq!((output.code, &error_of(&output)["code"]), (Some(73), &"store-vanished".into()), "{output}");
    assert_eq!(fs::read_dir(world.refloat.store()).unwrap().count(), 0);
    back(&world);
    assert_eq!((tree(&world.refloat.store()), tree(&world.canary)), (before, world.before));
}
