//! Real etcd for the tests: members of every supported line, data, certificates, and one liar.
//!
//! In: what a test wants (line, members, TLS, user). Out: running members that are proven to be the ones that
//! were started, tools with time-outs, and data of known shape. Everything is blocking. See README.md beside
//! this file for the whole interface on one page.
//!
//! - [`line`]: the programs of a line, and bbolt's
//! - [`cluster`], [`node`]: start, freeze and kill members, and ask them
//! - [`pki`]: certificates, good and wrong
//! - [`target`]: how to reach a member: URLs, certificates, user
//! - [`fill`] writes data
//! - [`liar`] is the proxy that lies
//! - [`health`]: the health process under test
//! - [`refloat`]: the program under test with a configuration of its own
//! - [`disk`]: a small file system
//! - [`plane`]: control planes: members, apiservers, HAProxy and kubelets' heartbeats, in networks of their own
//! - [`systemd`]: booted nodes, in which packages are installed
//! - [`process`], [`ports`], [`proto`], [`run`], [`rng`]: what these stand on

// Each of the programs that include the bed uses a part of it; and tests start processes, which refloat must not.
#![allow(dead_code, unused_imports, clippy::disallowed_methods)]

pub mod cluster;
pub mod daemon;
pub mod disk;
pub mod fill;
pub mod health;
pub mod liar;
pub mod line;
pub mod node;
pub mod pki;
pub mod plane;
pub mod ports;
pub mod process;
pub mod proto;
pub mod refloat;
pub mod rng;
pub mod run;
pub mod systemd;
pub mod target;

pub use cluster::{Builder, Cluster};
pub use daemon::Daemon;
pub use disk::{FreezableDisk, Frozen, SmallDisk};
pub use fill::{Fill, Filled, HashKv};
pub use health::HealthProcess;
pub use liar::{Liar, Lie};
pub use line::{Line, bbolt, soak};
pub use node::Node;
pub use pki::Pki;
pub use plane::{Balancer, ControlPlane, Heartbeats, Namespace};
pub use refloat::Refloat;
pub use rng::{Rng, seed};
pub use run::{Output, Run, until};
pub use systemd::{Layout, NodeEtcd, Packages, SystemdNode};
pub use target::{Target, block_on};

/// True where the test needs root and is not: the caller returns at once. The note is counted by `./dev`, so
/// that such a test shows as skipped and not as passed.
pub fn skip_unless_root(why: &str) -> bool {
    if nix::unistd::geteuid().is_root() {
        return false;
    }
    let test = std::thread::current().name().unwrap_or("unnamed test").to_owned();
    eprintln!("skipped {test}: needs root: {why}");
    if let Some(notes) = std::env::var_os("REFLOAT_SKIPS") {
        use std::io::Write;
        let line = format!("{test}: needs root: {why}\n");
        let noted = std::fs::OpenOptions::new().create(true).append(true).open(&notes);
        noted.and_then(|mut f| f.write_all(line.as_bytes())).expect("note the skipped test");
    }
    true
}
