//! A client of the Kubernetes API with one connection, which it keeps until told otherwise: HTTP/1.1 over TLS.
//!
//! A request that got no answer in time leaves the connection as it is; the next one is sent on it as well, and the late
//! answer is read and thrown away before its own. So a connection to a server that hangs behaves as that of a kubelet
//! does, where the requests are streams of HTTP/2: nothing but dropping the connection leads to another server.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::Value;

/// How long a read waits before it looks at the deadline, and at whether it shall stop.
const SLICE: Duration = Duration::from_millis(100);

/// Who asks.
#[derive(Debug, Clone)]
pub enum Identity {
    /// Of `system:masters`, who may do everything and never waits in a queue.
    Admin,
    /// That of a node.
    Kubelet(String),
    /// Somebody without rights of their own.
    User(String),
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Reply {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{}: not JSON ({e}): {}", self.status, String::from_utf8_lossy(&self.body)))
    }
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    TimedOut,
    /// The connection could not be made, or ended.
    Broken(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Broken(error.to_string())
    }
}

pub struct Client {
    socket: PathBuf,
    config: Arc<ClientConfig>,
    connection: Option<Connection>,
    dials: u64,
    stop: Arc<AtomicBool>,
}

impl Client {
    pub(super) fn new(socket: PathBuf, config: Arc<ClientConfig>) -> Self {
        Client { socket, config, connection: None, dials: 0, stop: Arc::default() }
    }

    /// Requests fail soon after this is set.
    pub(super) fn stop_with(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    pub fn get(&mut self, path: &str, limit: Duration) -> Result<Reply, Trouble> {
        self.request("GET", path, "application/json", &[], limit)
    }

    pub fn post(&mut self, path: &str, body: &Value, limit: Duration) -> Result<Reply, Trouble> {
        self.request("POST", path, "application/json", body.to_string().as_bytes(), limit)
    }

    pub fn put(&mut self, path: &str, body: &Value, limit: Duration) -> Result<Reply, Trouble> {
        self.request("PUT", path, "application/json", body.to_string().as_bytes(), limit)
    }

    /// A strategic merge patch.
    pub fn patch(&mut self, path: &str, body: &Value, limit: Duration) -> Result<Reply, Trouble> {
        self.request("PATCH", path, "application/strategic-merge-patch+json", body.to_string().as_bytes(), limit)
    }

    /// The next request dials anew.
    pub fn drop_connection(&mut self) {
        self.connection = None;
    }

    /// How often it has connected.
    pub fn dials(&self) -> u64 {
        self.dials
    }

    fn request(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        body: &[u8],
        limit: Duration,
    ) -> Result<Reply, Trouble> {
        let until = Until { deadline: Instant::now() + limit, stop: Arc::clone(&self.stop) };
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                self.dials += 1;
                Connection::dial(&self.socket, &self.config, &until)?
            }
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: kubernetes\r\nAccept: application/json\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let replied = connection.ask(&[head.as_bytes(), body].concat(), &until);
        if !matches!(replied, Err(Trouble::Broken(_))) {
            self.connection = Some(connection);
        }
        replied
    }
}

/// When to give up.
struct Until {
    deadline: Instant,
    stop: Arc<AtomicBool>,
}

impl Until {
    fn check(&self) -> Result<(), Trouble> {
        let over = Instant::now() >= self.deadline || self.stop.load(Ordering::Relaxed);
        if over { Err(Trouble::TimedOut) } else { Ok(()) }
    }
}

struct Connection {
    stream: StreamOwned<ClientConnection, UnixStream>,
    /// What was read and not used yet.
    buffer: Vec<u8>,
    /// Requests that were sent and not answered.
    owed: usize,
}

impl Connection {
    fn dial(socket: &PathBuf, config: &Arc<ClientConfig>, until: &Until) -> Result<Self, Trouble> {
        let mut socket = UnixStream::connect(socket)?;
        socket.set_read_timeout(Some(SLICE))?;
        socket.set_write_timeout(Some(SLICE))?;
        let name = "kubernetes".try_into().expect("a name");
        let mut tls = ClientConnection::new(Arc::clone(config), name).map_err(|e| Trouble::Broken(e.to_string()))?;
        while tls.is_handshaking() {
            until.check()?;
            match tls.complete_io(&mut socket) {
                Err(e) if !is_pause(&e) => return Err(e.into()),
                _ => {}
            }
        }
        Ok(Connection { stream: StreamOwned::new(tls, socket), buffer: Vec::new(), owed: 0 })
    }

    fn ask(&mut self, request: &[u8], until: &Until) -> Result<Reply, Trouble> {
        self.stream.write_all(request)?;
        self.stream.flush()?;
        self.owed += 1;
        loop {
            let reply = self.next(until)?;
            self.owed -= 1;
            if self.owed == 0 {
                return Ok(reply);
            }
        }
    }

    fn next(&mut self, until: &Until) -> Result<Reply, Trouble> {
        let mut piece = [0; 64 << 10];
        loop {
            if let Some((reply, length)) = parse(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(reply);
            }
            until.check()?;
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Trouble::Broken("closed".into())),
                Ok(length) => self.buffer.extend_from_slice(&piece[..length]),
                Err(e) if is_pause(&e) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The first reply and its length; None where it is not there in full.
fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Trouble> {
    let Some(end) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let Some(status) = status else { return Err(Trouble::Broken(format!("not HTTP: {head}"))) };
    let headers: Vec<(String, &str)> =
        lines.filter_map(|l| l.split_once(':')).map(|(n, v)| (n.to_ascii_lowercase(), v.trim())).collect();
    let header = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, value)| *value);
    let start = end + 4;
    if header("transfer-encoding") == Some("chunked") {
        return Ok(chunked(&bytes[start..])?.map(|(body, length)| (Reply { status, body }, start + length)));
    }
    let length: usize = header("content-length").and_then(|l| l.parse().ok()).unwrap_or_default();
    let body = bytes.get(start..start + length);
    Ok(body.map(|body| (Reply { status, body: body.to_vec() }, start + length)))
}

/// The body in chunks, and how many bytes of the wire it took.
fn chunked(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Trouble> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Some(line) = find(&bytes[at..], b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&bytes[at..at + line]).ok().and_then(|s| usize::from_str_radix(s, 16).ok());
        let Some(size) = size else { return Err(Trouble::Broken("not a chunk".into())) };
        let from = at + line + 2;
        let Some(chunk) = bytes.get(from..from + size + 2) else { return Ok(None) };
        if size == 0 {
            return Ok(Some((body, from + 2)));
        }
        body.extend_from_slice(&chunk[..size]);
        at = from + size + 2;
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
