//! `store retire`: a lineage, a timeline or a node's part goes as a whole, because a person says so, and never what is
//! still in use, pinned or cannot be read (promise 2).

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::bed::{Output, Refloat};
use crate::forge::{Forge, Like};
use crate::pattern::{Hold, pattern};
use crate::taking::{error_of, files, listed, text, why};
use crate::tree::tree;

const DAY: i64 = 86_400;
const GONE: &str = "00000000000000ab";

/// A store with the own lineage and one of a cluster that is gone, with all that may lie in it.
struct Store {
    refloat: Refloat,
    real: Value,
    /// Of the lineage that is gone, oldest first.
    gone: Vec<String>,
}

impl Store {
    fn new() -> Store {
        let (refloat, real) = pattern();
        let forge = Forge::new(&refloat, &real);
        let gone = [4, 3, 2].map(|days| {
            let node = if days == 3 { "cp9" } else { "test" };
            forge.make(&Like { lineage: Some(GONE), node, ..Like::ago(days * DAY) })
        });
        let store = Store { refloat, real, gone: gone.to_vec() };
        let (snapshots, trash, timelines) = (store.dir("snapshots"), store.dir("trash"), store.dir("timelines"));
        fs::create_dir_all(&trash).unwrap();
        fs::create_dir_all(&timelines).unwrap();
        fs::write(store.dir("lineage.json"), "{}").unwrap();
        fs::write(timelines.join("0001-01010101.json"), "{}").unwrap();
        let stray = store.gone[2].replacen("0001-00", "0001-07", 1);
        fs::write(snapshots.join(format!("{stray}.db.zst")), "half").unwrap();
        for end in ["db.zst", "json"] {
            fs::copy(
                snapshots.join(format!("{}.{end}", store.gone[0])),
                trash.join(format!("20200101T000000000Z-{stray}.{end}")),
            )
            .unwrap();
        }
        store.note(0, "tag-20260101T000000000Z", json!({ "kind": "tag", "tags": ["a"] }));
        store
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.refloat.store().join(GONE).join(name)
    }

    fn note(&self, nth: usize, name: &str, more: Value) {
        let id = &self.gone[nth];
        let mut note = json!({ "schema": 1, "id": id, "at": "2026-01-01T00:00:00Z", "node": "test" });
        note.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fs::write(self.dir("snapshots").join(format!("{id}.{name}.json")), note.to_string()).unwrap();
    }

    fn retire(&self, args: &[&str]) -> Output {
        self.refloat.command(&["-o", "json", "store", "retire"]).args(args).run()
    }

    fn of_gone(&self) -> Vec<String> {
        files(&self.refloat.store()).into_iter().filter(|name| name.starts_with(GONE)).collect()
    }

    /// Nothing changed, and the reason says why.
    #[track_caller]
    fn refused(&self, args: &[&str], said: &str) {
        let before = files(&self.refloat.store());
        for how in ["--yes", "--dry-run"] {
            let output = self.retire(&[args, &[how]].concat());
            let error = error_of(&output);
            assert_eq!((output.code, text(&error, "code")), (Some(73), "refused"), "{args:?}: {output}");
            assert!(why(&error).contains(said), "{said} in {error}");
            assert_eq!(files(&self.refloat.store()), before, "{args:?}");
        }
    }
}

#[test]
fn it_is_shown_then_asked_then_gone_as_a_whole() {
    let store = Store::new();
    let (lineage, before) = (text(&store.real, "lineage").to_owned(), files(&store.refloat.store()));
    let shown = store.retire(&[GONE, "--dry-run"]);
    assert_eq!(shown.code, Some(2), "{shown}");
    let document = shown.document();
    assert_eq!(document["stores"][0]["snapshots"], json!(store.gone), "{document}");
    assert_eq!((&document["dry_run"], &document["stores"][0]["removed"]), (&json!(true), &json!(null)));
    let table = store.refloat.run(&["store", "retire", GONE, "--dry-run"]);
    store.gone.iter().for_each(|id| assert!(table.stdout.contains(id.as_str()), "{table}"));
    // Nobody is there to be asked.
    let unasked = store.retire(&[GONE]);
    assert_eq!((unasked.code, &error_of(&unasked)["code"]), (Some(64), &json!("not-confirmed")), "{unasked}");
    assert_eq!(files(&store.refloat.store()), before);

    fs::write(store.dir("readme.txt"), "foreign").unwrap();
    let done = store.retire(&[GONE, "--yes"]).json();
    assert_eq!((&done["stores"][0]["removed"], &done["stores"][0]["refused"]), (&json!(3), &json!([])), "{done}");
    assert_eq!(store.of_gone(), [format!("{GONE}/readme.txt")]);
    let rest: Vec<String> = before.into_iter().filter(|name| name.starts_with(&lineage)).collect();
    assert!(files(&store.refloat.store()).iter().filter(|n| n.starts_with(&lineage)).eq(&rest));
    let again = store.retire(&[GONE, "--yes"]);
    assert_eq!((again.code, &error_of(&again)["code"]), (Some(66), &json!("not-found")), "{again}");
}

