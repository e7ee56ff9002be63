//! A kubeconfig file: which authority to trust, and what to show as a client.
//!
//! What would start a program (`exec`, `auth-provider`), skip verification or go through a proxy is refused by name:
//! the first two against law 9, the others because a probe must see what the apiserver itself shows. The server's
//! address in it counts for nothing: each apiserver has its own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;

use crate::error::{Code, Error, Result};
use crate::format::x509;

/// More than any kubeconfig needs.
const LIMIT: u64 = 1 << 20;

/// Who we are and whom we believe. `Debug` shows no secret.
#[derive(Clone)]
pub struct Identity {
    pub(super) tls: Arc<ClientConfig>,
    pub(super) token: Option<Arc<str>>,
    /// In place of the host in a certificate.
    pub(super) server_name: Option<String>,
    ends: Option<Timestamp>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("token", &self.token.is_some()).field("ends", &self.ends).finish()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct File {
    #[serde(rename = "current-context")]
    current: String,
    clusters: Vec<Named<Cluster>>,
    users: Vec<Named<User>>,
    contexts: Vec<Named<ContextEntry>>,
}

/// The three lists name their entries, each under a word of its own.
#[derive(Debug, Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "cluster", alias = "user", alias = "context")]
    entry: Option<T>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct ContextEntry {
    cluster: String,
    user: String,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    exec: Option<Ignored>,
    auth_provider: Option<Ignored>,
}

/// That it is there is all that matters.
#[derive(Debug, Default, Clone, Deserialize)]
struct Ignored {}

impl Identity {
    /// Reads the file and what it names. `NotFound`: there is none. `Config`: it cannot be used, with the reason.
    pub fn load(path: &Path) -> Result<Identity> {
        let source = Source { path };
        let text = source.read(path)?;
        let file: File = serde_saphyr::from_str(&text).map_err(|e| {
            let said = e.to_string();
            source.refused("parse").because(said.lines().next().unwrap_or_default().to_string())
        })?;
        let context = named(&file.contexts, &file.current)
            .or_else(|| file.contexts.first().and_then(|only| only.entry.clone()))
            .ok_or_else(|| source.refused("use").because("it has no context"))?;
        let missing = |what: &str, name: &str| source.refused("use").because(format!("it has no {what} {name:?}"));
        let cluster = named(&file.clusters, &context.cluster).ok_or_else(|| missing("cluster", &context.cluster))?;
        let user = named(&file.users, &context.user).ok_or_else(|| missing("user", &context.user))?;
        source.identity(&cluster, &user)
    }

    /// When the client certificate ends; `None` without one.
    pub fn ends(&self) -> Option<Timestamp> {
        self.ends
    }
}

fn named<T: Clone>(list: &[Named<T>], name: &str) -> Option<T> {
    list.iter().find(|one| one.name == name).and_then(|one| one.entry.clone())
}

struct Source<'a> {
    path: &'a Path,
}

impl Source<'_> {
    fn refused(&self, what: &str) -> Error {
        Error::new(Code::Config, what, format!("{} ([health] kubeconfig)", self.path.display()))
            .remedy("`sudo refloat setup` writes one; or give one with a client certificate or a token")
    }

    fn read(&self, path: &Path) -> Result<String> {
        let failed = |e: std::io::Error| {
            let code = if e.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Config };
            Error::new(code, "read", format!("{} ([health] kubeconfig)", path.display()))
                .because(e)
                .remedy("`sudo refloat setup` writes one; refloat's user must be able to read it")
        };
        let meta = std::fs::metadata(path).map_err(failed)?;
        if !meta.is_file() || meta.len() > LIMIT {
            return Err(self.refused("read").because(format!("{} is no small file", path.display())));
        }
        std::fs::read_to_string(path).map_err(failed)
    }

    /// Bytes of a PEM file, from the text beside it or from a file, which a relative path names from here.
    fn pem(&self, data: Option<&String>, file: Option<&PathBuf>) -> Result<Option<Vec<u8>>> {
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let bytes = base64(data).ok_or_else(|| self.refused("use").because("its data is not base64"))?;
            return Ok(Some(bytes));
        }
        let Some(file) = file.filter(|file| !file.as_os_str().is_empty()) else { return Ok(None) };
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        self.read(&folder.join(file)).map(|text| Some(text.into_bytes()))
    }

    fn identity(&self, cluster: &Cluster, user: &User) -> Result<Identity> {
        let no = |why: &str| Err(self.refused("use").because(why.to_string()));
        if user.exec.is_some() || user.auth_provider.is_some() {
            return no("its user comes from a program (exec, auth-provider), and refloat starts none");
        }
        if user.username.is_some() {
            return no("its user has a password, which no supported apiserver takes");
        }
        if cluster.insecure_skip_tls_verify {
            return no("it switches verification off (insecure-skip-tls-verify)");
        }
        if cluster.proxy_url.is_some() {
            return no("it goes through a proxy (proxy-url)");
        }
        let authority =
            self.pem(cluster.certificate_authority_data.as_ref(), cluster.certificate_authority.as_ref())?;
        let Some(authority) = authority else { return no("it names no certificate authority") };
        let broken = |e: String| self.refused("use").because(e);
        let mut roots = RootCertStore::empty();
        for der in certificates(&authority).map_err(broken)? {
            roots.add(der).map_err(|e| broken(format!("its certificate authority: {e}")))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| broken(e.to_string()))?
            .with_root_certificates(roots);
        let certificate = self.pem(user.client_certificate_data.as_ref(), user.client_certificate.as_ref())?;
        let key = self.pem(user.client_key_data.as_ref(), user.client_key.as_ref())?;
        let mut token = user.token.clone().filter(|token| !token.is_empty());
        if let (None, Some(file)) = (&token, &user.token_file) {
            token = Some(self.read(file)?.trim().to_string());
        }
        let (mut tls, ends) = match (certificate, key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(&certificate).map_err(broken)?;
                let ends = chain.first().and_then(|own| x509::certificate(own).ok()).map(|facts| facts.not_after);
                let key = PrivateKeyDer::from_pem_slice(&key)
                    .map_err(|_| broken("its client key is not an unencrypted PEM key".into()))?;
                let tls = builder.with_client_auth_cert(chain, key);
                (tls.map_err(|e| broken(format!("its client certificate: {e}")))?, ends)
            }
            (None, None) if token.is_some() => (builder.with_no_client_auth(), None),
            (None, None) => return no("its user has neither a client certificate nor a token"),
            _ => return no("its user has a client certificate without key, or a key without certificate"),
        };
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let token = token.map(Arc::from);
        Ok(Identity { tls: Arc::new(tls), token, server_name: cluster.tls_server_name.clone(), ends })
    }
}

