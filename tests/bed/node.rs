//! One member: its process, its directory, and questions that it answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::line::Line;
use super::ports;
use super::process::{Process, bound_to_us};
use super::run::{Output, until};
use super::target::Target;

/// A start takes under a second; this is for a machine that is busy with other things.
const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(60);

/// A member of a cluster of the bed.
pub struct Node {
    line: Line,
    name: String,
    dir: PathBuf,
    client_port: u16,
    peer_port: u16,
    metrics_port: u16,
    pub(super) target: Target,
    /// What differs from etcd's defaults, apart from what [`Node::launch`] adds.
    pub(super) args: Vec<String>,
    /// What it tells others to call it by, where that is not its own client URL.
    pub(super) advertise: Option<String>,
    process: Option<Process>,
}

/// Why a member did not get ready.
#[derive(Debug)]
pub(super) enum NotReady {
    /// Somebody else took one of the ports in between.
    PortTaken,
    Other(String),
}

impl Node {
    /// Picks ports; nothing runs yet.
    pub(super) fn plan(line: Line, name: &str, dir: PathBuf, mut target: Target) -> Self {
        let (client_port, peer_port, metrics_port) = (ports::free(), ports::free(), ports::free());
        let scheme = if target.pki.is_some() { "https" } else { "http" };
        target.endpoints = vec![format!("{scheme}://127.0.0.1:{client_port}")];
        let (args, advertise, process) = (Vec::new(), None, None);
        Node {
            line,
            name: name.to_owned(),
            dir,
            client_port,
            peer_port,
            metrics_port,
            target,
            args,
            advertise,
            process,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn line(&self) -> Line {
        self.line
    }

    pub fn client_url(&self) -> &str {
        &self.target.endpoints[0]
    }

    pub fn peer_url(&self) -> String {
        let scheme = if self.target.pki.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.peer_port)
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    pub fn db_file(&self) -> PathBuf {
        self.data_dir().join("member/snap/db")
    }

    pub fn log_file(&self) -> PathBuf {
        self.dir.join("etcd.log")
    }

    /// What the member wrote so far.
    pub fn log(&self) -> String {
        std::fs::read(self.log_file()).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
    }

    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.running().pid()
    }

    /// SIGSTOP: its ports stay open and nothing answers. It thaws by itself after two minutes.
    #[track_caller]
    pub fn freeze(&self) {
        self.running().freeze();
    }

    #[track_caller]
    pub fn thaw(&self) {
        self.running().thaw();
    }

    /// SIGKILL; the data stays.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// SIGTERM, and waits for the end.
    #[track_caller]
    pub fn terminate(&mut self) {
        self.running().terminate(STOP);
        self.process = None;
    }

    /// Ends it, if it runs, and starts it on the same data and ports; returns once it serves.
    #[track_caller]
    pub fn restart(&mut self) {
        self.launch();
        self.wait_ready();
    }

    /// Ends it, replaces bytes in its database file, and starts it again: it serves values that the others do not
    /// have, because bbolt keeps no checksums of pages. Both texts must have the same length, the first must be
    /// there, and it must not be in the log entries that the member replays at its start, so write it well before.
    #[track_caller]
    pub fn falsify(&mut self, from: &str, to: &str) {
        assert_eq!(from.len(), to.len(), "a change of length would break the pages");
        self.terminate();
        let mut database = std::fs::read(self.db_file()).expect("read the database");
        let found = places(&database, from.as_bytes());
        assert!(!found.is_empty(), "{from} is not in the database of {}", self.name);
        for at in found {
            database[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
        std::fs::write(self.db_file(), database).expect("write the database");
        self.restart();
    }

    /// Starts it without waiting: for a cluster that has no quorum yet.
    #[track_caller]
    pub fn launch(&mut self) {
        self.process = None;
        std::fs::create_dir_all(&self.dir).expect("make the member's directory");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_file()).expect("open the log");
        let (client, peer) = (self.client_url().to_owned(), self.peer_url());
        let mut command = bound_to_us(self.line.etcd_program());
        command.args(["--name", &self.name]).arg("--data-dir").arg(self.data_dir());
        let advertise = self.advertise.as_ref().unwrap_or(&client);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", advertise]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.arg("--listen-metrics-urls").arg(format!("http://127.0.0.1:{}", self.metrics_port));
        // The default of 2 GiB is less than what the speed tests fill in.
        command.arg("--quota-backend-bytes=8589934592");
        if let Some(pki) = &self.target.pki {
            for side in ["", "peer-"] {
                let flag = |name: &str| format!("--{side}{name}");
                command.arg(flag("client-cert-auth"));
                command.arg(flag("trusted-ca-file")).arg(&pki.ca);
                command.arg(flag("cert-file")).arg(&pki.server.cert).arg(flag("key-file")).arg(&pki.server.key);
            }
        }
        command.args(&self.args).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("share the log")).stderr(log);
        self.process = Some(Process::start(command));
    }

    #[track_caller]
    pub fn wait_ready(&self) {
        if let Err(why) = self.ready() {
            panic!("member {} of {} did not get ready: {why:?}\n{}", self.name, self.line, self.log_end());
        }
    }

    /// Ready means: the process that was started listens on all three ports itself, and it serves a linearizable
    /// read, or, as a learner, has a leader.
    pub(super) fn ready(&self) -> Result<(), NotReady> {
        let Some(process) = &self.process else { return Err(NotReady::Other("it does not run".into())) };
        let serves = || {
            if let Some(status) = process.ended() {
                let log = self.log();
                let taken = log.contains("address already in use");
                let why = NotReady::Other(format!("it ended: {status}"));
                return Some(Err(if taken { NotReady::PortTaken } else { why }));
            }
            let own = [self.client_port, self.peer_port, self.metrics_port].iter().all(|p| process.listens_on(*p));
            let learner = || self.metric("etcd_server_is_learner") == Some(1.0);
            let has_leader = || self.metric("etcd_server_has_leader") == Some(1.0);
            (own && (self.healthy() || (learner() && has_leader()))).then_some(Ok(()))
        };
        until(Instant::now() + START, serves).unwrap_or_else(|| Err(NotReady::Other(format!("not within {START:?}"))))
    }

    /// Whether it serves a linearizable read, by its own word.
    pub fn healthy(&self) -> bool {
        self.http("/health").is_some_and(|answer| answer.contains(r#""health":"true""#))
    }

    /// False also where it does not answer.
    pub fn is_leader(&self) -> bool {
        self.metric("etcd_server_is_leader") == Some(1.0)
    }

    #[track_caller]
    pub fn member_id(&self) -> u64 {
        let metrics = self.http("/metrics").expect("a running member tells its metrics");
        let id = metrics.split_once("etcd_server_id{server_id=\"").and_then(|(_, rest)| rest.split_once('"'));
        u64::from_str_radix(id.expect("the metrics hold the member id").0, 16).expect("a member id is hexadecimal")
    }

    #[track_caller]
    pub fn cluster_id(&self) -> u64 {
        let status = self.etcdctl(&["endpoint", "status", "-w", "json"]).json();
        status[0]["Status"]["header"]["cluster_id"].as_u64().expect("a status holds the cluster id")
    }

    /// etcdctl of this line against this member alone.
    #[track_caller]
    pub fn etcdctl(&self, args: &[&str]) -> Output {
        self.target.etcdctl(self.line).args(args).run()
    }

    /// The value of a metric without labels; None also where it does not answer.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.http("/metrics")?;
        metrics.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// The body of a plain GET from the metrics port, which asks for no certificate.
    fn http(&self, path: &str) -> Option<String> {
        let timeout = Duration::from_secs(2);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.metrics_port));
        let mut stream = TcpStream::connect_timeout(&address, timeout).ok()?;
        stream.set_read_timeout(Some(timeout)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.split_once("\r\n\r\n")?.1.to_owned())
    }

    /// The end of the log, for people.
    pub fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let from = lines.len().saturating_sub(25);
        format!("--- {} ({})\n{}\n", self.name, self.line, lines[from..].join("\n"))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    #[track_caller]
    fn running(&self) -> &Process {
        match &self.process {
            Some(process) => process,
            None => panic!("member {} does not run", self.name),
        }
    }
}

/// All places of a text.
fn places(in_all: &[u8], text: &[u8]) -> Vec<usize> {
    in_all.windows(text.len()).enumerate().filter(|(_, w)| *w == text).map(|(i, _)| i).collect()
}

impl From<&Node> for Target {
    fn from(node: &Node) -> Self {
        node.target.clone()
    }
}
