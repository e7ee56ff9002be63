//! From what runs here to what is known: endpoints, certificates, contradictions.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::certificates;
use super::fact::{Fact, Source};
use super::files::{Files, Look};
use super::found::{ApiServer, Found, Layout, LocalMember};
use super::member::Member;
use super::mounts;
use super::search::{Search, choose, is_loopback, is_same};
use crate::error::{Code, Error, Result};

const MOUNTINFO: &str = "/proc/self/mountinfo";
/// Options whose contradictions a person wants to know of.
const TOLD: [&str; 10] = [
    "name",
    "data-dir",
    "wal-dir",
    "advertise-client-urls",
    "listen-client-urls",
    "initial-cluster",
    "cert-file",
    "trusted-ca-file",
    "etcd-servers",
    "etcd-prefix",
];

/// Reads the files below `root`. `NotFound` with everything that was looked at when there is neither etcd nor an
/// apiserver.
pub fn discover(root: &Path, now: Timestamp) -> Result<Found> {
    let mut files = Files::below(root);
    let search = Search::run(&mut files);
    let mut warnings = Vec::new();
    let mut apiservers = search.apiservers.into_iter();
    let api = apiservers.next();
    for other in apiservers {
        if let Some(api) = &api {
            let (other, first) = (&other.run.value, &api.run.value);
            warnings.push(format!("{other} runs an apiserver too; what is said of the apiserver is of {first}"));
        }
    }
    let servers = api.as_ref().and_then(|api| api.options.list("etcd-servers"));
    let (chosen, others) = choose(&files, search.members, servers.as_ref().map_or(&[], |fact| &fact.value));
    if chosen.is_none() && api.is_none() {
        return Err(nothing(root, &files, search.units));
    }
    let layout = chosen.as_ref().map_or(Layout::External, |(layout, _)| *layout);
    let member = chosen.map(|(_, member)| member);
    for other in &others {
        warnings.push(format!("{} runs etcd too: {}", other.run.value, other.why));
    }
    for one in member.iter().chain(&api) {
        contradictions(one, &mut warnings);
    }
    let local = member.as_ref().map(|member| local(&mut files, member, &mut warnings));
    let endpoints = endpoints(local.as_ref(), servers.as_ref(), &mut warnings);
    let apiserver = api.as_ref().map(|api| apiserver(api, servers, local.as_ref(), &mut warnings));
    let encrypted = endpoints.iter().any(|fact| fact.value.starts_with("https:"));
    let client = match encrypted {
        true => {
            let (client, faults) = certificates::choose(&mut files, member.as_ref(), api.as_ref(), now);
            if client.is_none() {
                warnings.push("etcd wants certificates, and no client certificate was found".into());
            }
            warnings.extend(faults);
            client
        }
        false => None,
    };
    for (path, look) in files.looked() {
        if let Look::Unusable(why) = look {
            let line = format!("{}: {why}", path.display());
            if !warnings.contains(&line) {
                warnings.push(line);
            }
        }
    }
    Ok(Found { layout, member: local, apiserver, endpoints, client, others, warnings, looked: files.looked().clone() })
}

fn local(files: &mut Files, member: &Member, warnings: &mut Vec<String>) -> LocalMember {
    let path = |flag: &str| {
        let fact = member.options.get(flag).filter(|fact| !fact.value.is_empty())?;
        Some(Fact::new(member.path(&fact.value)?, fact.from.clone()))
    };
    let data_dir = member.data_dir();
    if data_dir.is_none() {
        let why = match member.options.get("data-dir") {
            Some(fact) => {
                format!("its data directory {} is not an absolute path of this host ({})", fact.value, fact.from)
            }
            None => "its data directory is not set: it is made where etcd is started".into(),
        };
        warnings.push(format!("{}: {why}", member.run.value));
    }
    let file_system = data_dir.as_ref().and_then(|dir| {
        let info = files.text(Path::new(MOUNTINFO))?;
        let (kind, at) = mounts::file_system(&info, &dir.value)?;
        if mounts::is_network(&kind) {
            warnings.push(format!(
                "{} lies on a network file system ({kind} at {}): etcd falls behind and loses its leader there",
                dir.value.display(),
                at.display()
            ));
        }
        Some(Fact::new(kind, Source::at(Path::new(MOUNTINFO), at.display().to_string())))
    });
    let open = |fact: &Fact<String>| fact.value.contains("$(") || fact.value.contains("${") || fact.value.contains('%');
    for flag in ["name", "data-dir", "advertise-client-urls", "listen-client-urls"] {
        if let Some(fact) = member.options.get(flag).filter(|fact| open(fact)) {
            warnings.push(format!("{}: {:?} holds a variable that only its start fills in", fact.from, fact.value));
        }
    }
    let peer_urls =
        member.options.list("initial-advertise-peer-urls").or_else(|| member.options.list("listen-peer-urls"));
    LocalMember {
        run: member.run.clone(),
        name: member.options.get("name").filter(|fact| !open(fact)).cloned(),
        client_urls: member.client_urls(),
        peer_urls,
        initial_cluster: member.options.list("initial-cluster"),
        data_dir,
        wal_dir: path("wal-dir"),
        file_system,
    }
}

