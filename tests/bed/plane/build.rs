//! What a control plane shall be, and its start.

use std::sync::Arc;

use super::balancer;
use super::flags;
use super::gate::Gate;
use super::net::Network;
use super::node::{LIAR_URL, Plan, PlaneNode};
use super::pki::KubePki;
use super::{API_PORT, ControlPlane, PEER_PORT};
use crate::bed::disk::FreezableDisk;

/// Numbers of the nodes' addresses begin after it.
pub(super) const FIRST_NODE: u8 = 10;

/// Which members an apiserver asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// Its own alone, as kubeadm sets it up.
    Own,
    All,
}

/// [`Builder::start`] makes it.
pub struct Builder {
    nodes: usize,
    asks: Asks,
    own_wal_disk: bool,
    disk_mib: u64,
    apiservers: bool,
    /// The node whose apiserver has a liar before its member.
    deceived: Option<usize>,
    etcd: Vec<String>,
    apiserver: Vec<String>,
}

impl Builder {
    pub(super) fn new(nodes: usize) -> Self {
        assert!((1..=9).contains(&nodes), "a plane of {nodes} nodes");
        let (etcd, apiserver) = (Vec::new(), Vec::new());
        Builder {
            nodes,
            asks: Asks::Own,
            own_wal_disk: false,
            disk_mib: 1024,
            apiservers: true,
            deceived: None,
            etcd,
            apiserver,
        }
    }

    pub fn asks(mut self, asks: Asks) -> Self {
        self.asks = asks;
        self
    }

    /// The write-ahead log of each member lies on a disk of its own, so that it can hang alone.
    pub fn own_wal_disk(mut self) -> Self {
        self.own_wal_disk = true;
        self
    }

    /// The size of each disk; 1 GiB by default. They take no more of this machine than is written to them.
    pub fn disk_mib(mut self, mib: u64) -> Self {
        self.disk_mib = mib;
        self
    }

    /// The size from which members refuse writes.
    pub fn quota(self, bytes: u64) -> Self {
        self.etcd_args([format!("--quota-backend-bytes={bytes}")])
    }

    /// The apiserver of this node reaches its member through a [`Liar`](crate::bed::Liar), which passes everything on
    /// until [`PlaneNode::silence_watches`].
    pub fn deceive(mut self, node: usize) -> Self {
        self.deceived = Some(node);
        self
    }

    /// Members alone.
    pub fn without_apiservers(mut self) -> Self {
        self.apiservers = false;
        self
    }

    /// More flags for every member.
    pub fn etcd_args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.etcd.extend(args.into_iter().map(Into::into));
        self
    }

    /// More flags for every apiserver.
    pub fn apiserver_args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.apiserver.extend(args.into_iter().map(Into::into));
        self
    }

    /// Returns once every member serves and every apiserver is ready.
    #[track_caller]
    pub fn start(self) -> ControlPlane {
        let dir = tempfile::Builder::new().prefix("refloat-plane-").tempdir().expect("make a temporary directory");
        let numbers: Vec<u8> = (1..=self.nodes).map(|n| FIRST_NODE + n as u8).collect();
        let addresses: Vec<String> = numbers.iter().map(|n| Network::address(*n).to_string()).collect();
        let vip = Network::address(balancer::NUMBER).to_string();
        let pki = KubePki::make(dir.path(), &[addresses.as_slice(), std::slice::from_ref(&vip)].concat());
        let network = Network::new();

        let peers: Vec<String> =
            addresses.iter().zip(1..).map(|(a, n)| format!("cp{n}=https://{a}:{PEER_PORT}")).collect();
        let disk = || FreezableDisk::new(self.disk_mib);
        let make = |(index, number): (usize, &u8)| {
            let name = format!("cp{}", index + 1);
            let plan = Plan {
                namespace: Arc::new(network.machine(&name, *number)),
                address: addresses[index].clone(),
                dir: dir.path().to_owned(),
                data: disk(),
                wal: self.own_wal_disk.then(disk),
                name,
            };
            PlaneNode::new(plan)
        };
        let nodes: Vec<PlaneNode> = numbers.iter().enumerate().map(make).collect();
        let mut doors: Vec<_> =
            nodes.iter().map(|n| (n.name().to_owned(), format!("{}:{API_PORT}", n.address()))).collect();
        doors.push((balancer::NAME.to_owned(), format!("{vip}:{API_PORT}")));
        if let Some(node) = self.deceived {
            doors.push((format!("{}-member", nodes[node].name()), pki.as_etcd_client(&nodes[node])));
        }
        let gate = Gate::open(&network, dir.path(), &doors);
        let plane = ControlPlane { nodes, network, pki, gate, dir };

        let members: Vec<String> = plane.nodes.iter().map(PlaneNode::client_url).collect();
        let asked = match self.asks {
            Asks::Own => "https://127.0.0.1:2379".to_owned(),
            Asks::All => members.join(","),
        };
        let deceived = |node: &PlaneNode| self.deceived.is_some_and(|index| plane.node(index).name() == node.name());
        for node in &plane.nodes {
            if deceived(node) {
                node.stand_between(&plane.gate.socket(&format!("{}-member", node.name())));
            }
            let member = flags::member(node.plan(), &plane.pki, &peers.join(","), &self.etcd);
            let asked = if deceived(node) { LIAR_URL } else { &asked };
            let apiserver = flags::apiserver(node.plan(), &plane.pki, asked, &self.apiserver);
            node.configure(&plane.pki, member, apiserver);
            node.start_member();
        }
        for node in &plane.nodes {
            plane.wait("a member that serves", || node.member_health().then_some(()));
        }
        if self.apiservers {
            plane.start_apiservers();
        }
        plane
    }
}

impl ControlPlane {
    /// The first one alone, because it fills an empty cluster; then all others.
    #[track_caller]
    fn start_apiservers(&self) {
        let (first, rest) = self.nodes.split_first().expect("at least one node");
        for some in [std::slice::from_ref(first), rest] {
            some.iter().for_each(PlaneNode::start_apiserver);
            for node in some {
                self.wait("an apiserver that is ready", || node.readyz().is_ok().then_some(()));
            }
        }
    }
}
