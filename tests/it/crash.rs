//! kill -9 at each step of a take, and at moments of chance (promises 1 and 2): never a listed snapshot that does not
//! verify, the next take succeeds, leftovers are swept, and nothing else is.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::bed::{Cluster, Fill, Liar, Lie, Line, Refloat, Rng, seed};
use crate::taking::{files, listed, take, text};
use crate::tree::tree;

const STEPS: [&str; 6] =
    ["take::streamed", "take::verified", "take::evidence", "take::data", "take::before_manifest", "take::manifest"];

/// Runs until the point is passed for the nth time (from 0); false when it was never passed that often.
#[track_caller]
pub fn killed(refloat: &Refloat, args: &[&str], point: &str, nth: usize) -> bool {
    let action = if nth == 0 { "return".to_string() } else { format!("{nth}*off->return") };
    let output = refloat.command(args).env("FAILPOINTS", format!("{point}={action}")).run();
    assert!(!output.timed_out, "{output}");
    assert!(output.code.is_none() || output.success(), "neither killed nor well: {output}");
    output.code.is_none()
}

/// Whatever happened: what is listed verifies, and it is whole.
#[track_caller]
pub fn sound(refloat: &Refloat, case: &str) -> usize {
    let list = refloat.json(&["snapshot", "list"]);
    let snapshots = list["snapshots"].as_array().expect("snapshots");
    for snapshot in snapshots {
        assert_eq!(snapshot["state"], "verified", "{case}: {snapshot}");
    }
    assert_eq!((&list["foreign"], &list["unreadable"]), (&json!(0), &json!([])), "{case}: {list}");
    let verified = refloat.json(&["snapshot", "verify", "--all"]);
    assert_eq!(verified["ok"], true, "{case}: {verified}");
    let copies = snapshots.iter().map(|s| s["stores"].as_array().expect("stores").len()).sum();
    assert_eq!(verified["results"].as_array().map(Vec::len), Some(copies), "{case}: {verified}");
    snapshots.len()
}

/// No object without its other half, no temporary name, neither in the store nor in the state directory.
#[track_caller]
pub fn swept(refloat: &Refloat, case: &str) {
    swept_in(refloat, &refloat.store(), case);
}

#[track_caller]
pub fn swept_in(refloat: &Refloat, store: &Path, case: &str) {
    let names = files(store);
    let with = |end: &str| -> Vec<String> {
        let snapshots = names.iter().filter(|n| n.contains("/snapshots/"));
        snapshots.filter_map(|n| n.strip_suffix(end).map(String::from)).filter(|n| !n.contains(".verified-")).collect()
    };
    assert_eq!(with(".db.zst"), with(".json"), "{case}: {names:?}");
    for name in names.iter().chain(&files(&refloat.state())) {
        assert!(!name.contains(".refloat-tmp-"), "{case}: {name}");
    }
    let list = refloat.json(&["snapshot", "list"]);
    assert_eq!(list["unfinished"], json!([]), "{case}");
}

fn cluster(kubernetes: bool) -> Cluster {
    let cluster = Cluster::start(Line::V36);
    match kubernetes {
        true => drop(Fill::new(&cluster).kubernetes(100)),
        false => Fill::new(&cluster).small(500),
    }
    cluster
}

/// Kills one take, then looks, takes again and looks again; false when the point was not passed that often.
fn killed_then_taken_again(cluster: &Cluster, point: &str, nth: usize) -> bool {
    let refloat = Refloat::new(cluster.node(0));
    let case = format!("{point} {nth}");
    if !killed(&refloat, &["snapshot", "take"], point, nth) {
        return false;
    }
    let survived = sound(&refloat, &case);
    // Of all steps only the last one is behind the manifest, which alone makes a snapshot.
    assert!(survived == 0 || point == "take::manifest" || point.starts_with("fs::"), "{case}");
    take(&refloat);
    assert_eq!(sound(&refloat, &case), survived + 1, "{case}");
    swept(&refloat, &case);
    true
}

#[test]
fn killed_at_each_step_then_taken_again() {
    let cluster = cluster(true);
    for step in STEPS {
        assert!(killed_then_taken_again(&cluster, step, 0), "{step} was never reached");
    }
}

#[test]
fn killed_before_and_after_each_name_then_taken_again() {
    let cluster = cluster(true);
    for point in ["fs::before_name", "fs::after_name"] {
        // The marker, evidence of lineage and timeline, data, manifest, and what was seen where.
        let names = (0..).take_while(|nth| killed_then_taken_again(&cluster, point, *nth)).count();
        assert!((5..20).contains(&names), "{point} {names} times");
    }
}

#[test]
fn killed_on_the_way_to_the_second_store() {
    let cluster = cluster(true);
    // The second passing of these, or the names that come after the five of the first store.
    for (point, nth) in
        [("take::before_manifest", 1), ("take::manifest", 1), ("fs::before_name", 8), ("fs::after_name", 8)]
    {
        let refloat = Refloat::new(cluster.node(0));
        let usb = refloat.dir().join("usb");
        fs::create_dir(&usb).unwrap();
        let refloat = refloat
            .config(&format!("[[store]]\nname = \"usb\"\nurl = \"file://{}\"\nmin_free = \"16MiB\"\n", usb.display()));
        let case = format!("{point} {nth}");
        assert!(killed(&refloat, &["snapshot", "take"], point, nth), "{case} was never reached");
        assert_eq!(sound(&refloat, &case), 1, "{case}: the first store has it");
        let held = if point == "take::manifest" { json!(["local", "usb"]) } else { json!(["local"]) };
        assert_eq!(refloat.json(&["snapshot", "list"])["snapshots"][0]["stores"], held, "{case}");
        assert_eq!(take(&refloat)["stores"], json!(["local", "usb"]), "{case}");
        assert_eq!(sound(&refloat, &case), 2, "{case}");
        swept(&refloat, &case);
        swept_in(&refloat, &usb, &case);
    }
}

