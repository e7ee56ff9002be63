//! What a member says, as plain values: no text is interpreted here.

use etcd_client::{AlarmType, ResponseHeader};

/// One member of the member list, as the answering member knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberInfo {
    pub id: u64,
    /// Empty while the member was added but has not started yet.
    pub name: String,
    pub peer_urls: Vec<String>,
    /// What the member advertises to clients; not always reachable from here.
    pub client_urls: Vec<String>,
    pub is_learner: bool,
}

impl MemberInfo {
    /// The id as etcdctl prints it.
    pub fn hex_id(&self) -> String {
        format!("{:x}", self.id)
    }

    /// The name, or the id of a member that never started.
    pub fn label(&self) -> String {
        if self.name.is_empty() { self.hex_id() } else { self.name.clone() }
    }
}

/// The answer of Maintenance.Status: a local read of that member, proof of neither quorum nor freshness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    pub cluster_id: u64,
    pub member_id: u64,
    /// Version of the server, such as `3.6.16`.
    pub version: String,
    /// Bytes of the database file.
    pub db_size: u64,
    /// Bytes of it in use; the rest is free pages.
    pub db_in_use: u64,
    /// Bytes; `None` before etcd 3.6.
    pub quota: Option<u64>,
    /// `None` when the member knows no leader.
    pub leader: Option<u64>,
    pub is_learner: bool,
    pub raft_term: u64,
    pub raft_index: u64,
    pub raft_applied_index: u64,
    /// Revision of the key-value store when the member answered.
    pub revision: i64,
    /// `None` before etcd 3.6.
    pub storage_version: Option<String>,
    /// The target version while a downgrade is under way (3.6 and later).
    pub downgrade_to: Option<String>,
    /// What the member itself complains about, alarms among it.
    pub errors: Vec<String>,
}

impl MemberStatus {
    pub fn is_leader(&self) -> bool {
        self.leader == Some(self.member_id)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlarmKind {
    NoSpace,
    Corrupt,
    /// A kind that this version of refloat does not know.
    Other,
}

impl AlarmKind {
    /// etcd's own word.
    pub fn word(self) -> &'static str {
        match self {
            AlarmKind::NoSpace => "NOSPACE",
            AlarmKind::Corrupt => "CORRUPT",
            AlarmKind::Other => "UNKNOWN",
        }
    }
}

impl From<AlarmType> for AlarmKind {
    fn from(kind: AlarmType) -> Self {
        match kind {
            AlarmType::Nospace => AlarmKind::NoSpace,
            AlarmType::Corrupt => AlarmKind::Corrupt,
            AlarmType::None => AlarmKind::Other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm {
    pub member_id: u64,
    pub kind: AlarmKind,
}

/// A hash is comparable only with another one of the same revision *and* the same compact revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashKv {
    pub hash: u32,
    /// The revision the hash covers: from the answer (3.6 and later), else the requested one.
    pub revision: i64,
    /// 0 when the store was never compacted (etcd says -1 then).
    pub compact_revision: i64,
}

/// Who answered a read, and when in the cluster's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadHeader {
    pub cluster_id: u64,
    pub member_id: u64,
    pub revision: i64,
    pub raft_term: u64,
}

impl From<&ResponseHeader> for ReadHeader {
    fn from(header: &ResponseHeader) -> Self {
        ReadHeader {
            cluster_id: header.cluster_id(),
            member_id: header.member_id(),
            revision: header.revision(),
            raft_term: header.raft_term(),
        }
    }
}

/// One key with its value and its place in history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub create_revision: i64,
    pub mod_revision: i64,
    /// How often the key was written since it was created.
    pub version: i64,
    /// 0 when no lease is attached.
    pub lease: i64,
}
