//! A kubeconfig: what may be used of one, and ours.
//!
//! Refused are users that run a program (`exec`) or a plug-in (`auth-provider`), proxies, and servers that are not to be
//! verified: each would hand over what this process may to something that nobody here looked at.

use std::io::Read;
use std::path::Path;

use jiff::Timestamp;
use kube::config::Kubeconfig;
use serde_json::json;

use super::request::base64;
use super::{USER, failure};
use crate::error::{Code, Error, Result};
use crate::format::x509;

/// None is nearly as large.
const LIMIT: u64 = 1 << 20;

/// A kubeconfig that may be used, reduced to its current context.
#[derive(Clone)]
pub struct Access {
    kubeconfig: Kubeconfig,
    server: String,
    on: String,
}

impl Access {
    /// Reads a file. `Config` for what is missing or refused, `NotFound` without the file.
    pub fn read(path: &Path) -> Result<Access> {
        let on = path.display().to_string();
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => Error::new(Code::NotFound, "read kubeconfig", &*on).because(e),
            std::io::ErrorKind::PermissionDenied => Error::new(Code::Permission, "read kubeconfig", &*on).because(e),
            _ => Error::io("read kubeconfig", &*on, e),
        };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(LIMIT).read_to_string(&mut text).map_err(failed)?;
        Access::parse(&text, &on, path.parent())
    }

    /// `on`: what it is called; `folder`: where files that it names by relative paths lie.
    pub fn parse(text: &str, on: &str, folder: Option<&Path>) -> Result<Access> {
        let refused = |why: String| Error::new(Code::Config, "use kubeconfig", on).because(why);
        let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(|e| refused(e.to_string()))?;
        let wanted = kubeconfig.current_context.clone().ok_or_else(|| refused("it has no current-context".into()))?;
        let missing = |what: &str, name: &str| refused(format!("it has no {what} {name:?}"));
        let context = kubeconfig.contexts.iter().find(|one| one.name == wanted).and_then(|one| one.context.clone());
        let context = context.ok_or_else(|| missing("context", &wanted))?;
        let user = context.user.clone().unwrap_or_default();
        kubeconfig.contexts.retain(|one| one.name == wanted);
        kubeconfig.clusters.retain(|one| one.name == context.cluster);
        kubeconfig.auth_infos.retain(|one| one.name == user);
        let cluster = kubeconfig.clusters.first_mut().and_then(|one| one.cluster.as_mut());
        let cluster = cluster.ok_or_else(|| missing("cluster", &context.cluster))?;
        let who = kubeconfig.auth_infos.first_mut().and_then(|one| one.auth_info.as_mut());
        let who = who.ok_or_else(|| missing("user", &user))?;

        let server = cluster.server.clone().unwrap_or_default();
        let server = server.trim_end_matches('/').to_string();
        if !server.starts_with("https://") {
            return Err(refused(format!("its server {server:?} is no https address")));
        }
        if who.exec.is_some() || who.auth_provider.is_some() {
            return Err(refused(format!(
                "user {user:?} gets its credentials from another program (exec, auth-provider)"
            ))
            .remedy("give one with a client certificate or a token, such as /etc/kubernetes/admin.conf"));
        }
        if cluster.proxy_url.is_some() {
            return Err(refused("it goes through a proxy (proxy-url)".into()));
        }
        if cluster.insecure_skip_tls_verify == Some(true) {
            return Err(refused("it trusts any server (insecure-skip-tls-verify)".into()));
        }
        let folder = folder.unwrap_or(Path::new("/"));
        let files =
            [&mut cluster.certificate_authority, &mut who.client_certificate, &mut who.client_key, &mut who.token_file];
        for file in files.into_iter().flatten() {
            *file = folder.join(&*file).display().to_string();
        }
        Ok(Access { kubeconfig, server, on: on.into() })
    }

    /// `https://10.0.0.1:6443`, no trailing slash.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The same user at another apiserver of the same cluster.
    pub fn with_server(&self, url: &str) -> Access {
        let mut access = self.clone();
        access.server = url.trim_end_matches('/').into();
        if let Some(cluster) = access.kubeconfig.clusters.first_mut().and_then(|one| one.cluster.as_mut()) {
            cluster.server = Some(access.server.clone());
            // A name that belonged to the other address.
            cluster.tls_server_name = None;
        }
        access
    }

    /// PEM of the authority that signs the apiservers' certificates; empty where it names none.
    pub fn authority(&self) -> Result<Vec<u8>> {
        let cluster = self.kubeconfig.clusters.first().and_then(|one| one.cluster.as_ref());
        match cluster.map(|one| (&one.certificate_authority_data, &one.certificate_authority)) {
            Some((Some(data), _)) => self.decoded("certificate-authority-data", data),
            Some((None, Some(file))) => {
                std::fs::read(file).map_err(|e| Error::io("read certificate authority", file, e))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// From when to when the embedded client certificate counts; `None` without one that can be read.
    pub fn lifetime(&self) -> Option<(Timestamp, Timestamp)> {
        let who = self.kubeconfig.auth_infos.first().and_then(|one| one.auth_info.as_ref())?;
        let pem = self.decoded("client-certificate-data", who.client_certificate_data.as_ref()?).ok()?;
        let facts = x509::certificates(&pem).ok()?.into_iter().next()?;
        Some((facts.not_before, facts.not_after))
    }

    fn decoded(&self, key: &str, data: &str) -> Result<Vec<u8>> {
        let value = serde_json::Value::String(data.into());
        let bytes: std::result::Result<k8s_openapi::ByteString, _> = serde_json::from_value(value);
        bytes.map(|bytes| bytes.0).map_err(|e| {
            Error::new(Code::Config, "use kubeconfig", &*self.on).because(format!("{key}: {}", failure::chain(&e)))
        })
    }

    pub(super) fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    pub(super) fn on(&self) -> &str {
        &self.on
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("server", &self.server).field("on", &self.on).finish_non_exhaustive()
    }
}

/// Our own, with everything in it; all of it PEM. JSON is YAML as well.
pub fn ours(server: &str, authority: &[u8], certificate: &[u8], key: &[u8]) -> String {
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "local",
            "cluster": { "server": server, "certificate-authority-data": base64(authority) },
        }],
        "users": [{
            "name": USER,
            "user": { "client-certificate-data": base64(certificate), "client-key-data": base64(key) },
        }],
        "contexts": [{ "name": "local", "context": { "cluster": "local", "user": USER } }],
        "current-context": "local",
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
apiVersion: v1
kind: Config
current-context: a
contexts:
- {name: other, context: {cluster: other, user: other}}
- {name: a, context: {cluster: c, user: u}}
clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443/
    certificate-authority: pki/ca.crt
- {name: other, cluster: {server: 'http://x'}}
users:
- name: u
  user: {client-certificate: /abs/u.crt, client-key: u.key}
- {name: other, user: {exec: {command: /bin/sh, apiVersion: client.authentication.k8s.io/v1}}}
";

    fn parse(text: &str) -> Result<Access> {
        Access::parse(text, "k", Some(Path::new("/etc/kubernetes")))
    }

    #[test]
    fn the_current_context_and_no_other() {
        let access = parse(GOOD).unwrap();
        assert_eq!(access.server(), "https://10.0.0.1:6443");
        let who = access.kubeconfig.auth_infos[0].auth_info.as_ref().unwrap();
        assert_eq!(who.client_key.as_deref(), Some("/etc/kubernetes/u.key"));
        assert_eq!(who.client_certificate.as_deref(), Some("/abs/u.crt"));
        assert_eq!((access.kubeconfig.clusters.len(), access.kubeconfig.auth_infos.len()), (1, 1));
        assert_eq!(access.with_server("https://10.0.0.2:6443").server(), "https://10.0.0.2:6443");
        assert_eq!(access.lifetime(), None);
    }

    #[test]
    fn what_is_refused_and_why() {
        for (from, to, why) in [
            ("client-key: u.key", "exec: {command: /bin/sh}", "another program"),
            ("client-key: u.key", "auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}", "another program"),
            ("certificate-authority: pki/ca.crt", "proxy-url: http://p", "a proxy"),
            ("certificate-authority: pki/ca.crt", "insecure-skip-tls-verify: true", "any server"),
            ("server: https://10.0.0.1:6443/", "server: http://10.0.0.1:8080", "no https address"),
            ("current-context: a", "current-context: b", "no context \"b\""),
            ("user: u}", "user: v}", "no user \"v\""),
            ("cluster: c,", "cluster: d,", "no cluster \"d\""),
            ("current-context: a\n", "", "no current-context"),
            ("apiVersion: v1", "[", ""),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from}");
            let error = parse(&text).unwrap_err();
            assert_eq!(error.code(), Code::Config, "{to}");
            assert!(error.line().contains(why), "{to}: {}", error.line());
        }
    }

    #[test]
    fn ours_is_read_again() {
        let text = ours("https://[::1]:6443", b"CA", b"CERT", b"KEY");
        let access = parse(&text).unwrap();
        assert_eq!((access.server(), access.authority().unwrap()), ("https://[::1]:6443", b"CA".to_vec()));
        assert!(!format!("{access:?}").contains(&base64(b"KEY")), "{access:?}");
    }
}
