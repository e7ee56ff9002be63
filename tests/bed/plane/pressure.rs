//! A client that asks for too much: all pods as they are now, many times a second, which no cache may answer unasked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::{ControlPlane, Identity, PATIENCE};

/// Connections, so that slow answers do not slow the requests down.
const CONNECTIONS: u32 = 8;
/// Who asks.
pub const LISTER: &str = "lister";

/// Ends when dropped.
pub struct Pressure {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    slowest: Mutex<Duration>,
}

impl Pressure {
    /// Against the apiserver of one node; the user `lister` gets the right to read first.
    #[track_caller]
    pub fn start(plane: &ControlPlane, node: usize, per_second: u32) -> Self {
        let (name, group) = (format!("bed-{LISTER}"), "rbac.authorization.k8s.io");
        // A role of its own: the usual ones are put together by a controller, which need not run.
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": { "name": name },
            "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list"] }],
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": LISTER }],
        });
        for (kind, object) in [("clusterroles", &role), ("clusterrolebindings", &binding)] {
            let made = plane.client(node, Identity::Admin).post(&format!("/apis/{group}/v1/{kind}"), object, PATIENCE);
            assert!(made.as_ref().is_ok_and(|r| matches!(r.status, 201 | 409)), "make {name}: {made:?}");
        }

        let (stop, counts) = (Arc::<AtomicBool>::default(), Arc::<Counts>::default());
        let pause = Duration::from_secs(1) * CONNECTIONS / per_second;
        let start = |_| {
            let client = plane.client(node, Identity::User(LISTER.into())).stop_with(Arc::clone(&stop));
            let (stop, counts) = (Arc::clone(&stop), Arc::clone(&counts));
            std::thread::spawn(move || ask(client, pause, &stop, &counts))
        };
        Pressure { threads: (0..CONNECTIONS).map(start).collect(), stop, counts }
    }

    /// Lists that were answered.
    pub fn answered(&self) -> u64 {
        self.counts.answered.load(Ordering::Relaxed)
    }

    /// Those that were answered with anything but the pods, or not at all.
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Ordering::Relaxed)
    }

    pub fn slowest(&self) -> Duration {
        *self.counts.slowest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pressure {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn ask(mut client: Client, pause: Duration, stop: &AtomicBool, counts: &Counts) {
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let reply = client.get("/api/v1/pods", Duration::from_secs(60));
        let count = if reply.is_ok_and(|r| r.status == 200) { &counts.answered } else { &counts.refused };
        count.fetch_add(1, Ordering::Relaxed);
        let mut slowest = counts.slowest.lock().unwrap_or_else(PoisonError::into_inner);
        *slowest = slowest.max(asked.elapsed());
        drop(slowest);
        // The load that is asked for, not a wait for anything.
        std::thread::sleep(pause.saturating_sub(asked.elapsed()));
    }
}
