//! Health on control planes with real apiservers: what it says of an apiserver, and of one whose member hangs, seen from
//! that node and from another.

use std::time::Duration;

use serde_json::Value;

use crate::bed::health::{member, target, targets};
use crate::bed::{ControlPlane, HealthProcess, Refloat, skip_unless_root};

/// Promise 8, and one look at the socket on a busy machine.
const OWN: Duration = Duration::from_secs(8);
const OTHER: Duration = Duration::from_secs(11);

fn configured(plane: &ControlPlane, at: usize, more: &str) -> Refloat {
    let node = plane.node(at);
    let urls: Vec<String> = plane.nodes().iter().map(|node| node.api_url()).collect();
    let health = format!(
        "[health]\napiservers = {urls:?}\nkubeconfig = {:?}\nlayout = \"local\"\n{more}",
        node.kubeconfig("refloat")
    );
    Refloat::new(node.target()).member(node.name()).config(&health).inside(node.namespace())
}

fn all_good(health: &Value) -> bool {
    targets(health).all(|target| target["state"] == "good")
}

fn is(target: &Value, state: &str, cause: &str) -> bool {
    target["state"] == state && target["cause"] == cause
}

#[test]
fn a_hung_apiserver_and_a_hung_member_behind_one_are_named_on_every_node() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let plane = ControlPlane::builder(3).start();
    let (here, there) = (configured(&plane, 0, ""), configured(&plane, 1, ""));
    let (own, other) = (HealthProcess::start(&here), HealthProcess::start(&there));
    let name = format!("{}:6443", plane.node(0).address());
    let (seen, _) = own.when("all are good", all_good);
    other.when("all are good", all_good);
    let mine = target(&seen, "apiserver", &name);
    assert_eq!(mine["local"], true, "{seen}");
    for probe in ["A1", "A2", "A3", "A4"] {
        assert_eq!(mine["probes"][probe]["state"], "good", "{probe}: {mine}");
    }
    own.when("a large renewal is good too", |h| target(h, "apiserver", &name)["probes"]["A5"]["state"] == "good");

    let fault = plane.node(0).hang_apiserver();
    let (_, took) = own.when("its own apiserver hangs", |h| is(target(h, "apiserver", &name), "bad", "hung-process"));
    assert!(took <= OWN, "{took:?}");
    let (seen, _) = other.when("and is seen from elsewhere", |h| target(h, "apiserver", &name)["state"] == "bad");
    assert_eq!(seen["fence"]["decision"], "none", "{seen}");
    let (seen, _) = own.when("it would be fenced", |h| h["fence"]["decision"] == "would");
    assert!(targets(&seen).filter(|t| t["state"] == "bad").count() == 1, "{seen}");
    fault.heal();
    own.when("all are good again", all_good);
    other.when("all are good again", all_good);

    let fault = plane.node(0).hang_member();
    let (_, took) = own.when("its own member hangs", |h| {
        is(member(h, "cp1"), "bad", "hung-process") && is(target(h, "apiserver", &name), "bad", "etcd-behind-it")
    });
    assert!(took <= OWN, "{took:?}");
    let (_, took) = other.when("and is seen from elsewhere", |h| is(member(h, "cp1"), "bad", "hung-process"));
    assert!(took <= OTHER, "{took:?}");
    fault.heal();
    own.when("all are good again", all_good);
}

#[test]
fn what_may_not_be_asked_is_unknown_and_says_why() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let plane = ControlPlane::builder(1).start();
    let refloat = configured(&plane, 0, "");
    // Somebody whom this cluster knows, and who may do nothing.
    let kubeconfig = std::fs::read_to_string(plane.node(0).kubeconfig("refloat")).expect("a kubeconfig");
    let token = kubeconfig.lines().map(|line| match line.trim_start().starts_with("user: {client-certificate") {
        true => "  user: {token: nobody-knows-it}".to_owned(),
        false => line.to_owned(),
    });
    let file = refloat.dir().join("stranger");
    std::fs::write(&file, token.collect::<Vec<_>>().join("\n")).expect("write a kubeconfig");
    let config = std::fs::read_to_string(refloat.config_file()).expect("the configuration");
    let config =
        config.replace(&plane.node(0).kubeconfig("refloat").display().to_string(), &file.display().to_string());
    std::fs::write(refloat.config_file(), config).expect("write the configuration");
    let seen = refloat.command(&["-o", "json", "health", "--once"]).run();
    assert_eq!(seen.code, Some(3), "{seen}");
    let seen: Value = serde_json::from_str(&seen.stdout).expect("a document");
    let apiserver = target(&seen, "apiserver", &format!("{}:6443", plane.node(0).address()));
    assert_eq!(apiserver["state"], "unknown", "{seen}");
    let why = apiserver["probes"]["A2"]["said"].as_str().unwrap_or_default();
    assert!(why.starts_with("401"), "{apiserver}");
    assert_eq!(member(&seen, "cp1")["state"], "good", "{seen}");
}
