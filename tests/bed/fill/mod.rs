//! Data for a running etcd.
//!
//! In: members and a seed. Out: keys of known shape. [`Fill::kubernetes`] writes in one order, so that the same
//! seed gives the same revisions and the same HashKV on every line; [`Fill::small`] and [`Fill::large`] write
//! the same keys and values, but several transactions at once, so that their revisions differ from run to run.

mod kube;
mod sink;
mod text;
mod writer;

use std::ops::Range;
use std::sync::Arc;

use etcd_client::{Client, CompactionOptions, LeaseGrantOptions};
use tokio::task::JoinSet;

use super::rng::{self, Rng};
use super::target::{Target, block_on, runtime};
use sink::Sink;
pub use text::text;
pub use writer::{Stats, Writer};

/// How many transactions of the bulk fills are under way at once.
const AT_ONCE: usize = 8;

/// Writes to one cluster.
pub struct Fill {
    target: Target,
    client: Client,
    seed: u64,
    kube_system_uid: Option<String>,
}

/// What [`Fill::kubernetes`] left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// The UID of the namespace kube-system: what makes a lineage.
    pub kube_system_uid: String,
    /// The revision of the last write.
    pub revision: i64,
}

/// A live HashKV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashKv {
    pub hash: u32,
    pub compact_revision: i64,
    /// The member's newest revision when it answered.
    pub revision: i64,
}

impl Fill {
    /// Takes a `&Cluster`, a `&Node` or a URL.
    #[track_caller]
    pub fn new(target: impl Into<Target>) -> Self {
        let target = target.into();
        let client = block_on(target.connect());
        Fill { target, client, seed: rng::seed(), kube_system_uid: None }
    }

