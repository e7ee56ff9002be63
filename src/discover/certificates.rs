//! Which certificate refloat may show to etcd: the first of those that are there which a member accepts as a client's.
//!
//! Preferred are those that were made for clients which only look (kubeadm's health check, the apiserver's own); the
//! member's own come last, and only where their extended key usage says that they are a client's too.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::fact::Source;
use super::files::{Files, Look};
use super::member::Member;
use crate::format::x509::{Facts, certificates};

/// CA, certificate and key with which a client reaches etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    pub ca: CertificateFile,
    pub cert: CertificateFile,
    pub key: PathBuf,
    /// Why these.
    pub why: String,
    pub from: Source,
}

/// One PEM file; of several certificates in it the one that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFile {
    pub path: PathBuf,
    /// `None`: it could not be read.
    pub facts: Option<Facts>,
}

/// Three paths that belong together.
struct Candidate {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
    why: &'static str,
    from: Source,
}

/// The best of all that are there, and what speaks against it; `None` with nothing at all.
pub fn choose(
    files: &mut Files,
    member: Option<&Member>,
    api: Option<&Member>,
    now: Timestamp,
) -> (Option<ClientFiles>, Vec<String>) {
    let mut best: Option<(usize, ClientFiles, Vec<String>)> = None;
    for candidate in candidates(files, member, api) {
        let Some((found, faults)) = judge(files, candidate, now) else { continue };
        if faults.is_empty() {
            return (Some(found), Vec::new());
        }
        // The fewest faults, and of those the first: a key that only root may read is no fault of the certificate.
        if best.as_ref().is_none_or(|(least, ..)| faults.len() < *least) {
            best = Some((faults.len(), found, faults));
        }
    }
    match best {
        Some((_, found, faults)) => (Some(found), faults),
        None => (None, Vec::new()),
    }
}

fn candidates(files: &mut Files, member: Option<&Member>, api: Option<&Member>) -> Vec<Candidate> {
    let mut list: Vec<Candidate> = Vec::new();
    let ca = [(member, "trusted-ca-file"), (api, "etcd-cafile")].into_iter().find_map(|(one, flag)| {
        let one = one?;
        let fact = one.options.get(flag)?;
        Some((one.path(&fact.value)?, fact.from.clone()))
    });
    if let Some((ca, from)) = &ca
        && let Some(folder) = ca.parent()
    {
        let health = folder.join("healthcheck-client.crt");
        let key = health.with_extension("key");
        let why = "the health check's client certificate";
        list.push(Candidate { ca: ca.clone(), cert: health, key, why, from: from.clone() });
        if let Some(name) = folder.file_name().filter(|name| *name == "etcd").and(folder.parent()) {
            let cert = name.join("apiserver-etcd-client.crt");
            let key = cert.with_extension("key");
            let why = "the apiserver's client certificate";
            list.push(Candidate { ca: ca.clone(), cert, key, why, from: from.clone() });
        }
    }
    // RKE2 and k3s keep the member's CA and a client certificate beside each other.
    if let Some(folder) = member.and_then(|m| m.options.get("cert-file").map(|f| (m, f))).and_then(|(m, f)| {
        let path = m.path(&f.value)?;
        path.parent().map(Path::to_path_buf)
    }) {
        let from = Source::file(&folder);
        let server_ca = folder.join("server-ca.crt");
        let ca = if files.exists(&server_ca) { Some(server_ca) } else { ca.as_ref().map(|(ca, _)| ca.clone()) };
        if let Some(ca) = ca {
            let cert = folder.join("client.crt");
            let key = folder.join("client.key");
            list.push(Candidate { ca, cert, key, why: "the client certificate beside the member's", from });
        }
    }
    if let Some(api) = api {
        list.extend(flags(api, ["etcd-cafile", "etcd-certfile", "etcd-keyfile"], "what the apiserver shows to etcd"));
    }
    // kubespray and kubekey name them after the host.
    if let Some((ca, from)) = &ca
        && let Some(folder) = ca.parent()
    {
        let names = files.names(folder);
        for prefix in ["node-", "admin-", "member-"] {
            for name in names.iter().filter(|name| name.starts_with(prefix)) {
                let Some(stem) = name.strip_suffix("-key.pem") else { continue };
                let cert = folder.join(format!("{stem}.pem"));
                let why = "the client certificate of this node";
                list.push(Candidate { ca: ca.clone(), cert, key: folder.join(name), why, from: from.clone() });
            }
        }
    }
    if let Some(member) = member {
        list.extend(flags(member, ["trusted-ca-file", "cert-file", "key-file"], "the member's own certificate"));
        let peers = ["peer-trusted-ca-file", "peer-cert-file", "peer-key-file"];
        list.extend(flags(member, peers, "the member's certificate for its peers"));
    }
    list
}

fn flags(member: &Member, names: [&str; 3], why: &'static str) -> Option<Candidate> {
    let [ca, cert, key] = names.map(|flag| member.options.get(flag));
    let path = |fact: &super::fact::Fact<String>| member.path(&fact.value);
    let from = cert?.from.clone();
    Some(Candidate { ca: path(ca?)?, cert: path(cert?)?, key: path(key?)?, why, from })
}

/// `None`: its certificate is not there.
fn judge(files: &mut Files, candidate: Candidate, now: Timestamp) -> Option<(ClientFiles, Vec<String>)> {
    let Candidate { ca, cert, key, why, from } = candidate;
    if !files.exists(&cert) {
        files.text(&cert);
        return None;
    }
    let mut faults = Vec::new();
    let ca = certificate(files, ca, true, &mut faults);
    let cert = certificate(files, cert, false, &mut faults);
    if let Some(facts) = &cert.facts {
        if !facts.client {
            faults.push(format!(
                "{} is no client certificate: its extended key usage lacks clientAuth",
                cert.path.display()
            ));
        }
        if facts.not_after < now {
            faults.push(format!("{} ended on {}", cert.path.display(), facts.not_after));
        }
    }
    if let Some(fault) = key_fault(files, &key) {
        faults.push(fault);
    }
    Some((ClientFiles { ca, cert, key, why: why.into(), from }, faults))
}

fn certificate(files: &mut Files, path: PathBuf, authority: bool, faults: &mut Vec<String>) -> CertificateFile {
    let facts = match files.bytes(&path).map(|pem| certificates(&pem)) {
        // Of a bundle of authorities the one that ends last, of a client's chain the first.
        Some(Ok(list)) if authority => list.into_iter().max_by_key(|facts| facts.not_after),
        Some(Ok(list)) => list.into_iter().next(),
        Some(Err(why)) => {
            files.unusable(&path, why);
            None
        }
        None => None,
    };
    if facts.is_none() {
        faults.push(said(files, &path));
    }
    CertificateFile { path, facts }
}

/// A key is looked at, never kept.
fn key_fault(files: &mut Files, path: &Path) -> Option<String> {
    let bytes = match files.bytes(path) {
        Some(bytes) => bytes,
        None => return Some(said(files, path)),
    };
    let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    if !has(b"PRIVATE KEY-----") {
        files.unusable(path, "it holds no private key in PEM");
    } else if has(b"ENCRYPTED") {
        files.unusable(path, "its private key is encrypted: refloat needs one without a pass phrase");
    } else {
        return None;
    }
    Some(said(files, path))
}

fn said(files: &Files, path: &Path) -> String {
    match files.looked().get(path) {
        Some(Look::Unusable(why)) => format!("{}: {why}", path.display()),
        _ => format!("{} is missing", path.display()),
    }
}