#[test]
fn a_killed_first_take_begins_no_second_lineage() {
    // Without a UID to go by, lineages are told apart by evidence alone.
    let cluster = cluster(false);
    for step in ["take::evidence", "take::data", "take::manifest"] {
        let refloat = Refloat::new(cluster.node(0));
        assert!(killed(&refloat, &["snapshot", "take"], step, 0));
        take(&refloat);
        let list = refloat.json(&["snapshot", "list"]);
        assert_eq!(list["other_lineages"], json!([]), "{step}: {list}");
        swept(&refloat, step);
        let lineages = fs::read_dir(refloat.store()).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).count();
        assert_eq!(lineages, 1, "{step}: {:?}", files(&refloat.store()));
        // Another take goes on with it.
        let first = text(&list["snapshots"][0], "lineage").to_owned();
        assert_eq!(take(&refloat)["lineage"], *first, "{step}");
    }
}

#[test]
fn only_own_leftovers_are_swept() {
    let cluster = cluster(true);
    let refloat = Refloat::new(cluster.node(0));
    let good = take(&refloat);
    let (id, lineage) = (text(&good, "id"), text(&good, "lineage"));
    let snapshots = refloat.store().join(lineage).join("snapshots");
    let data = fs::read(snapshots.join(format!("{id}.db.zst"))).unwrap();
    let own = id.replace("-0000", "-0001");
    let other = format!("{}-other", id.strip_suffix("-test").expect("the node's name"));
    let elsewhere = refloat.store().join("0123456789abcdef/snapshots");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(snapshots.join(format!("{own}.db.zst")), &data).unwrap();
    fs::write(snapshots.join(format!("{other}.db.zst")), &data).unwrap();
    // Another cluster's node may have the same name.
    fs::write(elsewhere.join(format!("{own}.db.zst")), &data).unwrap();
    for dir in [refloat.store(), refloat.state()] {
        fs::write(dir.join(".refloat-tmp-0123456789abcdef"), "dead").unwrap();
    }
    let list = refloat.json(&["snapshot", "list", "--all-lineages"]);
    assert_eq!(list["unfinished"].as_array().map(Vec::len), Some(3), "{list}");

    let output = refloat.run(&["snapshot", "take"]);
    assert!(output.success(), "{output}");
    let said = format!("removed a leftover of a killed run from store local: {lineage}/snapshots/{own}.db.zst");
    assert!(output.stderr.contains(&said), "{output}");
    assert!(!snapshots.join(format!("{own}.db.zst")).exists());
    for stays in [snapshots.join(format!("{other}.db.zst")), elsewhere.join(format!("{own}.db.zst"))] {
        assert_eq!(fs::read(&stays).unwrap(), data, "{}", stays.display());
    }
    for dir in [refloat.store(), refloat.state()] {
        assert!(!dir.join(".refloat-tmp-0123456789abcdef").exists(), "{}", dir.display());
    }
    assert_eq!(listed(&refloat, &[]).len(), 2);
}

#[test]
fn killed_at_moments_of_chance() {
    let cluster = cluster(true);
    Fill::new(&cluster).large(3, 1 << 20);
    let liar = Liar::start(cluster.node(0).client_url());
    let refloat = Refloat::new(liar.url());
    let mut rng = Rng::new(seed());
    let mut survived = 0;
    for round in 0..10 {
        liar.lie(Lie::Trickle { after: 0, bytes: 64 << 10, every: Duration::from_millis(5) });
        let patience = Duration::from_millis(rng.below(1_500));
        let output = refloat.command(&["snapshot", "take"]).meanwhile(move |pid| {
            // The one sleep that is meant: a moment of chance.
            std::thread::sleep(patience);
            let _ = kill(Pid::from_raw(pid.try_into().expect("a process id")), Signal::SIGKILL);
        });
        output.run();
        let now = sound(&refloat, &format!("round {round} after {patience:?}"));
        assert!(now == survived || now == survived + 1, "{survived} then {now}");
        survived = now;
    }
    liar.be_honest();
    take(&refloat);
    assert_eq!(sound(&refloat, "the end"), survived + 1);
    swept(&refloat, "the end");
}

#[test]
fn a_killed_export_leaves_nothing() {
    let cluster = cluster(true);
    let refloat = Refloat::new(cluster.node(0));
    take(&refloat);
    let out = refloat.dir().join("out");
    fs::create_dir(&out).unwrap();
    let to = out.join("snapshot.db").display().to_string();
    let export = ["-o", "json", "snapshot", "export", "latest", "--to", &to];
    assert!(killed(&refloat, &export, "fs::before_name", 0));
    assert_eq!(files(&out), [""; 0]);
    assert!(killed(&refloat, &export, "fs::after_name", 0));
    // It has its name, so it is whole; and what exists is never replaced.
    refloat.run(&["db", "check", &to]).ok();
    let before = tree(&out);
    let output = refloat.run(&export);
    assert_eq!((output.code, &crate::taking::error_of(&output)["code"]), (Some(73), &"already-exists".into()));
    assert_eq!(tree(&out), before);
}
