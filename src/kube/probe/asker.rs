//! One request to one apiserver, and what became of it as a value.
//!
//! A connection is kept between requests and thrown away when it failed. One that the other side closed while it was
//! idle is made anew within the same request: nothing is learned from that.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::identity::Identity;
use crate::error::{Code, Error, Result};
use crate::format::x509;

/// A Lease is padded to 16 KiB, a list of checks is shorter.
const LONGEST: usize = 256 << 10;
/// The end of a limit in which a request that is still silent gets company: one attempt to connect.
const COMPANY: Duration = Duration::from_millis(300);

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Nobody listens.
    Refused,
    /// The host does not answer, or there is no way to it.
    Unreachable,
    /// The port accepts, and nothing came within the limit.
    Silent,
    /// The other side closed the connection.
    Reset,
    /// A certificate is over: the server's, or ours.
    Expired,
    Tls(String),
    /// What came is no answer.
    Nonsense(String),
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub body: Bytes,
    /// When the certificate ends that was shown; `None` on a connection that was there before.
    pub certificate_ends: Option<Timestamp>,
}

/// A client of exactly one address.
pub struct Asker {
    url: Url,
    address: Option<IpAddr>,
    name: ServerName<'static>,
    identity: Identity,
    idle: Mutex<Option<Connection>>,
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Asker {
    /// Dials nothing. `address`: of the host in the URL, when it has a name, so that nobody is asked for it again.
    pub fn new(url: &str, address: Option<IpAddr>, identity: &Identity) -> Result<Asker> {
        let refused = |why: String| Error::new(Code::Config, "use apiserver", url).because(why);
        let parsed = Url::parse(url).map_err(|e| refused(e.to_string()))?;
        let host = parsed.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_string();
        let name = identity.server_name.clone().filter(|name| !name.is_empty()).unwrap_or(host);
        let name = ServerName::try_from(name).map_err(|e| refused(e.to_string()))?;
        Ok(Asker { url: parsed, address, name, identity: identity.clone(), idle: Mutex::new(None) })
    }

    /// The next request makes a new connection.
    pub fn forget(&self) {
        drop(self.keep(None));
    }

    fn keep(&self, connection: Option<Connection>) -> Option<Connection> {
        std::mem::replace(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner), connection)
    }

    /// Sends one request; its answer is whole within `limit`. `path` begins with a slash.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        limit: Duration,
    ) -> Result<Answer, Why> {
        let end = Instant::now() + limit;
        let body = body.map(Bytes::from);
        if let Some(mut kept) = self.keep(None) {
            let sent = {
                let mut sending = pin!(self.send(&mut kept, &method, path, body.clone()));
                match timeout_at(end - COMPANY.min(limit / 2), &mut sending).await {
                    Ok(sent) => Ok(sent),
                    // An old connection is silent also when its host has vanished.
                    Err(_) => match tokio::join!(timeout_at(end, &mut sending), timeout_at(end, self.dial())) {
                        (Ok(sent), _) => Ok(sent),
                        (Err(_), Ok(Ok(_))) => Err(Why::Silent),
                        (Err(_), Ok(Err(why))) => Err(why),
                        (Err(_), Err(_)) => Err(Why::Unreachable),
                    },
                }
            };
            match sent {
                Ok(Ok(answer)) => {
                    self.keep(Some(kept));
                    return Ok(answer);
                }
                // It may have been closed while it was idle: only a new one tells.
                Ok(Err(Why::Reset)) => {}
                Ok(Err(why)) | Err(why) => return Err(why),
            }
        }
        let (mut made, certificate_ends) = self.connect(end).await?;
        match timeout_at(end, self.send(&mut made, &method, path, body)).await {
            Ok(Ok(answer)) => {
                self.keep(Some(made));
                Ok(Answer { certificate_ends, ..answer })
            }
            Ok(Err(why)) => Err(why),
            Err(_) => Err(Why::Silent),
        }
    }

    async fn dial(&self) -> Result<TcpStream, Why> {
        let port = self.url.port_or_known_default().unwrap_or(6443);
        let ip = match (self.address, self.url.host()) {
            (Some(ip), _) => Some(ip),
            (None, Some(Host::Ipv4(ip))) => Some(IpAddr::V4(ip)),
            (None, Some(Host::Ipv6(ip))) => Some(IpAddr::V6(ip)),
            _ => None,
        };
        let connected = match ip {
            Some(ip) => TcpStream::connect(SocketAddr::new(ip, port)).await,
            None => TcpStream::connect((self.url.host_str().unwrap_or_default(), port)).await,
        };
        connected.map_err(|e| match e.kind() {
            ErrorKind::ConnectionRefused => Why::Refused,
            _ => Why::Unreachable,
        })
    }

    async fn connect(&self, end: Instant) -> Result<(Connection, Option<Timestamp>), Why> {
        let stream = timeout_at(end, self.dial()).await.map_err(|_| Why::Unreachable)??;
        let _ = stream.set_nodelay(true);
        let connector = TlsConnector::from(self.identity.tls.clone());
        let secured = timeout_at(end, connector.connect(self.name.clone(), stream)).await.map_err(|_| Why::Silent)?;
        let secured = secured.map_err(|e| self.tls(&e))?;
        let shown = secured.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let ends = shown.and_then(|der| x509::certificate(der).ok()).map(|facts| facts.not_after);
        let (sender, driver) = handshake(TokioIo::new(secured)).await.map_err(|_| Why::Reset)?;
        let driver = tokio::spawn(driver).abort_handle();
        Ok((Connection { sender, driver }, ends))
    }

    async fn send(
        &self,
        connection: &mut Connection,
        method: &Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<Answer, Why> {
        let host = self.url.host_str().unwrap_or_default();
        let authority = format!("{host}:{}", self.url.port_or_known_default().unwrap_or(6443));
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(header::HOST, authority)
            .header(header::USER_AGENT, concat!("refloat/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, "application/json, */*");
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.identity.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(body.unwrap_or_default())).map_err(|e| Why::Nonsense(e.to_string()))?;
        let answer = connection.sender.send_request(request).await.map_err(|e| self.broken(&e))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|e| match e.downcast_ref::<hyper::Error>() {
            Some(error) => self.broken(error),
            None => Why::Nonsense(e.to_string()),
        })?;
        Ok(Answer { status, body: body.to_bytes(), certificate_ends: None })
    }

    fn broken(&self, error: &hyper::Error) -> Why {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(cause) = next {
            if let Some(error) = cause.downcast_ref::<std::io::Error>() {
                return self.tls(error);
            }
            next = cause.source();
        }
        if error.is_parse() { Why::Nonsense(error.to_string()) } else { Why::Reset }
    }

    /// With TLS 1.3 a client certificate that is refused shows only after the handshake.
    fn tls(&self, error: &std::io::Error) -> Why {
        use CertificateError::{Expired, ExpiredContext};
        let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
            return match error.kind() {
                ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::TimedOut => Why::Unreachable,
                _ => Why::Reset,
            };
        };
        let own_ended = || self.identity.ends().is_some_and(|ends| ends < Timestamp::now());
        match error {
            rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. })
            | rustls::Error::AlertReceived(AlertDescription::CertificateExpired) => Why::Expired,
            rustls::Error::AlertReceived(AlertDescription::BadCertificate) if own_ended() => Why::Expired,
            other => Why::Tls(other.to_string()),
        }
    }
}
