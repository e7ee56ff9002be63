//! A real HAProxy with the snippets of the guide, before two servers, each with its own `refloat answer`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use refloat::health::fence::Word;
use tempfile::TempDir;

use crate::answering::{Answering, PATIENCE};
use crate::bed::process::{Process, bound_to_us};
use crate::bed::{line, ports, until};

const NOW: Duration = Duration::ZERO;
/// A second for the agent to be asked again. The rest is what a busy machine may take.
const SOON: Duration = Duration::from_secs(1 + 4);

/// Says its name to whoever connects, and keeps the connection.
fn server(address: SocketAddr, name: &'static str) {
    let listener = TcpListener::bind(address).expect("listen");
    std::thread::spawn(move || {
        let mut open: Vec<TcpStream> = Vec::new();
        for mut stream in listener.incoming().flatten() {
            // A check goes away without a word.
            let _ = stream.write_all(format!("{name}\n").as_bytes());
            open.push(stream);
        }
    });
}

struct Balancer {
    nodes: Vec<Answering>,
    front: SocketAddr,
    socket: PathBuf,
    _process: Process,
    dir: TempDir,
}

impl Balancer {
    /// With a snippet in which addresses, ports and the socket's place are those of this test; cp3 is not there.
    #[track_caller]
    fn start(snippet: &str) -> Balancer {
        let [agent, http, apiserver, front] = [(); 4].map(|()| ports::free());
        let nodes: Vec<Answering> = ["127.0.0.1", "127.0.0.2"]
            .into_iter()
            .zip(["cp1", "cp2"])
            .map(|(ip, name)| {
                server(SocketAddr::new(ip.parse().expect("an address"), apiserver), name);
                Answering::at(ip, agent, http, "balancer")
            })
            .collect();
        let dir = tempfile::Builder::new().prefix("refloat-haproxy-").tempdir().expect("make a temporary directory");
        let socket = dir.path().join("admin.sock");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/snippets").join(snippet);
        let mut text = std::fs::read_to_string(&path).expect("read the snippet");
        for (from, to) in [
            ("/run/haproxy/admin.sock", socket.display().to_string()),
            ("bind :8443", format!("bind 127.0.0.1:{front}")),
            ("10.0.0.", "127.0.0.".into()),
            (":6443", format!(":{apiserver}")),
            ("9978", agent.to_string()),
            ("9979", http.to_string()),
        ] {
            text = text.replace(from, &to);
        }
        let config = dir.path().join("haproxy.cfg");
        std::fs::write(&config, text).expect("write the configuration");
        let program = line::product("haproxy-2.6/haproxy");
        let log = std::fs::File::create(dir.path().join("log")).expect("make the log");
        let mut command = bound_to_us(&program);
        command.env("LD_LIBRARY_PATH", program.with_file_name("lib")).args(["-db", "-f"]).arg(&config);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let front = SocketAddr::from(([127, 0, 0, 1], front));
        let balancer = Balancer { nodes, front, socket, _process: Process::start(command), dir };
        balancer.wait(PATIENCE, "both are up and the third is not", || {
            let all = ["cp1", "cp2", "cp3"].map(|name| balancer.status(name).starts_with("UP"));
            (all == [true, true, false]).then_some(())
        });
        balancer
    }

    /// HAProxy's own word about a server: `UP`, `DOWN (agent)`.
    fn status(&self, name: &str) -> String {
        let mut text = String::new();
        let asked = UnixStream::connect(&self.socket).and_then(|mut stream| {
            stream.write_all(b"show stat\n")?;
            stream.read_to_string(&mut text)
        });
        if asked.is_err() {
            return String::new();
        }
        let columns: Vec<&str> = text.lines().next().unwrap_or_default().trim_start_matches("# ").split(',').collect();
        let at = columns.iter().position(|column| *column == "status").unwrap_or(usize::MAX);
        let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let row = rows.into_iter().find(|row| row.get(1) == Some(&name));
        row.and_then(|row| row.get(at).map(|status| (*status).to_owned())).unwrap_or_default()
    }

