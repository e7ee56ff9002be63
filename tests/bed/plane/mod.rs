//! Control planes: several etcd members, each with a kube-apiserver beside it, in networks, host names and on disks of
//! their own, with a balancer and kubelets' heartbeats before them; and everything that can go wrong with that.
//!
//! In: how many nodes, which apiserver asks which members, what else runs. Out: real processes, questions to them that
//! do not go through refloat, and faults that are undone when they are dropped. Needs root: ask
//! [`skip_unless_root`](super::skip_unless_root) first. Nothing of it is on the host: any number of planes may be there
//! at once, all with the same addresses and ports.
//!
//! - [`net`]: namespaces and the bridge between them
//! - [`pki`]: certificates as kubeadm makes them
//! - [`build`]: what a plane shall be
//! - [`flags`]: of a member and of an apiserver
//! - [`node`]: one machine: its member, its apiserver, its disks
//! - [`faults`]: processes that hang, disks that freeze, packets that are lost
//! - [`balancer`]: HAProxy before the apiservers
//! - [`gate`]: the way from the test process into the networks
//! - [`client`]: a client of the API, with one connection
//! - [`heartbeat`]: kubelets, as far as their heartbeats go
//! - [`report`]: what their nodes looked like in the meantime
//! - [`pressure`]: a client that asks for too much

mod balancer;
mod build;
mod client;
mod faults;
mod flags;
mod gate;
mod heartbeat;
mod net;
mod node;
mod pki;
mod pressure;
mod report;

use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::cluster::keep_for_people;
use super::run::{Output, until};

pub use balancer::{Balancer, GUIDE, Server};
pub use build::{Asks, Builder};
pub use client::{Client, Identity, Reply, Trouble};
pub use faults::Fault;
pub use heartbeat::{Heartbeats, Rules};
pub use net::Namespace;
pub use node::PlaneNode;
pub use pressure::Pressure;
pub use report::{NodeReport, NodeWatch, Seen};

use gate::Gate;
use net::Network;
use pki::KubePki;

/// For what a plane is expected to come to by itself, on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Ports, the same on every node.
pub const CLIENT_PORT: u16 = 2379;
pub const PEER_PORT: u16 = 2380;
pub const METRICS_PORT: u16 = 2381;
pub const API_PORT: u16 = 6443;

/// A running control plane; its processes end when it is dropped.
pub struct ControlPlane {
    nodes: Vec<PlaneNode>,
    network: Network,
    pki: KubePki,
    gate: Gate,
    // Last, so that processes have ended before their files go.
    dir: TempDir,
}

impl ControlPlane {
    /// So many nodes, of which each apiserver asks its own member.
    pub fn builder(nodes: usize) -> Builder {
        Builder::new(nodes)
    }

    pub fn nodes(&self) -> &[PlaneNode] {
        &self.nodes
    }

    #[track_caller]
    pub fn node(&self, index: usize) -> &PlaneNode {
        &self.nodes[index]
    }

    /// For whatever a test wants to keep beside it.
    pub fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// The index of the node whose member leads; waits for an election.
    #[track_caller]
    pub fn leader(&self) -> usize {
        let leads = || self.nodes.iter().position(PlaneNode::leads);
        self.wait("a leader", leads)
    }

    /// Asks until there is an answer; a panic shows the ends of all logs otherwise.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, ask: impl FnMut() -> Option<T>) -> T {
        self.wait_for(PATIENCE, what, ask)
    }

    /// The same with a limit of its own.
    #[track_caller]
    pub fn wait_for<T>(&self, limit: Duration, what: &str, ask: impl FnMut() -> Option<T>) -> T {
        match until(Instant::now() + limit, ask) {
            Some(answer) => answer,
            None => panic!("not within {limit:?}: {what}"),
        }
    }

    /// etcdctl in a network where all members are reachable, against the members of these nodes.
    #[track_caller]
    pub fn etcdctl(&self, nodes: &[usize], args: &[&str]) -> Output {
        let endpoints: Vec<String> = nodes.iter().map(|i| self.node(*i).client_url()).collect();
        self.pki.etcdctl(&self.network.bridge, &endpoints.join(",")).args(args).run()
    }

    /// A client with a connection of its own to the apiserver of a node.
    pub fn client(&self, node: usize, identity: Identity) -> Client {
        Client::new(self.gate.socket(self.node(node).name()), self.pki.client_config(&identity))
    }

    /// The same through the balancer, which must run by the time of the first request.
    pub fn balanced(&self, identity: Identity) -> Client {
        Client::new(self.gate.socket(balancer::NAME), self.pki.client_config(&identity))
    }

    /// Pods in namespace default that no node runs: something to list.
    #[track_caller]
    pub fn make_pods(&self, node: usize, count: usize) {
        let mut client = self.client(node, Identity::Admin);
        for number in 0..count {
            let pod = serde_json::json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": { "name": format!("filler-{number}") },
                "spec": { "containers": [{ "name": "nothing", "image": "refloat.test/nothing" }] },
            });
            let made = client.post("/api/v1/namespaces/default/pods", &pod, PATIENCE);
            assert!(made.as_ref().is_ok_and(|reply| reply.status == 201), "make a pod: {made:?}");
        }
    }

    /// Saves the logs where they outlive the test, and shows their ends.
    fn tell(&self) {
        let kept = keep_for_people(self.dir.path());
        eprintln!("the logs of the control plane are kept in {}", kept.display());
        for entry in std::fs::read_dir(self.dir.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|ending| ending != "log") {
                continue;
            }
            if let Err(e) = std::fs::copy(&path, kept.join(entry.file_name())) {
                eprintln!("cannot keep {}: {e}", path.display());
            }
            let log = std::fs::read(&path).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let from = lines.len().saturating_sub(8);
            eprintln!("--- {}\n{}", entry.file_name().display(), lines[from..].join("\n"));
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell();
        }
        // All disks first: no process that writes to a frozen one can end.
        self.nodes.iter().for_each(PlaneNode::thaw_disks);
        self.nodes.iter().for_each(PlaneNode::kill_all);
    }
}
