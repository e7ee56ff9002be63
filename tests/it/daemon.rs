//! The daemon on real etcd: what it takes on schedule, what waits for what, and what a hung member or store holds up.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bed::{Cluster, Daemon, Fill, Liar, Lie, Line, Refloat};
use crate::crash::swept;
use crate::taking::{error_of, listed, text};

/// Long enough that only the first run comes by itself.
const SELDOM: &str = "[snapshot]\nschedule = \"0 0 1 1 *\"\n";

fn state(job: &Value, word: &str) -> bool {
    job["state"] == word
}

fn over(job: &Value) -> bool {
    ["succeeded", "failed", "canceled"].iter().any(|word| state(job, word))
}

#[test]
fn it_takes_snapshots_on_schedule_and_prunes_after_each() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(50);
    let refloat = Refloat::new(cluster.node(0)).config("[snapshot]\nevery = \"10s\"\nshift = \"0s\"\n");
    let daemon = Daemon::start(&refloat);
    let status = daemon.status_when("two scheduled snapshots", |s| {
        s["stores"][0]["snapshots"].as_u64() >= Some(2)
            && s["jobs"].as_array().is_some_and(|jobs| jobs.iter().all(over))
    });
    assert_eq!(status["recovery_point"]["revisions"], 0, "{status}");
    assert!(status["recovery_point"]["seconds"].as_i64().is_some_and(|s| s < 60), "{status}");
    assert_eq!(status["last_verified"], listed(&refloat, &[])[0], "{status}");
    assert!(status["next_run"].is_string() && status["schedules"][0]["cursor"].is_string(), "{status}");
    let jobs = daemon.jobs();
    let kinds = |kind: &str| jobs.iter().filter(|job| job["kind"] == kind && state(job, "succeeded")).count();
    assert!(kinds("snapshot") >= 2 && kinds("prune") >= 2, "{jobs:?}");
    let prune = jobs.iter().find(|job| job["kind"] == "prune").expect("a prune");
    assert!(text(prune, "origin").starts_with("after job"), "{prune}");
    // Two commands cannot disagree: both show the same value.
    let table = refloat.run(&["status"]).ok();
    assert!(
        table.lines().next().is_some_and(|line| line.starts_with("last verified snapshot less than a minute old")),
        "{table}"
    );
    daemon.stop();
    let down = refloat.run(&["status"]);
    assert_eq!(down.code, Some(69), "{down}");
    assert!(down.stdout.starts_with("the daemon does not run; last verified snapshot"), "{down}");
}

#[test]
fn a_take_goes_through_the_daemon_and_says_what_it_would_say_alone() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).small(200);
    let refloat = Refloat::new(cluster.node(0)).config(SELDOM);
    let alone = refloat.json(&["snapshot", "take", "--tag", "alone"]);
    let daemon = Daemon::start(&refloat);
    let through = refloat.json(&["snapshot", "take", "--tag", "through"]);
    let names = |d: &Value| d.as_object().expect("a document").keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&alone), names(&through));
    assert_eq!(names(&alone["snapshot"]), names(&through["snapshot"]));
    assert_eq!((&alone["job"], through["job"].is_string()), (&Value::Null, true));
    assert_eq!((&through["snapshot"]["tags"][0], &through["stores"]), (&"through".into(), &alone["stores"]));
    let queued = refloat.json(&["snapshot", "take", "--no-wait"]);
    let waited = refloat.command(&["jobs", "wait", text(&queued, "job")]).run();
    assert!(waited.success(), "{waited}");
    // The daemon knows which stores there are.
    let unknown = refloat.command(&["--store", "nowhere", "-o", "json", "snapshot", "take"]).run();
    assert_eq!((unknown.code, error_of(&unknown)["code"].as_str()), (Some(66), Some("not-found")), "{unknown}");
    assert_eq!(listed(&refloat, &[]).len(), 3);
    // A failure is the command's own.
    drop(cluster);
    let failed = refloat.command(&["-o", "json", "snapshot", "take"]).run();
    assert_eq!((failed.code, error_of(&failed)["code"].as_str()), (Some(69), Some("member-gone")), "{failed}");
    let status =
        daemon.status_when("it is said", |s| text(s, "summary").contains("the last snapshot failed (member-gone)"));
    assert!(status["jobs"][0]["code"] == "member-gone", "{status}");
}

