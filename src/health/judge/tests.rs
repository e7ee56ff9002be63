//! What belongs together, and what a failure makes urgent.

use std::time::Duration;

use super::super::facts::Facts;
use super::super::model::{Failure, Kind, Layout, Mono, Outcome, Probe, Sample, Target, TargetId, Watched};
use super::super::rules::Rules;
use super::super::storm::{Heartbeat, eviction_storm};
use super::super::verdict::{Cause, State, Verdict, Verdicts};
use super::{host, member_behind};

fn watched(layout: Layout) -> Watched {
    let target =
        |kind, name: &str, url: &str, own| Target { kind, name: name.into(), url: url.into(), own, learner: false };
    let targets = vec![
        target(Kind::Member, "infra0", "https://10.0.0.1:2379", true),
        target(Kind::Member, "infra1", "https://10.0.0.2:2379", false),
        target(Kind::Apiserver, "cp0", "https://cp0.example:6443", true),
        target(Kind::Apiserver, "10.0.0.2:6443", "https://10.0.0.2:6443", false),
        target(Kind::Apiserver, "elsewhere", "https://10.0.0.9:6443", false),
    ];
    Watched { node: "cp0".into(), targets, layout }
}

#[test]
fn hosts_of_urls() {
    for (url, want) in [
        ("https://10.0.0.1:2379", "10.0.0.1"),
        ("https://[fd00::1]:2379/", "fd00::1"),
        ("https://etcd.example/path:1", "etcd.example"),
        ("10.0.0.1:6443", "10.0.0.1"),
    ] {
        assert_eq!(host(url), want, "{url}");
    }
}

#[test]
fn the_member_behind_an_apiserver() {
    let behind = |layout, apiserver| member_behind(&watched(layout), TargetId(apiserver)).map(|id| id.0);
    assert_eq!(behind(Layout::Local, 2), Some(0), "both are of this node");
    assert_eq!(behind(Layout::Local, 3), Some(1), "same host");
    assert_eq!(behind(Layout::Local, 4), None);
    assert_eq!(behind(Layout::All, 2), None, "each asks all");
}

#[test]
fn a_failure_asks_the_others_once() {
    let watched = watched(Layout::Local);
    let mut facts = Facts::new(Rules::default(), &watched);
    assert!(facts.urgent(&watched).is_empty());
    let mut sample = |target: u16, probe: Probe, at: u64, outcome: Outcome| {
        let took = Duration::from_millis(1_000);
        facts.fold(&Sample { target: TargetId(target), probe, at: Mono(at), took, fresh: false, outcome });
        facts.clone()
    };
    let after = sample(0, Probe::E2, 5_000, Outcome::Failed(Failure::Silent));
    let urgent = after.urgent(&watched);
    for wanted in [(0, Probe::E1), (0, Probe::E6), (1, Probe::E2), (2, Probe::A2), (3, Probe::A2)] {
        assert!(urgent.contains(&(TargetId(wanted.0), wanted.1)), "{wanted:?} in {urgent:?}");
    }
    assert_eq!(after.next(TargetId(0), Probe::E2), (Duration::from_millis(500), true), "the repeat");
    let asked = sample(1, Probe::E2, 6_000, Outcome::Good(Default::default()));
    assert!(!asked.urgent(&watched).contains(&(TargetId(1), Probe::E2)), "asked since");
}

#[test]
fn silent_nodes_and_a_bad_target_are_a_storm() {
    let watched = watched(Layout::Local);
    let mut verdicts = Verdicts::default();
    let verdict = |state, cause| Verdict { state, cause, reasons: Vec::new(), advice: None, since: Mono(0), by: None };
    let node = |i: u64, age: u64, through: Option<&str>| Heartbeat {
        node: format!("n{i}"),
        age: Duration::from_secs(age),
        through: through.map(str::to_owned),
    };
    let nodes = |silent: u64, through: Option<&str>| -> Vec<Heartbeat> {
        (0..10).map(|i| node(i, if i < silent { 45 } else { 5 }, through)).collect()
    };
    assert_eq!(eviction_storm(&watched, &verdicts, &nodes(4, None)), None, "nothing is bad");
    verdicts.by_target.insert(TargetId(3), verdict(State::Bad, Some(Cause::EtcdBehindIt)));
    let text = eviction_storm(&watched, &verdicts, &nodes(4, None)).unwrap();
    assert!(text.contains("4 of 10 nodes (40 %)") && text.contains("10.0.0.2:6443 (etcd-behind-it)"), "{text}");
    assert_eq!(eviction_storm(&watched, &verdicts, &nodes(2, None)), None, "single nodes");
    assert_eq!(eviction_storm(&watched, &verdicts, &nodes(4, Some("cp0"))), None, "they wrote through a good one");
    assert!(eviction_storm(&watched, &verdicts, &nodes(4, Some("10.0.0.2:6443"))).is_some());
}
