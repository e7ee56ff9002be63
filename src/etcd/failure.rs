//! What a failed call means: the member's own words first, then what a look at its port shows.
//!
//! Errors that etcd sent carry their text and no source; errors of the transport have a source and a text that
//! says nothing ("transport error").

use std::error::Error as StdError;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};
use url::Url;

use super::access::Access;
use super::probe::{self, Finding};
use crate::error::{Code, Error};

/// Whom we talk to, for messages.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) url: Url,
    pub(super) name: Option<String>,
    pub(super) access: Access,
}

impl Peer {
    pub(super) fn label(&self) -> String {
        let url = self.url.as_str().trim_end_matches('/');
        match &self.name {
            Some(name) => format!("member {name} ({url})"),
            None => format!("member {url}"),
        }
    }

    pub(super) fn error(&self, code: Code, what: &str) -> Error {
        Error::new(code, what, self.label())
    }

    /// A call that came back with an error.
    pub(super) async fn failed(&self, what: &str, error: etcd_client::Error) -> Error {
        let chain = causes(&error);
        let etcd_client::Error::GRpcStatus(status) = &error else {
            return match error {
                etcd_client::Error::TransportError(_) | etcd_client::Error::IoError(_) => self.seen(what, &chain).await,
                _ => self.error(Code::MemberFailed, what).because(chain).remedy("see the log of that etcd"),
            };
        };
        if status.source().is_none() {
            return self.told(what, i32::from(status.code()), status.message());
        }
        self.seen(what, &chain).await
    }

    /// A call without an answer within `limit`.
    pub(super) async fn silent(&self, what: &str, limit: Duration) -> Error {
        let text = format!("no answer within {limit:?}");
        match probe::look(&self.url, &self.access).await {
            Finding::Answers | Finding::NotEtcd | Finding::Closed => self
                .error(Code::MemberHung, what)
                .because(format!("{text}, though the port answers: the member is overloaded, or its disk is stuck"))
                .remedy("look at the load and the disk of that host, or take another member with --member"),
            other => self.found(what, other, &text),
        }
    }

    /// The transport failed: see for ourselves.
    async fn seen(&self, what: &str, chain: &str) -> Error {
        let finding = probe::look(&self.url, &self.access).await;
        self.found(what, finding, chain)
    }

    fn hung(&self, what: &str, cause: &str) -> Error {
        self.error(Code::MemberHung, what)
            .because(format!("{cause}: the port accepts connections but the process does not answer"))
            .remedy("look at the etcd process and its disk on that host, or take another member with --member")
    }

    /// `chain` is what the transport said, for findings that explain nothing by themselves.
    fn found(&self, what: &str, finding: Finding, chain: &str) -> Error {
        let gone = "check that etcd runs there and the address is right, or take another member with --member";
        match finding {
            Finding::Unreachable(e) => self.error(Code::MemberGone, what).because(e).remedy(gone),
            Finding::NoConnection => self
                .error(Code::MemberGone, what)
                .because("no connection: the host does not answer, or packets to it are dropped")
                .remedy(gone),
            Finding::Silent => self.hung(what, chain),
            Finding::Tls(e) => self.tls(what, e),
            Finding::PlainPort => self
                .error(Code::TlsFailed, what)
                .because("the port speaks plain HTTP/2, not TLS")
                .remedy("use http:// in the URL, or give etcd certificates"),
            Finding::TlsPort => self
                .error(Code::TlsFailed, what)
                .because("the port speaks TLS, the URL says http://")
                .remedy("use https:// in the URL and set ca_file, cert_file and key_file under [etcd]"),
            Finding::NotEtcd => self
                .error(Code::MemberFailed, what)
                .because(format!("the port answers, but not in HTTP/2 ({chain})"))
                .remedy("use the client URL of an etcd member"),
            Finding::Closed => self
                .error(Code::MemberFailed, what)
                .because(format!("the connection was accepted and closed at once ({chain})"))
                .remedy("check that the URL is a client URL of etcd; see the log of that etcd"),
            Finding::Answers => self
                .error(Code::MemberFailed, what)
                .because(format!("the connection broke, though the port answers ({chain})"))
                .remedy("try again; see the log of that etcd"),
        }
    }

