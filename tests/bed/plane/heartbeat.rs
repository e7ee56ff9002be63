//! Kubelets, as far as their heartbeats go: each has a Node and a Lease, a certificate of its own, and one connection
//! through the balancer.
//!
//! What a kubelet does: every ten seconds it renews its Lease; a request may take ten seconds; after a failure it tries
//! again at once, up to five times in all; from the second failure in a row on it gives its connection up after each
//! and dials anew. It reads its Node as often, from the cache of the apiserver, and writes its status when somebody else
//! has changed that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, Reply, Trouble};
use super::report::{NodeReport, Seen, condition};
use super::{ControlPlane, Identity};

/// The times of a kubelet.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub period: Duration,
    /// What the Lease says of itself; nothing decides by it.
    pub lease: Duration,
    pub limit: Duration,
    /// Attempts, of which the first is at the period and the others follow at once.
    pub attempts: u32,
}

impl Default for Rules {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Rules { period: seconds(10), lease: seconds(40), limit: seconds(10), attempts: 5 }
    }
}

/// All of them; they end when it is dropped.
pub struct Heartbeats {
    start: Instant,
    stop: Arc<AtomicBool>,
    reports: Vec<Arc<Mutex<NodeReport>>>,
    // Dropping a sender wakes the thread that waits for its next period.
    wakers: Vec<mpsc::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Heartbeats {
    /// So many nodes, `worker-1` and so on, whose periods are spread evenly. Returns once each has renewed its Lease.
    #[track_caller]
    pub fn start(plane: &ControlPlane, count: usize, rules: Rules) -> Self {
        let mut all = Heartbeats {
            start: Instant::now(),
            stop: Arc::default(),
            reports: Vec::new(),
            wakers: Vec::new(),
            threads: Vec::new(),
        };
        for number in 0..count {
            let name = format!("worker-{}", number + 1);
            let report = Arc::new(Mutex::new(NodeReport { name: name.clone(), seen: Vec::new() }));
            let client = plane.balanced(Identity::Kubelet(name.clone())).stop_with(Arc::clone(&all.stop));
            let (waker, woken) = mpsc::channel();
            let kubelet = Kubelet {
                name,
                rules,
                client,
                lease: None,
                start: all.start,
                stop: Arc::clone(&all.stop),
                report: Arc::clone(&report),
            };
            let first = rules.period.mul_f64(number as f64 / count as f64);
            all.reports.push(report);
            all.wakers.push(waker);
            all.threads.push(std::thread::spawn(move || kubelet.run(first, &woken)));
        }
        let renewed = || all.reports().iter().all(|r| r.last_renewal().is_some()).then_some(());
        plane.wait("a Lease of every node", renewed);
        all
    }

    /// The time to which the reports refer.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub fn started(&self) -> Instant {
        self.start
    }

    pub fn reports(&self) -> Vec<NodeReport> {
        self.reports.iter().map(|report| lock(report).clone()).collect()
    }

