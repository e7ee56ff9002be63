//! A control plane of the bed comes up, and HAProxy and kubelets' heartbeats before it do what they do in the field.

use std::time::Duration;

use serde_json::json;

use crate::bed::plane::{Asks, GUIDE, Identity, PATIENCE, Pressure, Rules};
use crate::bed::{Balancer, ControlPlane, Heartbeats, Refloat, skip_unless_root};

/// Guards of the same kind as refloat's docs will have them: the answer of an agent decides, and takes sessions with it.
const AGENT: &str = "
# A word to the reader.
global
    stats socket /run/haproxy/admin.sock mode 660 level admin

defaults
  mode tcp
  timeout connect 5s
  timeout client 35s
  timeout server 35s
frontend apiserver
  bind :8443
  default_backend apiservers
backend apiservers
  balance roundrobin
  server cp1 192.0.2.11:6443 check agent-check agent-inter 500ms agent-port 9978 on-marked-down shutdown-sessions
";

/// Answers each connection with what a file says, as the answer unit would.
const AGENT_PROGRAM: &str = r#"
my $listener = IO::Socket::INET->new(LocalPort => 9978, Listen => 64, ReuseAddr => 1) or die "listen: $@";
while (my $client = $listener->accept) {
    open(my $file, "<", $ARGV[0]) or die "open: $!";
    print $client scalar(<$file>);
    close($client);
}
"#;

#[test]
fn a_plane_of_three_serves_through_haproxy() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let plane = ControlPlane::builder(3).asks(Asks::All).start();
    let members = plane.etcdctl(&[0, 1, 2], &["member", "list", "-w", "json"]).json();
    assert_eq!(members["members"].as_array().map(Vec::len), Some(3));
    for node in plane.nodes() {
        assert_eq!(node.readyz(), Ok(()), "{}", node.name());
        assert_eq!(node.command("hostname").run().ok().trim(), node.name(), "a name of its own");
    }

    // What is written through one apiserver is read through another one, by a kubelet's identity as well.
    let mut admin = plane.client(0, Identity::Admin);
    let version = admin.get("/version", PATIENCE).unwrap().json();
    assert_eq!(version["gitVersion"], "v1.36.3");
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one" }, "data": { "a": "b" } });
    let path = "/api/v1/namespaces/default/configmaps";
    assert_eq!(admin.post(path, &map, PATIENCE).unwrap().status, 201);
    let read = plane.client(2, Identity::Admin).get(&format!("{path}/one"), PATIENCE).unwrap();
    assert_eq!((read.status, &read.json()["data"]["a"]), (200, &json!("b")));
    let refused = plane.client(1, Identity::User("nobody".into())).get(&format!("{path}/one"), PATIENCE).unwrap();
    assert_eq!(refused.status, 403);
    plane.make_pods(0, 20);

    // refloat on a node sees that node's name and reaches its member.
    let node = plane.node(1);
    let refloat = Refloat::new(node.target()).member(node.name()).inside(node.namespace());
    assert_eq!(refloat.json(&["snapshot", "take"])["stores"].as_array().map(Vec::len), Some(1));

    // Kubernetes' other programs find their way.
    plane.node(0).start_controllers("node-lifecycle-controller", &[]);
    plane.node(0).start_scheduler();

    // Kubelets connect through the balancer, evenly, and stay.
    let balancer = Balancer::start(&plane, GUIDE);
    let rules = Rules { period: Duration::from_secs(2), ..Rules::default() };
    let hearts = Heartbeats::start(&plane, 6, rules);
    let thrice = || hearts.reports().iter().all(|report| report.renewals() > 2);
    plane.wait("three renewals of each", || thrice().then_some(()));
    for report in hearts.reports() {
        assert_eq!((report.failures(), report.reconnected()), (0, Vec::new()), "{report:?}");
    }
    for server in balancer.servers() {
        assert_eq!(server.sessions, 2, "{server:?}");
    }
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    assert_eq!(admin.get(leases, PATIENCE).unwrap().json()["items"].as_array().map(Vec::len), Some(6));
    let ended = ["kube-controller-manager", "kube-scheduler"].map(|name| plane.node(0).process(name).ended());
    assert_eq!(ended, [None, None]);
}

#[test]
fn an_agent_takes_a_server_and_its_sessions_out_and_brings_it_back() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let plane = ControlPlane::builder(2).start();
    for node in plane.nodes() {
        std::fs::write(answer(&plane, node.name()), "up ready 100%\n").unwrap();
        let words = ["-MIO::Socket::INET", "-e", AGENT_PROGRAM].map(str::to_owned);
        let file = answer(&plane, node.name()).display().to_string();
        node.start("agent", "/usr/bin/perl".as_ref(), &[words.as_slice(), &[file]].concat());
    }
    let balancer = Balancer::start(&plane, AGENT);
    let rules = Rules { period: Duration::from_secs(1), ..Rules::default() };
    let hearts = Heartbeats::start(&plane, 4, rules);
    assert_eq!(balancer.servers().iter().map(|s| s.sessions).collect::<Vec<_>>(), [2, 2]);

    std::fs::write(answer(&plane, "cp1"), "down #tested\n").unwrap();
    plane.wait("a server that is down by its agent, with no session left", || {
        let server = balancer.server("cp1");
        (server.state.starts_with("DOWN") && server.sessions == 0).then_some(())
    });
    plane.wait("all sessions on the other one", || (balancer.server("cp2").sessions == 4).then_some(()));
    // A connection is counted by its kubelet once the first answer has come.
    let moved = || hearts.reports().iter().filter(|report| !report.reconnected().is_empty()).count();
    plane.wait("new connections of those whose sessions were ended", || (moved() >= 2).then_some(()));
    assert_eq!(moved(), 2, "and of no others: {:?}", hearts.reports());

    std::fs::write(answer(&plane, "cp1"), "up ready 100%\n").unwrap();
    plane.wait("a server that is back", || (balancer.server("cp1").state == "UP").then_some(()));
}

fn answer(plane: &ControlPlane, node: &str) -> std::path::PathBuf {
    plane.dir().join(format!("{node}.answer"))
}

#[test]
fn a_client_lists_all_pods_twenty_times_a_second() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let plane = ControlPlane::builder(1).start();
    plane.make_pods(0, 50);
    let lists = || {
        let metrics = plane.client(0, Identity::Admin).get("/metrics", PATIENCE).unwrap();
        let text = String::from_utf8(metrics.body).unwrap();
        let counters = text.lines().filter(|l| l.starts_with("apiserver_request_total") && l.contains("\"pods\""));
        let lists = counters.filter(|l| l.contains("verb=\"LIST\"") && l.contains("scope=\"cluster\""));
        lists.filter_map(|l| l.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>()
    };
    let before = lists();
    let pressure = Pressure::start(&plane, 0, 20);
    // The right to list may reach the apiserver a moment after it was given.
    plane.wait("a hundred lists", || (pressure.answered() >= 100).then_some(()));
    let answered = pressure.answered() as f64;
    assert!(lists() - before >= answered, "the apiserver counts them too");
}
