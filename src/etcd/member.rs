//! One member of etcd and the calls that refloat makes to it. Every call ends within its deadline, plus at most
//! a second to find out why it failed (two for the linearizable read).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{
    AlarmAction, AlarmType, Certificate, Client, ConnectOptions, GetOptions, GetResponse, Identity, ResponseHeader,
    StatusResponse, TlsOptions,
};
use tokio::time::timeout;
use url::Url;

use super::access::Access;
use super::facts::{Alarm, HashKv, KeyValue, MemberInfo, MemberStatus, ReadHeader};
use super::failure::Peer;
use super::stream::{SnapshotStream, StreamLimits};
use crate::error::{Code, Error, Result};

/// Lets the kernel notice that the other host is gone while a connection is idle. HTTP/2 pings are not used:
/// each call has its deadline and the stream its stall limit, and an unanswered ping would end a stream with
/// "broken pipe" before these can name the cause.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(10);

/// For the local read that tells a lost quorum from a hung member.
const LOCAL_READ: Duration = Duration::from_secs(1);

/// A key that Kubernetes and etcd's own tools do not use; whether it exists does not matter.
const PROBE_KEY: &str = "refloat/probe";

/// A client of exactly one member. Cheap to clone; clones share the connection, which is dialled again when it
/// breaks. After `Code::MemberGone` or `Code::MemberHung`, connect anew: a vanished host leaves a connection that
/// the kernel believes in for minutes.
#[derive(Clone)]
pub struct Member {
    peer: Arc<Peer>,
    client: Client,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Refuses what cannot work before anything is dialled.
pub(super) fn checked_url(url: &str, access: &Access) -> Result<Url> {
    let refused = |cause: String| Error::new(Code::Config, "use endpoint", url).because(cause);
    let parsed = Url::parse(url)
        .map_err(|e| refused(e.to_string()).remedy("write a client URL of etcd, such as https://10.0.0.1:2379"))?;
    if parsed.host_str().is_none_or(str::is_empty) {
        return Err(refused("no host in the URL".into()).remedy("write it as https://HOST:2379"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(refused("a user or password in the URL".into()).remedy("use [etcd] username and password_file"));
    }
    if !matches!(parsed.path(), "" | "/") || parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(refused("a client URL of etcd has no path".into()).remedy("write only scheme, host and port"));
    }
    match parsed.scheme() {
        "https" if access.ca_pem.is_none() => {
            Err(refused("https:// needs the authority that signed etcd's certificates".into())
                .remedy("set [etcd] ca_file; system authorities are not used, they do not sign etcd's certificates"))
        }
        "http" if access.ca_pem.is_some() || access.identity.is_some() => {
            Err(refused("http:// together with certificates would send everything unencrypted".into())
                .remedy("write https://, or remove ca_file, cert_file and key_file under [etcd]"))
        }
        "http" | "https" => Ok(parsed),
        other => Err(refused(format!("{other}:// is not supported")).remedy("write http:// or https://")),
    }
}

impl Member {
    /// Dials nothing by itself, except with a user: then the password is checked at once.
    /// A URL that does not fit the credentials is `Code::Config`.
    pub async fn connect(url: &str, access: &Access) -> Result<Member> {
        Member::dial(url, None, access).await
    }

    /// The same; messages call the member by this name, also when it cannot be reached. Empty is no name.
    pub async fn connect_named(url: &str, name: &str, access: &Access) -> Result<Member> {
        Member::dial(url, (!name.is_empty()).then(|| name.to_string()), access).await
    }

    async fn dial(url: &str, name: Option<String>, access: &Access) -> Result<Member> {
        let url = checked_url(url, access)?;
        let peer = Peer { url, name, access: access.clone() };
        // No per-call timeout of the crate's own: it would also cut the snapshot stream.
        let mut options = ConnectOptions::new()
            .with_connect_timeout(access.timeout())
            .with_tcp_keepalive(TCP_KEEP_ALIVE)
            .with_auto_token_refresh(true);
        if let Some(ca) = &access.ca_pem {
            let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(ca));
            if let Some((cert, key)) = &access.identity {
                tls = tls.identity(Identity::from_pem(cert, key));
            }
            options = options.with_tls(tls);
        }
        if let Some((name, password)) = &access.user {
            options = options.with_user(name, password);
        }
        let endpoint = [peer.url.as_str().trim_end_matches('/').to_string()];
        let what = "connect to";
        match timeout(access.timeout(), Client::connect(endpoint, Some(options))).await {
            Ok(Ok(client)) => Ok(Member { peer: Arc::new(peer), client }),
            Ok(Err(e)) => Err(peer.failed(what, e).await),
            Err(_) => Err(peer.silent(what, access.timeout()).await),
        }
    }

    /// Another client of the same member, with a connection of its own that belongs to the executor it is used on.
    pub async fn apart(&self) -> Result<Member> {
        Member::dial(self.url(), self.peer.name.clone(), &self.peer.access).await
    }

    /// The URL without a slash at the end.
    pub fn url(&self) -> &str {
        self.peer.url.as_str().trim_end_matches('/')
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Of each call that has no deadline of its own.
    pub(super) fn timeout(&self) -> Duration {
        self.peer.access.timeout()
    }

    pub(super) async fn call<T>(
        &self,
        what: &str,
        limit: Duration,
        call: impl Future<Output = Result<T, etcd_client::Error>>,
    ) -> Result<T> {
        match timeout(limit, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(e)) => Err(self.peer.failed(what, e).await),
            Err(_) => Err(self.peer.silent(what, limit).await),
        }
    }

    fn header(&self, what: &str, header: Option<&ResponseHeader>) -> Result<ReadHeader> {
        header.map(ReadHeader::from).ok_or_else(|| {
            self.peer
                .error(Code::MemberFailed, what)
                .because("the answer has no header")
                .remedy("check what answers at this address")
        })
    }

    /// Local facts of this member; no proof that it has a quorum.
    pub async fn status(&self) -> Result<MemberStatus> {
        let what = "read status of";
        let mut client = self.client.clone();
        let answer = self.call(what, self.peer.access.timeout(), client.status()).await?;
        let header = self.header(what, answer.header())?;
        Ok(status_of(&answer, header))
    }

    /// The server's version, such as `3.6.16`.
    pub async fn version(&self) -> Result<String> {
        Ok(self.status().await?.version)
    }

    /// The member list as this member knows it, in ascending order of ids.
    pub async fn members(&self) -> Result<Vec<MemberInfo>> {
        let mut client = self.client.clone();
        let answer = self.call("list members at", self.peer.access.timeout(), client.member_list()).await?;
        let mut members: Vec<MemberInfo> = answer
            .members()
            .iter()
            .map(|m| MemberInfo {
                id: m.id(),
                name: m.name().to_string(),
                peer_urls: m.peer_urls().to_vec(),
                client_urls: m.client_urls().to_vec(),
                is_learner: m.is_learner(),
            })
            .collect();
        members.sort_by_key(|m| m.id);
        Ok(members)
    }

    /// Alarms of all members, as this member knows them, sorted.
    pub async fn alarms(&self) -> Result<Vec<Alarm>> {
        let mut client = self.client.clone();
        let call = client.alarm(AlarmAction::Get, AlarmType::None, None);
        let answer = self.call("list alarms at", self.peer.access.timeout(), call).await?;
        let mut alarms: Vec<Alarm> =
            answer.alarms().iter().map(|a| Alarm { member_id: a.member_id(), kind: a.alarm().into() }).collect();
        alarms.sort();
        Ok(alarms)
    }

    /// Hash of the key-value store up to `revision`, which must be above the compact revision.
    ///
    /// Costs the member a scan of all rows and can block it meanwhile; `deadline` is the caller's, from the
    /// number of rows. A revision out of reach is `Code::RevisionNotReachable`.
    pub async fn hash_kv(&self, revision: i64, deadline: Duration) -> Result<HashKv> {
        let mut client = self.client.clone();
        let answer = self.call("read HashKV of", deadline, client.hash_kv(revision)).await?;
        Ok(HashKv {
            hash: answer.hash(),
            revision: if answer.hash_revision() > 0 { answer.hash_revision() } else { revision },
            compact_revision: answer.compact_version().max(0),
        })
    }

    async fn probe(&self, serializable: bool) -> Result<GetResponse, etcd_client::Error> {
        let options = GetOptions::new().with_count_only();
        let options = if serializable { options.with_serializable() } else { options };
        self.client.clone().get(PROBE_KEY, Some(options)).await
    }

    /// A read that needs a quorum. `Code::NoQuorum` when only local reads still work.
    pub async fn linearizable(&self) -> Result<ReadHeader> {
        let what = "read with quorum from";
        let limit = self.peer.access.timeout();
        match timeout(limit, self.probe(false)).await {
            Ok(Ok(answer)) => self.header(what, answer.header()),
            Ok(Err(e)) => Err(self.peer.failed(what, e).await),
            Err(_) => match timeout(limit.min(LOCAL_READ), self.probe(true)).await {
                Ok(Ok(_)) => Err(self
                    .peer
                    .error(Code::NoQuorum, what)
                    .because(format!("no answer within {limit:?}, while local reads work"))
                    .remedy("check that a majority of the members runs and can talk to each other")),
                _ => Err(self.peer.silent(what, limit).await),
            },
        }
    }

    /// A local read: proves that the member's store works, but it may be stale.
    pub async fn serializable(&self) -> Result<ReadHeader> {
        let what = "read locally from";
        let answer = self.call(what, self.peer.access.timeout(), self.probe(true)).await?;
        self.header(what, answer.header())
    }

    /// One key, with quorum.
    pub async fn get(&self, key: &[u8]) -> Result<Option<KeyValue>> {
        let mut client = self.client.clone();
        let answer = self.call("read a key from", self.peer.access.timeout(), client.get(key, None)).await?;
        Ok(answer.kvs().first().map(|kv| KeyValue {
            key: kv.key().to_vec(),
            value: kv.value().to_vec(),
            create_revision: kv.create_revision(),
            mod_revision: kv.mod_revision(),
            version: kv.version(),
            lease: kv.lease(),
        }))
    }

    /// Starts streaming the whole database; the first message must arrive within the stall limit.
    pub async fn snapshot(&self, limits: StreamLimits) -> Result<SnapshotStream> {
        let mut client = self.client.clone();
        let started = tokio::time::Instant::now();
        let first = limits.stall.min(limits.deadline);
        let streaming = self.call("start a snapshot of", first, client.snapshot()).await?;
        Ok(SnapshotStream::new(self.peer.clone(), client, streaming, limits, started))
    }
}

/// What a member says of itself, without the fields that its version does not have.
pub(super) fn status_of(answer: &StatusResponse, header: ReadHeader) -> MemberStatus {
    let text = |s: &str| (!s.is_empty()).then(|| s.to_string());
    let size = |n: i64| u64::try_from(n).unwrap_or(0);
    MemberStatus {
        cluster_id: header.cluster_id,
        member_id: header.member_id,
        version: answer.version().to_string(),
        db_size: size(answer.db_size()),
        db_in_use: size(answer.raft_used_db_size()),
        quota: Some(size(answer.db_size_quota())).filter(|quota| *quota > 0),
        leader: Some(answer.leader()).filter(|id| *id != 0),
        is_learner: answer.is_learner(),
        raft_term: answer.raft_term(),
        raft_index: answer.raft_index(),
        raft_applied_index: answer.raft_applied_index(),
        revision: header.revision,
        storage_version: text(answer.storage_version()),
        downgrade_to: answer.downgrade_info().filter(|d| d.enabled()).map(|d| d.target_version().to_string()),
        errors: answer.errors().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_cannot_work_are_refused_with_a_remedy() {
        let plain = Access::plain(Duration::from_secs(1));
        for (url, cause) in [
            ("10.0.0.1:2379", ""),
            ("", ""),
            ("http://", ""),
            ("unix:///run/etcd", "no host"),
            ("ftp://10.0.0.1", "ftp:// is not supported"),
            ("https://10.0.0.1:2379", "needs the authority"),
            ("http://u:p@10.0.0.1:2379", "user or password"),
            ("http://10.0.0.1:2379/v3", "no path"),
            ("http://10.0.0.1:99999", "port"),
        ] {
            let error = checked_url(url, &plain).expect_err(url);
            assert_eq!(error.code(), Code::Config, "{url}");
            assert!(error.why().join(" ").contains(cause), "{url}: {:?}", error.why());
            assert!(error.get_remedy().is_some(), "{url}");
        }
        let mut secured = plain.clone();
        secured.ca_pem = Some(Vec::new());
        assert!(checked_url("http://10.0.0.1:2379", &secured).is_err());
        for url in ["http://[::1]:2379", "http://etcd.example:2379/", "http://127.0.0.1"] {
            assert!(checked_url(url, &plain).is_ok(), "{url}");
        }
    }
}