    /// The longest gap of all: see [`NodeReport::longest_gap`].
    pub fn longest_gap(&self, since: Duration) -> Duration {
        let now = self.now();
        self.reports().iter().map(|report| report.longest_gap(since, now)).max().unwrap_or_default()
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wakers.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct Kubelet {
    name: String,
    rules: Rules,
    client: Client,
    /// As it was last written or read.
    lease: Option<Value>,
    start: Instant,
    stop: Arc<AtomicBool>,
    report: Arc<Mutex<NodeReport>>,
}

impl Kubelet {
    fn run(mut self, first: Duration, woken: &mpsc::Receiver<()>) {
        let mut next = self.start + first;
        while !self.stop.load(Ordering::Relaxed) {
            self.renew();
            self.look_at_node();
            // A period that was missed is not made up for.
            while next <= Instant::now() {
                next += self.rules.period;
            }
            let wait = next.saturating_duration_since(Instant::now());
            if woken.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    fn renew(&mut self) {
        for attempt in 0..self.rules.attempts {
            match self.write_lease() {
                Ok(true) => return self.note(Seen::Renewed),
                // Somebody wrote it, perhaps this one in a request without an answer: it was read again.
                Ok(false) => {}
                Err(_) if self.stop.load(Ordering::Relaxed) => return,
                Err(why) => {
                    self.note(Seen::Failed(why));
                    if attempt > 0 {
                        self.client.drop_connection();
                        self.note(Seen::Dropped);
                    }
                }
            }
        }
    }

    /// Ok(false) where it must be tried again with what is known now.
    fn write_lease(&mut self) -> Result<bool, String> {
        const ALL: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let own = format!("{ALL}/{}", self.name);
        let spec = json!({
            "holderIdentity": self.name,
            "leaseDurationSeconds": self.rules.lease.as_secs(),
            "renewTime": format!("{:.6}", jiff::Timestamp::now()),
        });
        let Some(mut lease) = self.lease.take() else {
            let found = self.ask(|client, limit| client.get(&own, limit))?;
            if found.status == 200 {
                self.lease = Some(found.json());
                return Ok(false);
            }
            let metadata = json!({ "name": self.name, "namespace": "kube-node-lease" });
            let lease =
                json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec });
            let made = self.ask(|client, limit| client.post(ALL, &lease, limit))?;
            return self.written(&made, 201);
        };
        lease["spec"] = spec;
        let written = self.ask(|client, limit| client.put(&own, &lease, limit));
        match written {
            Ok(reply) if reply.status == 409 => Ok(false),
            Ok(reply) => self.written(&reply, 200),
            Err(why) => {
                self.lease = Some(lease);
                Err(why)
            }
        }
    }

    fn written(&mut self, reply: &Reply, wanted: u16) -> Result<bool, String> {
        if reply.status != wanted {
            return Err(reply.status.to_string());
        }
        self.lease = Some(reply.json());
        Ok(true)
    }

    /// Its own Node, from the cache: made where there is none, its status written where it is not what it should be.
    fn look_at_node(&mut self) {
        let own = format!("/api/v1/nodes/{}", self.name);
        let Ok(found) = self.ask(|client, limit| client.get(&format!("{own}?resourceVersion=0"), limit)) else {
            return;
        };
        let status = json!({ "status": status() });
        if found.status == 404 {
            let metadata = json!({ "name": self.name, "labels": { "kubernetes.io/hostname": self.name } });
            let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status["status"] });
            let _ = self.ask(|client, limit| client.post("/api/v1/nodes", &node, limit));
            return;
        }
        if found.status != 200 {
            return;
        }
        let ready = condition(&found.json());
        let known = lock(&self.report).seen.iter().rev().find_map(|(_, seen)| match seen {
            Seen::Ready(ready) => Some(ready.clone()),
            _ => None,
        });
        if known.as_ref() != Some(&ready) {
            self.note(Seen::Ready(ready.clone()));
        }
        if ready != "True" {
            let _ = self.ask(|client, limit| client.patch(&format!("{own}/status"), &status, limit));
        }
    }

    /// One request. A new connection is noted.
    fn ask(&mut self, ask: impl Fn(&mut Client, Duration) -> Result<Reply, Trouble>) -> Result<Reply, String> {
        let before = self.client.dials();
        let reply = ask(&mut self.client, self.rules.limit);
        if self.client.dials() != before {
            self.note(Seen::Dialed(self.client.dials()));
        }
        reply.map_err(|trouble| match trouble {
            Trouble::TimedOut => "timed out".to_owned(),
            Trouble::Broken(why) => format!("broken: {why}"),
        })
    }

    fn note(&self, seen: Seen) {
        let at = self.start.elapsed();
        lock(&self.report).seen.push((at, seen));
    }
}

fn status() -> Value {
    let now = format!("{:.0}", jiff::Timestamp::now());
    let size = json!({ "cpu": "8", "memory": "32Gi", "pods": "110" });
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "a kubelet of the bed",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    json!({ "capacity": size, "allocatable": size, "conditions": [ready] })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
