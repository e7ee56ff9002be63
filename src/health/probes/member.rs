//! E1 to E6: one etcd member.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::super::model::{Failure, Mono, Outcome, Probe, Reading, Status};
use super::super::schedule::Ask;
use super::good;
use super::local::now;
use crate::error::Result;
use crate::etcd::{Access, AlarmKind, Asker, MemberStatus, ReadHeader, Why};

/// Larger than any packet, smaller than what anybody would miss.
const LARGE: usize = 16 << 10;
/// A history that has not been compacted for so long is not written to.
const COMPACTION: Duration = Duration::from_secs(3600);
/// Younger revisions are not expected to be gone: the apiserver compacts what is five minutes old, each five minutes.
const YOUNG: Duration = Duration::from_secs(600);
/// Of the quota, in per cent, above which nothing is written.
const FULL: u64 = 70;
/// etcd's own, where the member does not tell: before 3.6.
const DEFAULT_QUOTA: u64 = 2 << 30;

/// The one key that E5 writes: outside of what Kubernetes keeps, one for each node, always the same value, no lease.
pub fn probe_key(node: &str) -> String {
    format!("refloat/health/{node}")
}

fn value() -> Vec<u8> {
    // Not one byte over and over: what compresses on the way would be small again.
    (0..LARGE).map(|at| b'a' + (at * 7 % 26) as u8).collect()
}

#[derive(Debug)]
pub(super) struct Member {
    asker: Asker,
    key: String,
    seen: Mutex<Seen>,
}

/// What decides whether E5 may write.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Bytes of the database and its quota, by the last E6.
    size: Option<(u64, u64)>,
    /// Revision and term of the last read.
    read: (i64, u64),
    /// A revision of ours that must be compacted some day, and since when it has been there.
    mark: Option<(i64, Mono)>,
}

impl Seen {
    /// Why nothing is to be written now.
    fn pause(&self, now: Mono) -> Option<String> {
        if let Some((size, quota)) = self.size
            && size > quota / 100 * FULL
        {
            let (size, quota) = (crate::config::rounded_size(size), crate::config::rounded_size(quota));
            return Some(format!("paused: the database has {size}, more than {FULL} % of its quota of {quota}"));
        }
        let (revision, at) = self.mark?;
        let since = now.since(at);
        (since > COMPACTION).then(|| {
            let minutes = since.as_secs() / 60;
            format!("paused: revision {revision} has not been compacted for {minutes} minutes, so history only grows")
        })
    }
}

impl Member {
    pub(super) fn new(url: &str, address: Option<IpAddr>, access: &Access, node: &str) -> Result<Member> {
        let asker = Asker::new(url, address, access)?;
        Ok(Member { asker, key: probe_key(node), seen: Mutex::default() })
    }

    pub(super) async fn ask(&self, ask: &Ask) -> Outcome {
        if ask.repeat || ask.anew {
            self.asker.forget();
        }
        let asked = match ask.probe {
            Probe::E1 => self.asker.handshake(ask.deadline).await.map(|ends| match ends {
                Some(ends) => good(Reading::Certificate { not_after: ends.as_second() }),
                None => good(Reading::Nothing),
            }),
            Probe::E2 => self.asker.serializable(ask.deadline).await.map(|read| self.header(read)),
            Probe::E3 => self.asker.linearizable(ask.deadline).await.map(|read| self.header(read)),
            Probe::E4 => self.asker.alarms(ask.deadline).await.map(|(header, alarms)| {
                let word = |kind: AlarmKind| kind.word().to_ascii_lowercase();
                let alarms = alarms.iter().map(|alarm| (word(alarm.kind), alarm.member_id)).collect();
                // Where it brings none, the last read's stands for it.
                let (revision, term) = header.map(|h| (h.revision, h.raft_term)).unwrap_or(self.seen().read);
                good(Reading::Alarms { revision, term, alarms })
            }),
            Probe::E5 => self.write(ask.deadline).await,
            Probe::E6 => self.asker.status(ask.deadline).await.map(|status| self.status(status)),
            other => Ok(Outcome::Unknown(format!("{other} is no question for a member"))),
        };
        asked.unwrap_or_else(outcome)
    }

    fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self, status: MemberStatus) -> Outcome {
        let size = (status.db_size, status.quota.unwrap_or(DEFAULT_QUOTA));
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).size = Some(size);
        good(Reading::Status(Status {
            cluster_id: status.cluster_id,
            member_id: status.member_id,
            version: status.version,
            leader: status.leader.unwrap_or(0),
            term: status.raft_term,
            revision: status.revision,
            index: status.raft_index,
            applied: status.raft_applied_index,
            db_size: status.db_size,
            db_in_use: status.db_in_use,
            quota: status.quota,
            learner: status.is_learner,
            errors: status.errors,
        }))
    }

    fn header(&self, header: ReadHeader) -> Outcome {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).read = (header.revision, header.raft_term);
        good(Reading::Header { revision: header.revision, term: header.raft_term })
    }

    async fn compacted(&self, revision: i64, limit: Duration) {
        if self.asker.is_compacted(revision, limit).await == Ok(true) {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).mark = None;
        }
    }

    /// E5: a large write and its large read-back.
    async fn write(&self, limit: Duration) -> Result<Outcome, Why> {
        let now = now();
        if let Some((revision, at)) = self.seen().mark
            && now.since(at) > YOUNG
        {
            self.compacted(revision, limit / 4).await;
        }
        if let Some(why) = self.seen().pause(now) {
            return Ok(Outcome::Unknown(why));
        }
        let value = value();
        let end = Instant::now() + limit;
        let written = self.asker.put(&self.key, &value, limit).await?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).mark.get_or_insert((written.revision, now));
        // Both within one deadline: an answer that comes later than that is no answer.
        let left = end.saturating_duration_since(Instant::now());
        let (read, back) = self.asker.get(&self.key, left).await?;
        Ok(match back {
            Some(back) if back == value => self.header(read),
            Some(back) => {
                let why = format!("{} holds {} bytes that are not those that were written", self.key, back.len());
                Outcome::Failed(Failure::Server(why))
            }
            None => Outcome::Failed(Failure::Server(format!("{} is not there after it was written", self.key))),
        })
    }
}

fn outcome(why: Why) -> Outcome {
    Outcome::Failed(match why {
        Why::Refused => Failure::Refused,
        Why::Unreachable => Failure::Unreachable,
        Why::Silent => Failure::Silent,
        Why::Reset => Failure::Reset,
        Why::Expired => Failure::Expired,
        Why::Tls(text) => Failure::Tls(text),
        Why::NoLeader(text) => Failure::NoLeader(text),
        Why::NoSpace => Failure::NoSpace,
        Why::Server(text) => Failure::Server(text),
        Why::Learner => return Outcome::Unknown("a learner does not answer this".into()),
        Why::Denied(text) => return Outcome::Unknown(format!("etcd does not let this user ask: {text}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_pause_with_a_reason() {
        let hour = Mono(0).plus(COMPACTION);
        let late = hour.plus(Duration::from_secs(60));
        for (size, mark, now, says) in [
            (None, None, late, ""),
            (Some((70 << 20, 100 << 20)), None, late, ""),
            (Some((71 << 20, 100 << 20)), None, late, "more than 70 % of its quota of 100.0 MiB"),
            (None, Some((5, Mono(0))), hour, ""),
            (None, Some((5, Mono(0))), late, "revision 5 has not been compacted for 61 minutes"),
            (None, Some((5, late)), late, ""),
            (Some((u64::MAX, u64::MAX)), None, late, "more than 70 %"),
        ] {
            let said = Seen { size, mark, ..Seen::default() }.pause(now).unwrap_or_default();
            assert!(said.contains(says) && (!says.is_empty() || said.is_empty()), "{size:?} {mark:?}: {said}");
        }
    }

    #[test]
    fn the_key_is_outside_of_what_kubernetes_keeps() {
        assert_eq!(probe_key("cp1"), "refloat/health/cp1");
        assert_eq!((value().len(), value()), (LARGE, value()));
    }
}
