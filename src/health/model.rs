//! The words of health: what is watched, what was asked, what came back. Values alone; nothing here talks or decides.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// CLOCK_BOOTTIME in milliseconds: no clock step moves it, and it goes on while the machine is suspended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mono(pub u64);

impl Mono {
    /// Zero where `earlier` is the later one.
    pub fn since(self, earlier: Mono) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    pub fn plus(self, span: Duration) -> Mono {
        Mono(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A place in [`Watched::targets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TargetId(pub u16);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An etcd member, by its client URL.
    Member,
    Apiserver,
    /// Apiservers through their balancer.
    Balancer,
}

/// One thing that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub kind: Kind,
    /// Unique among those of its kind; fences rank by it. The member's name, else host and port.
    pub name: String,
    pub url: String,
    /// Runs on this node.
    pub own: bool,
    /// Answers no linearizable read and is no part of a quorum.
    pub learner: bool,
}

/// Which members an apiserver asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Each apiserver its own host's member: when that hangs, the apiserver is dead.
    Local,
    /// Each apiserver all members: what is dead must be taken out as a member.
    All,
    #[default]
    Unknown,
}

/// Everything that this node watches. Changes only by a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    pub node: String,
    pub targets: Vec<Target>,
    pub layout: Layout,
}

impl Watched {
    pub fn target(&self, id: TargetId) -> Option<&Target> {
        self.targets.get(usize::from(id.0))
    }

    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (TargetId, &Target)> {
        let ids = (0..=u16::MAX).map(TargetId);
        ids.zip(&self.targets).filter(move |(_, target)| target.kind == kind)
    }

    /// The one of this kind on this node.
    pub fn own(&self, kind: Kind) -> Option<(TargetId, &Target)> {
        self.of(kind).find(|(_, target)| target.own)
    }
}

/// The table in docs/health.md says what each sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Probe {
    /// Fresh TCP and TLS handshake, certificate's end.
    E1,
    /// Serializable read.
    E2,
    /// Linearizable read.
    E3,
    /// Alarm GET: a raft proposal that changes no key.
    E4,
    /// Put of 16 KiB to this node's key, and its read-back.
    E5,
    /// Status.
    E6,
    /// `/readyz` and `/livez`.
    A1,
    /// GET of this node's Lease without resourceVersion.
    A2,
    /// Renews this node's Lease.
    A3,
    /// The same Lease at resourceVersion=0 must catch up.
    A4,
    /// A3 padded to 16 KiB: a fact of its own, because the small ones between would say good.
    A5,
    /// A2 through the balancer.
    V1,
}

impl Probe {
    pub const ALL: [Probe; 12] = [
        Probe::E1,
        Probe::E2,
        Probe::E3,
        Probe::E4,
        Probe::E5,
        Probe::E6,
        Probe::A1,
        Probe::A2,
        Probe::A3,
        Probe::A4,
        Probe::A5,
        Probe::V1,
    ];

    /// Its place in [`Probe::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// One question and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub target: TargetId,
    pub probe: Probe,
    /// When it was asked.
    pub at: Mono,
    pub took: Duration,
    /// On a connection made for it: a repeat after a failure.
    pub fresh: bool,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Good(Reading),
    Failed(Failure),
    /// It could not be asked, or the answer says nothing about the target (403, 404, 429, a paused probe).
    Unknown(String),
}

/// What etcd's and the apiserver's metrics tell beside the probes; explains, never judges alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Gauges {
    pub at: Mono,
    /// etcd, 99th percentile of the last minute.
    #[serde(default)]
    pub fsync: Option<Duration>,
    #[serde(default)]
    pub commit: Option<Duration>,
    /// Apiserver: LISTs that reach etcd.
    #[serde(default)]
    pub lists: Vec<ListRate>,
}

/// LISTs of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListRate {
    pub resource: String,
    pub per_second: f64,
    /// Objects that etcd read for them, each second.
    pub objects_per_second: f64,
    /// Only where APF's request dump or an audit log tells.
    pub client: Option<String>,
}

/// What somebody announced: until then its silence is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    pub what: Work,
    pub until: Mono,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    Defragmentation,
    Restart,
}

