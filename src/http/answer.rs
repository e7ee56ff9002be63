//! What balancers ask: HAProxy's agent-check, and `GET /ready` for all others.
//!
//! In: a listener, and a function that says what the answer is now. Out: one line, or a small document, and the end of
//! the connection. Anybody may ask, so nothing that a client does or leaves undone costs another one anything: an answer
//! is one write into a fresh socket, each address has few places, and who takes one too many loses its own oldest.
//!
//! agent-check: `up ready 100%` restates everything that an earlier answer may have set; `down #reason` is at once, and
//! leaves the administrative state alone; never `drain`, which keeps the sessions that have to go. `/ready`: 200 or 503,
//! any other path 404; only an explicit 503 means down.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::health::fence::{Answer, Word};

/// Says what the answer is now; cheap, and never waits.
pub type Source = Arc<dyn Fn() -> Answer + Send + Sync>;

/// Connections at once, of one address and in all.
const OF_ONE: usize = 16;
const IN_ALL: usize = 256;
/// From the connection to its end, whatever the client does.
const LONGEST: Duration = Duration::from_secs(2);
/// For those that are open at the end.
const LAST: Duration = Duration::from_millis(500);
/// Bytes that are read from somebody who was asked to say nothing.
const IGNORED: usize = 4096;
/// Bytes of a request's head; hyper takes no less.
const HEAD: usize = 8192;
/// Descriptors or memory are short: they may be there again soon.
const REST: Duration = Duration::from_millis(200);
/// Characters of a reason in HAProxy's line and in its log.
const SHOWN: usize = 120;

/// Answers HAProxy's agent-check until `stop` fires, and whoever was let in by then.
pub async fn agent_check(listener: TcpListener, source: Source, stop: CancellationToken) {
    accept(listener, stop, |stream| agent(stream, source.clone())).await;
}

/// Answers `GET /ready`, likewise.
pub async fn ready(listener: TcpListener, source: Source, stop: CancellationToken) {
    accept(listener, stop, |stream| request(stream, source.clone())).await;
}

