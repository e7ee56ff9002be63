//! The way from the test process, which lives on the host, into the networks: a machine of its own, with a HAProxy that
//! takes connections on Unix sockets and passes each on as one of TCP. When either end closes, so does the other.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::net::{Namespace, Network};
use crate::bed::line::product;
use crate::bed::process::Process;
use crate::bed::run::until;

const NUMBER: u8 = 6;

pub(super) struct Gate {
    dir: PathBuf,
    // The process before what it lives in.
    _process: Process,
    _machine: Namespace,
}

impl Gate {
    /// A door for each name; what it leads to is an address with port, and more words of a line `server` of HAProxy.
    /// Whether anybody listens there matters only to who goes through.
    #[track_caller]
    pub fn open(network: &Network, dir: &Path, doors: &[(String, String)]) -> Self {
        // A kubelet waits for thirty seconds for a connection.
        let mut config =
            "defaults\n  mode tcp\n  retries 0\n  timeout connect 30s\n  timeout client 1h\n  timeout server 1h\n"
                .to_owned();
        for (name, to) in doors {
            let socket = dir.join(format!("{name}.sock"));
            writeln!(config, "listen {name}\n  bind unix@{}\n  server s {to}", socket.display()).expect("a string");
        }
        let machine = network.machine("clients", NUMBER);
        let process = haproxy(&machine, &[(dir.join("gate.cfg"), config)], &dir.join("gate.log"));
        let gate = Gate { dir: dir.to_owned(), _process: process, _machine: machine };
        let all = || doors.iter().all(|(name, _)| gate.socket(name).exists()).then_some(());
        until(Instant::now() + Duration::from_secs(60), all).expect("HAProxy opens its sockets");
        gate
    }

    pub fn socket(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.sock"))
    }
}

/// HAProxy in the foreground, with its configuration in these files.
#[track_caller]
pub(super) fn haproxy(machine: &Namespace, config: &[(PathBuf, String)], log: &Path) -> Process {
    let mut args = vec!["-db".to_owned()];
    for (file, text) in config {
        std::fs::write(file, text).expect("write a configuration of HAProxy");
        args.extend(["-f".to_owned(), file.display().to_string()]);
    }
    machine.spawn(&product("haproxy-2.6/haproxy"), &args, &[haproxy_library()], log)
}

/// The environment that HAProxy needs: libraries that were unpacked beside it.
pub(super) fn haproxy_library() -> (&'static str, String) {
    ("LD_LIBRARY_PATH", product("haproxy-2.6/haproxy").with_file_name("lib").display().to_string())
}
