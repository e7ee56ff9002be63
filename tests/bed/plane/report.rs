//! What nodes looked like while something happened: in the eyes of their kubelets, and in those of somebody who asks an
//! apiserver that is well.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::client::{Client, Trouble};
use super::{ControlPlane, Identity};

/// One thing that happened to a node's heartbeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Renewed,
    /// A request without success: `timed out`, `broken: …`, or the status.
    Failed(String),
    /// The kubelet gave its connection up, as it does from the second failure in a row on.
    Dropped,
    /// It connected, for the so-and-so-manieth time.
    Dialed(u64),
    /// The condition Ready that it read became this.
    Ready(String),
}

/// All that happened to one node, each with the time since the heartbeats began.
#[derive(Debug, Clone, Default)]
pub struct NodeReport {
    pub name: String,
    pub seen: Vec<(Duration, Seen)>,
}

impl NodeReport {
    fn times(&self, what: &Seen) -> impl Iterator<Item = Duration> {
        self.seen.iter().filter(move |(_, seen)| seen == what).map(|(at, _)| *at)
    }

    /// The longest time without a renewal that ended after `since`, or goes on at `now`.
    pub fn longest_gap(&self, since: Duration, now: Duration) -> Duration {
        let times: Vec<Duration> = self.times(&Seen::Renewed).chain([now]).collect();
        let pairs = times.windows(2).filter(|pair| pair[1] >= since);
        pairs.map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or(now)
    }

    pub fn renewals(&self) -> usize {
        self.times(&Seen::Renewed).count()
    }

    pub fn last_renewal(&self) -> Option<Duration> {
        self.times(&Seen::Renewed).last()
    }

    pub fn failures(&self) -> usize {
        self.seen.iter().filter(|(_, seen)| matches!(seen, Seen::Failed(_))).count()
    }

    /// What happened from then on.
    pub fn since(mut self, since: Duration) -> Self {
        self.seen.retain(|(at, _)| *at >= since);
        self
    }

    /// When it connected again, the first time left out.
    pub fn reconnected(&self) -> Vec<Duration> {
        let dialed = self.seen.iter().filter(|(_, seen)| matches!(seen, Seen::Dialed(n) if *n > 1));
        dialed.map(|(at, _)| *at).collect()
    }
}

/// States of the condition Ready by the names of nodes, each with the time at which it was first seen.
pub type States = BTreeMap<String, Vec<(Duration, String)>>;

/// Polls the conditions of all nodes from one apiserver until it is dropped.
pub struct NodeWatch {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<States>>,
    thread: Option<JoinHandle<()>>,
}

impl NodeWatch {
    /// The times are those since `start`.
    pub fn start(plane: &ControlPlane, node: usize, start: Instant) -> Self {
        let (stop, seen) = (Arc::<AtomicBool>::default(), Arc::<Mutex<States>>::default());
        let mut client = plane.client(node, Identity::Admin).stop_with(Arc::clone(&stop));
        let (stopped, all) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Ok(now) = ready(&mut client) {
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    for (name, state) in now {
                        let before = all.entry(name).or_default();
                        if before.last().is_none_or(|(_, last)| *last != state) {
                            before.push((start.elapsed(), state));
                        }
                    }
                }
                std::thread::sleep(Duration::from_millis(250));
            }
        });
        NodeWatch { stop, seen, thread: Some(thread) }
    }

    pub fn seen(&self) -> States {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The nodes that were not ready at any time since then.
    pub fn lost_since(&self, since: Duration) -> Vec<String> {
        let lost = |states: &[(Duration, String)]| states.iter().any(|(at, state)| *at >= since && state != "True");
        self.seen().into_iter().filter(|(_, states)| lost(states)).map(|(name, _)| name).collect()
    }
}

impl Drop for NodeWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The condition Ready of each node that there is.
pub(super) fn ready(client: &mut Client) -> Result<BTreeMap<String, String>, Trouble> {
    let reply = client.get("/api/v1/nodes", Duration::from_secs(10))?;
    if reply.status != 200 {
        return Err(Trouble::Broken(reply.status.to_string()));
    }
    let nodes = reply.json()["items"].as_array().cloned().unwrap_or_default();
    let named =
        |node: &serde_json::Value| (node["metadata"]["name"].as_str().unwrap_or_default().to_owned(), condition(node));
    Ok(nodes.iter().map(named).collect())
}

/// The condition Ready of a Node.
pub(super) fn condition(node: &serde_json::Value) -> String {
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    ready.and_then(|ready| ready["status"].as_str()).unwrap_or("none").to_owned()
}
