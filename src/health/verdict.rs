//! What the facts mean: for each target a state, a cause, the reasons and an advice. Pure; recorded traces and a corpus of
//! simulated faults hold it (law 7: unknown is not bad, not good).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::model::{Mono, TargetId};

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
    ExpiredCertificate,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub state: State,
    pub cause: Option<Cause>,
    /// In words, with figures; the first says most.
    pub reasons: Vec<String>,
    /// What a person may do.
    pub advice: Option<String>,
    pub since: Mono,
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
