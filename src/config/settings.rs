//! The validated configuration, as all other modules see it, and the default of every key.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use croner::Cron;
use jiff::tz::TimeZone;
use serde::Deserialize;
use url::Url;

use super::window::Window;

/// Everything that can be configured. Nothing in here needs checking again.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Name of this node in snapshot ids: `[a-z0-9.-]{1,63}`.
    pub node: String,
    pub paths: PathSettings,
    pub etcd: EtcdSettings,
    /// At least one; names are unique.
    pub stores: Vec<StoreSettings>,
    pub snapshot: SnapshotSettings,
    pub maintain: MaintainSettings,
    pub fence: FenceSettings,
    pub health: HealthSettings,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSettings {
    /// Absolute; what must survive a reboot.
    pub state: PathBuf,
    /// Absolute; locks and sockets.
    pub runtime: PathBuf,
}

impl Default for PathSettings {
    fn default() -> Self {
        PathSettings { state: "/var/lib/refloat".into(), runtime: "/run/refloat".into() }
    }
}

/// How to reach etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdSettings {
    /// The own member: name, id in hex or client URL. `None`: the endpoint on this host, else the only one.
    pub member: Option<String>,
    /// Client URLs `http://host:port` or `https://host:port`, no trailing slash; at least one, no two alike.
    pub endpoints: Vec<String>,
    /// Where Kubernetes keeps its keys: begins with `/`, does not end with it.
    pub prefix: String,
    /// PEM. There are no built-in authorities, so every `https` endpoint needs it.
    pub ca_file: Option<PathBuf>,
    /// PEM; both or neither.
    pub client_cert: Option<ClientCert>,
    /// Both or neither.
    pub login: Option<Login>,
    /// For each single request that is not a stream.
    pub timeout: Duration,
    /// Of the own member, absolute: backups must not fill its file system.
    pub data_dir: Option<PathBuf>,
}

impl Default for EtcdSettings {
    fn default() -> Self {
        EtcdSettings {
            member: None,
            endpoints: vec!["http://127.0.0.1:2379".into()],
            prefix: "/registry".into(),
            ca_file: None,
            client_cert: None,
            login: None,
            timeout: Duration::from_secs(5),
            data_dir: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCert {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub username: String,
    /// Holds the password alone; a line break at its end does not count.
    pub password_file: PathBuf,
}

/// One place for backups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// `[a-z0-9-]{1,63}`.
    pub name: String,
    pub url: Url,
    /// The absolute directory that `url` names.
    pub path: PathBuf,
    pub min_free: MinFree,
    /// `None`: no limit of its own.
    pub max_bytes: Option<u64>,
    pub scope: Scope,
    /// How long removed snapshots wait in the trash.
    pub trash_grace: Duration,
    pub retention: RetentionSettings,
}

/// Space that backups leave to others on the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinFree {
    /// By what else lives there.
    Auto,
    Bytes(u64),
}

impl MinFree {
    /// kubelet evicts pods below 15 % free; stay well away from that on its disk, and from etcd's.
    const SHARED_FLOOR: u64 = 2 << 30;

    /// Bytes that are left to others on a file system of `total` bytes. `shared`: kubelet's or etcd's directory lies
    /// there too.
    pub fn bytes(self, total: u64, shared: bool) -> u64 {
        match (self, shared) {
            (MinFree::Bytes(n), _) => n,
            (MinFree::Auto, true) => MinFree::SHARED_FLOOR.max(total / 5),
            (MinFree::Auto, false) => total / 20,
        }
    }
}

/// Whose snapshots count in retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Node,
    Cluster,
}

/// What is wanted; 0 switches a rule off. At least one rule keeps something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionSettings {
    pub keep_last: u32,
    pub keep_within: Duration,
    pub keep_hourly: u32,
    pub keep_daily: u32,
    pub keep_weekly: u32,
    pub keep_monthly: u32,
    /// Verified snapshots that no rule and no limit takes away.
    pub min_keep: u32,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        RetentionSettings {
            keep_last: 4,
            keep_within: Duration::from_secs(6 * 3600),
            keep_hourly: 24,
            keep_daily: 14,
            keep_weekly: 0,
            keep_monthly: 0,
            min_keep: 3,
        }
    }
}

impl StoreSettings {
    pub(super) const DEFAULT_NAME: &str = "local";
    pub(super) const DEFAULT_URL: &str = "file:///var/lib/refloat/store";
    pub(super) const DEFAULT_TRASH_GRACE: Duration = Duration::from_secs(24 * 3600);
}

