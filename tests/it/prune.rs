//! `refloat prune` on stores of real snapshots: what goes, what stays, and that both are told (promise 2).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bed::{Cluster, Fill, Line, Refloat, Run};
use crate::forge::{Forge, Like};
use crate::taking::{error_of, files, latest, listed, take, text, why};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// One cluster for all tests of this file would be enough, but each wants a store of its own.
fn taken() -> (Cluster, Refloat, Value) {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let refloat = Refloat::new(cluster.node(0));
    let snapshot = take(&refloat);
    (cluster, refloat, snapshot)
}

fn with_rules(refloat: Refloat, rules: &str) -> Refloat {
    refloat.config(&format!("retention = {{ {rules} }}\n"))
}

const LAST_2: &str = "keep_last = 2, keep_within = \"0s\", keep_hourly = 0, keep_daily = 0, min_keep = 1";

fn ids(list: &Value) -> BTreeSet<String> {
    list.as_array().expect("a list").iter().map(|row| text(row, "id").to_owned()).collect()
}

fn set(ids: &[&String]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).clone()).collect()
}

#[test]
fn a_dry_run_shows_each_with_its_reasons_and_changes_nothing() {
    let (_cluster, refloat, real) = taken();
    let refloat = with_rules(refloat, LAST_2);
    let forge = Forge::new(&refloat, &real);
    let old: Vec<String> = [2, 3, 4].iter().map(|d| forge.make(&Like::ago(d * DAY))).collect();
    let newest = forge.make(&Like::ago(0));
    let before = files(&refloat.store());

    let output = refloat.run(&["prune", "--dry-run", "-o", "json"]);
    assert_eq!(output.code, Some(2), "{output}");
    let document = output.document();
    assert_eq!(document["dry_run"], true);
    assert_eq!(ids(&document["plan"]["remove"]), set(&[&old[1], &old[2], &real_id(&real)]), "{document}");
    assert_eq!(ids(&document["plan"]["keep"]), set(&[&newest, &old[0]]), "{document}");
    for row in document["plan"]["keep"].as_array().unwrap().iter().chain(document["plan"]["remove"].as_array().unwrap())
    {
        assert!(!row["reasons"].as_array().unwrap().is_empty() && row["store"] == "local", "{row}");
    }
    assert_eq!((document["removed"].clone(), document["freed"].clone()), (json!([]), json!(0)));
    assert_eq!(files(&refloat.store()), before);

    let table = refloat.run(&["prune", "--dry-run"]);
    assert_eq!(table.code, Some(2));
    for id in old.iter().chain([&newest]) {
        assert!(table.stdout.contains(id), "{id}: {table}");
    }
    assert!(table.stdout.contains("newest verified of its timeline"), "{table}");

    // Without a terminal it asks nobody.
    let unasked = refloat.run(&["prune", "-o", "json"]);
    assert_eq!((unasked.code, text(&error_of(&unasked), "code")), (Some(64), "not-confirmed"), "{unasked}");
    assert_eq!(files(&refloat.store()), before);

    let hash = text(&document["plan"], "hash").to_owned();
    let other = refloat.run(&["prune", "--yes", "--plan", &"0".repeat(64), "-o", "json"]);
    assert_eq!((other.code, text(&error_of(&other), "code")), (Some(75), "plan-changed"), "{other}");
    assert_eq!(files(&refloat.store()), before);

    let done = refloat.json(&["prune", "--yes", "--plan", &hash[..8]]);
    assert_eq!(ids(&done["removed"]), set(&[&old[1], &old[2], &real_id(&real)]));
    assert!(done["to_trash"].as_u64() > Some(0) && done["freed"] == 0, "{done}");
    assert_eq!(listed(&refloat, &[]), [newest.clone(), old[0].clone()]);
    assert_eq!(latest(&refloat), newest);
    assert_eq!(refloat.json(&["snapshot", "list"])["foreign"], 0, "what waits in the trash is not foreign");
    // Nothing more to do: no question, no change.
    let again = refloat.run(&["prune", "-o", "json"]).json();
    assert_eq!(
        (again["plan"]["remove"].clone(), again["stores"][0]["outcome"].clone()),
        (json!([]), json!("unchanged"))
    );
}

/// As if that snapshot had been removed by retention long ago.
fn forget_newest(refloat: &Refloat) {
    let file = refloat.state().join("stores.json");
    let mut known: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    known["stores"][0].as_object_mut().unwrap().remove("newest_id").expect("the newest");
    std::fs::write(file, known.to_string()).unwrap();
}

fn real_id(real: &Value) -> String {
    text(real, "id").to_owned()
}

