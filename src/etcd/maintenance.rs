//! What changes a member or its cluster: defragmentation, the leader's move, compaction, an alarm's end.
//!
//! None of these is repeated by itself: whether a call that got no answer was done is found out by looking.

use std::time::Duration;

use etcd_client::{AlarmAction, AlarmType, CompactionOptions};

use super::member::Member;
use crate::error::Result;

impl Member {
    /// Rewrites the database file without its free pages. Meanwhile the member answers nothing at all. What runs out of
    /// `deadline` here goes on there.
    pub async fn defragment(&self, deadline: Duration) -> Result<()> {
        let mut client = self.client();
        self.call("defragment", deadline, client.defragment()).await.map(drop)
    }

    /// Asked of the leader: the member `to` leads from now on.
    pub async fn move_leader(&self, to: u64) -> Result<()> {
        let mut client = self.client();
        self.call("move the leadership from", self.timeout(), client.move_leader(to)).await.map(drop)
    }

    /// Forgets what was overwritten or deleted up to `revision`, and waits until the space is free.
    pub async fn compact(&self, revision: i64, deadline: Duration) -> Result<()> {
        let mut client = self.client();
        let options = CompactionOptions::new().with_physical();
        self.call("compact", deadline, client.compact(revision, Some(options))).await.map(drop)
    }

    /// Ends the alarm NOSPACE of that member.
    pub async fn disarm_no_space(&self, member: u64) -> Result<()> {
        let mut client = self.client();
        let mut options = etcd_client::AlarmOptions::new();
        options.with_member(member);
        let call = client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options));
        self.call("disarm NOSPACE at", self.timeout(), call).await.map(drop)
    }
}
