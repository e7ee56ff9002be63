//! What is the case now, as watchers last saw it; nothing of it needs to survive the process.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::health::HealthWord;
use crate::engine::failure::Failure;
use crate::host::units::UnitFacts;

#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The own member; `None` until it was asked.
    pub member: Option<MemberFact>,
    /// Of etcd, kubelet and the container runtime, where systemd was asked.
    pub units: BTreeMap<String, UnitFacts>,
    /// What the health process said last; `None` until it was asked.
    pub health: Option<HealthWord>,
    /// Why systemd cannot be asked.
    pub no_bus: Option<String>,
}

#[derive(Debug, Clone)]
pub struct MemberFact {
    pub at: Timestamp,
    pub url: String,
    pub answer: Result<Answer, Failure>,
}

/// What the member said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub name: String,
    pub version: String,
    pub revision: i64,
    pub db_size: u64,
}