#[test]
fn the_trash_gives_back_and_is_emptied_after_its_grace() {
    let (_cluster, refloat, real) = taken();
    let refloat = with_rules(refloat, LAST_2);
    let forge = Forge::new(&refloat, &real);
    let old: Vec<String> = [2, 3].iter().map(|d| forge.make(&Like::ago(d * DAY))).collect();
    let newest = forge.make(&Like::ago(0));
    refloat.run(&["prune", "--yes"]).ok();
    let trash = refloat.store().join(forge.lineage()).join("trash");
    let snapshots = refloat.store().join(forge.lineage()).join("snapshots");
    let names: Vec<String> = trash.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    // By hand, as the guide says: data, then manifest, without the time before the name.
    for end in [".db.zst", ".json"] {
        let name = names.iter().find(|n| n.ends_with(&format!("{}{end}", old[1]))).unwrap();
        std::fs::rename(trash.join(name), snapshots.join(&name[20..])).unwrap();
    }
    assert_eq!(listed(&refloat, &[]), [newest.clone(), old[0].clone(), old[1].clone()]);

    // As if the grace had passed: the time is in the name.
    for name in &names {
        if trash.join(name).exists() {
            std::fs::rename(trash.join(name), trash.join(format!("20200101T000000000Z{}", &name[19..]))).unwrap();
        }
    }
    let done = refloat.json(&["prune", "--yes"]);
    assert_eq!(done["plan"]["empty"].as_array().unwrap().len(), 1, "{done}");
    assert!(done["freed"].as_u64() > Some(0), "{done}");
    let left: Vec<_> = trash.read_dir().unwrap().collect();
    assert_eq!(left.len(), 2, "the second removal of {}: {left:?}", old[1]);
}

#[test]
fn what_is_not_this_nodes_is_told_and_never_touched() {
    let (_cluster, refloat, real) = taken();
    let refloat = with_rules(refloat, LAST_2);
    let forge = Forge::new(&refloat, &real);
    let own: Vec<String> = [1, 2, 3].iter().map(|h| forge.make(&Like::ago(h * DAY))).collect();
    let newest = forge.make(&Like::ago(0));
    let mut others = Vec::new();
    for days in 1..5 {
        others.push(forge.make(&Like { node: "cp2", ..Like::ago(days * DAY) }));
        // Its name before it was renamed, and another cluster's node of the same name.
        others.push(forge.make(&Like { node: "old-name", ..Like::ago(days * DAY) }));
        // A second later, so that no id is an own one's.
        others.push(forge.make(&Like { lineage: Some("00000000000000ab"), ..Like::ago(days * DAY - 1) }));
    }
    let imported = json!({ "imported": { "from": "x.db", "at": "2020-01-01T00:00:00Z" } });
    let import = forge.make(&Like { timeline: 0, fields: imported, ..Like::ago(900 * DAY) });
    let other_files = || -> Vec<String> {
        let kept = |name: &String| others.iter().chain([&import]).any(|id| name.contains(id.as_str()));
        files(&refloat.store()).into_iter().filter(kept).collect()
    };
    let before = other_files();
    assert_eq!(before.len(), 2 * 13);
    let done = refloat.json(&["prune", "--yes"]);
    assert_eq!(ids(&done["removed"]), set(&[&own[1], &own[2], &real_id(&real)]), "{done}");
    assert_eq!(other_files(), before);
    assert!(listed(&refloat, &[]).contains(&newest));
    let reach = done["stores"][0]["out_of_reach"].as_array().unwrap();
    let told: BTreeSet<(Option<&str>, u64)> =
        reach.iter().map(|o| (o["node"].as_str(), o["snapshots"].as_u64().unwrap())).collect();
    assert_eq!(told, BTreeSet::from([(Some("cp2"), 4), (Some("old-name"), 4), (None, 4)]), "{done}");
    let table = refloat.run(&["prune", "--dry-run"]).ok();
    assert!(table.contains("4 snapshots of node cp2") && table.contains("lineage 00000000000000ab"), "{table}");

    // In `cluster` scope the nodes count together; the other cluster stays out of reach.
    let refloat = refloat.config("scope = \"cluster\"\n");
    let done = refloat.json(&["prune", "--yes"]);
    assert_eq!(done["removed"].as_array().unwrap().len(), 8, "{done}");
    assert_eq!(listed(&refloat, &[]).len(), 3, "two and the import");
}

