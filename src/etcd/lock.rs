//! A lock of the whole cluster, kept in etcd itself: a key that lives as long as its lease is kept alive.
//!
//! The holder may lose it, when it or its member stands still for longer than the lease lasts. So it guards work that is
//! safe by itself on each member, and only better done one after the other.

use std::time::Duration;

use etcd_client::{Compare, CompareOp, LeaseKeepAliveStream, LeaseKeeper, PutOptions, Txn, TxnOp, TxnOpResponse};

use super::member::Member;
use crate::error::{Code, Error, Result};

/// How long it outlives a holder that is gone.
pub const LEASE: Duration = Duration::from_secs(60);

/// Held until it is released, or not kept alive for [`LEASE`].
pub struct ClusterLock {
    member: Member,
    key: String,
    lease: i64,
    keeper: LeaseKeeper,
    answers: LeaseKeepAliveStream,
}

impl ClusterLock {
    /// Takes `key` through `member`, for `holder`: a node's name. `LockHeld` names who has it.
    ///
    /// The member should not be the one that the work brings to a stand: through it the lease is kept alive.
    pub async fn take(member: &Member, key: &str, holder: &str) -> Result<ClusterLock> {
        const WHAT: &str = "take the cluster's lock through";
        let mut client = member.client();
        let ttl = i64::try_from(LEASE.as_secs()).unwrap_or(i64::MAX);
        let lease = member.call(WHAT, member.timeout(), client.lease_grant(ttl, None)).await?.id();
        let put = PutOptions::new().with_lease(lease);
        let txn = Txn::new()
            .when([Compare::create_revision(key, CompareOp::Equal, 0)])
            .and_then([TxnOp::put(key, holder, Some(put))])
            .or_else([TxnOp::get(key, None)]);
        let answer = member.call(WHAT, member.timeout(), client.txn(txn)).await;
        let held_by = match &answer {
            Ok(answer) if answer.succeeded() => None,
            Ok(answer) => Some(answer.op_responses().iter().find_map(value).unwrap_or_default()),
            Err(_) => Some(String::new()),
        };
        if held_by.is_some() {
            // It would end by itself.
            let _ = member.call(WHAT, member.timeout(), client.lease_revoke(lease)).await;
        }
        answer?;
        if let Some(by) = held_by {
            return Err(Error::new(Code::LockHeld, "take the cluster's lock", key)
                .because(format!("node {by} has it"))
                .remedy(format!("wait until it is done; a holder that is gone loses it after {} s", LEASE.as_secs())));
        }
        let kept = member.call(WHAT, member.timeout(), client.lease_keep_alive(lease)).await;
        let (keeper, answers) = kept?;
        Ok(ClusterLock { member: member.clone(), key: key.into(), lease, keeper, answers })
    }

    /// Keeps it alive for another [`LEASE`]. `LockHeld` when it was lost.
    pub async fn keep(&mut self) -> Result<()> {
        const WHAT: &str = "keep the cluster's lock through";
        self.member.call(WHAT, self.member.timeout(), self.keeper.keep_alive()).await?;
        let answer = self.member.call(WHAT, self.member.timeout(), self.answers.message()).await?;
        match answer {
            Some(answer) if answer.ttl() > 0 => Ok(()),
            _ => Err(Error::new(Code::LockHeld, "keep the cluster's lock", &self.key)
                .because("its lease has expired")
                .remedy("try again")),
        }
    }

    /// Gives it back. When that fails it ends by itself.
    pub async fn release(self) {
        let mut client = self.member.client();
        let gone = self.member.call("release", self.member.timeout(), client.lease_revoke(self.lease)).await;
        if let Err(error) = gone {
            tracing::warn!("the lock {} ends in {} s by itself: {}", self.key, LEASE.as_secs(), error.line());
        }
    }
}

fn value(op: &TxnOpResponse) -> Option<String> {
    match op {
        TxnOpResponse::Get(answer) => Some(String::from_utf8_lossy(answer.kvs().first()?.value()).into_owned()),
        _ => None,
    }
}
