//! One question to one member, and what became of it as a value: for health, which must tell a hung member from one that
//! is gone and one that refuses.
//!
//! Another client than [`super::Member`] because its answers are not for people: no look at the port after the fact
//! that could take longer than the deadline itself, and every failure as one of a few kinds. No call takes longer than
//! its limit; a connection that failed is thrown away, so that the next call makes a new one.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{
    AlarmAction, AlarmType, Certificate, Client, ConnectOptions, GetOptions, Identity, ResponseHeader, TlsOptions,
};
use jiff::Timestamp;
use rustls::{AlertDescription, CertificateError};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use super::access::Access;
use super::facts::{Alarm, MemberStatus, ReadHeader};
use super::failure::causes;
use super::member::{checked_url, status_of};
use super::probe::{self, Finding};
use crate::error::Result;

/// The end of a limit in which a call that is still silent gets company: one attempt to connect says whether anybody
/// is there at all.
const COMPANY: Duration = Duration::from_millis(300);
/// Does not exist, and need not.
const ABSENT: &str = "refloat/probe";

/// Why there was no answer, or not the one that was asked for.
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
    /// A certificate is over: the member's, or ours.
    Expired,
    Tls(String),
    /// The member has no leader, or lost it meanwhile.
    NoLeader(String),
    NoSpace,
    /// It is a learner: the answer says nothing about its condition.
    Learner,
    /// This user may not ask that.
    Denied(String),
    /// Any other word of the member's own.
    Server(String),
}

/// A client of exactly one member.
pub struct Asker {
    url: Url,
    /// Of the host in the URL, when it has a name: nobody is asked for it again.
    address: Option<IpAddr>,
    access: Access,
    client: Mutex<Option<Arc<Client>>>,
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

impl Asker {
    /// Dials nothing. A URL that does not fit the credentials is [`Code::Config`](crate::error::Code::Config).
    pub fn new(url: &str, address: Option<IpAddr>, access: &Access) -> Result<Asker> {
        let url = checked_url(url, access)?;
        Ok(Asker { url, address, access: access.clone(), client: Mutex::new(None) })
    }

    /// The next call makes a new connection.
    pub fn forget(&self) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A fresh connection up to the member's first words; when the certificate ends that it showed.
    pub async fn handshake(&self, limit: Duration) -> Result<Option<Timestamp>, Why> {
        match probe::handshake(&self.url, self.address, &self.access, limit).await {
            (Finding::Answers, ends) => Ok(ends),
            (finding, _) => Err(self.found(finding, "the handshake failed")),
        }
    }

    /// A local read.
    pub async fn serializable(&self, limit: Duration) -> Result<ReadHeader, Why> {
        let options = GetOptions::new().with_count_only().with_serializable();
        let answer = self.call(limit, async |mut c| c.get(ABSENT, Some(options)).await).await?;
        header(answer.header())
    }

    /// A read that needs a quorum.
    pub async fn linearizable(&self, limit: Duration) -> Result<ReadHeader, Why> {
        let options = GetOptions::new().with_count_only();
        let answer = self.call(limit, async |mut c| c.get(ABSENT, Some(options)).await).await?;
        header(answer.header())
    }

    /// A raft proposal that changes no key, and the alarms of all members. etcd 3.4 gives no header with them.
    pub async fn alarms(&self, limit: Duration) -> Result<(Option<ReadHeader>, Vec<Alarm>), Why> {
        let answer = self.call(limit, async |mut c| c.alarm(AlarmAction::Get, AlarmType::None, None).await).await?;
        let mut alarms: Vec<Alarm> =
            answer.alarms().iter().map(|a| Alarm { member_id: a.member_id(), kind: a.alarm().into() }).collect();
        alarms.sort();
        Ok((answer.header().map(ReadHeader::from), alarms))
    }

    /// Local facts.
    pub async fn status(&self, limit: Duration) -> Result<MemberStatus, Why> {
        let answer = self.call(limit, async |mut c| c.status().await).await?;
        Ok(status_of(&answer, header(answer.header())?))
    }

    /// Writes one key without lease.
    pub async fn put(&self, key: &str, value: &[u8], limit: Duration) -> Result<ReadHeader, Why> {
        let answer = self.call(limit, async |mut c| c.put(key, value, None).await).await?;
        header(answer.header())
    }

