//! Looks at a member's port with a connection of its own after a call failed, because the transport hides why.
//!
//! One TCP connection (two, when plain text and TLS must be told apart), no request, at most [`LIMIT`] in all.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Host, Url};

use super::access::Access;
use crate::format::x509;

/// The longest a look may take.
pub(super) const LIMIT: Duration = Duration::from_secs(1);
/// Waiting for an answer on a port that accepted; shorter than [`LIMIT`], so that the steps fit into it.
const STEP: Duration = Duration::from_millis(400);

/// HTTP/2 preface with empty settings: any HTTP/2 server answers with its own settings at once.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[derive(Debug)]
pub(super) enum Finding {
    /// No name, no route, nobody listens.
    Unreachable(io::Error),
    /// Packets vanish: nothing, not even a refusal.
    NoConnection,
    /// The kernel accepts, the process says nothing.
    Silent,
    /// Something else listens there.
    NotEtcd,
    /// Accepted and closed at once.
    Closed,
    /// TLS failed here, or the server sent an alert.
    Tls(rustls::Error),
    /// We speak TLS, the port speaks plain HTTP/2.
    PlainPort,
    /// We speak plain text, the port speaks TLS.
    TlsPort,
    /// The port answers as it should: the failure was of another kind, or is over.
    Answers,
}

/// Never fails and never takes longer than [`LIMIT`].
pub(super) async fn look(url: &Url, access: &Access) -> Finding {
    let place = Place::new(url, None, STEP);
    match timeout(LIMIT, greet(&place, access, &mut None)).await {
        Ok(finding) => finding,
        Err(_) => Finding::NoConnection,
    }
}

/// A fresh connection up to the first words of the server, and when the certificate ends that it showed. Never takes
/// longer than `limit`. `address`: of the host in the URL, so that nobody has to be asked for it.
pub(super) async fn handshake(
    url: &Url,
    address: Option<IpAddr>,
    access: &Access,
    limit: Duration,
) -> (Finding, Option<Timestamp>) {
    let place = Place::new(url, address, limit);
    let mut ends = None;
    let finding = match timeout(limit, greet(&place, access, &mut ends)).await {
        Ok(finding) => finding,
        Err(_) if place.connected.load(Ordering::Relaxed) => Finding::Silent,
        Err(_) => Finding::NoConnection,
    };
    (finding, ends)
}

/// Whether the kernel there accepts a connection.
pub(super) async fn reach(url: &Url, address: Option<IpAddr>, limit: Duration) -> Result<(), Finding> {
    match timeout(limit, connect(&Place::new(url, address, limit))).await {
        Ok(connected) => connected.map(drop),
        Err(_) => Err(Finding::NoConnection),
    }
}

/// Whom to connect to, and for how long a single answer is waited for.
struct Place<'a> {
    url: &'a Url,
    address: Option<IpAddr>,
    step: Duration,
    /// The kernel there accepted.
    connected: AtomicBool,
}

impl<'a> Place<'a> {
    fn new(url: &'a Url, address: Option<IpAddr>, step: Duration) -> Place<'a> {
        Place { url, address, step, connected: AtomicBool::new(false) }
    }
}

async fn greet(place: &Place<'_>, access: &Access, ends: &mut Option<Timestamp>) -> Finding {
    let greeted = match (&access.tls, place.url.scheme()) {
        (Some(tls), "https") => with_tls(place, tls.config.clone(), ends).await,
        _ => plain(place).await,
    };
    greeted.unwrap_or_else(|finding| finding)
}

async fn connect(place: &Place<'_>) -> Result<TcpStream, Finding> {
    let port = place.url.port_or_known_default().unwrap_or(2379);
    let attempt = async {
        match (place.address, place.url.host()) {
            (Some(ip), _) => TcpStream::connect((ip, port)).await,
            (None, Some(Host::Domain(name))) => TcpStream::connect((name, port)).await,
            (None, Some(Host::Ipv4(ip))) => TcpStream::connect((ip, port)).await,
            (None, Some(Host::Ipv6(ip))) => TcpStream::connect((ip, port)).await,
            (None, None) => Err(io::Error::new(io::ErrorKind::InvalidInput, "no host in the URL")),
        }
    };
    let stream = attempt.await.map_err(Finding::Unreachable)?;
    place.connected.store(true, Ordering::Relaxed);
    Ok(stream)
}

/// Reads once; `None` means silence, an empty slice that the other side closed.
async fn read<'a>(stream: &mut TcpStream, buf: &'a mut [u8], step: Duration) -> Option<&'a [u8]> {
    match timeout(step, stream.read(buf)).await {
        Ok(Ok(n)) => Some(&buf[..n]),
        Ok(Err(_)) => Some(&[]),
        Err(_) => None,
    }
}

