//! kill -9 at each step of a prune, and prunes beside other prunes, takes and exports (promises 2 and 11): never half a
//! snapshot in the list, the next prune finishes, and nobody loses what is not to go.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::bed::{Cluster, Fill, Line, Output, Refloat, SmallDisk, skip_unless_root};
use crate::forge::{Forge, Like};
use crate::pattern::{Hold, pattern, pattern_for};
use crate::taking::{error_of, files, listed, take, text, why};

const HOUR: i64 = 3600;
const RULES: &str = "keep_within = \"0s\", keep_hourly = 0, keep_daily = 0, min_keep = 1";

fn keep_last(refloat: Refloat, last: u32) -> Refloat {
    refloat.config(&format!("retention = {{ keep_last = {last}, {RULES} }}\n"))
}

/// A tag beside a snapshot.
fn tag(refloat: &Refloat, lineage: &str, id: &str) {
    let at = "2026-01-01T00:00:00Z";
    let note = json!({ "schema": 1, "id": id, "at": at, "node": "test", "kind": "tag", "tags": ["a"] });
    let name = format!("{lineage}/snapshots/{id}.tag-20260101T000000000Z.json");
    fs::write(refloat.store().join(name), note.to_string()).unwrap();
}

struct Store {
    refloat: Refloat,
    lineage: String,
    /// Oldest first; the really taken one is the first.
    old: Vec<String>,
    newest: String,
}

impl Store {
    fn new(grace: &str) -> Store {
        let (refloat, real) = pattern();
        Store::of(keep_last(refloat, 1).config(&format!("trash_grace = {grace:?}\n")), &real)
    }

    /// Two that go, of which one has a tag, one that stays, a rest of a killed take, and trash whose time is over.
    fn of(refloat: Refloat, real: &serde_json::Value) -> Store {
        let forge = Forge::new(&refloat, real);
        let lineage = forge.lineage().to_owned();
        let old = vec![text(real, "id").to_owned(), forge.make(&Like::ago(HOUR))];
        let newest = forge.make(&Like::ago(0));
        let gone = forge.make(&Like::ago(9 * HOUR));
        tag(&refloat, &lineage, &old[1]);
        tag(&refloat, &lineage, &gone);
        let store = Store { refloat, lineage, old, newest };
        fs::create_dir(store.dir("trash")).unwrap();
        for name in fs::read_dir(store.dir("snapshots")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap())
        {
            if name.starts_with(&gone) {
                let to = store.dir("trash").join(format!("20200101T000000000Z-{name}"));
                fs::rename(store.dir("snapshots").join(name), to).unwrap();
            }
        }
        let stray = store.newest.replacen("0001-00", "0001-07", 1);
        fs::write(store.dir("snapshots").join(format!("{stray}.db.zst")), "half").unwrap();
        store
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.refloat.store().join(&self.lineage).join(name)
    }