    /// One key with quorum; `None`: it is not there.
    pub async fn get(&self, key: &str, limit: Duration) -> Result<(ReadHeader, Option<Vec<u8>>), Why> {
        let answer = self.call(limit, async |mut c| c.get(key, None).await).await?;
        Ok((header(answer.header())?, answer.kvs().first().map(|kv| kv.value().to_vec())))
    }

    /// Whether revisions before `revision` are gone, which only a read of one of them tells.
    pub async fn is_compacted(&self, revision: i64, limit: Duration) -> Result<bool, Why> {
        let options = GetOptions::new().with_count_only().with_serializable().with_revision(revision);
        match self.call(limit, async |mut c| c.get(ABSENT, Some(options)).await).await {
            Ok(_) => Ok(false),
            Err(Why::Server(text)) if text.contains("has been compacted") => Ok(true),
            Err(why) => Err(why),
        }
    }

    async fn client(&self) -> std::result::Result<Client, etcd_client::Error> {
        let known = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(client) = known {
            return Ok(Client::clone(&client));
        }
        let mut options = ConnectOptions::new().with_auto_token_refresh(true);
        if let Some(ca) = &self.access.ca_pem {
            let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(ca));
            if let Some((cert, key)) = &self.access.identity {
                tls = tls.identity(Identity::from_pem(cert, key));
            }
            if let (Some(_), Some(name)) = (self.address, self.url.host_str()) {
                tls = tls.domain_name(name);
            }
            options = options.with_tls(tls);
        }
        if let Some((name, password)) = &self.access.user {
            options = options.with_user(name, password);
        }
        let mut url = self.url.clone();
        if let Some(address) = self.address {
            let _ = url.set_ip_host(address);
        }
        let client = Client::connect([url.as_str().trim_end_matches('/')], Some(options)).await?;
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(client.clone()));
        Ok(client)
    }

    async fn call<T>(
        &self,
        limit: Duration,
        call: impl AsyncFnOnce(Client) -> std::result::Result<T, etcd_client::Error>,
    ) -> Result<T, Why> {
        let end = Instant::now() + limit;
        let mut work = pin!(async { call(self.client().await?).await });
        let alone = limit.saturating_sub(COMPANY.min(limit / 2));
        let done = match timeout(alone, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                let reach = timeout_at(end, probe::reach(&self.url, self.address, limit));
                match tokio::join!(timeout_at(end, &mut work), reach) {
                    (Ok(done), _) => done,
                    (Err(_), reached) => {
                        self.forget();
                        return Err(match reached {
                            Ok(Ok(())) => Why::Silent,
                            Ok(Err(finding)) => self.found(finding, "no answer"),
                            Err(_) => Why::Unreachable,
                        });
                    }
                }
            }
        };
        match done {
            Ok(answer) => Ok(answer),
            Err(error) => {
                if let Some(told) = told(&error) {
                    return Err(told);
                }
                self.forget();
                if let Some(why) = of_the_kernel(&error) {
                    return Err(why);
                }
                let chain = causes(&error);
                match timeout_at(end, probe::handshake(&self.url, self.address, &self.access, limit)).await {
                    Ok((finding, _)) => Err(self.found(finding, &chain)),
                    Err(_) => Err(Why::Silent),
                }
            }
        }
    }

    fn found(&self, finding: Finding, chain: &str) -> Why {
        match finding {
            Finding::Unreachable(e) if e.kind() == ErrorKind::ConnectionRefused => Why::Refused,
            Finding::Unreachable(_) | Finding::NoConnection => Why::Unreachable,
            Finding::Silent => Why::Silent,
            Finding::Tls(error) => self.tls(&error),
            Finding::PlainPort => Why::Tls("the port speaks plain HTTP/2, not TLS".into()),
            Finding::TlsPort => Why::Tls("the port speaks TLS, the URL says http://".into()),
            Finding::NotEtcd => Why::Server(format!("it does not answer in HTTP/2 ({chain})")),
            // It closed that connection, whatever it says to a new one.
            Finding::Closed | Finding::Answers => Why::Reset,
        }
    }

    fn tls(&self, error: &rustls::Error) -> Why {
        use CertificateError::{Expired, ExpiredContext};
        let own_ended = || self.access.own_certificate_ends().is_some_and(|ends| ends < Timestamp::now());
        match error {
            rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. })
            | rustls::Error::AlertReceived(AlertDescription::CertificateExpired) => Why::Expired,
            // Older servers say no more than this.
            rustls::Error::AlertReceived(AlertDescription::BadCertificate) if own_ended() => Why::Expired,
            other => Why::Tls(other.to_string()),
        }
    }
}