#[test]
fn what_is_in_use_is_refused() {
    let store = Store::new();
    let forge = Forge::new(&store.refloat, &store.real);
    let own = text(&store.real, "lineage").to_owned();
    store.refused(&[&own], "that this node takes snapshots of");
    // Its newest timeline and this node's own are the lineage.
    store.refused(&[&own, "--timeline", "1"], "that this node takes snapshots of");
    store.refused(&[&own, "--node", "test"], "that this node takes snapshots of");
    // Nobody remembers: then the snapshots say it. With two lineages of this node nobody can tell.
    fs::remove_file(store.refloat.state().join("stores.json")).unwrap();
    let output = store.retire(&[&own, "--yes"]);
    assert_eq!((output.code, &error_of(&output)["code"]), (Some(75), &json!("listing-in-doubt")), "{output}");
    let aside = store.refloat.dir().join("aside");
    fs::rename(store.dir(""), &aside).unwrap();
    store.refused(&[&own], "that this node takes snapshots of");
    fs::rename(aside, store.dir("")).unwrap();

    // Somebody takes snapshots of it, or of that node's part.
    let store = Store::new();
    let fresh = forge_in(&store, "cp8", 0);
    store.refused(&[GONE], &fresh);
    store.refused(&[GONE, "--node", "cp8"], &fresh);
    let done = store.retire(&[GONE, "--node", "cp9", "--yes"]).json();
    assert_eq!(done["stores"][0]["snapshots"], json!([store.gone[1]]), "{done}");
    assert!(store.of_gone().iter().any(|name| name.contains(&fresh)));
    drop(forge);
}

fn forge_in(store: &Store, node: &str, seconds: i64) -> String {
    let forge = Forge::new(&store.refloat, &store.real);
    forge.make(&Like { lineage: Some(GONE), node, ..Like::ago(seconds) })
}

#[test]
fn pins_hold_wherever_they_were_seen() {
    let store = Store::new();
    store.note(1, "pin-20260101T000000000Z", json!({ "kind": "pin" }));
    store.refused(&[GONE], &store.gone[1]);
    // A pin that cannot be read, or is no file, keeps its snapshot as well; then the evidence stays too.
    for odd in ["torn", "a directory", "a link"] {
        let store = Store::new();
        let pin = store.dir("snapshots").join(format!("{}.pin-20260101T000000000Z.json", store.gone[1]));
        match odd {
            "torn" => fs::write(&pin, "{").unwrap(),
            "a link" => std::os::unix::fs::symlink("nowhere", &pin).unwrap(),
            _ => fs::create_dir(&pin).and_then(|()| fs::write(pin.join("x"), "x")).unwrap(),
        }
        let done = store.retire(&[GONE, "--yes"]).json();
        assert!(done["stores"][0]["unreadable"].to_string().contains(&store.gone[1]), "{odd}: {done}");
        let left = store.of_gone();
        for name in ["lineage.json".into(), format!("snapshots/{}.json", store.gone[1])] {
            assert!(left.contains(&format!("{GONE}/{name}")), "{odd}: {name} in {left:?}");
        }
        assert!(!left.iter().any(|name| name.contains(&store.gone[0])), "{odd}: {left:?}");
    }
    // A pin that only another store knows, which is not asked.
    let store = Store::new();
    let usb = store.refloat.dir().join("usb");
    crate::bed::Run::new("cp").args(["-a".into(), store.refloat.store(), usb.clone()]).run().ok();
    fs::remove_file(usb.join("refloat-store.json")).unwrap();
    let Store { refloat, real, gone } = store;
    let more = format!("[[store]]\nname = \"usb\"\nurl = \"file://{}\"\nmin_free = \"16MiB\"\n", usb.display());
    let store = Store { refloat: refloat.config(&more), real, gone };
    store.refloat.run(&["store", "init", "usb"]).ok();
    store.note(1, "pin-20260101T000000000Z", json!({ "kind": "pin" }));
    let name = format!("snapshots/{}.pin-20260101T000000000Z.json", store.gone[1]);
    fs::rename(store.dir(&name), usb.join(GONE).join(&name)).unwrap();
    store.refused(&[GONE, "--store", "local"], &store.gone[1]);
    // Nor does a prune miss it.
    let forge = Forge::new(&store.refloat, &store.real);
    forge.make(&Like::ago(0));
    let id = text(&store.real, "id").to_owned();
    let own = text(&store.real, "lineage").to_owned();
    let pin = json!({ "schema": 1, "id": id, "at": "2026-01-01T00:00:00Z", "node": "test", "kind": "pin" });
    fs::write(usb.join(&own).join(format!("snapshots/{id}.pin-20260101T000000000Z.json")), pin.to_string()).unwrap();
    let config = fs::read_to_string(store.refloat.config_file()).unwrap();
    let rules = "retention = { keep_last = 1, keep_within = \"0s\", keep_hourly = 0, keep_daily = 0, min_keep = 1 }\n";
    fs::write(
        store.refloat.config_file(),
        config.replace("\n[[store]]\nname = \"usb\"", &format!("\n{rules}[[store]]\nname = \"usb\"")),
    )
    .unwrap();
    let kept = store.refloat.json(&["prune", "--yes", "--store", "local"]);
    assert_eq!(kept["plan"]["remove"], json!([]), "{kept}");
    assert!(listed(&store.refloat, &["--store", "local"]).contains(&id));
}