    fn names(&self, dir: &str) -> BTreeSet<String> {
        fs::read_dir(self.dir(dir)).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn prune(&self) -> Output {
        self.refloat.run(&["-o", "json", "prune", "--yes"])
    }

    /// Whatever happened: all that is listed is whole.
    #[track_caller]
    fn sound(&self, case: &str) -> Vec<String> {
        let list = self.refloat.json(&["snapshot", "list"]);
        assert_eq!((&list["foreign"], &list["unreadable"]), (&json!(0), &json!([])), "{case}: {list}");
        let snapshots = list["snapshots"].as_array().unwrap();
        assert!(snapshots.iter().all(|s| s["state"] == "verified"), "{case}: {list}");
        let names = self.names("snapshots");
        snapshots
            .iter()
            .map(|s| {
                let id = text(s, "id").to_owned();
                assert!(names.contains(&format!("{id}.db.zst")), "{case}: {id}");
                id
            })
            .collect()
    }

    /// Nothing is left to do, and nothing lies about.
    #[track_caller]
    fn finished(&self, case: &str, at_once: bool) {
        assert_eq!(self.sound(case), [self.newest.as_str()], "{case}");
        let both = |id: &String| [format!("{id}.db.zst"), format!("{id}.json")];
        assert_eq!(self.names("snapshots"), BTreeSet::from(both(&self.newest)), "{case}");
        let mut trashed: Vec<String> = self.names("trash").iter().map(|name| name[20..].to_owned()).collect();
        trashed.sort();
        if at_once {
            assert_eq!(trashed, [""; 0], "{case}");
        } else {
            let mut whole: Vec<String> = self.old.iter().flat_map(both).collect();
            whole.push(format!("{}.tag-20260101T000000000Z.json", self.old[1]));
            whole.sort();
            assert_eq!(trashed, whole, "{case}");
        }
        let again = self.prune();
        assert_eq!((again.code, &again.document()["stores"][0]["outcome"]), (Some(0), &json!("unchanged")), "{again}");
    }
}

#[test]
fn killed_at_each_step_then_pruned_again() {
    for (grace, at_once) in [("24h", false), ("0s", true)] {
        for (point, least) in [("prune::step", 4), ("prune::manifest", 2), ("prune::part", 3), ("prune::emptied", 3)] {
            for nth in 0.. {
                let store = Store::new(grace);
                let case = format!("{point} {nth} with grace {grace}");
                let action = if nth == 0 { "return".to_owned() } else { format!("{nth}*off->return") };
                let run = store.refloat.command(&["prune", "--yes"]).env("FAILPOINTS", format!("{point}={action}"));
                let output = run.run();
                if output.code.is_some() {
                    assert!(output.success() && nth >= least, "{case}: {output}");
                    break;
                }
                let listed = store.sound(&case);
                assert!(listed.contains(&store.newest), "{case}: {listed:?}");
                let output = store.prune();
                assert!(output.success(), "{case}: {output}");
                store.finished(&case, at_once);
            }
        }
    }
}

#[test]
fn a_take_leaves_the_half_of_a_removal_to_the_next_prune() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let refloat = keep_last(Refloat::new(cluster.node(0)), 1);
    let (first, second) = (take(&refloat), take(&refloat));
    let lineage = text(&first, "lineage").to_owned();
    let store = |name: &str| refloat.store().join(&lineage).join(name);
    let data = format!("{}.db.zst", text(&first, "id"));
    let output = refloat.command(&["prune", "--yes"]).env("FAILPOINTS", "prune::manifest=return").run();
    assert_eq!(output.code, None, "{output}");
    assert!(store("snapshots").join(&data).exists());

    let output = refloat.run(&["snapshot", "take"]);
    assert!(output.success() && !output.stderr.contains(&data), "{output}");
    assert!(store("snapshots").join(&data).exists(), "still to be had back");
    let done = refloat.json(&["prune", "--yes"]);
    assert!(done.to_string().contains(&data), "{done}");
    assert_eq!(done["removed"][0]["id"], second["id"], "{done}");
    let trashed: Vec<String> = files(&store("trash")).iter().map(|name| name[20..].to_owned()).collect();
    assert!(trashed.contains(&data) && trashed.contains(&format!("{}.json", text(&first, "id"))), "{trashed:?}");

    // While a take publishes, nobody prunes; while it streams, that harms nobody.
    for (point, code) in [("take::data", Some(75)), ("take::streamed", Some(0))] {
        let before = listed(&refloat, &[]);
        let hold = Hold::at(point, refloat.dir());
        let run = refloat.command(&["-o", "json", "snapshot", "take"]).env("FAILPOINTS", hold.failpoints());
        let (taken, pruned) = std::thread::scope(|scope| {
            let pruned = scope.spawn(|| hold.meanwhile(|| refloat.run(&["-o", "json", "prune", "--yes"])));
            (run.run().json(), pruned.join().unwrap())
        });
        assert_eq!(pruned.code, code, "{point}: {pruned}");
        if code == Some(75) {
            assert_eq!(error_of(&pruned)["code"], "lock-held", "{pruned}");
        }
        let id = text(&taken["snapshot"], "id").to_owned();
        let mut now = listed(&refloat, &[]);
        assert_eq!(now.remove(0), id, "{point}");
        assert!(now.iter().all(|id| before.contains(id)) && !now.is_empty(), "{point}: {now:?}");
        assert_eq!(refloat.json(&["snapshot", "verify", "--all"])["ok"], true, "{point}");
        refloat.json(&["prune", "--yes"]);
        assert_eq!(listed(&refloat, &[]), [id], "{point}");
    }
}

