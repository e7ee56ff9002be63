//! A store that answers nothing blocks itself alone, and a cancel ends a take at any step.
//!
//! A call that hangs is a failpoint that waits at a FIFO: once, for whichever store comes there first.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bed::refloat::MIN_FREE;
use crate::bed::{Cluster, Fill, Line, Output, Refloat};
use crate::pattern::Hold;
use crate::taking::{error_of, listed, take, text, why};

/// How long a cancel may take.
const CANCEL: Duration = Duration::from_secs(5);

fn world(stores: usize, more: &str) -> (Cluster, Refloat) {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(200);
    let refloat = Refloat::new(cluster.node(0));
    let second = refloat.dir().join("second");
    std::fs::create_dir(&second).unwrap();
    let second = format!("[[store]]\nname = \"second\"\nurl = \"file://{}\"\n{MIN_FREE}\n", second.display());
    let second = if stores == 2 { second } else { String::new() };
    (cluster, refloat.config(&format!("{second}{more}")))
}

fn held_take(refloat: &Refloat, hold: &Hold) -> Output {
    refloat.command(&["-o", "json", "snapshot", "take"]).env("FAILPOINTS", hold.failpoints()).run()
}

/// Each call of a take to its stores, in its order, with its stream and its syncs.
const STEPS: [&str; 11] = [
    "store::open_store",
    "store::sweep",
    "store::list",
    "store::space",
    "store::stage",
    "take::write",
    "take::sync",
    "store::read_at",
    "store::check_marker",
    "store::create",
    "store::publish",
];

#[test]
fn one_hung_store_costs_the_other_nothing() {
    let (_cluster, refloat) = world(2, "[snapshot]\nstall_timeout = \"3s\"\n");
    take(&refloat);
    for (before, step) in (1..).zip(STEPS) {
        let hold = Hold::at(step, refloat.dir());
        let output = held_take(&refloat, &hold);
        assert_eq!(output.code, Some(74), "{step}: {output}");
        let document = output.document();
        let outcomes = document["stores"].as_array().unwrap_or_else(|| panic!("{step}: {output}"));
        let failed: Vec<_> = outcomes.iter().filter(|s| !s["error"].is_null()).collect();
        assert_eq!((outcomes.len(), failed.len()), (2, 1), "{step}: {output}");
        assert_eq!(failed[0]["error"]["code"], "store-hung", "{step}: {output}");
        let holders = document["snapshot"]["stores"].as_array().map(Vec::len);
        assert_eq!(holders, Some(1), "{step}: {output}");
        assert_eq!(listed(&refloat, &[]).len(), before + 1, "{step}");
    }
    // The hung calls are gone with their processes: everything works, and what they left is swept.
    take(&refloat);
    assert_eq!(refloat.json(&["snapshot", "verify", "--all"])["ok"], true);
    assert_eq!(refloat.json(&["snapshot", "list"])["unfinished"], serde_json::json!([]));
}

#[test]
fn alone_it_fails_the_take_in_time() {
    let (_cluster, refloat) = world(1, "[snapshot]\nstall_timeout = \"3s\"\n");
    let state = ["state::open", "state::lock", "state::load_known"].map(|step| (step, "state-hung"));
    for (step, code) in STEPS.map(|step| (step, "store-hung")).into_iter().chain(state) {
        let hold = Hold::at(step, refloat.dir());
        let output = held_take(&refloat, &hold);
        let error = error_of(&output);
        assert_eq!((output.code, text(&error, "code")), (Some(74), code), "{step}: {output}");
        let why = why(&error);
        assert!(why.contains("no answer for") || why.contains("has not come back"), "{step}: {output}");
        assert_eq!(listed(&refloat, &[]), [""; 0], "{step}");
    }
    take(&refloat);
    assert_eq!(refloat.json(&["snapshot", "list"])["unfinished"], serde_json::json!([]));
}