/// When a defragmentation pays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintainSettings {
    /// Bytes that it must free.
    pub min_gain: u64,
    /// Of the database file.
    pub min_gain_percent: u32,
}

impl Default for MaintainSettings {
    fn default() -> Self {
        MaintainSettings { min_gain: 256 << 20, min_gain_percent: 25 }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotSettings {
    pub schedule: Schedule,
    /// For the cron expression and for retention's hours, days, weeks and months.
    pub timezone: TimeZone,
    /// Scheduled snapshots are taken only within it.
    pub window: Option<Window>,
    /// How far this node is behind the slots; `None`: by its name.
    pub shift: Option<Duration>,
    pub agreement: Agreement,
    /// Bytes of the database a second that the daemon takes from the member; `None`: as fast as it comes.
    pub rate: Option<u64>,
    /// No bytes for this long is a failure.
    pub stall_timeout: Duration,
    /// The longest deadline that a take gets, however large the database.
    pub max_duration: Duration,
}

impl SnapshotSettings {
    pub(super) const DEFAULT_SCHEDULE: &str = "*/30 * * * *";
    pub(super) const DEFAULT_TIMEZONE: &str = "UTC";
    pub(super) const DEFAULT_RATE: u64 = 64 << 20;
    /// Deadlines by size assume more than half of it.
    pub(super) const LEAST_RATE: u64 = 10 << 20;
    pub(super) const DEFAULT_STALL_TIMEOUT: Duration = Duration::from_secs(30);
    pub(super) const DEFAULT_MAX_DURATION: Duration = Duration::from_secs(2 * 3600);
}

#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// Five fields; known to have a next time.
    Cron(Box<Cron>),
    Every(Duration),
}

/// Whether a snapshot is compared with live members by HashKV, which blocks a busy member while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// Only where the call is predicted to be short.
    Auto,
    Off,
    Always,
}

/// What balancers hear about this node, and where they ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceSettings {
    pub mode: FenceMode,
    pub target: FenceTarget,
    /// HAProxy's agent-check; the port is not 0. The two differ.
    pub agent_check: SocketAddr,
    /// `GET /ready`.
    pub http: SocketAddr,
}

impl Default for FenceSettings {
    fn default() -> Self {
        let any = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        FenceSettings { mode: FenceMode::Advise, target: FenceTarget::Auto, agent_check: any(9978), http: any(9979) }
    }
}

/// How far a verdict reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FenceMode {
    /// Always up, also by hand.
    Off,
    /// Says what it would do. Always up, unless a person says down.
    Advise,
    Balancer,
}

impl FenceMode {
    pub fn word(self) -> &'static str {
        match self {
            FenceMode::Off => "off",
            FenceMode::Advise => "advise",
            FenceMode::Balancer => "balancer",
        }
    }
}

/// What is probed, how often, and what a probe may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthSettings {
    pub enabled: bool,
    /// Between two reads of a target on this node; others wait five times as long.
    pub interval: Duration,
    /// After it a probe has failed.
    pub timeout: Duration,
    /// `https://host:port`, no trailing slash, no two alike; empty: no apiserver is watched.
    pub apiservers: Vec<String>,
    /// The client certificate or token for them.
    pub kubeconfig: PathBuf,
    /// Whether probes write their keys and Leases.
    pub write_probe: bool,
    /// `https://host:port`: the apiservers by way of their balancer.
    pub balancer: Option<String>,
    /// Which members the apiservers of this cluster use; `None`: not known.
    pub layout: Option<EtcdLayout>,
}

/// Which members an apiserver uses, as its own flags say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EtcdLayout {
    /// The one on its own host.
    Local,
    /// All of them.
    All,
}

impl EtcdLayout {
    pub fn word(self) -> &'static str {
        match self {
            EtcdLayout::Local => "local",
            EtcdLayout::All => "all",
        }
    }
}

/// What is taken out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FenceTarget {
    /// By the layout that was discovered.
    Auto,
    Apiserver,
    /// The member.
    Etcd,
}

impl Default for HealthSettings {
    fn default() -> Self {
        HealthSettings {
            enabled: true,
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            apiservers: Vec::new(),
            kubeconfig: "/etc/refloat/kubeconfig".into(),
            write_probe: true,
            balancer: None,
            layout: None,
        }
    }
}