#[test]
fn of_two_prunes_one_waits_and_both_end_well() {
    let store = Store::new("24h");
    let before = files(&store.refloat.store());
    let hold = Hold::at("prune::looked", store.refloat.dir());
    let run = store.refloat.command(&["-o", "json", "prune", "--yes"]).env("FAILPOINTS", hold.failpoints());
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            hold.meanwhile(|| {
                let second = store.prune();
                assert_eq!(files(&store.refloat.store()), before);
                second
            })
        });
        (run.run(), second.join().unwrap())
    });
    assert_eq!(first.code, Some(0), "{first}");
    let error = error_of(&second);
    assert_eq!((second.code, text(&error, "code")), (Some(75), "lock-held"), "{second}");
    assert!(why(&error).contains("or prunes it"), "{error}");
    store.finished("one after the other", false);

    let store = Store::new("24h");
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(|| store.prune());
        [store.prune(), other.join().unwrap()]
    });
    assert!(both.iter().any(Output::success), "{both:?}");
    for output in both.iter().filter(|output| !output.success()) {
        assert_eq!((output.code, &error_of(output)["code"]), (Some(75), &json!("plan-changed")), "{output}");
    }
    store.finished("at once", false);
}

#[test]
fn an_export_of_what_is_removed_meanwhile_is_whole_or_refused() {
    let store = Store::new("0s");
    let id = store.old[1].clone();
    let out = store.refloat.dir().join("out");
    fs::create_dir(&out).unwrap();
    let to = |name: &str| out.join(name).display().to_string();
    store.refloat.run(&["snapshot", "export", &id, "--to", &to("before.db")]).ok();
    let hold = Hold::at("export::opened", store.refloat.dir());
    let target = to("meanwhile.db");
    let run = store.refloat.command(&["snapshot", "export", &id, "--to", &target]).env("FAILPOINTS", hold.failpoints());
    std::thread::scope(|scope| {
        scope.spawn(|| hold.meanwhile(|| assert!(store.prune().success())));
        run.run().ok()
    });
    store.finished("beside an export", true);
    assert!(fs::read(to("before.db")).unwrap() == fs::read(target).unwrap());
    let late = store.refloat.run(&["-o", "json", "snapshot", "export", &id, "--to", &to("late.db")]);
    assert_eq!((late.code, &error_of(&late)["code"]), (Some(66), &json!("not-found")), "{late}");
    assert_eq!(files(&out), ["before.db", "meanwhile.db"]);
}

