//! HAProxy before the apiservers, on a machine of its own.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::gate::haproxy;
use super::net::Namespace;
use super::{API_PORT, ControlPlane, PlaneNode};
use crate::bed::process::Process;

/// The number in its address.
pub(super) const NUMBER: u8 = 5;
pub(super) const NAME: &str = "balancer";

/// As the guide to highly available clusters of kubeadm has it: `/healthz` decides, with HAProxy's own periods, and
/// sessions of a server that is down go on.
pub const GUIDE: &str = "
defaults
  mode http
  option dontlognull
  option http-server-close
  option redispatch
  retries 1
  timeout http-request 10s
  timeout queue 20s
  timeout connect 5s
  timeout client 35s
  timeout server 35s
  timeout http-keep-alive 10s
  timeout check 10s

frontend apiserver
  bind *:6443
  mode tcp
  default_backend apiserverbackend

backend apiserverbackend
  option httpchk
  http-check connect ssl
  http-check send meth GET uri /healthz
  http-check expect status 200
  mode tcp
  balance roundrobin
  server cp1 192.0.2.11:6443 check verify none
";

/// What HAProxy says about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    /// `UP`, `DOWN`, `DOWN (agent)`, `UP 1/2` on its way down, …
    pub state: String,
    /// Sessions that are open now.
    pub sessions: u64,
    /// Sessions since the start.
    pub total: u64,
}

/// Ends when dropped.
pub struct Balancer {
    process: Process,
    machine: Namespace,
    stats: PathBuf,
}

impl Balancer {
    /// With the text of a configuration file, such as a snippet from the docs or [`GUIDE`]: its section `global` is left
    /// out, it listens on the port of the API whatever is said, and its first line `server` stands for all nodes of the
    /// plane, each with its own name and address. Returns once HAProxy has found all of them up.
    #[track_caller]
    pub fn start(plane: &ControlPlane, text: &str) -> Self {
        let dir = plane.dir();
        let machine = plane.network.machine(NAME, NUMBER);
        let stats = dir.join("balancer-stats.sock");
        let global = format!("global\n  maxconn 4000\n  stats socket {} mode 600 level admin\n", stats.display());
        let text = for_nodes(text, plane.nodes());
        let files = [(dir.join("balancer-global.cfg"), global), (dir.join("balancer.cfg"), text)];
        let process = haproxy(&machine, &files, &dir.join("balancer.log"));
        let balancer = Balancer { process, machine, stats };
        plane.wait("a balancer that has all servers up", || {
            assert_eq!(balancer.process.ended(), None, "HAProxy ended");
            let servers = balancer.servers();
            (servers.len() >= plane.nodes().len() && servers.iter().all(|s| s.state == "UP")).then_some(())
        });
        balancer
    }

    pub fn machine(&self) -> &Namespace {
        &self.machine
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Empty where it does not answer.
    pub fn servers(&self) -> Vec<Server> {
        let Ok(table) = self.tell("show stat") else { return Vec::new() };
        let mut lines = table.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().trim_start_matches("# ").split(',').collect();
        lines.filter_map(|line| server(&names, line)).collect()
    }

    #[track_caller]
    pub fn server(&self, name: &str) -> Server {
        self.servers().into_iter().find(|s| s.name == name).unwrap_or_else(|| panic!("HAProxy has no server {name}"))
    }

    /// A command of HAProxy's runtime API.
    pub fn tell(&self, command: &str) -> std::io::Result<String> {
        let mut stream = UnixStream::connect(&self.stats)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        writeln!(stream, "{command}")?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok(said)
    }
}

fn server(names: &[&str], line: &str) -> Option<Server> {
    let fields: Vec<&str> = line.split(',').collect();
    let field = |name: &str| names.iter().position(|n| *n == name).and_then(|i| fields.get(i)).copied();
    let name = field("svname").filter(|name| !matches!(*name, "FRONTEND" | "BACKEND"))?;
    let number = |name: &str| field(name).and_then(|text| text.parse().ok()).unwrap_or_default();
    let state = field("status")?.to_owned();
    Some(Server { name: name.to_owned(), state, sessions: number("scur"), total: number("stot") })
}

/// See [`Balancer::start`].
fn for_nodes(text: &str, nodes: &[PlaneNode]) -> String {
    let (mut out, mut in_global, mut had_server) = (Vec::new(), false, false);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() || words[0].starts_with('#') {
            continue;
        }
        if !line.starts_with(char::is_whitespace) {
            in_global = words[0] == "global";
        }
        if in_global {
            continue;
        }
        if words[0] == "bind" {
            out.push(format!("  bind *:{API_PORT}"));
            continue;
        }
        let ["server", name, address, rest @ ..] = words.as_slice() else {
            out.push(line.to_owned());
            continue;
        };
        if std::mem::replace(&mut had_server, true) {
            continue;
        }
        let host = address.split_once(':').map_or(*address, |(host, _)| host);
        for node in nodes {
            let own =
                |word: &str| if word == *name { node.name().to_owned() } else { word.replace(host, node.address()) };
            let words: Vec<String> =
                std::iter::once(*name).chain([*address]).chain(rest.iter().copied()).map(own).collect();
            out.push(format!("  server {}", words.join(" ")));
        }
    }
    assert!(had_server, "no line `server` in the configuration of HAProxy:\n{text}");
    out.join("\n") + "\n"
}
