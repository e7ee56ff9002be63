//! What can go wrong, each undone when what is returned is dropped.
//!
//! Packets are dropped by rules of nftables in a table of their own: on the bridge, where machines talk to each other,
//! or on a machine, where its programs talk to each other.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::net::Namespace;
use super::{CLIENT_PORT, ControlPlane, PEER_PORT, PlaneNode};
use crate::bed::liar::Lie;
use crate::bed::process::{Process, bound_to_us};

/// A longer packet is lost where large ones are.
pub const LARGE: u32 = 1_000;

/// A fault that is there until this is dropped.
#[must_use = "it is undone when it is dropped"]
pub struct Fault {
    undo: Option<Box<dyn FnOnce() + Send>>,
    /// Where the rules of a loss of packets are.
    rules: Option<(Arc<Namespace>, String)>,
    /// Processes that were started for it.
    pids: Vec<u32>,
}

impl Fault {
    fn new(undo: impl FnOnce() + Send + 'static) -> Self {
        Fault { undo: Some(Box::new(undo)), rules: None, pids: Vec::new() }
    }

    /// What matches one of the rules is lost; a chain is a hook with its rules.
    fn packets(at: &Arc<Namespace>, family: &str, chains: &[(&str, Vec<String>)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let table = format!("{family} fault{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let chain = |(hook, rules): &(&str, Vec<String>)| {
            let rules: String = rules.iter().map(|rule| format!("  {rule} counter drop\n")).collect();
            format!(" chain {hook} {{\n  type filter hook {hook} priority 0;\n{rules} }}\n")
        };
        at.nft(&format!("table {table} {{\n{}}}\n", chains.iter().map(chain).collect::<String>()));
        let (namespace, name) = (Arc::clone(at), table.clone());
        let undo = move || {
            // Where the namespace is gone, so are its rules.
            let _ = namespace.run("nft").args(["delete".to_owned(), format!("table {name}")]).run();
        };
        Fault { undo: Some(Box::new(undo)), rules: Some((Arc::clone(at), table)), pids: Vec::new() }
    }

    /// Packets that were lost by it so far.
    #[track_caller]
    pub fn lost(&self) -> u64 {
        let (namespace, table) = self.rules.as_ref().expect("a loss of packets");
        let said = namespace.run("nft").args(["-j".to_owned(), format!("list table {table}")]).run().json();
        let counters = said["nftables"].as_array().into_iter().flatten();
        let expressions = counters.filter_map(|entry| entry["rule"]["expr"].as_array()).flatten();
        expressions.filter_map(|expression| expression["counter"]["packets"].as_u64()).sum()
    }

    /// Processes that were started for it.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    pub fn heal(self) {}
}

impl Drop for Fault {
    fn drop(&mut self) {
        if let Some(undo) = self.undo.take() {
            undo();
        }
    }
}

impl PlaneNode {
    /// SIGSTOP for a program that was started here: its ports stay open, nothing answers. It goes on by itself after two
    /// minutes.
    #[track_caller]
    pub fn hang(&self, name: &str) -> Fault {
        let process = self.process(name);
        process.freeze();
        Fault::new(move || process.thaw())
    }

    #[track_caller]
    pub fn hang_member(&self) -> Fault {
        self.hang("etcd")
    }

    #[track_caller]
    pub fn hang_apiserver(&self) -> Fault {
        self.hang("kube-apiserver")
    }

    /// The disk of the database hangs, and that of the log with it where it has none of its own. At most 90 seconds.
    #[track_caller]
    pub fn freeze_data(&self) -> Fault {
        let frozen = self.data_disk().freeze();
        Fault::new(move || drop(frozen))
    }

    /// The disk of the write-ahead log hangs alone; `own_wal_disk` was asked for. At most 90 seconds.
    #[track_caller]
    pub fn freeze_wal(&self) -> Fault {
        let frozen = self.wal_disk().freeze();
        Fault::new(move || drop(frozen))
    }

    /// Large packets between the clients of etcd on this machine, the apiserver above all, and any member are lost.
    #[track_caller]
    pub fn lose_large_packets_to_etcd(&self) -> Fault {
        let rule = |side: &str| vec![format!("ip length > {LARGE} tcp {side} {CLIENT_PORT}")];
        // Both ends may be here, so each packet is looked at where its client is.
        Fault::packets(self.namespace(), "ip", &[("output", rule("dport")), ("input", rule("sport"))])
    }

    /// Watches of the apiserver stay open and tell nothing, so its cache becomes stale, while reads and writes go on;
    /// it was [deceived](super::Builder::deceive) from the start.
    #[track_caller]
    pub fn silence_watches(&self) -> Fault {
        let liar = self.liar();
        liar.lie(Lie::SilentWatch);
        Fault::new(move || liar.be_honest())
    }

    /// So many programs on this machine that do nothing but count, before all others if this test may do that.
    #[track_caller]
    pub fn burn(&self, programs: usize) -> Fault {
        let burner = |_| {
            let mut command = bound_to_us("nsenter");
            command.args(&self.namespace().entry()[1..]).args(["nice", "-n", "-10", "sh", "-c", "while :; do :; done"]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            Process::start(command)
        };
        let burners: Vec<Process> = (0..programs).map(burner).collect();
        let pids = burners.iter().map(Process::pid).collect();
        let mut fault = Fault::new(move || drop(burners));
        fault.pids = pids;
        fault
    }
}

impl ControlPlane {
    /// Members on one side do not hear those on the other; everything else goes on.
    #[track_caller]
    pub fn partition_members(&self, one: &[usize], other: &[usize]) -> Fault {
        let rules = self.between(one, other, |way| {
            ["dport", "sport"].iter().map(|side| format!("{way} tcp {side} {PEER_PORT}")).collect()
        });
        Fault::packets(&self.network.bridge, "bridge", &[("forward", rules)])
    }

    /// Nothing goes to or comes from a node.
    #[track_caller]
    pub fn isolate(&self, node: usize) -> Fault {
        let port = format!("v{}", super::build::FIRST_NODE as usize + node + 1);
        let rules = vec![format!("iifname {port}"), format!("oifname {port}")];
        Fault::packets(&self.network.bridge, "bridge", &[("forward", rules)])
    }

    /// Packets of more than [`LARGE`] bytes between two nodes are lost, smaller ones are not: a path whose MTU is
    /// smaller than both ends think, and that does not tell.
    #[track_caller]
    pub fn lose_large_packets(&self, one: usize, other: usize) -> Fault {
        let rules = self.between(&[one], &[other], |way| vec![format!("{way} ip length > {LARGE}")]);
        Fault::packets(&self.network.bridge, "bridge", &[("forward", rules)])
    }

    /// Rules for both directions.
    fn between(&self, one: &[usize], other: &[usize], rule: impl Fn(&str) -> Vec<String>) -> Vec<String> {
        let set = |nodes: &[usize]| {
            let addresses: Vec<&str> = nodes.iter().map(|i| self.node(*i).address()).collect();
            addresses.join(", ")
        };
        let (one, other) = (set(one), set(other));
        let way = |from: &str, to: &str| format!("ip saddr {{ {from} }} ip daddr {{ {to} }}");
        [way(&one, &other), way(&other, &one)].iter().flat_map(|way| rule(way)).collect()
    }
}