#[test]
fn a_take_that_is_short_of_space_thins_by_the_plan_or_leaves_all() {
    if skip_unless_root("mounts a file system") {
        return;
    }
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    const MIB: u64 = 1 << 20;
    for case in ["thins", "forgotten", "after an outage", "pinned", "frozen", "another cluster's"] {
        let (refloat, real) = match case {
            "another cluster's" => pattern_for(cluster.node(0).client_url()),
            _ => {
                let refloat = Refloat::new(cluster.node(0));
                let real = take(&refloat);
                (refloat, real)
            }
        };
        let refloat = refloat.config("retention = { keep_last = 8, min_keep = 1 }\n");
        let (store, disk) = (refloat.store(), SmallDisk::new(400 * MIB));
        crate::bed::Run::new("cp").args(["-a".into(), store.join("."), disk.path().into()]).run().ok();
        fs::rename(&store, refloat.dir().join("aside")).unwrap();
        std::os::unix::fs::symlink(disk.path(), &store).unwrap();
        let forge = Forge::new(&refloat, &real);
        // No snapshot for long holds nothing here, but ends no freeze either.
        let late = if matches!(case, "after an outage" | "frozen") { 30 * HOUR } else { 0 };
        let fields = json!({ "size": { "db": real["size"]["db"], "stored": 60 * MIB } });
        let big: Vec<String> =
            (1..4).rev().map(|n| forge.make(&Like { fields: fields.clone(), ..Like::ago(n * HOUR + late) })).collect();
        for id in &big {
            let data = store.join(forge.lineage()).join(format!("snapshots/{id}.db.zst"));
            crate::bed::Run::new("fallocate").args(["-l".into(), (60 * MIB).to_string()]).args([data]).run().ok();
            if case == "pinned" {
                refloat.run(&["snapshot", "pin", id]).ok();
            }
        }
        let newest = forge.make(&Like::ago(late));
        if late > 0 {
            for end in ["json", "db.zst"] {
                let name = format!("snapshots/{}.{end}", text(&real, "id"));
                fs::remove_file(store.join(forge.lineage()).join(name)).unwrap();
            }
        }
        if case == "frozen" {
            let over = r#"{"schema":1,"until":"2020-01-01T00:00:00Z","reason":"a restore"}"#;
            fs::write(store.join(forge.lineage()).join("freeze.json"), over).unwrap();
        }
        let before = files(&store);
        if matches!(case, "forgotten" | "another cluster's") {
            fs::remove_file(refloat.state().join("stores.json")).unwrap();
        }
        let output = refloat.run(&["-o", "json", "snapshot", "take"]);
        match case {
            // Without a memory the member tells which cluster it is.
            "thins" | "forgotten" | "after an outage" => {
                let document = output.document();
                assert_eq!(output.code, Some(0), "{output}");
                let said = if late > 0 { "removed 1 snapshots" } else { "removed 2 snapshots" };
                assert!(output.stderr.contains(said), "{said} in {output}");
                let now = listed(&refloat, &["--all-lineages"]);
                assert!(!now.contains(&big[0]) && now.contains(&big[1]) && now.contains(&big[2]), "{now:?}");
                assert!(
                    now.contains(&newest) && now.contains(&text(&document["snapshot"], "id").to_owned()),
                    "{now:?}"
                );
                continue;
            }
            "pinned" => {
                let said = why(&error_of(&output));
                assert!(said.contains("are needed") && said.contains("min_free"), "{output}");
            }
            "frozen" => assert!(output.stderr.contains("a restore"), "{output}"),
            _ => assert!(output.stderr.contains("may be another cluster's"), "{output}"),
        }
        assert_eq!((output.code, &error_of(&output)["code"]), (Some(73), &json!("too-little-space")), "{output}");
        assert_eq!(files(&store), before, "{case}");
    }
}

#[test]
#[ignore = "soak: a quarter of a minute"]
fn a_prune_that_takes_long_lets_writers_in() {
    let store = Store::new("24h");
    let (snapshots, newest) = (store.dir("snapshots"), store.newest.clone());
    // Each step takes longer than one turn; all together longer than a writer waits.
    let run = store.refloat.command(&["prune", "--yes"]).env("FAILPOINTS", "prune::step=sleep(5100)");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Once the first step is done.
            let stray = newest.replacen("0001-00", "0001-07", 1);
            let gone = snapshots.join(format!("{stray}.db.zst"));
            let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
            crate::bed::run::until(patience, || (!gone.exists()).then_some(())).expect("the first step");
            store.refloat.run(&["snapshot", "pin", &newest]).ok();
        });
        run.run().ok()
    });
    assert_eq!(store.sound("the end"), [newest]);
}
