//! Health as a document (design §15): what the health process serves, `refloat health` shows, and the status holds in
//! short. Names do not change; more may be added.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::health::facts::Facts;
use crate::health::fence::decide::{Answer, FenceRules, FenceState, FenceTarget, Mode};
use crate::health::model::{Failure, Kind, Mono, Observer, Probe, TargetId, Watched};
use crate::health::verdict::{State, Verdicts};
use crate::health::window::{Standing, Window};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    pub schema: u32,
    pub at: Timestamp,
    pub node: String,
    pub version: String,
    /// Of the health process; `None` for a look by hand.
    pub pid: Option<u32>,
    /// This node first, then members, apiservers, the balancer.
    pub targets: Vec<Target>,
    /// What concerns the whole cluster, or this observer.
    pub shared: Vec<Shared>,
    pub fence: Fence,
    /// What a person should know about the process itself.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// `etcd`, `apiserver`, `node` or `balancer`.
    pub kind: String,
    pub name: String,
    /// `None` for the node itself.
    pub endpoint: Option<String>,
    /// On this node.
    pub local: bool,
    pub state: State,
    pub cause: Option<String>,
    pub reasons: Vec<String>,
    pub advice: Option<String>,
    /// Since when it has had this state.
    pub since: Timestamp,
    pub probes: BTreeMap<String, Answered>,
}

/// The last of one probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// `good`, `failed` or `unknown`.
    pub state: String,
    /// When it was last asked.
    pub at: Option<Timestamp>,
    /// Seconds, of the last answers.
    pub median: Option<f64>,
    /// The failure, or why nothing is known.
    pub said: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    pub cause: String,
    pub reason: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// `off`, `advise` or `balancer`.
    pub mode: String,
    /// `auto`, `apiserver` or `etcd`.
    pub target: String,
    /// `none`, `would`, `fenced` or `held`.
    pub decision: String,
    pub reason: Option<String>,
}

/// In the status of the daemon: the same in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthWord {
    /// The worst of all targets; `unknown` where the health process does not answer.
    pub state: State,
    pub at: Option<Timestamp>,
    /// One sentence.
    pub said: String,
    /// Targets by state.
    pub targets: BTreeMap<String, u32>,
    /// Those that are bad or slow: kind, name, cause.
    pub troubles: Vec<HealthTrouble>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthTrouble {
    pub kind: String,
    pub name: String,
    pub state: State,
    pub cause: Option<String>,
    pub reason: Option<String>,
    pub since: Timestamp,
}

/// Everything that the document is made of.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub watched: &'a Watched,
    pub facts: &'a Facts,
    pub observer: &'a Observer,
    pub verdicts: &'a Verdicts,
    pub rules: &'a FenceRules,
    pub fence: &'a FenceState,
    pub notes: &'a [String],
    pub pid: Option<u32>,
    pub now: Mono,
    pub wall: Timestamp,
}

impl Seen<'_> {
    fn time(&self, at: Mono) -> Timestamp {
        let ago = SignedDuration::try_from(self.now.since(at)).unwrap_or(SignedDuration::ZERO);
        self.wall.checked_sub(ago).unwrap_or(self.wall)
    }
}

/// Pure.
pub fn health(seen: &Seen<'_>) -> Health {
    let mut targets = vec![node(seen)];
    for (id, target) in (0..=u16::MAX).map(TargetId).zip(&seen.watched.targets) {
        let verdict = seen.verdicts.by_target.get(&id);
        let probes = Probe::ALL.into_iter().filter_map(|probe| {
            let window = seen.facts.window(id, probe);
            window.asked()?;
            Some((probe.to_string(), answered(seen, window, seen.facts.standing(id, probe, seen.now))))
        });
        targets.push(Target {
            kind: kind(target.kind).into(),
            name: target.name.clone(),
            endpoint: Some(target.url.clone()),
            local: target.own,
            state: verdict.map_or(State::Unknown, |verdict| verdict.state),
            cause: verdict.and_then(|verdict| verdict.cause).map(|cause| cause.to_string()),
            reasons: verdict.map(|verdict| verdict.reasons.clone()).unwrap_or_default(),
            advice: verdict.and_then(|verdict| verdict.advice.clone()),
            since: seen.time(verdict.map_or(seen.now, |verdict| verdict.since)),
            probes: probes.collect(),
        });
    }
    let shared = seen.verdicts.cluster.iter();
    Health {
        schema: 1,
        at: seen.wall,
        node: seen.watched.node.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        pid: seen.pid,
        targets,
        shared: shared.map(|(cause, reason)| Shared { cause: cause.to_string(), reason: reason.clone() }).collect(),
        fence: fence(seen),
        notes: seen.notes.to_vec(),
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Member => "etcd",
        Kind::Apiserver => "apiserver",
        Kind::Balancer => "balancer",
    }
}

