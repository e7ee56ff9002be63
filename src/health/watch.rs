//! Whom this node watches: every member, every apiserver, their balancer; and which of them are its own.
//!
//! The configuration names endpoints; the members' own list has their names and those that no endpoint names. Where no
//! member answers, what is configured is watched under the names of hosts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use url::Url;

use super::model::{Kind, Layout, Target, Watched};
use crate::config::{EtcdLayout, Settings};
use crate::etcd::{self, Access, ClusterView, MemberView};

/// What was learned about the surroundings.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Members, as they list each other; empty when none answered.
    pub members: Vec<Known>,
    /// Addresses by URL, of all that are configured or listed.
    pub addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Of this host.
    pub host: Vec<IpAddr>,
}

/// One member of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    pub id: u64,
    /// Its name, or its id while it has none.
    pub name: String,
    /// Where it answers, or is said to.
    pub urls: Vec<String>,
    pub learner: bool,
}

impl Known {
    fn of(view: &MemberView) -> Known {
        let answers = view.url.iter().chain(&view.endpoints).chain(&view.info.client_urls);
        let mut urls: Vec<String> = Vec::new();
        for url in answers.map(|url| url.trim_end_matches('/').to_string()) {
            if !urls.contains(&url) {
                urls.push(url);
            }
        }
        Known { id: view.info.id, name: view.info.label(), urls, learner: view.info.is_learner }
    }
}

/// Asks the members for each other, and the resolver for names, at most for `deadline` each.
pub async fn learn(settings: &Settings, access: &Access, deadline: Duration) -> Surroundings {
    let view: ClusterView = etcd::view(&settings.etcd.endpoints, access, deadline).await;
    let members: Vec<Known> = view.members.iter().map(Known::of).filter(|known| !known.urls.is_empty()).collect();
    let health = &settings.health;
    let configured = settings.etcd.endpoints.iter().chain(&health.apiservers).chain(&health.balancer);
    let mut urls: Vec<String> = configured.chain(members.iter().flat_map(|known| &known.urls)).cloned().collect();
    urls.sort();
    urls.dedup();
    let resolved = etcd::resolve(&urls, deadline).await;
    let addresses = resolved.into_iter().map(|endpoint| (endpoint.url, endpoint.addresses)).collect();
    Surroundings { members, addresses, host: etcd::host_addresses().unwrap_or_default() }
}

impl Surroundings {
    /// For hosts with a name: the one address that is used from now on.
    pub fn fixed(&self) -> BTreeMap<String, IpAddr> {
        let named = |url: &str| Url::parse(url).is_ok_and(|url| url.domain().is_some());
        let found = self.addresses.iter().filter(|(url, _)| named(url));
        found.filter_map(|(url, ips)| Some((url.clone(), *ips.first()?))).collect()
    }

    fn is_here(&self, url: &str) -> bool {
        self.addresses.get(url).is_some_and(|ips| ips.iter().any(|ip| self.host.contains(ip)))
    }

    /// Address and port: two spellings of one place.
    fn same_place(&self, a: &str, b: &str) -> bool {
        let port = |url: &str| Url::parse(url).ok().and_then(|url| url.port_or_known_default());
        let ips = |url: &str| self.addresses.get(url).map_or(&[][..], Vec::as_slice);
        a == b
            || port(a) == port(b) && (ips(a).iter().any(|ip| ips(b).contains(ip)) || self.is_here(a) && self.is_here(b))
    }
}

/// Pure: everything that is to be watched.
pub fn watched(settings: &Settings, around: &Surroundings) -> Watched {
    let mut targets = members(settings, around);
    targets.extend(apiservers(settings, around));
    if let Some(url) = &settings.health.balancer {
        targets.push(target(Kind::Balancer, host_and_port(url), url, false));
    }
    let layout = match settings.health.layout {
        Some(EtcdLayout::Local) => Layout::Local,
        Some(EtcdLayout::All) => Layout::All,
        None => Layout::Unknown,
    };
    Watched { node: settings.node.clone(), targets, layout }
}

