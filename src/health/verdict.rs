//! What the facts mean: for each target a state, a cause, the reasons and an advice. Pure; recorded traces and a corpus of
//! simulated faults hold it (law 7: unknown is not bad, not good).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::judge::{self, View};
use super::model::{Mono, Observer, Probe, TargetId, Watched};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Good,
    Slow,
    Bad,
    Unknown,
}

/// Why a target is not good (design §11). The words are part of the JSON interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Ports accept, nothing answers.
    HungProcess,
    /// The port refuses.
    Stopped,
    /// Its host does not answer.
    Unreachable,
    FrozenDisk,
    StalledWal,
    NoQuorumHere,
    NoQuorumAnywhere,
    LargePacketsLost,
    NoSpace,
    /// The alarm CORRUPT.
    Corrupt,
    ExpiredCertificate,
    /// The handshake fails for another reason than the date.
    TlsFailed,
    /// It answers, with errors of its own.
    AnswersErrors,
    StaleCache,
    /// This apiserver's member is bad.
    EtcdBehindIt,
    WritesRefused,
    Defragmentation,
    Election,
    ListOverload,
    SlowStorage,
    SlowMember,
    OwnIsolation,
    OwnStarvation,
    OwnClock,
    OwnCertificate,
    /// Too few answers yet.
    NotYetKnown,
}

impl Cause {
    pub const ALL: [Cause; 26] = [
        Cause::HungProcess,
        Cause::Stopped,
        Cause::Unreachable,
        Cause::FrozenDisk,
        Cause::StalledWal,
        Cause::NoQuorumHere,
        Cause::NoQuorumAnywhere,
        Cause::LargePacketsLost,
        Cause::NoSpace,
        Cause::Corrupt,
        Cause::ExpiredCertificate,
        Cause::TlsFailed,
        Cause::AnswersErrors,
        Cause::StaleCache,
        Cause::EtcdBehindIt,
        Cause::WritesRefused,
        Cause::Defragmentation,
        Cause::Election,
        Cause::ListOverload,
        Cause::SlowStorage,
        Cause::SlowMember,
        Cause::OwnIsolation,
        Cause::OwnStarvation,
        Cause::OwnClock,
        Cause::OwnCertificate,
        Cause::NotYetKnown,
    ];

    /// The word of the JSON interface.
    pub fn word(self) -> &'static str {
        match self {
            Cause::HungProcess => "hung-process",
            Cause::Stopped => "stopped",
            Cause::Unreachable => "unreachable",
            Cause::FrozenDisk => "frozen-disk",
            Cause::StalledWal => "stalled-wal",
            Cause::NoQuorumHere => "no-quorum-here",
            Cause::NoQuorumAnywhere => "no-quorum-anywhere",
            Cause::LargePacketsLost => "large-packets-lost",
            Cause::NoSpace => "no-space",
            Cause::Corrupt => "corrupt",
            Cause::ExpiredCertificate => "expired-certificate",
            Cause::TlsFailed => "tls-failed",
            Cause::AnswersErrors => "answers-errors",
            Cause::StaleCache => "stale-cache",
            Cause::EtcdBehindIt => "etcd-behind-it",
            Cause::WritesRefused => "writes-refused",
            Cause::Defragmentation => "defragmentation",
            Cause::Election => "election",
            Cause::ListOverload => "list-overload",
            Cause::SlowStorage => "slow-storage",
            Cause::SlowMember => "slow-member",
            Cause::OwnIsolation => "own-isolation",
            Cause::OwnStarvation => "own-starvation",
            Cause::OwnClock => "own-clock",
            Cause::OwnCertificate => "own-certificate",
            Cause::NotYetKnown => "not-yet-known",
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub state: State,
    pub cause: Option<Cause>,
    /// In words, with figures; the first says most.
    pub reasons: Vec<String>,
    /// What a person may do.
    pub advice: Option<String>,
    /// Since when it has had this state.
    pub since: Mono,
    /// The fact that judged it: of this target, or of the member behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<(TargetId, Probe)>,
}

/// All targets at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdicts {
    pub at: Mono,
    pub by_target: BTreeMap<TargetId, Verdict>,
    /// Causes that concern the whole cluster or this observer, with reasons: shared fate.
    pub cluster: Vec<(Cause, String)>,
    /// Why this observer may judge nobody now.
    pub blind: Option<(Cause, String)>,
}

impl Verdicts {
    pub fn state(&self, id: TargetId) -> State {
        self.by_target.get(&id).map_or(State::Unknown, |verdict| verdict.state)
    }
}

/// What the facts mean at `now`. `before` gives only since when a state has lasted.
pub fn verdict(watched: &Watched, facts: &Facts, observer: &Observer, before: &Verdicts, now: Mono) -> Verdicts {
    judge::all(&View { rules: facts.rules(), watched, facts, observer, now }, before)
}
