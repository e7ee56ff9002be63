//! etcd's buckets apart from `key`: what a snapshot knows about its cluster.
//!
//! Source: etcd `server/storage/schema/*.go`; shapes by research on 3.4 to 3.7.

use super::mvcc::RowKey;
use super::proto::{Fields, Value};
use serde::Deserialize;

/// Every bucket that etcd 3.4 to 3.7 creates.
pub const KNOWN: &[&[u8]] = &[
    b"key",
    b"meta",
    b"lease",
    b"auth",
    b"authUsers",
    b"authRoles",
    b"members",
    b"members_removed",
    b"cluster",
    b"alarm",
];

/// Content of the `meta` bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    pub consistent_index: Option<u64>,
    /// Since 3.5.
    pub term: Option<u64>,
    pub scheduled_compaction: Option<u64>,
    pub finished_compaction: Option<u64>,
    /// Since 3.6, such as "3.6.0".
    pub storage_version: Option<String>,
}

impl Meta {
    /// Takes one row; `Err` says what is wrong with it, `Ok(false)` that its key is unknown.
    pub fn take(&mut self, key: &[u8], value: &[u8]) -> Result<bool, String> {
        let name = String::from_utf8_lossy(key).into_owned();
        let number = || {
            <[u8; 8]>::try_from(value)
                .map(u64::from_be_bytes)
                .map_err(|_| format!("{name} has {} bytes instead of 8", value.len()))
        };
        let revision = || match RowKey::parse(value) {
            Some(row) if value.len() == 17 => Ok(row.revision.main),
            _ => Err(format!("{name} is not a revision")),
        };
        match key {
            b"consistent_index" => self.consistent_index = Some(number()?),
            b"term" => self.term = Some(number()?),
            b"scheduledCompactRev" => self.scheduled_compaction = Some(revision()?),
            b"finishedCompactRev" => self.finished_compaction = Some(revision()?),
            b"storageVersion" => {
                let text = std::str::from_utf8(value).map_err(|_| format!("{name} is not text"))?;
                self.storage_version = Some(text.to_string());
            }
            b"confState" => {
                serde_json::from_slice::<serde::de::IgnoredAny>(value).map_err(|e| format!("{name}: {e}"))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The revision below which a server started on this file answers "compacted": a scheduled compaction
    /// that has not finished counts as done. 0 when the history was never compacted.
    pub fn compact_revision(&self) -> u64 {
        self.scheduled_compaction.unwrap_or(0).max(self.finished_compaction.unwrap_or(0))
    }
}

/// A row of the `lease` bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub id: i64,
    /// Seconds.
    pub ttl: i64,
    /// Seconds; 0 unless a checkpoint was stored.
    pub remaining_ttl: i64,
}

impl Lease {
    /// Key: 8 bytes id, big-endian; value: leasepb.Lease {ID=1, TTL=2, RemainingTTL=3}.
    pub fn parse(key: &[u8], value: &[u8]) -> Result<Lease, String> {
        let id = <[u8; 8]>::try_from(key)
            .map(i64::from_be_bytes)
            .map_err(|_| format!("lease key has {} bytes instead of 8", key.len()))?;
        let mut lease = Lease { id: 0, ttl: 0, remaining_ttl: 0 };
        for field in Fields::new(value) {
            match field.map_err(|e| format!("lease {id:x}: {e}"))? {
                (1, Value::Varint(n)) => lease.id = n as i64,
                (2, Value::Varint(n)) => lease.ttl = n as i64,
                (3, Value::Varint(n)) => lease.remaining_ttl = n as i64,
                (n, _) => return Err(format!("lease {id:x}: unexpected field {n}")),
            }
        }
        if lease.id != id {
            return Err(format!("lease {id:x} says its id is {:x}", lease.id));
        }
        Ok(lease)
    }
}

/// A row of the `members` bucket. Fields that newer versions add are not an error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Member {
    pub id: u64,
    #[serde(default)]
    pub name: String,
    #[serde(default, rename = "peerURLs")]
    pub peer_urls: Vec<String>,
    #[serde(default, rename = "clientURLs")]
    pub client_urls: Vec<String>,
    #[serde(default, rename = "isLearner")]
    pub is_learner: bool,
}

impl Member {
    /// Key: the id in lower-case hex without padding; value: JSON.
    pub fn parse(key: &[u8], value: &[u8]) -> Result<Member, String> {
        let name = String::from_utf8_lossy(key);
        let member: Member = serde_json::from_slice(value).map_err(|e| format!("member {name}: {e}"))?;
        if format!("{:x}", member.id) != name {
            return Err(format!("member {name} says its id is {:x}", member.id));
        }
        Ok(member)
    }
}

/// What an alarm says; numbers of etcdserverpb.AlarmType.
pub fn alarm_name(kind: u64) -> String {
    match kind {
        1 => "NOSPACE".into(),
        2 => "CORRUPT".into(),
        n => format!("alarm-{n}"),
    }
}

/// A row of the `alarm` bucket: the key is AlarmMember {memberID=1, alarm=2}, the value empty.
/// Gives member id and name of the alarm.
pub fn alarm(key: &[u8]) -> Result<(u64, String), String> {
    let (mut member, mut kind) = (0, 0);
    for field in Fields::new(key) {
        match field.map_err(|e| format!("alarm: {e}"))? {
            (1, Value::Varint(n)) => member = n,
            (2, Value::Varint(n)) => kind = n,
            (n, _) => return Err(format!("alarm: unexpected field {n}")),
        }
    }
    Ok((member, alarm_name(kind)))
}

/// A row of a bucket that is only checked: `cluster`, `auth*`, `members_removed`. `Err` says what is wrong with it,
/// `Ok(false)` that its key is unknown; rows of unknown buckets are taken as they are.
pub fn plain_row(bucket: &[u8], key: &[u8], value: &[u8]) -> Result<bool, String> {
    match bucket {
        b"cluster" => Ok(matches!(key, b"clusterVersion" | b"downgrade")),
        b"auth" => Ok(matches!(key, b"authEnabled" | b"authRevision")),
        b"members_removed" => {
            let name = String::from_utf8_lossy(key);
            let id = u64::from_str_radix(&name, 16).ok().filter(|id| format!("{id:x}") == name);
            id.map(|_| true).ok_or_else(|| format!("removed member {name} is no id"))
        }
        // authpb.User and authpb.Role both begin with their name.
        b"authUsers" | b"authRoles" => match Fields::new(value).next() {
            Some(Ok((1, Value::Bytes(name)))) if name == key => Ok(true),
            _ => Err(format!("`{}` says it has another name", String::from_utf8_lossy(key))),
        },
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_only_checked() {
        assert_eq!(plain_row(b"cluster", b"clusterVersion", b"3.6.0"), Ok(true));
        assert_eq!(plain_row(b"cluster", b"clusterVersioo", b"3.6.0"), Ok(false));
        assert_eq!(plain_row(b"auth", b"authEnabled", &[1]), Ok(true));
        assert_eq!(plain_row(b"members_removed", b"1f", b"removed"), Ok(true));
        assert!(plain_row(b"members_removed", b"1F", b"removed").is_err());
        assert_eq!(plain_row(b"authUsers", b"root", &[10, 4, b'r', b'o', b'o', b't']), Ok(true));
        assert!(plain_row(b"authRoles", b"rOot", &[10, 4, b'r', b'o', b'o', b't']).is_err());
        assert_eq!(plain_row(b"other", b"x", b""), Ok(true));
    }

    #[test]
    fn meta_rows() {
        let mut meta = Meta::default();
        assert_eq!(meta.compact_revision(), 0);
        assert_eq!(meta.take(b"consistent_index", &7u64.to_be_bytes()), Ok(true));
        assert_eq!(meta.take(b"finishedCompactRev", &RowKey::first_of(5)), Ok(true));
        assert_eq!(meta.take(b"scheduledCompactRev", &RowKey::first_of(9)), Ok(true));
        assert_eq!(meta.take(b"storageVersion", b"3.6.0"), Ok(true));
        assert_eq!(meta.take(b"somethingNew", b""), Ok(false));
        assert!(meta.take(b"term", b"123").is_err());
        assert!(meta.take(b"finishedCompactRev", b"123").is_err());
        assert!(meta.take(b"confState", b"{").is_err());
        assert_eq!((meta.consistent_index, meta.compact_revision()), (Some(7), 9));
    }

    #[test]
    fn leases_members_alarms() {
        let id = 0x1234i64.to_be_bytes();
        assert_eq!(Lease::parse(&id, &[8, 0xb4, 0x24, 16, 60]).map(|l| l.ttl), Ok(60));
        assert!(Lease::parse(&id, &[8, 1]).is_err());
        assert!(Lease::parse(b"x", &[]).is_err());
        assert!(Member::parse(b"1f", br#"{"id":31,"peerURLs":["http://x"],"name":"a"}"#).is_ok_and(|m| m.name == "a"));
        assert!(Member::parse(b"20", br#"{"id":31}"#).is_err());
        assert_eq!(alarm(&[8, 5, 16, 1]), Ok((5, "NOSPACE".into())));
        assert!(alarm(&[8]).is_err());
    }
}