/// The observer, as far as it limits what can be said of others.
fn node(seen: &Seen<'_>) -> Target {
    let blind = seen.verdicts.blind.as_ref();
    let mut reasons: Vec<String> = blind.map(|(_, reason)| reason.clone()).into_iter().collect();
    if let Some(why) = &seen.observer.locked {
        reasons.push(why.clone());
    }
    Target {
        kind: "node".into(),
        name: seen.watched.node.clone(),
        endpoint: None,
        local: true,
        state: if blind.is_some() { State::Unknown } else { State::Good },
        cause: blind.map(|(cause, _)| cause.to_string()),
        reasons,
        advice: None,
        since: seen.time(seen.observer.started),
        probes: BTreeMap::new(),
    }
}

fn answered(seen: &Seen<'_>, window: &Window, standing: Standing) -> Answered {
    let (state, said) = match standing {
        Standing::Good => ("good", None),
        Standing::Failed => ("failed", window.run().map(|run| said(&run.failure))),
        Standing::Unknown => ("unknown", window.unknown().map(String::from)),
    };
    Answered {
        state: state.into(),
        at: window.asked().map(|at| seen.time(at)),
        median: window.median().map(|median| round(median.as_secs_f64())),
        said,
    }
}

fn round(seconds: f64) -> f64 {
    (seconds * 10_000.0).round() / 10_000.0
}

/// A failure in words.
pub fn said(failure: &Failure) -> String {
    match failure {
        Failure::Refused => "the port refuses".into(),
        Failure::Unreachable => "the host does not answer".into(),
        Failure::Silent => "the port accepts, nothing answers".into(),
        Failure::Reset => "the connection was closed".into(),
        Failure::Expired => "a certificate is over".into(),
        Failure::Tls(why) => format!("TLS: {why}"),
        Failure::NoLeader(why) => why.clone(),
        Failure::NoSpace => "etcd refuses writes: its database is full (NOSPACE)".into(),
        Failure::Server(why) => why.clone(),
        Failure::Stale { written, seen } => format!("the cache is at {seen}, and {written} was written"),
    }
}

fn fence(seen: &Seen<'_>) -> Fence {
    let state = seen.fence;
    let down = match &state.answer {
        Answer::Down { reason } => Some(reason.clone()),
        Answer::Up => None,
    };
    let (decision, reason) = match (down, &state.would) {
        (Some(reason), _) if state.by_hand => ("held", Some(reason)),
        (Some(reason), _) => ("fenced", Some(reason)),
        (None, Some(would)) => ("would", Some(would.clone())),
        (None, None) => ("none", None),
    };
    Fence {
        mode: match seen.rules.mode {
            Mode::Off => "off",
            Mode::Advise => "advise",
            Mode::Balancer => "balancer",
        }
        .into(),
        target: match seen.rules.target {
            FenceTarget::Auto => "auto",
            FenceTarget::Apiserver => "apiserver",
            FenceTarget::Etcd => "etcd",
        }
        .into(),
        decision: decision.into(),
        reason: reason.or_else(|| state.why.last().cloned()),
    }
}

impl Health {
    /// The worst of all targets: bad before unknown before slow before good.
    pub fn state(&self) -> State {
        let rank = |state: State| match state {
            State::Good => 0,
            State::Slow => 1,
            State::Unknown => 2,
            State::Bad => 3,
        };
        self.targets.iter().map(|target| target.state).max_by_key(|state| rank(*state)).unwrap_or(State::Unknown)
    }

    /// Whether nothing is left that only waits for its first answers.
    pub fn is_settled(&self) -> bool {
        self.targets.iter().all(|target| target.cause.as_deref() != Some("not-yet-known"))
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        let word = |state: State| {
            let of: Vec<String> = self
                .targets
                .iter()
                .filter(|target| target.state == state)
                .map(|target| {
                    let cause = target.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
                    format!("{} {}{cause}", target.kind, target.name)
                })
                .collect();
            of
        };
        let mut parts = Vec::new();
        for (state, name) in [(State::Bad, "bad"), (State::Slow, "slow"), (State::Unknown, "unknown")] {
            let of = word(state);
            if !of.is_empty() {
                parts.push(format!("{name}: {}", of.join(", ")));
            }
        }
        parts.extend(self.shared.iter().map(|shared| format!("{}: {}", shared.cause, shared.reason)));
        if self.fence.decision != "none" {
            parts.push(format!("fence: {}", self.fence.decision));
        }
        let count = self.targets.len();
        if parts.is_empty() { format!("all of {count} targets are good") } else { parts.join("; ") }
    }

    pub fn word(&self) -> HealthWord {
        let mut targets = BTreeMap::new();
        for target in &self.targets {
            *targets.entry(name(target.state).to_string()).or_insert(0) += 1;
        }
        let troubled = self.targets.iter().filter(|target| matches!(target.state, State::Bad | State::Slow));
        HealthWord {
            state: self.state(),
            at: Some(self.at),
            said: self.sentence(),
            targets,
            troubles: troubled
                .map(|target| HealthTrouble {
                    kind: target.kind.clone(),
                    name: target.name.clone(),
                    state: target.state,
                    cause: target.cause.clone(),
                    reason: target.reasons.first().cloned(),
                    since: target.since,
                })
                .collect(),
        }
    }
}

