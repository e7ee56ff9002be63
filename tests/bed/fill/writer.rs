//! A steady writer beside what is tested, and what its writes cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use etcd_client::Client;
use tokio::task::JoinHandle;

use super::super::target::{block_on, runtime};

/// Latencies of the writes that succeeded.
#[derive(Debug, Clone, Copy)]
pub struct Stats {
    pub writes: usize,
    pub errors: usize,
    pub median: Duration,
    pub p99: Duration,
    pub longest: Duration,
}

pub struct Writer {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Stats>,
}

impl Writer {
    pub(super) fn start(mut client: Client) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let task = runtime().spawn(async move {
            let (mut took, mut errors) = (Vec::new(), 0);
            while !stopped.load(Ordering::Relaxed) {
                let started = Instant::now();
                // A few keys again and again: what grows is the number of revisions.
                let key = format!("/registry/writer/{}", took.len() % 100);
                match client.put(key, "x".repeat(256), None).await {
                    Ok(_) => took.push(started.elapsed()),
                    Err(_) => errors += 1,
                }
            }
            took.sort_unstable();
            let at = |share: f64| took.get((took.len() as f64 * share) as usize).copied().unwrap_or_default();
            let longest = took.last().copied().unwrap_or_default();
            Stats { writes: took.len(), errors, median: at(0.5), p99: at(0.99), longest }
        });
        Writer { stop, task }
    }

    #[track_caller]
    pub fn stop(self) -> Stats {
        self.stop.store(true, Ordering::Relaxed);
        block_on(self.task).expect("the writer does not panic")
    }
}