fn header(header: Option<&ResponseHeader>) -> Result<ReadHeader, Why> {
    header.map(ReadHeader::from).ok_or_else(|| Why::Server("an answer without a header".into()))
}

/// The member's own words; `None` for what its transport says.
fn told(error: &etcd_client::Error) -> Option<Why> {
    let etcd_client::Error::GRpcStatus(status) = error else { return None };
    status.source().is_none().then(|| verdict(i32::from(status.code()), status.message()))
}

/// Numbers of gRPC status codes, <https://grpc.github.io/grpc/core/md_doc_statuscodes.html>.
const PERMISSION_DENIED: i32 = 7;
const UNAUTHENTICATED: i32 = 16;

/// Texts as in etcd's `api/v3rpc/rpctypes/error.go`; the same from 3.4 to 3.7.
fn verdict(code: i32, message: &str) -> Why {
    let says = |text: &str| message.contains(text);
    if says("database space exceeded") {
        return Why::NoSpace;
    }
    if says("not supported for learner") {
        return Why::Learner;
    }
    if says("no leader") || says("request timed out") || says("leader changed") || says("not leader") {
        return Why::NoLeader(message.into());
    }
    if [PERMISSION_DENIED, UNAUTHENTICATED].contains(&code)
        || says("permission denied")
        || says("auth token")
        || says("user name")
        || says("authentication")
    {
        return Why::Denied(message.into());
    }
    Why::Server(message.into())
}

/// What the kernel said to the transport, where that is the cause.
fn of_the_kernel(error: &etcd_client::Error) -> Option<Why> {
    let mut next: Option<&(dyn StdError + 'static)> = match error {
        etcd_client::Error::GRpcStatus(status) => status.source(),
        etcd_client::Error::TransportError(e) => Some(e),
        etcd_client::Error::IoError(e) => Some(e),
        _ => None,
    };
    while let Some(cause) = next {
        if let Some(error) = cause.downcast_ref::<std::io::Error>() {
            return match error.kind() {
                ErrorKind::ConnectionRefused => Some(Why::Refused),
                ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::TimedOut => {
                    Some(Why::Unreachable)
                }
                // It may be that the port says more to a new connection.
                _ => None,
            };
        }
        next = cause.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_etcd_become_kinds() {
        for (code, text, why) in [
            (8, "etcdserver: mvcc: database space exceeded", Why::NoSpace),
            (14, "etcdserver: rpc not supported for learner", Why::Learner),
            (14, "etcdserver: no leader", Why::NoLeader("etcdserver: no leader".into())),
            (14, "etcdserver: request timed out", Why::NoLeader("etcdserver: request timed out".into())),
            (7, "etcdserver: permission denied", Why::Denied("etcdserver: permission denied".into())),
            (16, "etcdserver: invalid auth token", Why::Denied("etcdserver: invalid auth token".into())),
            (8, "etcdserver: too many requests", Why::Server("etcdserver: too many requests".into())),
            (14, "etcdserver: server stopped", Why::Server("etcdserver: server stopped".into())),
        ] {
            assert_eq!(verdict(code, text), why, "{text}");
        }
    }

    fn asker(url: &str) -> Asker {
        Asker::new(url, None, &Access::plain(Duration::from_secs(1))).unwrap()
    }

    #[tokio::test]
    async fn silence_is_told_from_absence_within_the_limit() {
        let limit = Duration::from_millis(600);
        // A kernel that accepts, and a process that never does.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = asker(&format!("http://{}", silent.local_addr().unwrap()));
        let started = std::time::Instant::now();
        assert_eq!(to.linearizable(limit).await.unwrap_err(), Why::Silent);
        assert!(started.elapsed() < limit * 3, "{:?}", started.elapsed());
        assert_eq!(to.handshake(limit).await.unwrap_err(), Why::Silent);
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let gone = asker(&format!("http://{}", free.local_addr().unwrap()));
        drop(free);
        assert_eq!(gone.serializable(limit).await.unwrap_err(), Why::Refused);
        assert_eq!(gone.handshake(limit).await.unwrap_err(), Why::Refused);
    }

    #[tokio::test]
    async fn a_server_that_hangs_up_resets() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = asker(&format!("http://{}", listener.local_addr().unwrap()));
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        assert_eq!(to.status(Duration::from_secs(2)).await.unwrap_err(), Why::Reset);
    }
}
