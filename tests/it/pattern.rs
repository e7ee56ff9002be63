//! A store with one snapshot that was really taken, for tests that need no member any more: taken once, then copied.
//! And a place to hold a process at a named point of its work.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use serde_json::Value;

use crate::bed::run::until;
use crate::bed::{Cluster, Fill, Line, Refloat};
use crate::taking::{files, take};

struct Taken {
    store: Vec<(String, Vec<u8>)>,
    known: String,
    was_in: PathBuf,
    snapshot: Value,
}

/// refloat with a store of its own that holds the snapshot, and the snapshot. Nobody listens at its endpoint.
#[track_caller]
pub fn pattern() -> (Refloat, Value) {
    pattern_for("http://127.0.0.1:9")
}

/// The same with another endpoint.
#[track_caller]
pub fn pattern_for(url: &str) -> (Refloat, Value) {
    static TAKEN: OnceLock<Taken> = OnceLock::new();
    let taken = TAKEN.get_or_init(|| {
        let cluster = Cluster::start(Line::V36);
        Fill::new(&cluster).kubernetes(50);
        let refloat = Refloat::new(cluster.node(0));
        let snapshot = take(&refloat);
        let mut names = files(&refloat.store());
        names.push("refloat-store.json".into());
        let read = |name: String| {
            let bytes = std::fs::read(refloat.store().join(&name)).expect("read an object");
            (name, bytes)
        };
        let known = std::fs::read_to_string(refloat.state().join("stores.json")).expect("what was seen where");
        Taken { store: names.into_iter().map(read).collect(), known, was_in: refloat.store(), snapshot }
    });
    let refloat = Refloat::new(url);
    for (name, bytes) in &taken.store {
        let path = refloat.store().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("make a directory");
        std::fs::write(path, bytes).expect("write an object");
    }
    let here = refloat.store().display().to_string();
    let known = taken.known.replace(&taken.was_in.display().to_string(), &here);
    std::fs::write(refloat.state().join("stores.json"), known).expect("write what was seen where");
    (refloat, taken.snapshot.clone())
}

/// A point at which a process waits, once, until it is let go.
pub struct Hold {
    fifo: PathBuf,
    point: &'static str,
}

/// Longer than any run takes to get there.
const PATIENCE: Duration = Duration::from_secs(60);

impl Hold {
    #[track_caller]
    pub fn at(point: &'static str, dir: &Path) -> Hold {
        let fifo = dir.join(format!("hold-{}", point.replace(':', "-")));
        // An earlier hold of the same test may have left it.
        let _ = std::fs::remove_file(&fifo);
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).expect("make a FIFO");
        Hold { fifo, point }
    }

    /// The value of `FAILPOINTS`.
    pub fn failpoints(&self) -> String {
        format!("{}=1*return({})", self.point, self.fifo.display())
    }

    /// Does something once the process is there, then lets it go.
    #[track_caller]
    pub fn meanwhile<T>(&self, act: impl FnOnce() -> T) -> T {
        let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        // Refused as long as nobody reads.
        let there = until(Instant::now() + PATIENCE, || open(&self.fifo, flags, Mode::empty()).ok());
        let _there = there.unwrap_or_else(|| panic!("{} was never reached", self.point));
        act()
    }
}