async fn accept<F>(listener: TcpListener, stop: CancellationToken, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut places = Places::default();
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        // Those that ended are let go of.
        while open.try_join_next().is_some() {}
        match accepted {
            Ok((stream, from)) => {
                places.make_room(from.ip());
                let serving = serve(stream);
                let task = open.spawn(async {
                    let _ = timeout(LONGEST, serving).await;
                });
                places.taken.push((from.ip().to_canonical(), task));
            }
            // Nothing is logged: it could block, and a client could make it happen each time.
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
    drop(listener);
    let _ = timeout(LAST, async { while open.join_next().await.is_some() {} }).await;
}

/// Connections that are open, oldest first.
#[derive(Default)]
struct Places {
    taken: Vec<(IpAddr, AbortHandle)>,
}

impl Places {
    /// Who has too many loses its own oldest; the oldest of all goes only where many addresses come together.
    fn make_room(&mut self, from: IpAddr) {
        let from = from.to_canonical();
        self.taken.retain(|(_, task)| !task.is_finished());
        let own = self.taken.iter().filter(|(address, _)| *address == from).count();
        let goes = match (own >= OF_ONE, self.taken.len() >= IN_ALL) {
            (true, _) => self.taken.iter().position(|(address, _)| *address == from),
            (false, true) => Some(0),
            (false, false) => None,
        };
        if let Some(at) = goes {
            self.taken.remove(at).1.abort();
        }
    }
}

async fn agent(mut stream: TcpStream, source: Source) {
    if stream.write_all(line(&source()).as_bytes()).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    // HAProxy may have sent its `agent-send`. A socket that is closed with bytes unread resets the connection, and the
    // line could be lost with it.
    let mut ignored = [0; 512];
    let mut read = 0;
    while let Ok(n @ 1..) = stream.read(&mut ignored).await {
        read += n;
        if read >= IGNORED {
            return;
        }
    }
}

/// The line for HAProxy: plain ASCII, ended by a line feed.
pub fn line(answer: &Answer) -> String {
    match answer.answer {
        Word::Up => "up ready 100%\n".into(),
        Word::Down => format!("down #{}\n", plain(&answer.reason)),
    }
}

fn plain(reason: &str) -> String {
    reason.chars().take(SHOWN).map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' }).collect()
}

async fn request(stream: TcpStream, source: Source) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(request.method(), request.uri().path(), &source);
        async { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(LONGEST).keep_alive(false).max_buf_size(HEAD);
    // A client that goes away, or talks nonsense, is its own affair.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

fn respond(method: &Method, path: &str, source: &Source) -> Response<Full<Bytes>> {
    let (status, text) = match (path, method) {
        ("/ready", &Method::GET | &Method::HEAD) => {
            let answer = source();
            let status = match answer.answer {
                Word::Up => StatusCode::OK,
                Word::Down => StatusCode::SERVICE_UNAVAILABLE,
            };
            (status, format!("{}: {}\n", answer.answer.text(), answer.reason))
        }
        ("/ready", _) => (StatusCode::METHOD_NOT_ALLOWED, "ask with GET\n".into()),
        _ => (StatusCode::NOT_FOUND, "ask for /ready\n".into()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpStream};
    use std::sync::Mutex;

    use super::*;

    /// Both servers on a thread of their own, and the answer that they give.
    fn served() -> (SocketAddr, SocketAddr, Arc<Mutex<Answer>>) {
        let answer = Arc::new(Mutex::new(Answer::up("well")));
        let said = answer.clone();
        let source: Source = Arc::new(move || said.lock().unwrap().clone());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let bind = || async { TcpListener::bind("127.0.0.1:0").await.unwrap() };
                let (agent, http) = (bind().await, bind().await);
                sender.send((agent.local_addr().unwrap(), http.local_addr().unwrap())).unwrap();
                let stop = CancellationToken::new();
                tokio::join!(agent_check(agent, source.clone(), stop.clone()), ready(http, source, stop));
            });
        });
        let (agent, http) = receiver.recv().unwrap();
        (agent, http, answer)
    }

    fn connect(to: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// All that comes until the other side closes.
    fn asked(to: SocketAddr, words: &[u8]) -> String {
        let mut stream = connect(to);
        stream.write_all(words).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn status(to: SocketAddr, request: &str) -> String {
        let text = asked(to, format!("{request}\r\nHost: x\r\n\r\n").as_bytes());
        text.split(' ').nth(1).unwrap_or_else(|| panic!("{text:?}")).to_string()
    }

    #[test]
    fn both_say_what_the_source_says() {
        let (agent, http, answer) = served();
        assert_eq!(asked(agent, b""), "up ready 100%\n");
        assert_eq!(asked(agent, b"cp1\n"), "up ready 100%\n", "with agent-send");
        for (request, expected) in [
            ("GET /ready HTTP/1.1", "200"),
            ("GET /ready?x=1 HTTP/1.0", "200"),
            ("HEAD /ready HTTP/1.1", "200"),
            ("POST /ready HTTP/1.1", "405"),
            ("GET / HTTP/1.1", "404"),
            ("GET /metrics HTTP/1.1", "404"),
            ("GET /ready/ HTTP/1.1", "404"),
        ] {
            assert_eq!(status(http, request), expected, "{request}");
        }
        *answer.lock().unwrap() = Answer::down("hung:\r\n\u{1b}[2J ü");
        assert_eq!(asked(agent, b""), "down #hung:???[2J ?\n");
        assert_eq!(status(http, "GET /ready HTTP/1.1"), "503");
        assert_eq!(status(http, "GET / HTTP/1.1"), "404");
    }

    #[test]
    fn a_long_reason_is_cut() {
        assert_eq!(line(&Answer::down("x".repeat(500))), format!("down #{}\n", "x".repeat(SHOWN)));
    }

    #[test]
    fn clients_that_say_nothing_take_nothing_from_others() {
        let (agent, http, _) = served();
        // More than one address may have, on both; none says a word or closes.
        let silent: Vec<TcpStream> = (0..OF_ONE + 4).flat_map(|_| [connect(agent), connect(http)]).collect();
        let mut half = connect(http);
        half.write_all(b"GET /ready HT").unwrap();
        assert_eq!(asked(agent, b""), "up ready 100%\n");
        assert_eq!(status(http, "GET /ready HTTP/1.1"), "200");
        // Nonsense, and a head without an end, are refused or cut, and that is all.
        asked(http, b"\x16\x03\x01\x02\x00\x01\x00");
        let mut endless = connect(http);
        while endless.write_all(&[b'a'; 1024]).is_ok() {}
        // The oldest went when there were too many; the others go by themselves.
        for mut stream in silent {
            let _ = stream.shutdown(Shutdown::Write);
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        }
        assert_eq!(asked(agent, b""), "up ready 100%\n");
    }

    #[tokio::test]
    async fn one_address_loses_its_own_and_no_other() {
        let wait = || tokio::spawn(std::future::pending::<()>());
        let mut places = Places::default();
        let stranger: IpAddr = "10.0.0.9".parse().unwrap();
        let balancer: IpAddr = "10.0.0.1".parse().unwrap();
        let first = wait();
        places.taken.push((balancer, first.abort_handle()));
        for _ in 0..OF_ONE {
            places.make_room(stranger);
            places.taken.push((stranger, wait().abort_handle()));
        }
        assert_eq!(places.taken.len(), 1 + OF_ONE);
        // The same address in its other writing.
        places.make_room("::ffff:10.0.0.9".parse().unwrap());
        assert_eq!((places.taken.len(), places.taken[0].0), (OF_ONE, balancer));
        for last in 0..=255 {
            for net in 1..=2 {
                places.make_room(IpAddr::from([10, 1, net, last]));
                places.taken.push((IpAddr::from([10, 1, net, last]), wait().abort_handle()));
            }
        }
        assert_eq!(places.taken.len(), IN_ALL);
        assert!(first.await.unwrap_err().is_cancelled(), "the oldest of all");
    }
}
