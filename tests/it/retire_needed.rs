//! `refloat store retire`: nothing goes beside what a person named, and not even that while it is needed (promise 2).

use std::fs;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::bed::Refloat;
use crate::by_hand::{HOUR, LINEAGE, Made, OTHER, make, state};
use crate::import::away;
use crate::taking::{error_of, files, text, why};

/// A store of this node's cluster, with one snapshot of this moment in its third timeline.
fn begun() -> (Refloat, String) {
    let refloat = away();
    refloat.run(&["store", "init", "local"]).ok();
    state(&refloat, &json!({}));
    let newest = make(&refloat, &Made { timeline: "0003-00000003", ..Made::new(900, 0) });
    (refloat, newest)
}

/// The error of a refusal with this exit code and word; the store is as it was.
#[track_caller]
fn refused(refloat: &Refloat, args: &[&str], code: i32, word: &str) -> Value {
    let before = files(&refloat.store());
    for more in ["--yes", "--dry-run"] {
        let output = refloat.run(&[&["-o", "json", "store", "retire"], args, &[more]].concat());
        assert_eq!((output.code, text(&error_of(&output), "code")), (Some(code), word), "{output}");
    }
    assert_eq!(files(&refloat.store()), before);
    error_of(&refloat.run(&[&["-o", "json", "store", "retire"], args, &["--yes"]].concat()))
}

fn snapshots_of(document: &Value) -> Vec<&str> {
    document["stores"][0]["snapshots"].as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

#[test]
fn of_two_timelines_with_one_number_only_the_one_that_is_named_goes() {
    let (refloat, newest) = begun();
    let old = |timeline, revision| make(&refloat, &Made { timeline, ..Made::new(revision, 9 * HOUR) });
    let (first, second) = (old("0002-aabbccdd", 500), old("0002-eeff0011", 501));
    let timelines = refloat.store().join(LINEAGE).join("timelines");
    fs::create_dir_all(&timelines).unwrap();
    for name in ["0002-aabbccdd", "0002-eeff0011", "0003-00000003"] {
        fs::write(timelines.join(format!("{name}.json")), "{}").unwrap();
    }
    let error = refused(&refloat, &[LINEAGE, "--timeline", "2"], 64, "ambiguous");
    assert!(why(&error).contains("0002-aabbccdd, 0002-eeff0011"), "{error}");
    let done = refloat.json(&["store", "retire", LINEAGE, "--timeline", "0002-aabbccdd", "--yes"]);
    assert_eq!((snapshots_of(&done), &done["stores"][0]["others"]), (vec![first.as_str()], &json!(1)), "{done}");
    let left = files(&refloat.store()).join(" ");
    assert!(!left.contains(&first) && !left.contains("0002-aabbccdd"), "{left}");
    for stays in [second.as_str(), &newest, "0002-eeff0011", "0003-00000003"] {
        assert!(left.contains(stays), "{stays}: {left}");
    }
    // Now the number says it.
    let done = refloat.json(&["store", "retire", LINEAGE, "--timeline", "2", "--yes"]);
    assert_eq!(snapshots_of(&done), [second]);
}

/// After a restore the new history may have nothing yet that counts.
#[test]
fn the_last_verified_snapshot_of_the_own_cluster_stays() {
    let (refloat, newest) = begun();
    let old = make(&refloat, &Made::new(100, 9 * HOUR));
    let unchecked = json!({ "checks": [] });
    fs::remove_file(refloat.store().join(LINEAGE).join(format!("snapshots/{newest}.json"))).unwrap();
    make(&refloat, &Made { timeline: "0003-00000003", fields: unchecked, ..Made::new(901, 0) });
    let import = json!({ "imported": { "from": "x.db", "at": "2020-01-01T00:00:00Z" } });
    make(&refloat, &Made { timeline: "0000-00000000", fields: import, ..Made::new(80, 99 * HOUR) });
    let error = refused(&refloat, &[LINEAGE, "--timeline", "1"], 73, "refused");
    assert!(why(&error).contains("no verified snapshot"), "{error}");
    make(&refloat, &Made { timeline: "0003-00000003", ..Made::new(902, 0) });
    let done = refloat.json(&["store", "retire", LINEAGE, "--timeline", "1", "--yes"]);
    assert_eq!(snapshots_of(&done), [old]);
}

#[test]
fn a_freeze_and_a_clock_that_was_set_hold_it() {
    let (refloat, _) = begun();
    make(&refloat, &Made { lineage: OTHER, ..Made::new(1, 9 * HOUR) });
    let freeze = |until: &str| format!(r#"{{"schema":1,"until":"{until}","reason":"a restore reads it"}}"#);
    let here = refloat.store().join(OTHER).join("freeze.json");
    for place in [here.clone(), refloat.state().join("freeze.json")] {
        for content in [freeze("2999-01-01T00:00:00Z"), "torn".into()] {
            fs::write(&place, content).unwrap();
            let error = refused(&refloat, &[OTHER], 75, "held");
            assert!(text(&error, "remedy").contains("freeze.json"), "{error}");
        }
        fs::remove_file(&place).unwrap();
    }
    fs::write(&here, freeze("2020-01-01T00:00:00Z")).unwrap();

    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let since_boot: u64 = uptime.split('.').next().and_then(|n| n.parse().ok()).expect("seconds");
    let clock = |wall: i64| json!({ "clock": { "boot_id": boot_id.trim(), "since_boot": since_boot, "wall": wall } });
    state(&refloat, &clock(Timestamp::now().as_second() - 365 * 24 * HOUR));
    let error = refused(&refloat, &[OTHER], 75, "held");
    assert!(why(&error).contains("it was set forward"), "{error}");
    state(&refloat, &clock(Timestamp::now().as_second()));
    assert_eq!(refloat.json(&["store", "retire", OTHER, "--yes"])["stores"][0]["removed"], 1);
}

/// One store that is busy does not hide what happened in the other.
#[test]
fn what_was_done_is_told_although_another_store_fails() {
    let busy = tempfile::tempdir().unwrap();
    let second =
        format!("[[store]]\nname = \"usb\"\nurl = \"file://{}\"\nmin_free = \"16MiB\"\n", busy.path().display());
    let refloat = away().config(&second);
    refloat.run(&["store", "init", "local"]).ok();
    refloat.run(&["store", "init", "usb"]).ok();
    state(&refloat, &json!({}));
    let id = make(&refloat, &Made { lineage: OTHER, ..Made::new(1, 9 * HOUR) });
    let (from, to) = (refloat.store().join(OTHER), busy.path().join(OTHER).join("snapshots"));
    fs::create_dir_all(&to).unwrap();
    for end in ["json", "db.zst"] {
        fs::copy(from.join(format!("snapshots/{id}.{end}")), to.join(format!("{id}.{end}"))).unwrap();
    }
    let writer = fs::File::open(busy.path()).unwrap();
    writer.lock_shared().unwrap();
    let output = refloat.run(&["-o", "json", "store", "retire", OTHER, "--yes"]);
    assert_eq!((output.code, text(&error_of(&output), "code")), (Some(75), "lock-held"), "{output}");
    let stores = output.document()["stores"].clone();
    assert_eq!((&stores[0]["removed"], &stores[0]["error"]), (&json!(1), &json!(null)), "{stores}");
    assert_eq!((&stores[1]["removed"], &stores[1]["error"]["code"]), (&json!(null), &json!("lock-held")), "{stores}");
    drop(writer);
    let done = refloat.json(&["store", "retire", OTHER, "--yes"]);
    assert_eq!(done["stores"][1]["removed"], 1, "{done}");
}
