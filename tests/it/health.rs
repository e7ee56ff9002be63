//! The health process on real etcd: what it says of members that hang, are gone, have no quorum, no space or no vote.

use std::time::Duration;

use serde_json::Value;

use crate::bed::health::{member, targets};
use crate::bed::{Cluster, Daemon, HealthProcess, Line, Refloat};

/// Promise 8: own ≤ 5 s, others ≤ 8 s; one look at the socket and a busy machine on top.
const OWN: Duration = Duration::from_secs(7);
const OTHER: Duration = Duration::from_secs(10);

fn is(target: &Value, state: &str, cause: &str) -> bool {
    target["state"] == state && (cause.is_empty() || target["cause"] == cause)
}

fn all_good(health: &Value) -> bool {
    targets(health).all(|target| is(target, "good", ""))
}

fn three(line: Line) -> (Cluster, Refloat) {
    let cluster = Cluster::builder(line).members(3).start();
    let refloat = Refloat::new(&cluster).member("m1");
    (cluster, refloat)
}

#[test]
fn a_hung_member_is_named_in_time_and_nobody_else() {
    let (cluster, refloat) = three(Line::V36);
    let health = HealthProcess::start(&refloat);
    let (seen, _) = health.when("all are good", all_good);
    assert_eq!(member(&seen, "m1")["local"], true, "{seen}");
    for (at, limit) in [(0, OWN), (1, OTHER)] {
        let name = cluster.node(at).name().to_owned();
        cluster.node(at).freeze();
        let (seen, took) = health.when("it is bad", |h| is(member(h, &name), "bad", "hung-process"));
        assert!(took <= limit, "{name}: {took:?}");
        // Its port is open all the same, and the others are what they were.
        assert!(std::net::TcpStream::connect(cluster.node(at).client_url().trim_start_matches("http://")).is_ok());
        let others = targets(&seen).filter(|target| target["name"] != name.as_str());
        others.for_each(|target| assert_ne!(target["state"], "bad", "{seen}"));
        let by_hand = refloat.run(&["health"]);
        assert_eq!(by_hand.code, Some(1), "{by_hand}");
        assert!(by_hand.stdout.starts_with(&format!("bad: etcd {name} (hung-process)")), "{by_hand}");
        cluster.node(at).thaw();
        health.when("all are good again", all_good);
    }
    assert!(refloat.run(&["health"]).success());
    health.stop();
    let gone = refloat.run(&["health"]);
    assert_eq!(gone.code, Some(69), "{gone}");
    assert!(gone.stderr.contains("systemctl start refloat-health"), "{gone}");
}

#[test]
fn stopped_members_and_a_lost_quorum_are_told_apart() {
    let (mut cluster, refloat) = three(Line::V36);
    let health = HealthProcess::start(&refloat);
    health.when("all are good", all_good);
    cluster.node_mut(1).kill();
    let (seen, took) = health.when("it is stopped", |h| is(member(h, "m2"), "bad", "stopped"));
    assert!(took <= OTHER, "{took:?}");
    assert!(is(member(&seen, "m1"), "good", "") && is(member(&seen, "m3"), "good", ""), "{seen}");
    cluster.node_mut(2).kill();
    let lost = |h: &Value| {
        let own = member(h, "m1");
        own["state"] == "bad" && own["cause"].as_str().is_some_and(|cause| cause.starts_with("no-quorum"))
    };
    let (seen, _) = health.when("the own one has no quorum", lost);
    assert_eq!(seen["fence"]["decision"], "none", "{seen}");
    cluster.node_mut(1).restart();
    cluster.node_mut(2).restart();
    health.when("all are good again", all_good);
}

#[test]
fn a_full_database_is_named_and_nothing_is_fenced() {
    let cluster = Cluster::builder(Line::V36).args(["--quota-backend-bytes=4194304"]).start();
    let refloat = Refloat::new(cluster.node(0));
    let health = HealthProcess::start(&refloat);
    health.when("all are good", all_good);
    let value = "x".repeat(120 << 10);
    let full = (0..200).any(|n| !cluster.etcdctl(&["put", &format!("key{n}"), &value]).success());
    assert!(full, "it never filled up");
    let named = |h: &Value| h.to_string().contains("no-space");
    let (seen, _) = health.when("no space is named", named);
    assert_eq!(seen["fence"]["decision"], "none", "{seen}");
}