fn target(kind: Kind, name: String, url: &str, own: bool) -> Target {
    Target { kind, name, url: url.into(), own, learner: false }
}

fn members(settings: &Settings, around: &Surroundings) -> Vec<Target> {
    let endpoints = &settings.etcd.endpoints;
    let mut found: Vec<(Target, Vec<String>)> = around
        .members
        .iter()
        .map(|known| {
            // What a person wrote is the way to it, else what answered.
            let configured = endpoints.iter().find(|url| known.urls.iter().any(|own| around.same_place(own, url)));
            let url = configured.or(known.urls.first()).cloned().unwrap_or_default();
            let target = Target { learner: known.learner, ..target(Kind::Member, known.name.clone(), &url, false) };
            (target, [vec![format!("{:x}", known.id)], known.urls.clone()].concat())
        })
        .collect();
    for url in endpoints {
        let known = found.iter().any(|(target, urls)| {
            around.same_place(&target.url, url) || urls.iter().any(|own| around.same_place(own, url))
        });
        if !known {
            found.push((target(Kind::Member, host_and_port(url), url, false), vec![url.clone()]));
        }
    }
    let own = own_member(settings, around, &found);
    if let Some((target, _)) = own.and_then(|at| found.get_mut(at)) {
        target.own = true;
    }
    let mut targets: Vec<Target> = found.into_iter().map(|(target, _)| target).collect();
    unique(&mut targets);
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    targets
}

/// The one that `[etcd] member` means; else the only configured one on this host; else the only one.
fn own_member(settings: &Settings, around: &Surroundings, found: &[(Target, Vec<String>)]) -> Option<usize> {
    if let Some(wanted) = &settings.etcd.member {
        let wanted = wanted.trim_end_matches('/');
        let id = wanted.trim_start_matches("0x").to_ascii_lowercase();
        return found.iter().position(|(target, names)| {
            target.name == wanted || target.url == wanted || names.iter().any(|name| *name == id || name == wanted)
        });
    }
    let here: Vec<usize> = (0..found.len())
        .filter(|at| {
            let (target, _) = &found[*at];
            settings.etcd.endpoints.contains(&target.url) && around.is_here(&target.url)
        })
        .collect();
    match here.as_slice() {
        [only] => Some(*only),
        [] if found.len() == 1 => Some(0),
        _ => None,
    }
}

fn apiservers(settings: &Settings, around: &Surroundings) -> Vec<Target> {
    let urls = &settings.health.apiservers;
    let here: Vec<&String> = urls.iter().filter(|url| around.is_here(url)).collect();
    // Two on one host are a test's or a mistake: neither is known to be the own one.
    let own = match here.as_slice() {
        [only] => Some(*only),
        _ => None,
    };
    urls.iter().map(|url| target(Kind::Apiserver, host_and_port(url), url, own == Some(url))).collect()
}

/// Names are unique among those of a kind: the rank of a fence goes by them.
fn unique(targets: &mut [Target]) {
    for at in 1..targets.len() {
        let (before, rest) = targets.split_at_mut(at);
        if let Some(target) = rest.first_mut().filter(|target| before.iter().any(|other| other.name == target.name)) {
            target.name = format!("{} ({})", target.name, host_and_port(&target.url));
        }
    }
}