    /// Another seed than that of the run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The UID of kube-system; by default it follows from the seed.
    pub fn kube_system(mut self, uid: &str) -> Self {
        self.kube_system_uid = Some(uid.to_owned());
        self
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// A client for calls that have no helper here; to be awaited within [`block_on`].
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// About `objects` Kubernetes objects: namespaces with kube-system, node leases, pods, config maps, and
    /// events with etcd leases; then renewals, updates, deletions and some that are made anew, so that there are
    /// superseded rows, tombstones and several generations of a key.
    #[track_caller]
    pub fn kubernetes(&self, objects: u64) -> Filled {
        block_on(async {
            let mut rng = Rng::new(self.seed);
            let kube_system_uid = self.kube_system_uid.clone().unwrap_or_else(|| rng.uid());
            let mut sink = Sink::varied(self.client(), self.seed);
            let spaces = self.namespaces(&mut sink, &mut rng, &kube_system_uid, objects / 200 + 1).await;
            let nodes = (objects / 20).max(3);
            for round in 0..3 {
                let mut uids = Rng::new(self.seed ^ 1);
                for n in 0..nodes {
                    let node = format!("node-{n}");
                    let key = format!("/registry/leases/kube-node-lease/{node}");
                    sink.put(key, kube::lease(&node, &uids.uid(), round), 0).await;
                }
            }
            self.pods(&mut sink, &mut rng, &spaces, nodes, objects / 2).await;
            self.config_maps(&mut sink, &mut rng, &spaces, objects / 5).await;
            self.events(&mut sink, &mut rng, &spaces, objects / 4).await;
            sink.flush().await;
            Filled { kube_system_uid, revision: sink.revision() }
        })
    }

    async fn namespaces(&self, sink: &mut Sink, rng: &mut Rng, kube_system: &str, more: u64) -> Vec<String> {
        let mut names: Vec<String> =
            ["kube-system", "default", "kube-public", "kube-node-lease"].map(Into::into).into();
        names.extend((0..more).map(|i| format!("app-{i}")));
        for name in &names {
            let uid = if name == "kube-system" { kube_system.to_owned() } else { rng.uid() };
            sink.put(format!("/registry/namespaces/{name}"), kube::namespace(name, &uid), 0).await;
        }
        names
    }

    async fn pods(&self, sink: &mut Sink, rng: &mut Rng, spaces: &[String], nodes: u64, count: u64) {
        let mut made = Vec::new();
        for _ in 0..count {
            let (space, name, uid) = (rng.pick(spaces).clone(), format!("app-{}", rng.hex(10)), rng.uid());
            let key = format!("/registry/pods/{space}/{name}");
            let node = format!("node-{}", rng.below(nodes));
            sink.put(key.clone(), kube::pod(&name, &space, &uid, &node, 0, rng), 0).await;
            made.push((key, name, space, uid, node));
        }
        for (i, (key, name, space, uid, node)) in made.iter().enumerate() {
            sink.put(key.clone(), kube::pod(name, space, uid, node, 1, rng), 0).await;
            if i % 7 == 0 {
                sink.delete(key.clone()).await;
            }
            if i % 21 == 0 {
                let uid = rng.uid();
                sink.put(key.clone(), kube::pod(name, space, &uid, node, 0, rng), 0).await;
            }
        }
    }

    async fn config_maps(&self, sink: &mut Sink, rng: &mut Rng, spaces: &[String], count: u64) {
        for i in 0..count {
            let (space, name, uid) = (rng.pick(spaces).clone(), format!("config-{}", rng.hex(8)), rng.uid());
            let key = format!("/registry/configmaps/{space}/{name}");
            sink.put(key.clone(), kube::config_map(&name, &space, &uid, rng), 0).await;
            if i % 10 == 0 {
                sink.put(key.clone(), kube::config_map(&name, &space, &uid, rng), 0).await;
            }
            if i % 30 == 0 {
                sink.delete(key).await;
            }
        }
    }

    async fn events(&self, sink: &mut Sink, rng: &mut Rng, spaces: &[String], count: u64) {
        let mut lease = 0;
        for i in 0..count {
            // An apiserver shares one lease between the events of about a minute.
            if i % 50 == 0 {
                lease = (rng.next() >> 2) as i64;
                let options = LeaseGrantOptions::new().with_id(lease);
                self.client().lease_grant(3600, Some(options)).await.expect("grant a lease");
            }
            let (space, pod) = (rng.pick(spaces).clone(), format!("app-{}", rng.hex(10)));
            let (name, uid) = (format!("{pod}.{}", rng.hex(16)), rng.uid());
            let key = format!("/registry/events/{space}/{name}");
            sink.put(key, kube::event(&name, &space, &uid, &pod, rng), lease).await;
        }
    }

    /// `count` keys of 17 bytes with values of 16.
    #[track_caller]
    pub fn small(&self, count: u64) {
        self.bulk(count, 120, |rng, i| (format!("/small/{i:010}"), rng.hex(16)));
    }

    /// `count` values of `size` bytes that compress to about a third; at most 1 MiB each.
    #[track_caller]
    pub fn large(&self, count: u64, size: usize) {
        let together = (1 << 20) / size.max(1) as u64;
        self.bulk(count, together.clamp(1, 120), move |rng, i| (format!("/large/{i:010}"), text(rng, size)));
    }

    /// Writes keys made by `make` from their number, `together` in one transaction. Each transaction has a
    /// random source of its own, which follows from the seed and its first number.
    #[track_caller]
    fn bulk(
        &self,
        count: u64,
        together: u64,
        make: impl Fn(&mut Rng, u64) -> (String, String) + Send + Sync + 'static,
    ) {
        let make = Arc::new(make);
        let write = |range: Range<u64>| {
            let (mut sink, make, mut rng) =
                (Sink::new(self.client()), make.clone(), Rng::new(self.seed ^ (range.start << 8)));
            async move {
                for i in range {
                    let (key, value) = make(&mut rng, i);
                    sink.put(key, value, 0).await;
                }
                sink.flush().await;
            }
        };
        block_on(async {
            let mut running = JoinSet::new();
            for first in (0..count).step_by(together as usize) {
                if running.len() == AT_ONCE {
                    running.join_next().await.expect("one runs").expect("a fill does not panic");
                }
                running.spawn_on(write(first..count.min(first + together)), runtime().handle());
            }
            while let Some(done) = running.join_next().await {
                done.expect("a fill does not panic");
            }
        });
    }

    /// Gives the revision of the write.
    #[track_caller]
    pub fn put(&self, key: &str, value: &str) -> i64 {
        let answer = block_on(async { self.client().put(key, value, None).await }).expect("put a key");
        answer.header().map_or(0, |h| h.revision())
    }

    /// Gives the revision of the write.
    #[track_caller]
    pub fn delete(&self, key: &str) -> i64 {
        let answer = block_on(async { self.client().delete(key, None).await }).expect("delete a key");
        answer.header().map_or(0, |h| h.revision())
    }

    /// The member's newest revision.
    #[track_caller]
    pub fn revision(&self) -> i64 {
        let answer = block_on(async { self.client().get("/", None).await }).expect("get a key");
        answer.header().map_or(0, |h| h.revision())
    }

    /// Compacts and waits until the rows are gone from the database.
    #[track_caller]
    pub fn compact(&self, revision: i64) {
        let options = CompactionOptions::new().with_physical();
        block_on(async { self.client().compact(revision, Some(options)).await }).expect("compact");
    }

    /// Gives the id of a lease of `ttl` seconds.
    #[track_caller]
    pub fn grant(&self, ttl: i64) -> i64 {
        block_on(async { self.client().lease_grant(ttl, None).await }).expect("grant a lease").id()
    }

    /// Live HashKV at a revision; 0 is the newest. With several members any of them answers: for a certain one
    /// make the `Fill` from its node.
    #[track_caller]
    pub fn hash_kv(&self, revision: i64) -> HashKv {
        let answer = block_on(async { self.client().hash_kv(revision).await }).expect("ask for HashKV");
        let revision = answer.header().map_or(0, |h| h.revision());
        HashKv { hash: answer.hash(), compact_revision: answer.compact_version(), revision }
    }

    /// Starts to write without pause, one put at a time, until [`Writer::stop`].
    pub fn writer(&self) -> Writer {
        Writer::start(self.client())
    }
}
