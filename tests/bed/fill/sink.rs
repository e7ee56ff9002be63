//! Puts and deletes in transactions of several operations, in the order in which they were given.

use std::collections::HashSet;

use bytes::Bytes;
use etcd_client::{Client, PutOptions, Txn, TxnOp};

use super::super::rng::Rng;

/// etcd's default for operations in one transaction is 128, for a request 1.5 MiB.
const MOST_OPS: usize = 120;
const MOST_BYTES: usize = 1 << 20;

pub struct Sink {
    client: Client,
    pending: Vec<TxnOp>,
    bytes: usize,
    /// etcd refuses two changes of one key in a transaction.
    keys: HashSet<String>,
    revision: i64,
    /// Where the number of operations varies.
    vary: Option<Rng>,
    together: usize,
}

impl Sink {
    /// Transactions as large as etcd allows by default: the fastest way.
    pub fn new(client: Client) -> Self {
        let (pending, keys) = (Vec::new(), HashSet::new());
        Sink { client, pending, bytes: 0, keys, revision: 0, vary: None, together: MOST_OPS }
    }

    /// Transactions of one to eight operations: many revisions, and some with several rows.
    pub fn varied(client: Client, seed: u64) -> Self {
        Sink { vary: Some(Rng::new(seed)), together: 1, ..Sink::new(client) }
    }

    /// The revision of the last transaction.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// `lease` 0 is none.
    pub async fn put(&mut self, key: String, value: impl Into<Bytes>, lease: i64) {
        let value = value.into();
        self.make_room(&key, value.len()).await;
        let options = (lease != 0).then(|| PutOptions::new().with_lease(lease));
        self.pending.push(TxnOp::put(key, value, options));
    }

    pub async fn delete(&mut self, key: String) {
        self.make_room(&key, 0).await;
        self.pending.push(TxnOp::delete(key, None));
    }

    async fn make_room(&mut self, key: &str, value: usize) {
        let size = key.len() + value;
        if self.keys.contains(key) || self.pending.len() == self.together || self.bytes + size > MOST_BYTES {
            self.flush().await;
        }
        self.bytes += size;
        self.keys.insert(key.to_owned());
    }

    pub async fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let operations = std::mem::take(&mut self.pending);
        let answer = self.client.txn(Txn::new().and_then(operations)).await.expect("write a transaction");
        self.revision = answer.header().map_or(0, |h| h.revision());
        self.keys.clear();
        self.bytes = 0;
        if let Some(rng) = &mut self.vary {
            self.together = 1 + rng.below(8) as usize;
        }
    }
}