fn host_and_port(url: &str) -> String {
    url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn settings(text: &str) -> Settings {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("refloat.toml");
        std::fs::write(&file, format!("node = 'cp1'\n{text}")).unwrap();
        let around = config::Surroundings { root: "/".into(), host_name: "cp1".into(), credentials: None };
        config::load(&around, Some(&file)).unwrap().settings
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Three members a, b and c at 10.0.0.1 to 10.0.0.3; this is the first host.
    fn around(members: bool) -> Surroundings {
        let known = |id: u64, name: &str, host: u8| Known {
            id,
            name: name.into(),
            urls: vec![format!("http://10.0.0.{host}:2379")],
            learner: name == "c",
        };
        let urls = (1..=3).flat_map(|n| {
            let ips = vec![ip(&format!("10.0.0.{n}"))];
            [(format!("http://10.0.0.{n}:2379"), ips.clone()), (format!("https://10.0.0.{n}:6443"), ips)]
        });
        let mut addresses: BTreeMap<String, Vec<IpAddr>> = urls.collect();
        addresses.insert("http://127.0.0.1:2379".into(), vec![ip("127.0.0.1")]);
        addresses.insert("http://etcd-b:2379".into(), vec![ip("10.0.0.2")]);
        let members =
            if members { vec![known(0xb2, "b", 2), known(0xa1, "a", 1), known(0xc3, "c", 3)] } else { vec![] };
        Surroundings { members, addresses, host: vec![ip("127.0.0.1"), ip("10.0.0.1")] }
    }

    /// Name, URL, own, learner.
    fn shown(watched: &Watched) -> Vec<String> {
        let word = |target: &Target| {
            let own = if target.own { " own" } else { "" };
            let learner = if target.learner { " learner" } else { "" };
            format!("{} {}{own}{learner}", target.name, target.url)
        };
        watched.targets.iter().map(word).collect()
    }

    #[test]
    fn all_members_are_watched_whatever_is_configured() {
        let others = ["b http://10.0.0.2:2379", "c http://10.0.0.3:2379 learner"];
        for (text, members, expected) in [
            ("", true, vec!["a http://127.0.0.1:2379 own", others[0], others[1]]),
            (
                "etcd.endpoints = ['http://10.0.0.1:2379']",
                true,
                vec!["a http://10.0.0.1:2379 own", others[0], others[1]],
            ),
            (
                "[etcd]\nmember = 'b'\nendpoints = ['http://etcd-b:2379']",
                true,
                vec!["a http://10.0.0.1:2379", "b http://etcd-b:2379 own", others[1]],
            ),
            ("etcd.member = 'A1'", true, vec!["a http://127.0.0.1:2379 own", others[0], others[1]]),
            ("etcd.member = 'nobody'", true, vec!["a http://127.0.0.1:2379", others[0], others[1]]),
            (
                "etcd.endpoints = ['http://10.0.0.2:2379', 'http://10.0.0.3:2379']",
                true,
                vec!["a http://10.0.0.1:2379", others[0], others[1]],
            ),
            ("", false, vec!["127.0.0.1:2379 http://127.0.0.1:2379 own"]),
            (
                "etcd.endpoints = ['http://10.0.0.2:2379', 'http://10.0.0.1:2379']",
                false,
                vec!["10.0.0.1:2379 http://10.0.0.1:2379 own", "10.0.0.2:2379 http://10.0.0.2:2379"],
            ),
            ("etcd.endpoints = ['http://10.0.0.2:2379']", false, vec!["10.0.0.2:2379 http://10.0.0.2:2379 own"]),
        ] {
            assert_eq!(shown(&watched(&settings(text), &around(members))), expected, "{text} {members}");
        }
    }

    #[test]
    fn apiservers_and_their_balancer() {
        let text = "[health]\napiservers = ['https://10.0.0.2:6443', 'https://10.0.0.1:6443']\n\
                    balancer = 'https://vip:8443'\nlayout = 'local'";
        let watched = watched(&settings(text), &around(false));
        assert_eq!(
            shown(&watched)[1..],
            [
                "10.0.0.2:6443 https://10.0.0.2:6443",
                "10.0.0.1:6443 https://10.0.0.1:6443 own",
                "vip:8443 https://vip:8443"
            ]
        );
        assert_eq!((watched.layout, watched.node.as_str()), (Layout::Local, "cp1"));
        assert_eq!(watched.own(Kind::Apiserver).map(|(_, target)| target.name.as_str()), Some("10.0.0.1:6443"));
    }

    #[test]
    fn names_are_unique_and_named_hosts_are_fixed() {
        let mut around = around(true);
        around.members.iter_mut().for_each(|known| known.name = "m".into());
        let watched = watched(&settings(""), &around);
        let mut names: Vec<&str> = watched.targets.iter().map(|target| target.name.as_str()).collect();
        names.dedup();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(around.fixed(), [("http://etcd-b:2379".to_string(), ip("10.0.0.2"))].into());
    }
}