    #[track_caller]
    fn wait<T>(&self, within: Duration, what: &str, found: impl FnMut() -> Option<T>) -> T {
        match until(Instant::now() + within, found) {
            Some(found) => found,
            None => {
                let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
                let states = ["cp1", "cp2", "cp3"].map(|name| format!("{name}: {}", self.status(name)));
                panic!("not within {within:?}: {what}: {states:?}\n{log}");
            }
        }
    }

    /// A session through the balancer, and whose it is.
    fn session(&self) -> Option<(String, BufReader<TcpStream>)> {
        let stream = TcpStream::connect(self.front).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut reader = BufReader::new(stream);
        let mut name = String::new();
        reader.read_line(&mut name).ok()?;
        Some((name.trim().to_owned(), reader))
    }

    /// One on each server.
    #[track_caller]
    fn sessions(&self) -> [BufReader<TcpStream>; 2] {
        let mut kept = Vec::new();
        let mut of = |wanted: &str| {
            self.wait(PATIENCE, wanted, || {
                let (name, stream) = self.session()?;
                if name == wanted {
                    return Some(stream);
                }
                // Held, so that the other server is the less busy one.
                kept.push(stream);
                None
            })
        };
        [of("cp1"), of("cp2")]
    }
}

/// Whether the other side has ended it; `false` while nothing comes.
fn is_cut(session: &mut BufReader<TcpStream>) -> bool {
    session.get_ref().set_read_timeout(Some(Duration::from_millis(1))).expect("set it");
    match session.read(&mut [0; 16]) {
        Ok(n) => n == 0,
        Err(e) => !matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
    }
}

/// Down, cut, elsewhere, and back.
fn taken_out_and_back(balancer: &Balancer) {
    let [mut bad, mut good] = balancer.sessions();
    let cp1 = &balancer.nodes[0];
    // The health process renews its word each second; here each look does.
    let fenced = |word| cp1.decide(word, "etcd behind it: hung process", NOW);
    balancer.wait(SOON, "cp1 is down", || {
        fenced(Word::Down);
        balancer.status("cp1").starts_with("DOWN").then_some(())
    });
    balancer.wait(SOON, "its session is cut", || is_cut(&mut bad).then_some(()));
    assert!(!is_cut(&mut good), "the other's session stays");
    for _ in 0..4 {
        fenced(Word::Down);
        assert_eq!(balancer.session().map(|(name, _)| name).as_deref(), Some("cp2"));
    }
    assert!(balancer.status("cp2").starts_with("UP"), "nobody else is fenced");
    balancer.wait(SOON, "cp1 is up", || {
        fenced(Word::Up);
        balancer.status("cp1").starts_with("UP").then_some(())
    });
    let [mut back, _] = balancer.sessions();
    assert!(!is_cut(&mut back) && !is_cut(&mut good));
}

#[test]
fn the_agent_takes_a_path_out_at_once_and_nothing_stays_fenced() {
    let mut balancer = Balancer::start("haproxy.cfg");
    taken_out_and_back(&balancer);

    // Everything of refloat dies while it says down. HAProxy keeps that; systemd starts the answer process again.
    balancer.wait(SOON, "cp1 is down", || {
        balancer.nodes[0].decide(Word::Down, "hung process", NOW);
        balancer.status("cp1").starts_with("DOWN").then_some(())
    });
    let silent_since = Instant::now();
    balancer.nodes[0].kill();
    assert!(balancer.status("cp1").starts_with("DOWN"), "nobody says up");
    balancer.nodes[0].restart();
    balancer
        .wait(Duration::from_secs(10) + SOON, "cp1 is up", || balancer.status("cp1").starts_with("UP").then_some(()));
    println!("up {:?} after the last word", silent_since.elapsed());

    // By hand, without any health process.
    balancer.nodes[0].refloat.run(&["fence", "hold", "--down"]).ok();
    balancer.wait(SOON, "cp1 is down by hand", || balancer.status("cp1").starts_with("DOWN").then_some(()));
    balancer.nodes[0].refloat.run(&["fence", "release"]).ok();
    balancer.wait(SOON, "cp1 is released", || balancer.status("cp1").starts_with("UP").then_some(()));
}

#[test]
fn by_http_an_explicit_503_takes_a_path_out() {
    let balancer = Balancer::start("haproxy-http.cfg");
    taken_out_and_back(&balancer);
}