#[test]
fn a_learner_is_asked_what_it_answers_and_the_oldest_line_is_understood() {
    for line in [Line::V34, Line::V36] {
        let mut cluster = Cluster::start(line);
        let at = cluster.add_learner();
        let name = cluster.node(at).name().to_owned();
        let refloat = Refloat::new(&cluster).member("m1");
        let health = HealthProcess::start(&refloat);
        let (seen, _) = health.when("all are good", all_good);
        let asked = |name: &str| -> Vec<String> {
            member(&seen, name)["probes"].as_object().expect("probes").keys().cloned().collect()
        };
        assert_eq!(asked(&name), ["E1", "E2", "E6"], "{line}: {seen}");
        assert!(asked("m1").starts_with(&["E1", "E2", "E3", "E4"].map(String::from)), "{line}: {seen}");
    }
}

#[test]
fn tls_with_certificates_is_spoken_and_their_end_is_known() {
    let cluster = Cluster::builder(Line::V36).members(3).tls(true).start();
    let refloat = Refloat::new(&cluster).member("m2");
    let health = HealthProcess::start(&refloat);
    let (seen, _) = health.when("all are good", all_good);
    assert!(is(member(&seen, "m2"), "good", "") && member(&seen, "m2")["probes"]["E1"]["state"] == "good", "{seen}");
}

#[test]
fn the_socket_answers_without_the_daemon_and_the_daemon_follows_it() {
    let cluster = Cluster::start(Line::V36);
    let refloat = Refloat::new(cluster.node(0)).config("[snapshot]\nschedule = \"0 0 1 1 *\"\n");
    let health = HealthProcess::start(&refloat);
    health.when("it is good, and nobody else runs", all_good);
    let daemon = Daemon::start(&refloat);
    daemon.status_when("it is told", |s| s["health"]["state"] == "good");
    cluster.node(0).freeze();
    let status = daemon.status_when("the daemon says what is bad", |s| s["health"]["state"] == "bad");
    assert_eq!(status["health"]["troubles"][0]["cause"], "hung-process", "{status}");
    let told = |s: &Value| {
        s["troubles"].as_array().is_some_and(|all| all.iter().any(|trouble| trouble["error"]["code"] == "unhealthy"))
    };
    daemon.status_when("as a trouble too", told);
    daemon.process().freeze();
    assert_eq!(refloat.run(&["health"]).code, Some(1));
    daemon.process().thaw();
    cluster.node(0).thaw();
    daemon.status_when("it is over", |s| s["health"]["state"] == "good" && !told(s));
    health.stop();
    daemon.status_when("nobody watches", |s| {
        s["health"]["said"].as_str().is_some_and(|said| said.contains("does not answer"))
    });
}

#[test]
fn a_look_by_hand_needs_no_process() {
    let (mut cluster, refloat) = three(Line::V36);
    let good = refloat.command(&["-o", "json", "health", "--once"]).run();
    assert_eq!(good.code, Some(0), "{good}");
    let seen = good.json();
    assert!(all_good(&seen) && member(&seen, "m1")["probes"]["E5"]["state"] == "good", "{seen}");
    cluster.node(1).freeze();
    cluster.node_mut(2).kill();
    let bad = refloat.command(&["health", "--once"]).run();
    assert_eq!(bad.code, Some(1), "{bad}");
    assert!(bad.stdout.contains("m2") && bad.stdout.contains("m3 (stopped)"), "{bad}");
}

#[test]
fn what_it_writes_is_one_key_and_can_be_switched_off() {
    let cluster = Cluster::start(Line::V36);
    let keys = || cluster.etcdctl(&["get", "--prefix", "--keys-only", ""]).ok();
    let quiet = Refloat::new(cluster.node(0)).config("[health]\nwrite_probe = false\n");
    assert!(quiet.run(&["health", "--once"]).success());
    assert_eq!(keys().trim(), "");
    let refloat = Refloat::new(cluster.node(0));
    assert!(refloat.run(&["health", "--once"]).success());
    assert_eq!(keys().trim(), "refloat/health/test");
    let value = cluster.etcdctl(&["get", "--print-value-only", "refloat/health/test"]).ok();
    assert!(value.len() >= 16 << 10, "{}", value.len());
}