fn certificates(pem: &[u8]) -> std::result::Result<Vec<CertificateDer<'static>>, String> {
    let list: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<std::result::Result<_, _>>().map_err(|e| e.to_string())?;
    if list.is_empty() { Err("a PEM file in it holds no certificate".into()) } else { Ok(list) }
}

/// RFC 4648, with line breaks and padding where they belong; `None` for anything else.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held, mut padded) = (0_u32, 0_u32, false);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padded = true;
                continue;
            }
            _ => return None,
        };
        if padded {
            return None;
        }
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits & 0xff) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_others_write_it() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v\nYmFy", b"foobar"),
            ("+/8", b"\xfb\xff"),
            ("LS0tLS1CRUdJTg", b"-----BEGIN"),
        ] {
            assert_eq!(base64(text).as_deref(), Some(bytes), "{text}");
        }
        for text in ["Zg==Zg==", "Z*", "Zm9-"] {
            assert_eq!(base64(text), None, "{text}");
        }
    }

    fn load(text: &str) -> Error {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        std::fs::write(&path, text).unwrap();
        Identity::load(&path).unwrap_err()
    }

    #[test]
    fn what_would_start_a_program_or_hide_the_apiserver_is_refused_by_name() {
        let with = |cluster: &str, user: &str| {
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {{cluster: k, user: u}}\n\
                 clusters:\n- name: k\n  cluster: {cluster}\nusers:\n- name: u\n  user: {user}\n"
            )
        };
        for (cluster, user, why) in [
            ("{server: 'https://a'}", "{exec: {apiVersion: v1, command: x}}", "starts none"),
            ("{server: 'https://a'}", "{auth-provider: {name: oidc}}", "starts none"),
            ("{server: 'https://a'}", "{username: a, password: b}", "password"),
            ("{insecure-skip-tls-verify: true}", "{token: t}", "insecure-skip-tls-verify"),
            ("{proxy-url: 'http://p'}", "{token: t}", "proxy-url"),
            ("{server: 'https://a'}", "{token: t}", "no certificate authority"),
            ("{certificate-authority-data: 'Z*'}", "{token: t}", "base64"),
            ("{certificate-authority-data: Zm9v}", "{token: t}", "no certificate"),
        ] {
            let error = load(&with(cluster, user));
            assert_eq!(error.code(), Code::Config, "{cluster} {user}");
            assert!(error.why().concat().contains(why), "{cluster} {user}: {:?}", error.why());
        }
        for (text, why) in
            [("", "no context"), ("a: [", ""), ("contexts:\n- name: c\n  context: {cluster: k}", "no cluster")]
        {
            let error = load(text);
            assert!(error.code() == Code::Config && error.why().concat().contains(why), "{text}: {:?}", error.why());
        }
        let gone = Identity::load(Path::new("/nowhere/kubeconfig")).unwrap_err();
        assert_eq!(gone.code(), Code::NotFound);
    }
}