    fn tls(&self, what: &str, error: rustls::Error) -> Error {
        let renew = "renew the server certificate of that member";
        let (code, cause, remedy) = match &error {
            rustls::Error::AlertReceived(alert) => return self.alert(what, *alert),
            rustls::Error::InvalidCertificate(e) => match e {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => (
                    Code::TlsFailed,
                    "the server certificate was not signed by the authority in ca_file".to_string(),
                    "set [etcd] ca_file to the authority that signed this member's certificate",
                ),
                CertificateError::Expired => (Code::TlsFailed, "the server certificate has expired".to_string(), renew),
                CertificateError::ExpiredContext { not_after, .. } => {
                    let end =
                        i64::try_from(not_after.as_secs()).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
                    let end = end.map_or_else(|| "long ago".to_string(), |end| format!("on {end}"));
                    (Code::TlsFailed, format!("the server certificate has expired {end}"), renew)
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (
                    Code::TlsFailed,
                    format!("the server certificate is not valid yet ({e})"),
                    "compare the clocks of both hosts",
                ),
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
                    Code::TlsFailed,
                    format!("the server certificate does not name this host ({e})"),
                    "use a name or address that the certificate lists, or renew it with this one",
                ),
                other => (Code::TlsFailed, format!("the server certificate is not accepted ({other})"), renew),
            },
            other => (Code::TlsFailed, format!("the TLS handshake failed ({other})"), "see the log of that etcd"),
        };
        self.error(code, what).because(cause).remedy(remedy)
    }

    /// The server refused our side of the handshake.
    fn alert(&self, what: &str, alert: AlertDescription) -> Error {
        let own = self.access.tls.as_ref().and_then(|tls| own_fault(tls));
        let (cause, remedy) = match (alert, &self.access.identity) {
            (AlertDescription::CertificateRequired | AlertDescription::BadCertificate, None)
            | (AlertDescription::HandshakeFailure, None) => {
                ("the member wants a client certificate", "set cert_file and key_file under [etcd]")
            }
            (AlertDescription::CertificateExpired, _) => {
                ("our client certificate has expired", "renew the certificate in [etcd] cert_file")
            }
            (AlertDescription::BadCertificate, _) if own == Some(Fault::Expired) => {
                ("our client certificate has expired", "renew the certificate in [etcd] cert_file")
            }
            (
                AlertDescription::BadCertificate
                | AlertDescription::UnknownCA
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateRevoked
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::AccessDenied
                | AlertDescription::CertificateRequired
                | AlertDescription::DecryptError,
                _,
            ) => (
                "the member refused our client certificate",
                "set [etcd] cert_file and key_file to a client certificate signed by that etcd's authority",
            ),
            _ => {
                return self
                    .error(Code::TlsFailed, what)
                    .because(format!("the member ended the TLS handshake (alert {alert:?})"))
                    .remedy("see the log of that etcd");
            }
        };
        self.error(Code::Permission, what).because(format!("{cause} (alert {alert:?})")).remedy(remedy)
    }

    /// etcd's own word that it will not do this for us, as against one that it could not go on. A stream is accepted
    /// before it is looked at, so there such a word comes in place of the first bytes.
    pub(super) fn refusal(&self, what: &str, error: &etcd_client::Error) -> Option<Error> {
        let etcd_client::Error::GRpcStatus(status) = error else { return None };
        let told = status.source().is_none().then(|| self.told(what, i32::from(status.code()), status.message()))?;
        matches!(told.code(), Code::Permission | Code::MemberLearner | Code::Config).then_some(told)
    }

    /// etcd's own answer; `code` is the number of the gRPC status.
    pub(super) fn told(&self, what: &str, code: i32, message: &str) -> Error {
        let (code, remedy) = verdict(code, message);
        self.error(code, what).because(message.to_string()).remedy(remedy)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Expired,
}

/// Older servers say only "bad certificate"; our own clock knows whether it expired.
fn own_fault(tls: &super::access::Tls) -> Option<Fault> {
    let (first, rest) = tls.own_chain.split_first()?;
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(tls.roots.clone(), provider).build().ok()?;
    match verifier.verify_client_cert(first, rest, rustls::pki_types::UnixTime::now()) {
        Err(rustls::Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. })) => {
            Some(Fault::Expired)
        }
        _ => None,
    }
}

/// Numbers of gRPC status codes, <https://grpc.github.io/grpc/core/md_doc_statuscodes.html>.
const PERMISSION_DENIED: i32 = 7;
const UNAUTHENTICATED: i32 = 16;

/// Texts as in etcd's `api/v3rpc/rpctypes/error.go`; the same from 3.4 to 3.7.
fn verdict(code: i32, message: &str) -> (Code, &'static str) {
    let says = |text: &str| message.contains(text);
    if says("required revision has been compacted") || says("required revision is a future revision") {
        return (Code::RevisionNotReachable, "ask for a revision above the compact revision and up to the newest one");
    }
    if says("not supported for learner") {
        return (Code::MemberLearner, "promote the learner, or take another member with --member");
    }
    if says("authentication is not enabled") {
        return (Code::Config, "remove username and password_file under [etcd]: this etcd has no users");
    }
    if says("user name is empty") || says("user name not found") && code == PERMISSION_DENIED {
        return (Code::Permission, "set username and password_file under [etcd]");
    }
    if says("invalid user ID or password") {
        return (Code::Permission, "check username and password_file under [etcd]");
    }
    if code == PERMISSION_DENIED || says("permission denied") {
        return (Code::Permission, "use an etcd user with the role root: snapshots and HashKV need it");
    }
    if code == UNAUTHENTICATED || says("invalid auth token") || says("user name not found") {
        return (Code::Permission, "set username and password_file under [etcd]");
    }
    if says("no leader") || says("request timed out") || says("leader changed") || says("not leader") {
        return (Code::NoQuorum, "check that a majority of the members runs and can talk to each other");
    }
    (Code::MemberFailed, "see the log of that etcd")
}