/// What a good answer carried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    #[default]
    Nothing,
    /// E1, and A1 for the apiserver: seconds since the epoch at which the served certificate ends.
    Certificate {
        not_after: i64,
    },
    /// E2 to E5.
    Header {
        revision: i64,
        term: u64,
    },
    /// E4: alarms of the whole cluster, `nospace` or `corrupt`, with the member's id.
    Alarms {
        revision: i64,
        term: u64,
        alarms: Vec<(String, u64)>,
    },
    Status(Status),
    /// A1: names of the checks that fail; `readyz` and `livez` together.
    Checks {
        ready: bool,
        live: bool,
        failing: Vec<String>,
    },
    /// A2 to A4: the Lease's resourceVersion.
    Lease {
        revision: u64,
    },
}

/// E6.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub cluster_id: u64,
    pub member_id: u64,
    pub version: String,
    /// 0: it knows none.
    pub leader: u64,
    pub term: u64,
    pub revision: i64,
    pub index: u64,
    pub applied: u64,
    /// Bytes.
    pub db_size: u64,
    pub db_in_use: u64,
    /// Bytes, where the member tells it (3.6 and later).
    pub quota: Option<u64>,
    pub learner: bool,
    pub errors: Vec<String>,
}

/// How it failed, as far as the client can tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Nobody listens.
    Refused,
    /// No route, or the handshake of TCP got no answer.
    Unreachable,
    /// The port accepts, nothing comes back within the deadline.
    Silent,
    /// The other side closed or reset it.
    Reset,
    /// The certificate that was served is over, or ours was refused as such.
    Expired,
    Tls(String),
    /// etcd: no leader, request timed out, leader changed.
    NoLeader(String),
    /// etcd refuses writes until space is made.
    NoSpace,
    /// The answer came and is an error: HTTP 5xx, or a gRPC status that is about the server.
    Server(String),
    /// A4: still an older resourceVersion than the write gave.
    Stale {
        written: u64,
        seen: u64,
    },
}

impl Failure {
    /// About certificates: established connections are not touched by it.
    pub fn is_handshake(&self) -> bool {
        matches!(self, Failure::Expired | Failure::Tls(_))
    }
}

/// Own condition (L1): whether this observer may judge anybody.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observer {
    pub at: Mono,
    /// By how much the last timers were late: the worst of ten seconds.
    pub lateness: Duration,
    /// Share of time, 0 to 1, that tasks waited for the processor (PSI `some`, 10 s); `None`: this kernel has none.
    pub cpu_pressure: Option<f64>,
    pub memory_pressure: Option<f64>,
    /// Bytes available.
    pub memory_available: Option<u64>,
    /// The wall clock moved against the other by so much, seconds, within the last minute.
    pub clock_step: Option<i64>,
    /// The own client certificate is over.
    pub certificate_expired: bool,
    pub data_dir: Option<DataDir>,
    /// The own member's process, where it can be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Locked in memory; why not.
    pub locked: Option<String>,
    /// Since then it has been running.
    pub started: Mono,
}

/// What `/proc` says of the own member's process: it tells a hung disk from lost packets, which look alike by any request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// State T: stopped by a signal or a tracer.
    pub stopped: bool,
    /// A thread has been in state D (waiting for a disk) at every look since then.
    pub blocked_since: Option<Mono>,
}

/// The own member's data directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DataDir {
    /// `ext4`, `nfs4`, `ceph` …
    pub file_system: Option<String>,
    /// Bytes; `None` while `statfs` does not answer.
    pub free: Option<u64>,
    /// `statfs` has been waited for since then.
    pub hung_since: Option<Mono>,
    /// Seconds until it is full at the rate of the last minutes.
    pub full_in: Option<u64>,
}
