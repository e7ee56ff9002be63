//! Asks: one probe of one target, and the samples that came of it.
//!
//! Every target has connections of its own, every call a deadline of its own, and all of a probe another one outside of
//! the client library: whatever a library waits for, a probe ends. Nothing here judges; nothing is asked twice at once
//! ([`super::schedule`] sees to that).
//!
//! [`member`] is E1 to E6, [`apiserver`] A1 to A4 and V1, [`local`] L1: this node itself, [`process`] the
//! own member's process.

mod apiserver;
pub mod local;
mod member;
mod process;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::apiserver::Apiserver;
use self::member::Member;
use super::model::{Failure, Kind, Mono, Outcome, Probe, Reading, Sample, TargetId, Watched};
use super::schedule::Ask;
use crate::etcd::Access;
use crate::kube::probe::Identity;

pub use self::member::probe_key;

/// Beyond the deadline of the client itself.
const SLACK: Duration = Duration::from_millis(250);

/// What probes need besides the targets: read at start, and again on a reload.
#[derive(Debug)]
pub struct Means<'a> {
    pub etcd: &'a Access,
    /// Why apiservers cannot be asked.
    pub kubernetes: Result<&'a Identity, String>,
    /// Of hosts that have a name, by URL.
    pub addresses: &'a BTreeMap<String, IpAddr>,
}

/// The ways to all targets.
#[derive(Debug, Clone)]
pub struct Probes {
    ways: Arc<Vec<Way>>,
}

#[derive(Debug)]
enum Way {
    Member(Box<Member>),
    Apiserver(Box<Apiserver>),
    None(String),
}

/// What one question brought, and how long it took.
#[derive(Debug)]
struct Found {
    probe: Probe,
    begun: Instant,
    took: Duration,
    outcome: Outcome,
}

impl Found {
    fn since(begun: Instant, probe: Probe, outcome: Outcome) -> Found {
        Found { probe, begun, took: begun.elapsed(), outcome }
    }
}

impl Probes {
    /// Dials nothing. A target that cannot be asked at all is *unknown* with the reason.
    pub fn new(watched: &Watched, means: &Means<'_>) -> Probes {
        let lease = Arc::default();
        let way = |target: &super::model::Target| {
            let address = means.addresses.get(&target.url).copied();
            let made = match (target.kind, &means.kubernetes) {
                (Kind::Member, _) => {
                    Member::new(&target.url, address, means.etcd, &watched.node).map(|m| Way::Member(Box::new(m)))
                }
                (Kind::Apiserver | Kind::Balancer, Ok(identity)) => {
                    Apiserver::new(&target.url, address, identity, &watched.node, &lease)
                        .map(|a| Way::Apiserver(Box::new(a)))
                }
                (Kind::Apiserver | Kind::Balancer, Err(why)) => return Way::None(why.clone()),
            };
            made.unwrap_or_else(|error| Way::None(error.line()))
        };
        Probes { ways: Arc::new(watched.targets.iter().map(way).collect()) }
    }

    /// Of nothing.
    pub fn none() -> Probes {
        Probes { ways: Arc::default() }
    }

    /// Runs to its end, which comes within the deadline. `at`: now.
    pub async fn run(&self, ask: Ask, at: Mono) -> Vec<Sample> {
        let begun = Instant::now();
        // A write is followed by a look into the cache, with a deadline of its own.
        let steps = if matches!(ask.probe, Probe::A3 | Probe::A5) { 2 } else { 1 };
        let found = match tokio::time::timeout(ask.deadline * steps + SLACK, self.ask(&ask, begun)).await {
            Ok(found) => found,
            // The library did not keep its own deadline.
            Err(_) => vec![Found::since(begun, ask.probe, Outcome::Failed(Failure::Silent))],
        };
        let sample = |found: Found| Sample {
            target: ask.target,
            probe: found.probe,
            at: at.plus(found.begun.saturating_duration_since(begun)),
            took: found.took,
            fresh: ask.repeat,
            outcome: found.outcome,
        };
        found.into_iter().map(sample).collect()
    }

    async fn ask(&self, ask: &Ask, begun: Instant) -> Vec<Found> {
        match self.ways.get(usize::from(ask.target.0)) {
            Some(Way::Member(member)) => vec![Found::since(begun, ask.probe, member.ask(ask).await)],
            Some(Way::Apiserver(apiserver)) => apiserver.ask(ask).await,
            Some(Way::None(why)) => vec![Found::since(begun, ask.probe, Outcome::Unknown(why.clone()))],
            None => Vec::new(),
        }
    }
}

/// Whether any of it failed: then it is repeated.
pub fn failed(samples: &[Sample]) -> bool {
    samples.iter().any(|sample| matches!(sample.outcome, Outcome::Failed(_)))
}

/// Of the target of `ask`, without an answer: for a task that panicked.
pub fn lost(target: TargetId, probe: Probe, at: Mono) -> Sample {
    let outcome = Outcome::Unknown("the probe itself failed".into());
    Sample { target, probe, at, took: Duration::ZERO, fresh: false, outcome }
}

fn good(reading: Reading) -> Outcome {
    Outcome::Good(reading)
}