/// All causes of an error in one line; wrappers that add nothing are left out.
pub(super) fn causes(error: &etcd_client::Error) -> String {
    let inner: Option<&(dyn StdError + 'static)> = match error {
        etcd_client::Error::GRpcStatus(status) => {
            if status.source().is_none() {
                return status.message().to_string();
            }
            status.source()
        }
        etcd_client::Error::TransportError(e) => Some(e),
        other => return other.to_string(),
    };
    let mut lines: Vec<String> = Vec::new();
    let mut next = inner;
    while let Some(cause) = next {
        let line = cause.to_string();
        if line != "transport error" && lines.last().is_none_or(|last| !last.contains(&line)) {
            lines.push(line);
        }
        next = cause.source();
    }
    if lines.is_empty() { error.to_string() } else { lines.join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcd_texts_become_codes() {
        for (status, text, code) in [
            (11, "etcdserver: mvcc: required revision has been compacted", Code::RevisionNotReachable),
            (11, "etcdserver: mvcc: required revision is a future revision", Code::RevisionNotReachable),
            (14, "etcdserver: rpc not supported for learner", Code::MemberLearner),
            (9, "etcdserver: rpc not supported for learner", Code::MemberLearner),
            (9, "etcdserver: authentication is not enabled", Code::Config),
            (3, "etcdserver: authentication failed, invalid user ID or password", Code::Permission),
            (3, "etcdserver: user name is empty", Code::Permission),
            (7, "etcdserver: permission denied", Code::Permission),
            (16, "etcdserver: invalid auth token", Code::Permission),
            (14, "etcdserver: no leader", Code::NoQuorum),
            (14, "etcdserver: request timed out", Code::NoQuorum),
            (14, "etcdserver: request timed out, possibly due to previous leader failure", Code::NoQuorum),
            (14, "etcdserver: leader changed", Code::NoQuorum),
            (9, "etcdserver: not leader", Code::NoQuorum),
            (14, "etcdserver: server stopped", Code::MemberFailed),
            (2, "something new", Code::MemberFailed),
        ] {
            assert_eq!(verdict(status, text).0, code, "{text}");
        }
    }

    fn peer() -> Peer {
        let url = Url::parse("https://10.0.0.1:2379").expect("a URL");
        Peer { url, name: Some("cp1".into()), access: Access::plain(Duration::from_secs(1)) }
    }

    #[test]
    fn findings_become_codes_and_name_the_member() {
        use rustls::Error::{AlertReceived, InvalidCertificate};
        let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        for (finding, code, cause) in [
            (Finding::Unreachable(refused()), Code::MemberGone, "refused"),
            (Finding::NoConnection, Code::MemberGone, "no connection"),
            (Finding::Silent, Code::MemberHung, "does not answer"),
            (Finding::Closed, Code::MemberFailed, "closed at once (chain)"),
            (Finding::Answers, Code::MemberFailed, "broke"),
            (Finding::NotEtcd, Code::MemberFailed, "not in HTTP/2"),
            (Finding::PlainPort, Code::TlsFailed, "plain HTTP/2"),
            (Finding::TlsPort, Code::TlsFailed, "speaks TLS"),
            (Finding::Tls(InvalidCertificate(CertificateError::UnknownIssuer)), Code::TlsFailed, "not signed by"),
            (
                Finding::Tls(InvalidCertificate(CertificateError::Expired)),
                Code::TlsFailed,
                "server certificate has expired",
            ),
            (Finding::Tls(InvalidCertificate(CertificateError::NotValidForName)), Code::TlsFailed, "does not name"),
            (Finding::Tls(AlertReceived(AlertDescription::CertificateRequired)), Code::Permission, "wants a client"),
            (
                Finding::Tls(AlertReceived(AlertDescription::CertificateExpired)),
                Code::Permission,
                "our client certificate has expired",
            ),
            (Finding::Tls(AlertReceived(AlertDescription::UnknownCA)), Code::Permission, "refused our client"),
            (Finding::Tls(AlertReceived(AlertDescription::ProtocolVersion)), Code::TlsFailed, "ProtocolVersion"),
        ] {
            let error = peer().found("read status of", finding, "chain");
            let why = error.why().join("; ");
            assert_eq!(error.code(), code, "{why}");
            assert!(why.contains(cause), "{why}");
            assert!(error.get_remedy().is_some(), "{why}");
            assert_eq!(error.to_string(), "read status of member cp1 (https://10.0.0.1:2379)");
        }
    }
}