/// The own member's first, then those of the apiserver. A loopback address of the own member is no second member.
fn endpoints(
    local: Option<&LocalMember>,
    servers: Option<&Fact<Vec<String>>>,
    warnings: &mut Vec<String>,
) -> Vec<Fact<String>> {
    let mut found: Vec<Fact<String>> = Vec::new();
    let own = local.and_then(|member| member.client_urls.clone());
    let mut add = |url: &String, from: &Source, warnings: &mut Vec<String>| match endpoint(url) {
        Some(url) if found.iter().any(|fact| fact.value == url) => {}
        Some(url) => found.push(Fact::new(url, from.clone())),
        None => warnings.push(format!("{from}: {url:?} is not a client URL such as https://10.0.0.1:2379")),
    };
    if let Some(urls) = &own {
        // One way to each member is enough, and an address that others can use tells more than a loopback one.
        let best = urls.value.iter().find(|url| !is_loopback(url)).or(urls.value.first());
        best.iter().for_each(|url| add(url, &urls.from, warnings));
    }
    for server in servers.iter().flat_map(|fact| fact.value.iter().map(|url| (url, &fact.from))) {
        if own.as_ref().is_none_or(|own| !is_same(server.0, &own.value)) {
            add(server.0, server.1, warnings);
        }
    }
    found
}

/// `scheme://host:port` and nothing more.
fn endpoint(text: &str) -> Option<String> {
    let url = url::Url::parse(text).ok()?;
    let good = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.path() == "/"
        && url.query().is_none()
        && url.username().is_empty();
    let default = if url.scheme() == "http" { 80 } else { 443 };
    good.then(|| format!("{}://{}:{}", url.scheme(), url.host_str().unwrap_or_default(), url.port().unwrap_or(default)))
}

fn apiserver(
    api: &Member,
    servers: Option<Fact<Vec<String>>>,
    local: Option<&LocalMember>,
    warnings: &mut Vec<String>,
) -> ApiServer {
    let own = local.and_then(|member| member.client_urls.as_ref());
    let uses = |server: &String| own.is_some_and(|own| is_same(server, &own.value));
    let local_only = servers.as_ref().is_some_and(|fact| fact.value.iter().all(uses));
    if let (Some(own), Some(servers)) = (own, &servers)
        && !servers.value.iter().any(|server| is_same(server, &own.value))
    {
        warnings.push(format!(
            "the apiserver does not use this host's member: it has {} ({}), the member {} ({})",
            servers.value.join(","),
            servers.from,
            own.value.join(","),
            own.from
        ));
    }
    let events = api.options.get("etcd-servers-overrides").cloned();
    if let Some(fact) = &events {
        warnings.push(format!("a second etcd is used: {} ({}); it is not backed up", fact.value, fact.from));
    }
    ApiServer {
        run: api.run.clone(),
        etcd_servers: servers,
        local_only,
        prefix: api.options.get("etcd-prefix").cloned(),
        events,
    }
}

fn contradictions(member: &Member, warnings: &mut Vec<String>) {
    for (flag, first, other) in member.options.conflicts().filter(|(flag, ..)| TOLD.contains(flag)) {
        warnings.push(format!(
            "{flag} is {:?} by {} and {:?} by {}: the first one counts",
            first.value, first.from, other.value, other.from
        ));
    }
}

fn nothing(root: &Path, files: &Files, units: usize) -> Error {
    let named = |(path, look): (&PathBuf, &Look)| {
        let unit = path.extension().is_some_and(|e| e == "service" || e == "conf");
        match look {
            Look::Unusable(why) => Some(format!("{} ({why})", path.display())),
            Look::Missing => Some(format!("{} (missing)", path.display())),
            Look::Read if unit => None,
            Look::Read => Some(path.display().to_string()),
        }
    };
    let looked: Vec<String> = files.looked().iter().filter_map(named).collect();
    Error::new(Code::NotFound, "find etcd or an apiserver below", root.display().to_string())
        .because(format!("looked at {units} unit files, none of which runs one, and at {}", looked.join(", ")))
        .remedy("run it as root on a control-plane node, or write [etcd] into /etc/refloat/refloat.toml")
}
