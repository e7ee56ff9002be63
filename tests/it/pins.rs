//! Pins and later tags: in every store that holds the snapshot, each said once, and never about one that is gone.

use std::fs;

use serde_json::{Value, json};

use crate::bed::refloat::MIN_FREE;
use crate::bed::{Cluster, Fill, Line, Refloat};
use crate::crash::killed;
use crate::taking::{error_of, files, listed, take, text};

fn two_stores(cluster: &Cluster) -> Refloat {
    let refloat = Refloat::new(cluster.node(0));
    let usb = refloat.dir().join("usb");
    fs::create_dir(&usb).expect("make a directory");
    refloat.config(&format!("[[store]]\nname = \"usb\"\nurl = \"file://{}\"\n{MIN_FREE}\n", usb.display()))
}

fn notes(refloat: &Refloat, kind: &str) -> [usize; 2] {
    let count = |store: &std::path::Path| files(store).iter().filter(|n| n.contains(&format!(".{kind}-"))).count();
    [count(&refloat.store()), count(&refloat.dir().join("usb"))]
}

fn show(refloat: &Refloat, id: &str) -> Value {
    refloat.json(&["snapshot", "show", id])
}

#[test]
fn a_pin_holds_across_stores_and_is_said_once() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let refloat = two_stores(&cluster);
    let snapshot = take(&refloat);
    let id = text(&snapshot, "id");

    let done = refloat.json(&["snapshot", "pin", id, "--reason", "before the upgrade"]);
    assert_eq!((&done["pinned"], &done["changed"], &done["id"]), (&json!(true), &json!(true), &snapshot["id"]));
    assert_eq!(notes(&refloat, "pin"), [1, 1]);
    let again = refloat.json(&["snapshot", "pin", "latest"]);
    assert_eq!((&again["pinned"], &again["changed"]), (&json!(true), &json!(false)), "{again}");
    assert_eq!(notes(&refloat, "pin"), [1, 1], "no second note");
    assert!(refloat.run(&["snapshot", "pin", id]).ok().starts_with("nothing to do"));
    let shown = show(&refloat, id);
    assert_eq!((&shown["pinned"], &shown["pin"]["reason"]), (&json!(true), &json!("before the upgrade")));
    assert!(refloat.run(&["snapshot", "list"]).ok().contains("  pinned  "));

    let done = refloat.json(&["snapshot", "unpin", id]);
    assert_eq!((&done["pinned"], &done["changed"]), (&json!(false), &json!(true)));
    assert_eq!((notes(&refloat, "pin"), notes(&refloat, "unpin")), ([1, 1], [1, 1]));
    assert_eq!(refloat.json(&["snapshot", "unpin", id])["changed"], false);
    assert_eq!((&show(&refloat, id)["pinned"], notes(&refloat, "unpin")), (&json!(false), [1, 1]));
    refloat.json(&["snapshot", "pin", id]);
    assert_eq!(show(&refloat, id)["pinned"], true, "the latest word counts, however soon it comes");
    assert_eq!(refloat.json(&["snapshot", "list"])["unreadable"], json!([]));
    assert_eq!(refloat.run(&["snapshot", "pin", "0001-nothing"]).code, Some(66));
}

#[test]
fn a_store_that_is_away_is_named_and_gets_the_pin_later() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let refloat = two_stores(&cluster);
    let snapshot = take(&refloat);
    let id = text(&snapshot, "id");
    let (usb, away) = (refloat.dir().join("usb"), refloat.dir().join("away"));
    fs::rename(&usb, &away).expect("unplug");
    let output = refloat.run(&["-o", "json", "snapshot", "pin", id]);
    assert_eq!((output.code, &error_of(&output)["code"]), (Some(74), &json!("some-stores-failed")), "{output}");
    let document: Value = serde_json::from_str(&output.stdout).expect("a document all the same");
    assert_eq!((&document["pinned"], &document["changed"]), (&json!(true), &json!(true)));
    let outcome = |name: &str| {
        let all = document["outcomes"].as_array().expect("a list");
        all.iter().find(|o| o["name"] == name).map(|o| o["outcome"].clone())
    };
    assert_eq!((outcome("local"), outcome("usb")), (Some(json!("stored")), Some(json!("failed"))), "{document}");

    fs::rename(&away, &usb).expect("plug in");
    assert_eq!((notes(&refloat, "pin"), &show(&refloat, id)["pinned"]), ([1, 0], &json!(true)));
    // Killed before the note, there is none; the next run adds it, to this store alone.
    assert!(killed(&refloat, &["snapshot", "pin", id], "note::before", 0));
    assert_eq!(notes(&refloat, "pin"), [1, 0]);
    assert_eq!(refloat.json(&["snapshot", "pin", id])["changed"], true);
    assert_eq!(notes(&refloat, "pin"), [1, 1]);
}

#[test]
fn tags_of_the_take_and_later_ones_are_one_list() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let refloat = Refloat::new(cluster.node(0));
    let first = refloat.json(&["snapshot", "take", "--tag", "one", "--tag", "two"])["snapshot"].clone();
    let second = take(&refloat);
    let id = text(&first, "id");
    let done = refloat.json(&["snapshot", "tag", id, "two", "three"]);
    assert_eq!((&done["tags"], &done["changed"]), (&json!(["one", "two", "three"]), &json!(true)));
    assert_eq!(show(&refloat, id)["tags"], json!(["one", "two", "three"]));
    assert_eq!(refloat.json(&["snapshot", "tag", id, "one", "three"])["changed"], false);
    assert_eq!(refloat.run(&["snapshot", "tag", id, "two words"]).code, Some(64));
    assert_eq!(listed(&refloat, &["--tag", "three"]), [id]);
    assert_eq!(listed(&refloat, &["--tag", "nothing"]), [""; 0]);
    assert_eq!(listed(&refloat, &["--limit", "1"]), [text(&second, "id")]);
    assert_eq!(refloat.json(&["snapshot", "list", "--limit", "1"])["omitted"], 1);
    assert_eq!(listed(&refloat, &["--node", "other"]), [""; 0]);
    assert!(refloat.run(&["snapshot", "list"]).ok().contains("one,two,three"));
}
