//! Eviction storms: when a bad apiserver or member makes nodes fall silent, the controller evicts their pods, at full speed as
//! long as less than 55 % of a zone are gone. Said before that, and loudly.

use std::time::Duration;

use super::model::{Kind, Watched};
use super::verdict::{State, Verdicts};

/// A kubelet renews every 10 s: two missed in a row.
const SILENT: Duration = Duration::from_secs(25);
/// The controller's grace: 40 s, from Kubernetes 1.32 on 50 s.
const GRACE: Duration = Duration::from_secs(40);
/// Fewer are single faults.
const FEWEST: usize = 3;
/// Share of nodes from which it is no accident.
const SHARE: f64 = 0.1;

/// A node's heartbeat.
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    pub node: String,
    /// Since its Lease was renewed.
    pub age: Duration,
    /// The apiserver by which it last wrote, where that is known.
    pub through: Option<String>,
}

/// The warning, if nodes that stopped reporting go together with a bad target.
pub fn eviction_storm(watched: &Watched, verdicts: &Verdicts, nodes: &[Heartbeat]) -> Option<String> {
    let silent: Vec<&Heartbeat> = nodes.iter().filter(|node| node.age >= SILENT).collect();
    if silent.len() < FEWEST || (silent.len() as f64) < nodes.len() as f64 * SHARE {
        return None;
    }
    let bad: Vec<(&str, String)> = watched
        .of(Kind::Apiserver)
        .chain(watched.of(Kind::Member))
        .filter_map(|(id, target)| {
            let verdict = verdicts.by_target.get(&id).filter(|verdict| verdict.state == State::Bad)?;
            Some((target.name.as_str(), verdict.cause.map_or_else(|| "bad".to_owned(), |cause| cause.to_string())))
        })
        .collect();
    if bad.is_empty() {
        return None;
    }
    // Where it is known through whom they wrote, they must have written through a bad one.
    let known: Vec<&str> = silent.iter().filter_map(|node| node.through.as_deref()).collect();
    let through = known.iter().filter(|through| bad.iter().any(|(name, _)| name == *through)).count();
    if !known.is_empty() && through * 2 < known.len() {
        return None;
    }
    let lost = silent.iter().filter(|node| node.age >= GRACE).count();
    let mut named: Vec<String> = bad.iter().map(|(name, cause)| format!("{name} ({cause})")).collect();
    named.dedup();
    let percent = silent.len() * 100 / nodes.len();
    Some(format!(
        "EVICTION STORM AHEAD: {} of {} nodes ({percent} %) stopped reporting, {lost} of them beyond {} s, while bad: {}; \
         below 55 % of a zone nothing slows the evictions: take the bad path out, or stop kube-controller-manager",
        silent.len(),
        nodes.len(),
        GRACE.as_secs(),
        named.join(", "),
    ))
}