/// Frame header of HTTP/2 SETTINGS: type 4 on stream 0.
fn is_settings(bytes: &[u8]) -> bool {
    bytes.len() >= 9 && bytes[3] == 4 && bytes[5..9] == [0; 4]
}

/// Record header of TLS: handshake or alert, version 3.x.
fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16 | 0x15, 3, ..])
}

async fn plain(place: &Place<'_>) -> Result<Finding, Finding> {
    let mut stream = connect(place).await?;
    let mut buf = [0; 256];
    let _ = stream.write_all(PREFACE).await;
    let answer = match read(&mut stream, &mut buf, place.step).await {
        None => return Ok(Finding::Silent),
        Some(bytes) if is_tls(bytes) => return Ok(Finding::TlsPort),
        Some(bytes) if is_settings(bytes) => return Ok(Finding::Answers),
        Some(bytes) => bytes.to_vec(),
    };
    // A TLS server usually just closes on plain text: ask again in its own language. The empty root store
    // makes the handshake fail, but any answer in TLS records is enough.
    if let Ok(mut hello) = hello(place.url, bare_config()) {
        let mut stream = connect(place).await?;
        let _ = flush(&mut hello, &mut stream).await;
        if read(&mut stream, &mut buf, place.step).await.is_some_and(is_tls) {
            return Ok(Finding::TlsPort);
        }
    }
    Ok(if answer.is_empty() { Finding::Closed } else { Finding::NotEtcd })
}

async fn with_tls(
    place: &Place<'_>,
    config: Arc<ClientConfig>,
    ends: &mut Option<Timestamp>,
) -> Result<Finding, Finding> {
    let mut stream = connect(place).await?;
    let mut session = hello(place.url, config).map_err(Finding::Tls)?;
    let mut buf = [0; 4096];
    let mut greeted = false;
    loop {
        if !session.is_handshaking() && !greeted {
            // With TLS 1.3 a refused client certificate shows only after our side is done, as an alert in
            // place of the first data.
            greeted = io::Write::write_all(&mut session.writer(), PREFACE).is_ok();
        }
        // A failing write is no reason to stop: the alert that explains it may be waiting to be read.
        let _ = flush(&mut session, &mut stream).await;
        let mut bytes = match read(&mut stream, &mut buf, place.step).await {
            None => return Ok(Finding::Silent),
            Some([]) if session.is_handshaking() => return Ok(plain_port_or(place, Finding::Closed).await),
            Some([]) => return Ok(Finding::Closed),
            Some(bytes) => bytes,
        };
        while !bytes.is_empty() {
            if session.read_tls(&mut bytes).is_err() {
                return Ok(Finding::Closed);
            }
            let done = session.process_new_packets();
            if let (None, Some([shown, ..])) = (&ends, session.peer_certificates()) {
                *ends = x509::certificate(shown).ok().map(|facts| facts.not_after);
            }
            match done {
                Ok(state) if state.plaintext_bytes_to_read() > 0 => return Ok(Finding::Answers),
                Ok(_) => {}
                Err(e @ rustls::Error::InvalidMessage(_)) => {
                    return Ok(plain_port_or(place, Finding::Tls(e)).await);
                }
                Err(e) => return Ok(Finding::Tls(e)),
            }
        }
    }
}

/// A plain etcd port answers a TLS greeting with silence, a closed connection or noise, but it knows HTTP/2.
async fn plain_port_or(place: &Place<'_>, otherwise: Finding) -> Finding {
    let Ok(mut stream) = connect(place).await else { return otherwise };
    let mut buf = [0; 256];
    let _ = stream.write_all(PREFACE).await;
    if read(&mut stream, &mut buf, place.step).await.is_some_and(is_settings) { Finding::PlainPort } else { otherwise }
}

fn bare_config() -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .map(|b| b.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    match builder {
        Ok(config) => Arc::new(config),
        // The provider supports both versions of TLS, so this cannot be reached; a default is as good.
        Err(_) => {
            Arc::new(ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth())
        }
    }
}

fn hello(url: &Url, config: Arc<ClientConfig>) -> Result<ClientConnection, rustls::Error> {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_string();
    let name = ServerName::try_from(host).map_err(|e| rustls::Error::General(e.to_string()))?;
    ClientConnection::new(config, name)
}

async fn flush(session: &mut ClientConnection, stream: &mut TcpStream) -> io::Result<()> {
    let mut out = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut out)?;
    }
    stream.write_all(&out).await
}