#[test]
fn a_clock_in_doubt_and_a_freeze_remove_nothing_and_say_so() {
    let (_cluster, refloat, real) = taken();
    let refloat = with_rules(refloat, LAST_2);
    let forge = Forge::new(&refloat, &real);
    std::fs::remove_file(refloat.store().join(forge.lineage()).join(format!("snapshots/{}.json", real_id(&real))))
        .unwrap();
    forget_newest(&refloat);
    let old: Vec<String> = (3..8).map(|h| forge.make(&Like::ago(h * HOUR))).collect();
    let held = |args: &[&str], word: &str| {
        let before: Vec<String> = files(&refloat.store()).into_iter().filter(|f| !f.ends_with("freeze.json")).collect();
        let output = refloat.command(&["-o", "json"]).args(args).run();
        assert_eq!(output.code, Some(75), "{word}: {output}");
        assert_eq!(text(&error_of(&output), "code"), "held");
        let document: Value = output.document();
        let rules: Vec<&str> = document["plan"]["held"].as_array().unwrap().iter().map(|h| text(h, "rule")).collect();
        assert_eq!(rules, [word], "{document}");
        assert!(!document["plan"]["remove"].as_array().unwrap().is_empty(), "{document}");
        assert_eq!(document["removed"], json!([]));
        let after: Vec<String> = files(&refloat.store()).into_iter().filter(|f| !f.ends_with("freeze.json")).collect();
        assert_eq!(after, before);
    };
    // The newest is three hours old, and the schedule says every half hour.
    held(&["prune", "--yes"], "overdue");
    held(&["prune", "--dry-run"], "overdue");
    // A clock that was a year ahead.
    let future = forge.make(&Like { taken_at: Like::ago(-365 * DAY).taken_at, ..Like::ago(-1) });
    held(&["prune", "--yes"], "clock-behind");
    std::fs::remove_file(refloat.store().join(forge.lineage()).join(format!("snapshots/{future}.json"))).unwrap();
    std::fs::remove_file(refloat.store().join(forge.lineage()).join(format!("snapshots/{future}.db.zst"))).unwrap();
    // A clock that was a day back while a later revision was taken.
    let back = forge.make(&Like { taken_at: Like::ago(DAY).taken_at, ..Like::ago(0) });
    let now = forge.make(&Like { taken_at: Like::ago(0).taken_at, ..Like::ago(1) });
    held(&["prune", "--yes", "--trust-clock"], "times-run-backwards");
    for id in [&back, &now] {
        for end in ["json", "db.zst"] {
            std::fs::remove_file(refloat.store().join(forge.lineage()).join(format!("snapshots/{id}.{end}"))).unwrap();
        }
    }
    // Freezes: in the store, beside the state, unreadable; an expired one says nothing.
    let freshest = forge.make(&Like::ago(0));
    let (here, local) =
        (refloat.store().join(forge.lineage()).join("freeze.json"), refloat.state().join("freeze.json"));
    let freeze = |until: &str| format!(r#"{{"schema":1,"until":"{until}","reason":"a restore is under way"}}"#);
    for place in [&here, &local] {
        for content in [freeze("2999-01-01T00:00:00Z"), "torn".to_owned()] {
            std::fs::write(place, content).unwrap();
            held(&["prune", "--yes"], "frozen");
        }
        std::fs::remove_file(place).unwrap();
    }
    std::fs::write(&here, freeze("2020-01-01T00:00:00Z")).unwrap();
    let done = refloat.json(&["prune", "--yes"]);
    assert_eq!(done["removed"].as_array().unwrap().len(), 4, "{done}");
    assert_eq!(listed(&refloat, &[]), [freshest, old[0].clone()]);
}

#[test]
fn a_list_that_cannot_be_right_stops_the_prune() {
    let (_cluster, refloat, real) = taken();
    let refloat = with_rules(refloat, LAST_2);
    let forge = Forge::new(&refloat, &real).of_the_past();
    let old: Vec<String> = (1..6).map(|h| forge.make(&Like::ago(h * HOUR))).collect();
    let newest = take(&refloat);
    let snapshots = refloat.store().join(forge.lineage()).join("snapshots");
    let (manifest, aside) = (snapshots.join(format!("{}.json", text(&newest, "id"))), refloat.dir().join("aside"));
    // Its own newest is not in the list: whoever gives such a list may lack others too.
    std::fs::rename(&manifest, &aside).unwrap();
    let before = files(&refloat.store());
    for args in [["prune", "--yes"], ["prune", "--dry-run"]] {
        let output = refloat.command(&["-o", "json"]).args(args).run();
        assert_eq!(output.code, Some(75), "{output}");
        let error = error_of(&output);
        assert_eq!(text(&error, "code"), "listing-in-doubt");
        assert!(why(&error).contains(text(&newest, "id")), "{error}");
    }
    assert_eq!(files(&refloat.store()), before);
    std::fs::rename(&aside, &manifest).unwrap();

    // One manifest that cannot be read keeps itself and its data, and nothing else.
    std::fs::write(snapshots.join(format!("{}.json", old[3])), "{").unwrap();
    std::fs::remove_file(snapshots.join(format!("{}.db.zst", old[4]))).unwrap();
    let done = refloat.json(&["prune", "--yes"]);
    let unreadable: Vec<&str> =
        done["stores"][0]["unreadable"].as_array().unwrap().iter().map(|u| text(u, "name")).collect();
    assert_eq!(unreadable.len(), 2, "{done}");
    for id in &old[3..] {
        assert!(unreadable.iter().any(|name| name.contains(id.as_str())), "{id}: {done}");
        assert!(snapshots.join(format!("{id}.json")).exists());
    }
    assert!(snapshots.join(format!("{}.db.zst", old[3])).exists());
    assert!(ids(&done["removed"]).is_superset(&set(&[&old[1], &old[2]])), "{done}");
}

#[test]
fn limits_thin_the_oldest_first_and_stop_at_the_floor() {
    let (_cluster, refloat, real) = taken();
    let size = real["size"]["stored"].as_u64().unwrap();
    let refloat = refloat.config("retention = { keep_last = 8, min_keep = 2 }\ntrash_grace = \"24h\"\n");
    let forge = Forge::new(&refloat, &real);
    // Larger than a MiB each, the least that max_bytes may be.
    let each = (1 << 20) / size * size + size;
    let pad = |id: &str| {
        let data = refloat.store().join(forge.lineage()).join(format!("snapshots/{id}.db.zst"));
        let file = std::fs::File::options().write(true).open(data).unwrap();
        file.set_len(each).unwrap();
    };
    let fields = json!({ "size": { "db": real["size"]["db"], "stored": each } });
    let like = |hours: i64| Like { fields: fields.clone(), ..Like::ago(hours * HOUR) };
    let all: Vec<String> = (0..6).map(|h| forge.make(&like(h))).collect();
    all.iter().for_each(|id| pad(id));

    let document = |max: u64| {
        let file = refloat.dir().join("limited.toml");
        let text = std::fs::read_to_string(refloat.config_file()).unwrap();
        std::fs::write(&file, text.replace("trash_grace", &format!("max_bytes = \"{max}B\"\ntrash_grace"))).unwrap();
        let limited = Run::new(env!("CARGO_BIN_EXE_refloat")).args(["--config".as_ref(), file.as_os_str()]);
        limited.args(["-o", "json", "prune", "--dry-run"]).run().document()
    };
    let roomy = document(100 * each);
    assert_eq!(roomy["plan"]["remove"], json!([]), "{roomy}");
    let tight = document(3 * each);
    let gone: Vec<&str> = tight["plan"]["remove"].as_array().unwrap().iter().map(|r| text(r, "id")).collect();
    // The really taken one is older than all by its revision; then the oldest.
    assert_eq!(gone, [text(&real, "id"), &all[5], &all[4], &all[3]], "{tight}");
    assert!(tight["plan"]["remove"].as_array().unwrap().iter().all(|r| r["to"] == "nowhere"), "{tight}");
    assert_eq!(tight["plan"]["conflicts"], json!([]));
    let least = document(each);
    assert_eq!(ids(&least["plan"]["keep"]), set(&[&all[0], &all[1]]), "{least}");
    let conflict = text(&least["plan"]["conflicts"][0], "reason");
    assert!(conflict.contains("max_bytes"), "{conflict}");
}

#[test]
fn without_a_memory_of_its_own_a_node_prunes_nobodys_snapshots() {
    let (refloat, real) = crate::pattern::pattern();
    let refloat = with_rules(refloat, LAST_2);
    let forge = Forge::new(&refloat, &real);
    (0..4).for_each(|h| drop(forge.make(&Like::ago(h * HOUR))));
    // A new cluster's node of the same name, which has never taken one, in a store that both share.
    std::fs::remove_file(refloat.state().join("stores.json")).unwrap();
    let before = files(&refloat.store());
    for how in ["--yes", "--dry-run"] {
        let output = refloat.run(&["-o", "json", "prune", how]);
        let error = error_of(&output);
        assert_eq!((output.code, text(&error, "code")), (Some(75), "listing-in-doubt"), "{output}");
        assert!(why(&error).contains(forge.lineage()) && text(&error, "remedy").contains("take a snapshot"), "{error}");
    }
    assert_eq!(files(&refloat.store()), before);
}