#[test]
fn a_timeline_or_a_node_goes_alone() {
    let store = Store::new();
    let forge = Forge::new(&store.refloat, &store.real);
    let own = text(&store.real, "lineage").to_owned();
    let first = text(&store.real, "id").to_owned();
    let second = forge.make(&Like { timeline: 2, ..Like::ago(0) });
    let import = forge.make(&Like {
        timeline: 0,
        fields: json!({ "imported": { "from": "x.db", "at": "2020-01-01T00:00:00Z" } }),
        ..Like::ago(9 * DAY)
    });
    let renamed = forge.make(&Like { timeline: 2, node: "old-name", ..Like::ago(3 * DAY) });
    store.refused(&[&own, "--timeline", "2"], "that this node takes snapshots of");
    for (args, gone) in
        [(["--timeline", "1"], &first), (["--timeline", "0000-00000000"], &import), (["--node", "old-name"], &renamed)]
    {
        let args = [&[own.as_str()][..], &args].concat();
        assert_eq!(store.retire(&[&args[..], &["--dry-run"]].concat()).code, Some(2));
        let done = store.retire(&[&args[..], &["--yes"]].concat()).json();
        assert_eq!(done["stores"][0]["snapshots"], json!([gone]), "{args:?}: {done}");
        assert!(!files(&store.refloat.store()).iter().any(|name| name.contains(gone.as_str())), "{args:?}");
    }
    assert_eq!(listed(&store.refloat, &[]), [second]);
    assert_eq!(store.of_gone().len(), Store::new().of_gone().len(), "the other lineage is whole");
}

#[test]
fn a_store_that_is_swapped_before_the_act_is_left_alone() {
    let store = Store::new();
    let (path, aside) = (store.refloat.store(), store.refloat.dir().join("aside"));
    let before = tree(&path);
    let hold = Hold::at("retire::looked", store.refloat.dir());
    let run = store.refloat.command(&["-o", "json", "store", "retire", GONE, "--yes"]);
    let run = run.env("FAILPOINTS", hold.failpoints());
    let swap = || {
        fs::rename(&path, &aside).unwrap();
        std::os::unix::fs::symlink("/", &path).unwrap();
    };
    let output = std::thread::scope(|scope| {
        scope.spawn(|| hold.meanwhile(swap));
        run.run()
    });
    let error = error_of(&output);
    assert_eq!((output.code, text(&error, "code")), (Some(73), "refused"), "{output}");
    assert!(why(&error).contains("leads to another directory now (/)"), "{error}");
    assert_eq!(tree(&aside), before);
    fs::remove_file(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
    assert!(store.retire(&[GONE, "--yes"]).success());
    assert_eq!(store.of_gone(), [""; 0]);
}

#[test]
fn killed_in_the_middle_it_goes_on() {
    for point in ["prune::step", "prune::manifest", "prune::part", "prune::emptied"] {
        for nth in 0.. {
            let store = Store::new();
            let case = format!("{point} {nth}");
            let action = if nth == 0 { "return".to_owned() } else { format!("{nth}*off->return") };
            let run = store.refloat.command(&["store", "retire", GONE, "--yes"]);
            let output = run.env("FAILPOINTS", format!("{point}={action}")).run();
            if output.code.is_some() {
                assert!(output.success() && nth > 1, "{case}: {output}");
                break;
            }
            let list = store.refloat.json(&["snapshot", "list", "--all-lineages"]);
            assert_eq!(list["unreadable"], json!([]), "{case}: {list}");
            let output = store.retire(&[GONE, "--yes"]);
            assert!(output.success(), "{case}: {output}");
            assert_eq!(store.of_gone(), [""; 0], "{case}");
        }
    }
}