#[test]
fn a_hung_member_holds_up_nothing_but_snapshots() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).large(40, 1 << 20);
    let liar = Liar::start(cluster.node(0).client_url());
    let two = "[[store]]\nname = \"second\"\nurl = \"file://{}\"\nmin_free = \"16MiB\"\n";
    let refloat = Refloat::new(cluster.node(0));
    std::fs::create_dir(refloat.dir().join("second")).expect("make a directory");
    let two = two.replace("{}", &refloat.dir().join("second").display().to_string());
    let stall = "[snapshot]\nschedule = \"0 0 1 1 *\"\nstall_timeout = \"1h\"\n";
    let refloat = refloat.config(&two).config(stall);
    let daemon = Daemon::start(&refloat);
    daemon.status_when("the first one is there", |s| s["stores"][1]["snapshots"] == 1);
    drop(daemon);
    // The same member, by a proxy that stops in the middle of the stream.
    let config = std::fs::read_to_string(refloat.config_file()).expect("read the configuration");
    let config = config.replace(cluster.node(0).client_url(), &liar.url());
    std::fs::write(refloat.config_file(), config).expect("write the configuration");
    liar.lie(Lie::Stall { after: 1 << 20 });
    let daemon = Daemon::start(&refloat);
    let hung = refloat.json(&["snapshot", "take", "--no-wait"]);
    let hung = text(&hung, "job").to_owned();
    daemon.job_when(&hung, "it streams", |job| job["step"] == "stream" && job["progress"]["done"].as_u64() > Some(0));

    let waits = refloat.json(&["snapshot", "take", "--no-wait"]);
    let joined = refloat.json(&["snapshot", "take", "--no-wait", "--tag", "mine"]);
    assert_eq!(
        (&waits["coalesced"], &joined["coalesced"], &joined["job"]),
        (&false.into(), &true.into(), &waits["job"])
    );
    let waits = text(&waits, "job").to_owned();
    // What needs no member, and what needs another store, goes on.
    for args in
        [&["snapshot", "verify", "--all", "--no-wait"][..], &["prune", "--yes", "--no-wait", "--store", "second"]]
    {
        let queued = refloat.json(args);
        let job = daemon.job_when(text(&queued, "job"), "it ran", over);
        assert!(state(&job, "succeeded"), "{job}");
    }
    let job = daemon.job_when(&waits, "it waits", |job| state(job, "queued"));
    assert_eq!(job["reason"], format!("lane member is taken by job {hung}"), "{job}");

    let asked = Instant::now();
    let canceled = refloat.json(&["jobs", "cancel", &hung]);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(state(&canceled["job"], "canceled"), "{canceled}");
    liar.be_honest();
    let job = daemon.job_when(&waits, "the next one ran", over);
    assert!(state(&job, "succeeded") && job["result"]["manifest"]["tags"][0] == "mine", "{job}");
    daemon.status_when("prunes ran", |s| s["jobs"].as_array().is_some_and(|jobs| jobs.iter().all(over)));
    assert_eq!(listed(&refloat, &[]).len(), 2);
    swept(&refloat, "after the cancel");
}

