//! The files that setup writes: a fragment of the configuration and two drop-ins.
//!
//! The same facts give the same bytes, so that a second run has nothing to write.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::escape;
use super::plan::Kept;
use crate::config::{Besides, CREDENTIAL, EtcdLayout, Settings};
use crate::discover::{Fact, Found};
use crate::error::Result;

const NOTE: &str = "# Written by `refloat setup`; the next run replaces it.";

/// A file that systemd hands to the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// `etcd.key`.
    pub name: &'static str,
    pub file: PathBuf,
}

/// The configuration as it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fragment {
    pub text: String,
    /// False: nothing but the note.
    pub has_keys: bool,
    pub credentials: Vec<Credential>,
    pub kept: Vec<Kept>,
}

/// What of `found` goes into the configuration: only keys that no other file sets. `apiservers`: as the cluster names them.
pub fn fragment(found: Option<&Found>, apiservers: &[String], besides: &Besides) -> Fragment {
    let mut out = Fragment::default();
    let mut lines: Vec<String> = Vec::new();
    let free = |keys: &[&str], kept: &mut Vec<Kept>| {
        let set = keys.iter().find_map(|key| besides.origin(key).map(|origin| (key, origin)));
        if let Some((key, origin)) = set {
            kept.push(Kept { key: (*key).into(), set_in: origin.to_string() });
        }
        set.is_none()
    };
    let mut kept = Vec::new();
    let mut add = |key: &str, value: String, from: String| {
        lines.push(format!("# {}", escape::comment(&from)));
        lines.push(format!("{key} = {value}"));
    };
    if let Some(found) = found {
        let member = found.member.as_ref();
        if let Some(name) = member.and_then(|m| m.name.as_ref()).filter(|name| !name.value.is_empty())
            && free(&["etcd.member"], &mut kept)
        {
            add("member", escape::toml(&name.value), name.from.to_string());
        }
        if !found.endpoints.is_empty() && free(&["etcd.endpoints"], &mut kept) {
            let urls: Vec<String> = found.endpoints.iter().map(|fact| escape::toml(&fact.value)).collect();
            let mut from: Vec<String> = found.endpoints.iter().map(|fact| fact.from.to_string()).collect();
            from.dedup();
            add("endpoints", format!("[{}]", urls.join(", ")), from.join(", "));
        }
        if let Some(prefix) = found.apiserver.as_ref().and_then(|api| api.prefix.as_ref()).and_then(prefix)
            && free(&["etcd.prefix"], &mut kept)
        {
            add("prefix", escape::toml(&prefix.value), prefix.from.to_string());
        }
        if let Some(client) = &found.client {
            let mut file = |key: &str, name: &'static str, path: &PathBuf| {
                add(key, escape::toml(&format!("{CREDENTIAL}{name}")), format!("{} ({})", path.display(), client.why));
                out.credentials.push(Credential { name, file: path.clone() });
            };
            if free(&["etcd.ca_file"], &mut kept) {
                file("ca_file", "etcd.ca", &client.ca.path);
            }
            // A certificate and a key from two sources would not fit.
            if free(&["etcd.cert_file", "etcd.key_file"], &mut kept) {
                file("cert_file", "etcd.cert", &client.cert.path);
                file("key_file", "etcd.key", &client.key);
            }
        }
        if let Some(dir) = member.and_then(|m| m.data_dir.as_ref())
            && free(&["etcd.data_dir"], &mut kept)
        {
            add("data_dir", escape::toml(&dir.value.display().to_string()), dir.from.to_string());
        }
    }
    let mut health: Vec<String> = Vec::new();
    if !apiservers.is_empty() && free(&["health.apiservers"], &mut kept) {
        let urls: Vec<String> = apiservers.iter().map(|url| escape::toml(url)).collect();
        health.push("# the endpoints of service default/kubernetes".into());
        health.push(format!("apiservers = [{}]", urls.join(", ")));
    }
    let api = found.and_then(|found| found.apiserver.as_ref());
    if let Some((api, servers)) = api.and_then(|api| api.etcd_servers.as_ref().map(|servers| (api, servers)))
        && free(&["health.layout"], &mut kept)
    {
        health.push(format!("# {}", escape::comment(&servers.from.to_string())));
        health.push(format!(
            "layout = {}",
            escape::toml(if api.local_only { EtcdLayout::Local } else { EtcdLayout::All }.word())
        ));
    }
    out.has_keys = !lines.is_empty() || !health.is_empty();
    out.text = format!("{NOTE}\n# A key that another file sets is left out here, and so wins.\n");
    if let Some(found) = found {
        out.text.push_str(&format!("# Found: {}\n", found.layout.word()));
    }
    for (section, lines) in [("etcd", lines), ("health", health)].into_iter().filter(|(_, lines)| !lines.is_empty()) {
        out.text.push_str(&format!("\n[{section}]\n{}\n", lines.join("\n")));
    }
    out.kept = kept;
    out
}

/// As the configuration wants it: a slash before, none behind. The apiserver takes it in any form.
fn prefix(fact: &Fact<String>) -> Option<Fact<String>> {
    let bare = fact.value.trim_matches('/');
    (!bare.is_empty()).then(|| fact.map(|_| format!("/{bare}")))
}

fn handed_over(credentials: &[Credential]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for Credential { name, file } in credentials {
        lines.push(format!("LoadCredential={name}:{}", escape::rest_of_line(file)?));
        // A file that is missing must not keep the service from starting: this is what it reads then.
        lines.push(format!("SetCredential={name}:-"));
    }
    Ok(lines)
}

/// Credentials alone: it writes nowhere. `None`: nothing to say.
pub fn health(credentials: &[Credential]) -> Result<Option<String>> {
    let lines = handed_over(credentials)?;
    Ok((!lines.is_empty()).then(|| format!("{NOTE}\n[Service]\n{}\n", lines.join("\n"))))
}

/// Credentials, and the directories outside of the service's own in which it writes. `None`: nothing to say.
pub fn service(credentials: &[Credential], settings: &Settings) -> Result<Option<String>> {
    let mut lines = handed_over(credentials)?;
    let own = std::path::Path::new("/var/lib/refloat");
    let stores = settings.stores.iter().map(|store| &store.path);
    for path in stores.chain([&settings.paths.state]).filter(|path| !path.starts_with(own)) {
        // A disk that is away must not keep the service from starting either.
        lines.push(format!("ReadWritePaths={}", escape::word("-", path)?));
    }
    Ok((!lines.is_empty()).then(|| format!("{NOTE}\n[Service]\n{}\n", lines.join("\n"))))
}

/// The files whose renewal starts the service anew. `None`: nothing to watch.
pub fn certs(credentials: &[Credential]) -> Result<Option<String>> {
    let lines: Vec<String> = credentials
        .iter()
        .map(|one| escape::rest_of_line(&one.file).map(|path| format!("PathChanged={path}")))
        .collect::<Result<_>>()?;
    Ok((!lines.is_empty()).then(|| format!("{NOTE}\n[Path]\n{}\n", lines.join("\n"))))
}

/// Where a socket listens. `None`: where the unit says so anyway.
pub fn socket(address: SocketAddr, standard: SocketAddr) -> Option<String> {
    // The empty one takes back what the unit says.
    (address != standard).then(|| format!("{NOTE}\n[Socket]\nListenStream=\nListenStream={address}\n"))
}

/// A file of ours that has nothing to say any more.
pub fn empty() -> String {
    format!("{NOTE}\n# Nothing to set.\n")
}
