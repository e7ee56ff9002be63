//! What `refloat prune` says, and to whom: a journal, a script, a person at night. No etcd is needed for it.

use std::fs;

use serde_json::{Value, json};

use crate::bed::Refloat;
use crate::bed::refloat::MIN_FREE;
use crate::by_hand::{HOUR, LINEAGE, Made, make, state};
use crate::import::away;
use crate::stores::edit;
use crate::taking::{error_of, files, text, why};

const LAST_2: &str =
    "retention = { keep_last = 2, keep_within = \"0s\", keep_hourly = 0, keep_daily = 0, min_keep = 1 }\n";

/// Five snapshots, the newest of this moment; two of them stay.
fn five() -> Refloat {
    let refloat = away().config(LAST_2);
    refloat.run(&["store", "init", "local"]).ok();
    state(&refloat, &json!({}));
    for n in 0..5 {
        make(&refloat, &Made::new(1000 - n, n.cast_signed() * HOUR));
    }
    refloat
}

/// The error of a prune that ends with this exit code and word; the store is as it was.
#[track_caller]
fn stopped(refloat: &Refloat, code: i32, word: &str) -> Value {
    let before = files(&refloat.store());
    let output = refloat.run(&["-o", "json", "prune", "--yes"]);
    assert_eq!((output.code, text(&error_of(&output), "code")), (Some(code), word), "{output}");
    assert_eq!(files(&refloat.store()), before);
    error_of(&output)
}

#[test]
fn a_journal_has_what_goes_and_not_each_time_what_stays() {
    let refloat = five();
    let rows = |args: &[&str], act: &str| {
        let output = refloat.run(args);
        output.stdout.lines().filter(|line| line.starts_with(&format!("  {act} "))).count()
    };
    assert_eq!(rows(&["prune", "--dry-run"], "keep"), 2);
    let output = refloat.run(&["prune", "--yes"]).ok();
    assert!(output.matches("\n  remove ").count() == 3 && !output.contains("\n  keep "), "{output}");
    let idle = refloat.run(&["prune", "--yes"]).ok();
    assert!(idle.contains("nothing to remove") && !idle.contains("\n  keep "), "{idle}");
    assert_eq!(rows(&["prune", "--dry-run"], "keep"), 2);
}

#[test]
fn json_lines_end_with_the_hash_and_the_sums() {
    let refloat = five();
    let document = refloat.run(&["-o", "json", "prune", "--dry-run"]).document();
    let lines = refloat.run(&["-o", "jsonl", "prune", "--dry-run"]).stdout;
    let last: Value = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["hash"], document["plan"]["hash"]);
    for field in ["schema", "dry_run", "to_trash", "freed", "foreign"] {
        assert_eq!(last[field], document[field], "{field}");
    }
    assert_eq!(last["stores"][0]["outcome"], "planned", "{last}");
    assert_eq!(lines.lines().filter(|line| line.contains("\"act\":")).count(), 5);
}

/// Its newest stands there under the old name: nothing is missing from the list.
#[test]
fn a_renamed_node_is_not_told_that_its_snapshots_are_gone() {
    let refloat = five();
    let marker = fs::read(refloat.store().join("refloat-store.json")).unwrap();
    let marker: Value = serde_json::from_slice(&marker).expect("JSON");
    let newest = make(&refloat, &Made { node: "old-name", ..Made::new(2000, 0) });
    let known = |newest: &str| {
        let store = json!({ "path": refloat.store(), "store_id": marker["id"], "newest_id": newest });
        state(&refloat, &json!({ "stores": [store] }));
    };
    known(&newest);
    let done = refloat.json(&["prune", "--yes"]);
    assert_eq!(done["stores"][0]["out_of_reach"][0]["node"], "old-name", "{done}");
    known(&newest.replace("0002000", "0002001"));
    let error = stopped(&refloat, 75, "listing-in-doubt");
    assert!(why(&error).contains("old-name"), "{error}");
}

#[test]
fn more_free_space_than_there_is_thins_nothing() {
    let refloat = five();
    edit(&refloat, MIN_FREE, "min_free = \"1000000TiB\"");
    let error = stopped(&refloat, 78, "config");
    assert!(why(&error).contains("min_free = 1000000TiB"), "{error}");
}

#[test]
fn a_hold_says_what_ends_it() {
    let refloat = five();
    let freeze = refloat.store().join(LINEAGE).join("freeze.json");
    fs::write(&freeze, r#"{"schema":1,"until":"2999-01-01T00:00:00Z","reason":"a restore"}"#).unwrap();
    let error = stopped(&refloat, 75, "held");
    assert!(text(&error, "remedy").contains("remove that freeze.json"), "{error}");
    fs::remove_file(&freeze).unwrap();
    make(&refloat, &Made::new(3000, -9 * HOUR));
    let error = stopped(&refloat, 75, "held");
    assert!(text(&error, "remedy").contains("--trust-clock"), "{error}");
}

/// One that is not there makes another plan, and that is said.
#[test]
fn a_plan_without_a_store_names_it() {
    let refloat = five().config("[[store]]\nname = \"usb\"\nurl = \"file:///nonexistent/usb\"\n");
    let output = refloat.run(&["-o", "json", "prune", "--yes", "--plan", &"0".repeat(64)]);
    let error = error_of(&output);
    assert_eq!((output.code, text(&error, "code")), (Some(75), "plan-changed"), "{output}");
    assert!(why(&error).contains("/nonexistent/usb"), "{error}");
}