#[test]
fn a_hung_snapshot_ends_at_its_limit() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).large(40, 1 << 20);
    let liar = Liar::start(cluster.node(0).client_url());
    let config = "[snapshot]\nschedule = \"0 0 1 1 *\"\nstall_timeout = \"2s\"\n";
    let refloat = Refloat::new(&*liar.url()).config(config);
    liar.lie(Lie::Stall { after: 1 << 20 });
    let daemon = Daemon::start(&refloat);
    let failed = |s: &Value| s["jobs"].as_array().is_some_and(|jobs| jobs.iter().any(|job| state(job, "failed")));
    let status = daemon.status_when("it failed", failed);
    let job = status["jobs"].as_array().expect("jobs").iter().find(|job| state(job, "failed")).expect("one");
    assert_eq!(job["code"], "stream-stalled", "{job}");
    assert!(text(&status, "summary").contains("the last snapshot failed (stream-stalled)"), "{status}");
    assert_eq!(listed(&refloat, &[]), [""; 0]);
}

#[test]
fn only_root_and_its_own_user_change_something() {
    if crate::bed::skip_unless_root("another user asks the daemon") {
        return;
    }
    let cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new(cluster.node(0)).config(SELDOM);
    let daemon = Daemon::start(&refloat);
    // Everybody may come near it, and the socket's group may ask: as systemd has it with group refloat.
    let run = |paths: &[&str]| crate::bed::Run::new("chmod").args(["a+rX"]).args(paths).run().ok();
    let dir = refloat.dir().display().to_string();
    run(&[&dir, &format!("{dir}/run"), &format!("{dir}/refloat.toml")]);
    let socket = daemon.socket().display().to_string();
    crate::bed::Run::new("chgrp").args(["65534", &socket]).run().ok();
    let as_nobody = |args: &[&str]| {
        let program: &str = env!("CARGO_BIN_EXE_refloat");
        let mut all = vec!["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
        let config = refloat.config_file().display().to_string();
        all.extend([program, "--config", &config]);
        crate::bed::Run::new("setpriv").args(all).args(args).run()
    };
    assert!(as_nobody(&["status"]).success(), "{}", as_nobody(&["status"]));
    assert!(as_nobody(&["jobs", "list"]).success());
    for args in [&["snapshot", "take"][..], &["jobs", "cancel", "1"], &["schedule", "pause"], &["schedule", "resume"]] {
        let refused = as_nobody(args);
        assert_eq!(refused.code, Some(77), "{args:?}: {refused}");
        assert!(refused.stderr.contains("uid 65534 may read here, not change"), "{refused}");
    }
}

#[test]
fn pause_skips_slots_and_resume_goes_on() {
    let cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new(cluster.node(0)).config("[snapshot]\nevery = \"10s\"\nshift = \"0s\"\n");
    let daemon = Daemon::start(&refloat);
    daemon.status_when("the first one is there", |s| s["stores"][0]["snapshots"] == 1);
    refloat.json(&["schedule", "pause", "--for", "1h"]);
    let skipped = |s: &Value| s["schedules"][0]["last"][0]["verdict"] == "skipped";
    let status = daemon.status_when("a slot is skipped", skipped);
    assert_eq!(status["schedules"][0]["last"][0]["reason"], "it is paused", "{status}");
    assert!(text(&status, "summary").contains("paused until"), "{status}");
    let slots = refloat.json(&["schedule", "explain", "-n", "3"]);
    assert_eq!(slots["slots"][2]["act"], "skip: paused", "{slots}");
    // It outlives the daemon.
    daemon.stop();
    let daemon = Daemon::start(&refloat);
    assert_eq!(refloat.json(&["schedule", "list"])["schedules"][0]["paused"], true);
    refloat.json(&["schedule", "resume"]);
    daemon.status_when("the next slot runs", |s| s["stores"][0]["snapshots"].as_u64() >= Some(2));
    let over = refloat.command(&["schedule", "pause", "--until", "2020-01-01T00:00:00Z"]).run();
    assert_eq!(over.code, Some(64), "{over}");
    let unknown = refloat.command(&["schedule", "pause", "nightly"]).run();
    assert_eq!(unknown.code, Some(66), "{unknown}");
}
