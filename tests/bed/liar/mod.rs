//! The one fake of the bed: etcd cannot be made to lie, so this stands between a client and a real member.
//!
//! In: the URL of a plain member and a lie. Out: a URL. Every call passes through to the member, in both
//! directions, streams included; only `Maintenance/Snapshot`, `Maintenance/HashKV` and `Watch/Watch` are told wrongly,
//! and only once a lie is set. It also counts calls, for tests that must show that a call was not made.
//!
//! - [`proxy`]: connections and honest calls
//! - [`snapshot`], [`hash`], [`silence`]: the three calls that can lie
//! - [`grpc`]: messages on an HTTP/2 stream

mod grpc;
mod hash;
mod proxy;
mod silence;
mod snapshot;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::target::{block_on, runtime};

const SNAPSHOT: &str = "/etcdserverpb.Maintenance/Snapshot";
const HASH_KV: &str = "/etcdserverpb.Maintenance/HashKV";
const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// What is told wrongly. Bytes count the database and its trailer of 32 bytes; `after` beyond the end is the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The stream ends early and says that all went well.
    CutOk { after: u64 },
    /// The stream ends early with a gRPC status.
    CutError { after: u64, status: u32 },
    /// The connection is closed without a word.
    Drop { after: u64 },
    /// The HTTP/2 stream is reset.
    Reset { after: u64 },
    /// Nothing more comes, the connection stays.
    Stall { after: u64 },
    /// From then on single pieces with pauses.
    Trickle { after: u64, bytes: usize, every: Duration },
    /// From then on messages without content, for ever.
    EmptyForever { after: u64 },
    /// The last of the 32 bytes of the hash is wrong.
    WrongTrailer,
    /// The 32 bytes of the hash are missing.
    NoTrailer,
    /// One bit of the byte at this offset is wrong.
    Flip { at: u64 },
    /// Every message says that so many bytes remain.
    Remaining(u64),
    /// So many bytes more come after the end; `u64::MAX` is for ever.
    TooLong { extra: u64 },
    /// These bytes altogether: a database and its trailer of 32, older than the member's or not sound.
    Instead(&'static [u8]),
    /// HashKV answers another hash.
    WrongHash,
    /// HashKV never answers.
    HashHang,
    /// HashKV fails with a gRPC status.
    HashError { status: u32 },
    /// Watches stay open and tell nothing, those too that are open already. When the lie is over they end, so that the
    /// client asks for what it has missed.
    SilentWatch,
}

impl Lie {
    fn about(self) -> &'static str {
        match self {
            Lie::WrongHash | Lie::HashHang | Lie::HashError { .. } => HASH_KV,
            Lie::SilentWatch => WATCH,
            _ => SNAPSHOT,
        }
    }
}

/// Where a member listens.
#[derive(Clone)]
enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// What the connections share with the test.
#[derive(Default)]
struct Book {
    member: Mutex<Option<Place>>,
    lies: Mutex<HashMap<&'static str, Lie>>,
    calls: Mutex<HashMap<String, usize>>,
    /// Told whenever there is no lie any more.
    honest: Notify,
}

/// A running proxy; it ends when it is dropped.
pub struct Liar {
    /// None on a Unix socket.
    address: Option<SocketAddr>,
    book: Arc<Book>,
    task: JoinHandle<()>,
}

impl Liar {
    /// Stands before a plain (`http://`) member and is honest until told otherwise.
    #[track_caller]
    pub fn start(member: &str) -> Self {
        let liar = Liar::listen();
        liar.stand_before(member);
        liar
    }

    /// Only listens, so that a member can be started which advertises the liar's URL as its own: whoever follows
    /// the member list then still meets the liar. [`Liar::stand_before`] comes next.
    #[track_caller]
    pub fn listen() -> Self {
        let book = Arc::new(Book::default());
        let shared = Arc::clone(&book);
        let (address, task) = block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("listen on loopback");
            let address = listener.local_addr().expect("an own address");
            (address, runtime().spawn(proxy::serve(listener, shared)))
        });
        Liar { address: Some(address), book, task }
    }

    /// Stands between a client and a member that are both reached by a Unix socket.
    #[track_caller]
    pub fn between(socket: &Path, member: &Path) -> Self {
        let book = Arc::new(Book { member: Mutex::new(Some(Place::Unix(member.to_owned()))), ..Book::default() });
        let (shared, socket) = (Arc::clone(&book), socket.to_owned());
        // Listening needs the executor as well.
        let listener =
            block_on(async move { tokio::net::UnixListener::bind(&socket).expect("listen on a Unix socket") });
        let task = runtime().spawn(proxy::serve(listener, shared));
        Liar { address: None, book, task }
    }

    /// Passes calls to this member, from the next connection on.
    #[track_caller]
    pub fn stand_before(&self, member: &str) {
        let address = member.strip_prefix("http://").expect("the liar speaks plain HTTP/2 only");
        let address = address.parse().expect("an address and a port");
        *self.book.member.lock().expect("no panic under this lock") = Some(Place::Tcp(address));
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address.expect("a liar on TCP"))
    }

    /// From the next call on; one lie about each of the two calls at a time.
    pub fn lie(&self, lie: Lie) {
        self.book.lies.lock().expect("no panic under this lock").insert(lie.about(), lie);
    }

    pub fn be_honest(&self) {
        self.book.lies.lock().expect("no panic under this lock").clear();
        self.book.honest.notify_waiters();
    }

    /// How often a method, for example `HashKV`, was called.
    pub fn calls(&self, method: &str) -> usize {
        self.book.calls(method)
    }

    /// The same, for another thread.
    pub fn counter(&self, method: &'static str) -> impl Fn() -> usize + Send + 'static {
        let book = Arc::clone(&self.book);
        move || book.calls(method)
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Book {
    fn member(&self) -> Option<Place> {
        self.member.lock().expect("no panic under this lock").clone()
    }

    fn is_silent(&self) -> bool {
        self.lies.lock().expect("no panic under this lock").contains_key(WATCH)
    }

    fn calls(&self, method: &str) -> usize {
        let calls = self.calls.lock().expect("no panic under this lock");
        calls.iter().filter(|(path, _)| path.rsplit('/').next() == Some(method)).map(|(_, n)| n).sum()
    }

    /// Notes the call and says how to answer it.
    fn note(&self, path: &str) -> Option<Lie> {
        *self.calls.lock().expect("no panic under this lock").entry(path.to_owned()).or_default() += 1;
        self.lies.lock().expect("no panic under this lock").get(path).copied()
    }
}
