//! Asks the daemon of this host.

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::api::{Daemon, ErrorBody};
use crate::error::{Code, Error, Result};

/// The daemon answers at once, or within the patience that it has with itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer answers are not the daemon's.
const LONGEST: usize = 64 << 20;

/// The socket of a daemon that answered.
#[derive(Debug, Clone)]
pub struct Client {
    socket: std::path::PathBuf,
    /// Whose it is.
    unit: &'static str,
}

impl Client {
    /// `None` when nobody listens there. `Permission` when this user may not ask, `LockHeld` when nothing answers.
    pub async fn connect(socket: &Path) -> Result<Option<(Client, Daemon)>> {
        let client = Client { socket: socket.into(), unit: "refloat" };
        match client.get::<Daemon>("/v1/daemon").await {
            Ok(daemon) => Ok(Some((client, daemon))),
            Err(error) if error.code() == Code::MemberGone => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Of the health process; asks nothing yet. `MemberGone` from a call: nobody listens there.
    pub fn of_health(socket: &Path) -> Client {
        Client { socket: socket.into(), unit: "refloat-health" }
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.whole(Method::GET, path, Bytes::new()).await
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str, document: &impl Serialize) -> Result<T> {
        let body = serde_json::to_vec(document).map_err(|e| self.failed(Code::Internal).because(e))?;
        self.whole(Method::POST, path, body.into()).await
    }

    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.whole(Method::DELETE, path, Bytes::new()).await
    }

    /// Documents as they come, one a line.
    pub async fn follow(&self, path: &str) -> Result<Follow> {
        let response = self.within(self.send(Method::GET, path, Bytes::new())).await?;
        let (response, sender) = self.good(response).await?;
        Ok(Follow { client: self.clone(), body: response.into_body(), buffer: Vec::new(), _sender: sender })
    }

    async fn whole<T: DeserializeOwned>(&self, method: Method, path: &str, body: Bytes) -> Result<T> {
        let work = async {
            let answer = self.send(method, path, body).await?;
            let (response, _sender) = self.good(answer).await?;
            let body = self.collect(response.into_body()).await?;
            serde_json::from_slice(&body).map_err(|e| {
                self.failed(Code::Internal)
                    .because(e)
                    .remedy(format!("is it of another version? `systemctl restart {}`", self.unit))
            })
        };
        self.within(work).await
    }

    async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(done) => done,
            Err(_) => Err(self
                .failed(Code::LockHeld)
                .because(format!("no answer within {} seconds", PATIENCE.as_secs()))
                .remedy(format!("look at `systemctl status {}`", self.unit))),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(Response<Incoming>, SendRequest<Full<Bytes>>)> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|e| self.not_connected(e))?;
        let broken = |e: hyper::Error| self.failed(Code::Interrupted).because(e);
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        let request = Request::builder().method(method).uri(path).header("host", "refloat").body(Full::new(body));
        let request = request.map_err(|e| self.failed(Code::Internal).because(e))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        Ok((response, sender))
    }

    /// An answer that is an error becomes one.
    async fn good(
        &self,
        (response, sender): (Response<Incoming>, SendRequest<Full<Bytes>>),
    ) -> Result<(Response<Incoming>, SendRequest<Full<Bytes>>)> {
        if response.status().is_success() {
            return Ok((response, sender));
        }
        let status = response.status();
        let body = self.collect(response.into_body()).await?;
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => Err(body.error.to_error()),
            Err(_) => Err(self.failed(Code::Internal).because(format!("the answer is {status}"))),
        }
    }

    async fn collect(&self, body: Incoming) -> Result<Bytes> {
        let limited = http_body_util::Limited::new(body, LONGEST);
        let whole = limited.collect().await.map_err(|e| self.failed(Code::Interrupted).because(e))?;
        Ok(whole.to_bytes())
    }

    fn failed(&self, code: Code) -> Error {
        let whom = if self.unit == "refloat" { "ask the daemon at" } else { "ask the health process at" };
        Error::new(code, whom, self.socket.display().to_string())
    }

    fn not_connected(&self, cause: std::io::Error) -> Error {
        use std::io::ErrorKind::*;
        match cause.kind() {
            NotFound | ConnectionRefused => self
                .failed(Code::MemberGone)
                .because(cause)
                .remedy(format!("start it: `systemctl start {}`", self.unit)),
            PermissionDenied => {
                self.failed(Code::Permission).because(cause).remedy("be root, or in the group of its runtime directory")
            }
            _ => self.failed(Code::Io).because(cause),
        }
    }
}

/// A document a line.
pub struct Follow {
    client: Client,
    body: Incoming,
    buffer: Vec<u8>,
    /// The connection lives as long as it.
    _sender: SendRequest<Full<Bytes>>,
}

impl Follow {
    /// The next one; `None` at the end. Safe to drop while it waits.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let document = serde_json::from_slice(&line);
                return document.map(Some).map_err(|e| self.client.failed(Code::Internal).because(e));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                Some(Err(e)) => {
                    return Err(self
                        .client
                        .failed(Code::Interrupted)
                        .because(e)
                        .remedy(format!("it has ended; see `systemctl status {}`", self.client.unit)));
                }
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(self.client.failed(Code::Interrupted).because("its answer ends in the middle")),
            }
        }
    }
}