#[test]
fn a_cancel_ends_a_take_whose_call_hangs() {
    let (_cluster, refloat) = world(1, "");
    for step in STEPS.into_iter().chain(["state::open", "state::lock", "state::load_known"]) {
        let hold = Hold::at(step, refloat.dir());
        let (output, told) = std::thread::scope(|scope| {
            let (pid, given) = std::sync::mpsc::channel();
            let run = refloat.command(&["-o", "json", "snapshot", "take"]).env("FAILPOINTS", hold.failpoints());
            let running = scope.spawn(|| run.meanwhile(move |id| pid.send(id).expect("a listener")).run());
            let pid = given.recv().expect("a process id");
            hold.meanwhile(|| {
                let told = Instant::now();
                kill(Pid::from_raw(pid.try_into().expect("a process id")), Signal::SIGINT).expect("signal a child");
                let output = running.join().expect("no panic");
                (output, told.elapsed())
            })
        });
        let error = error_of_canceled(&output);
        assert_eq!((output.code, text(&error, "code")), (Some(130), "canceled"), "{step}: {output}");
        // The take itself gave up, before the command would have left it behind.
        assert_ne!(error["what"], "end the command", "{step}: {output}");
        assert!(told < CANCEL, "{step}: {told:?}");
        assert_eq!(listed(&refloat, &[]), [""; 0], "{step}");
    }
    take(&refloat);
    assert_eq!(refloat.json(&["snapshot", "list"])["unfinished"], serde_json::json!([]));
}

/// A cancel needs no cause.
#[track_caller]
fn error_of_canceled(output: &Output) -> serde_json::Value {
    let lines = output.stderr.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter_map(|d| d.get("error").cloned()).next().unwrap_or_else(|| panic!("no error: {output}"))
}

#[test]
fn what_reads_names_the_hung_store_and_shows_the_others() {
    let (_cluster, refloat) = world(2, "[snapshot]\nstall_timeout = \"3s\"\n");
    take(&refloat);
    for step in ["store::open_store", "store::list"] {
        let hold = Hold::at(step, refloat.dir());
        let run = refloat.command(&["-o", "json", "snapshot", "list"]).env("FAILPOINTS", hold.failpoints()).run();
        assert!(run.stderr.contains("has not come back") || run.stderr.contains("no answer for"), "{step}: {run}");
        let list = run.json();
        assert_eq!(list["snapshots"].as_array().map(Vec::len), Some(1), "{step}: {list}");
        assert_eq!(list["snapshots"][0]["stores"].as_array().map(Vec::len), Some(1), "{step}: {list}");
    }
    let hold = Hold::at("store::open_store", refloat.dir());
    let run = refloat.command(&["-o", "json", "store", "list"]).env("FAILPOINTS", hold.failpoints()).run();
    let stores = run.document();
    let codes: Vec<_> = stores["stores"].as_array().unwrap().iter().map(|s| s["error"]["code"].clone()).collect();
    assert_eq!(codes.iter().filter(|code| *code == "store-hung").count(), 1, "{stores}");
    let hold = Hold::at("store::read_at", refloat.dir());
    let run =
        refloat.command(&["-o", "json", "snapshot", "verify", "latest"]).env("FAILPOINTS", hold.failpoints()).run();
    assert!(!run.success() && run.stdout.contains("no answer for"), "{run}");
    // That was no look at the copy, so nothing of it is noted.
    assert_eq!(refloat.json(&["snapshot", "verify", "latest"])["ok"], true);
}

#[test]
fn a_hung_removal_ends_a_prune() {
    let rules = "keep_last = 1, keep_within = \"0s\", keep_hourly = 0, keep_daily = 0, min_keep = 1";
    let more = format!("retention = {{ {rules} }}\n[snapshot]\nstall_timeout = \"3s\"\n");
    let (_cluster, refloat) = world(1, &more);
    (0..3).for_each(|_| drop(take(&refloat)));
    let hold = Hold::at("store::rename", refloat.dir());
    let run = refloat.command(&["-o", "json", "prune", "--yes"]).env("FAILPOINTS", hold.failpoints()).run();
    assert_eq!(run.code, Some(74), "{run}");
    assert!((run.stderr.clone() + &run.stdout).contains("no answer for"), "{run}");
    assert_eq!(listed(&refloat, &[]).len(), 3);
    refloat.run(&["prune", "--yes"]).ok();
    assert_eq!(listed(&refloat, &[]).len(), 1);
}