/// The word of a state.
pub fn name(state: State) -> &'static str {
    match state {
        State::Good => "good",
        State::Slow => "slow",
        State::Bad => "bad",
        State::Unknown => "unknown",
    }
}

impl HealthWord {
    /// The health process does not answer, `since` when it last did.
    pub fn silent(since: Option<Timestamp>, why: &str) -> HealthWord {
        HealthWord {
            state: State::Unknown,
            at: since,
            said: format!("the health process does not answer: {why}"),
            targets: BTreeMap::new(),
            troubles: Vec::new(),
        }
    }
}

/// So long a document may be looked at as the present.
pub const FRESH: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::model::{Outcome, Reading, Sample, Target as Watch};
    use crate::health::rules::Rules;
    use crate::health::verdict::{Cause, Verdict};

    fn watched() -> Watched {
        let of = |kind, name: &str, own| Watch {
            kind,
            name: name.into(),
            url: format!("https://{name}"),
            own,
            learner: false,
        };
        let targets = vec![of(Kind::Member, "a", true), of(Kind::Apiserver, "10.0.0.2:6443", false)];
        Watched { node: "cp1".into(), targets, ..Watched::default() }
    }

    fn verdict(state: State, cause: Option<Cause>) -> Verdict {
        Verdict { state, cause, reasons: vec!["because".into()], advice: None, since: Mono(60_000), by: None }
    }

    fn made(verdicts: Verdicts, fence: FenceState) -> Health {
        let watched = watched();
        let mut facts = Facts::new(Rules::default(), &watched);
        let sample = |probe, outcome| Sample {
            target: TargetId(0),
            probe,
            at: Mono(99_000),
            took: Duration::from_millis(3),
            fresh: false,
            outcome,
        };
        facts.fold(&sample(Probe::E2, Outcome::Good(Reading::Header { revision: 1, term: 1 })));
        facts.fold(&sample(Probe::E3, Outcome::Failed(Failure::Silent)));
        facts.fold(&sample(Probe::E3, Outcome::Failed(Failure::Silent)));
        facts.fold(&sample(Probe::E5, Outcome::Unknown("paused: so it is".into())));
        health(&Seen {
            watched: &watched,
            facts: &facts,
            observer: &Observer::default(),
            verdicts: &verdicts,
            rules: &FenceRules::default(),
            fence: &fence,
            notes: &[],
            pid: Some(1),
            now: Mono(100_000),
            wall: "2026-12-01T00:01:40Z".parse().unwrap(),
        })
    }

    #[test]
    fn the_document_says_what_was_seen_and_since_when() {
        let by_target = [(TargetId(0), verdict(State::Bad, Some(Cause::HungProcess)))].into();
        let health = made(Verdicts { by_target, ..Verdicts::default() }, FenceState::default());
        let member = &health.targets[1];
        assert_eq!((member.kind.as_str(), member.cause.as_deref()), ("etcd", Some("hung-process")));
        assert_eq!(member.since.to_string(), "2026-12-01T00:01:00Z");
        let states: Vec<(&str, &str)> =
            member.probes.iter().map(|(probe, answered)| (probe.as_str(), answered.state.as_str())).collect();
        assert_eq!(states, [("E2", "good"), ("E3", "failed"), ("E5", "unknown")]);
        assert_eq!(member.probes["E3"].said.as_deref(), Some("the port accepts, nothing answers"));
        assert_eq!(member.probes["E5"].said.as_deref(), Some("paused: so it is"));
        assert_eq!(member.probes["E2"].median, Some(0.003));
        assert_eq!((health.state(), health.targets[2].state), (State::Bad, State::Unknown));
        assert_eq!(health.sentence(), "bad: etcd a (hung-process); unknown: apiserver 10.0.0.2:6443");
        let word = health.word();
        assert_eq!((word.targets["bad"], word.troubles.len()), (1, 1));
        let text = serde_json::to_string(&health).unwrap();
        assert_eq!(serde_json::from_str::<Health>(&text).unwrap(), health);
    }

    #[test]
    fn fences_are_told_as_they_are() {
        let down = Answer::Down { reason: "hung".into() };
        for (state, decision, reason) in [
            (FenceState::default(), "none", None),
            (FenceState { would: Some("w".into()), ..FenceState::default() }, "would", Some("w")),
            (FenceState { answer: down.clone(), ..FenceState::default() }, "fenced", Some("hung")),
            (FenceState { answer: down, by_hand: true, ..FenceState::default() }, "held", Some("hung")),
        ] {
            let fence = made(Verdicts::default(), state).fence;
            assert_eq!((fence.decision.as_str(), fence.reason.as_deref()), (decision, reason));
            assert_eq!((fence.mode.as_str(), fence.target.as_str()), ("advise", "auto"));
        }
    }
}
