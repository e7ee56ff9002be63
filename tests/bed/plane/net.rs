//! Networks of processes: a namespace with a bridge, and one for each machine that hangs on it. Nothing of it is on
//! the host, so every network may use the same addresses, and any number may be there at once.
//!
//! A namespace is held by a process that dies with the test process, and goes with it.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bed::process::{Process, bound_to_us};
use crate::bed::run::{Run, until};

/// The interface of a machine.
const CARD: &str = "eth0";

/// A network and a host name of its own.
pub struct Namespace {
    name: String,
    holder: Process,
}

impl Namespace {
    #[track_caller]
    pub(super) fn new(name: &str) -> Self {
        let mut command = bound_to_us("unshare");
        let script = "hostname \"$0\" && ip link set lo up && exec sleep infinity";
        command.args(["--net", "--uts", "--", "sh", "-c", script, name]).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let namespace = Namespace { name: name.to_owned(), holder: Process::start(command) };
        let is_made = || {
            assert_eq!(namespace.holder.ended(), None, "no namespaces can be made here");
            let program = std::fs::read_link(format!("/proc/{}/exe", namespace.pid())).ok()?;
            program.ends_with("sleep").then_some(())
        };
        until(Instant::now() + Duration::from_secs(30), is_made).expect("a namespace within half a minute");
        namespace
    }

    pub fn pid(&self) -> u32 {
        self.holder.pid()
    }

    /// The words before a program that make it run here; the process id stays that of the program.
    pub fn entry(&self) -> [String; 6] {
        ["nsenter", "-t", &self.pid().to_string(), "-n", "-u", "--"].map(str::to_owned)
    }

    /// A program that ends by itself, in here.
    pub fn run(&self, program: impl AsRef<std::ffi::OsStr>) -> Run {
        let [enter, rest @ ..] = self.entry();
        Run::new(enter).args(rest).args([program])
    }

    /// A program that goes on, in here; what it says is added to `log`.
    #[track_caller]
    pub fn spawn(&self, program: &Path, args: &[String], env: &[(&str, String)], log: &Path) -> Process {
        let said = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("open a log");
        let [enter, rest @ ..] = self.entry();
        let mut command: Command = bound_to_us(enter);
        command
            .args(rest)
            .arg(program)
            .args(args)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command.env_remove("NOTIFY_SOCKET").env_remove("JOURNAL_STREAM");
        command.stdout(said.try_clone().expect("share a log")).stderr(said);
        Process::start(command)
    }

    #[track_caller]
    fn ip(&self, words: &str) {
        self.run("ip").args(words.split_whitespace()).run().ok();
    }

    /// Reads rules for nftables.
    #[track_caller]
    pub(super) fn nft(&self, rules: &str) {
        self.run("nft").args(["-f", "-"]).input(rules).run().ok();
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The bridge and who hangs on it. Addresses are `10.77.0.N`.
pub struct Network {
    pub bridge: Arc<Namespace>,
}

impl Network {
    #[track_caller]
    pub(super) fn new() -> Self {
        let bridge = Arc::new(Namespace::new("bridge"));
        for words in ["link add br0 type bridge", "addr add 10.77.0.1/24 dev br0", "link set br0 up"] {
            bridge.ip(words);
        }
        Network { bridge }
    }

    pub(super) fn address(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, number)
    }

    /// A machine. What it sends is never more than what fits into one frame, so that rules about lengths see what a wire
    /// would.
    #[track_caller]
    pub(super) fn machine(&self, name: &str, number: u8) -> Namespace {
        let machine = Namespace::new(name);
        let (port, address) = (format!("v{number}"), Self::address(number));
        self.bridge.ip(&format!("link add {port} type veth peer name {CARD} netns {}", machine.pid()));
        self.bridge.ip(&format!("link set {port} gso_max_segs 1 master br0 up"));
        machine.ip(&format!("addr add {address}/24 dev {CARD}"));
        machine.ip(&format!("link set {CARD} gso_max_segs 1 up"));
        machine.ip("route add default via 10.77.0.1");
        machine
    }
}
