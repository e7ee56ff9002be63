//! Which member is ours (law 10), and which one `--member` means. Pure, except for the two functions that look
//! at this host: [`host_addresses`] and [`resolve`].

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::timeout;
use url::{Host, Url};

use super::cluster::MemberView;
use super::facts::MemberInfo;
use crate::error::{Code, Error, Result};

/// A configured endpoint with the addresses that its host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    /// Empty when the name does not resolve.
    pub addresses: Vec<IpAddr>,
}

/// The member to dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub url: String,
    /// `None` when no member answered that knows it: an endpoint alone was enough to choose.
    pub info: Option<MemberInfo>,
    /// Why this one: a clause for people, such as `[etcd] member`.
    pub reason: &'static str,
}

/// Our own member: `[etcd] member` (name, id in hex or client URL); else the endpoint with an address of this
/// host; else the only endpoint; else `Code::Config` with the candidates.
///
/// `members` may be empty when nobody answered; then a name cannot be found, a URL and the rest still can.
pub fn own_member(
    members: &[MemberView],
    setting: Option<&str>,
    endpoints: &[Endpoint],
    host: &[IpAddr],
) -> Result<Chosen> {
    if let Some(wanted) = setting {
        return find(members, wanted, "[etcd] member").ok_or_else(|| {
            Error::new(Code::Config, "find own member", wanted)
                .because(format!("[etcd] member names none of the members: {}", candidates(members, endpoints)))
                .remedy("set [etcd] member to a name, id or client URL of this list")
        });
    }
    let here: Vec<&Endpoint> = endpoints.iter().filter(|e| e.addresses.iter().any(|a| host.contains(a))).collect();
    match distinct(members, &here)[..] {
        [only] => return Ok(chosen(members, &only.url, "the endpoint with an address of this host")),
        [] => {}
        _ => {
            return Err(Error::new(Code::Config, "find own member", "by the addresses of this host")
                .because(format!("several endpoints have one: {}", candidates(members, endpoints)))
                .remedy("set [etcd] member to the one that belongs to this node"));
        }
    }
    let all: Vec<&Endpoint> = endpoints.iter().collect();
    match distinct(members, &all)[..] {
        [only] => Ok(chosen(members, &only.url, "the only endpoint")),
        _ => Err(Error::new(Code::Config, "find own member", "among the endpoints")
            .because(format!("none has an address of this host: {}", candidates(members, endpoints)))
            .remedy("set [etcd] member to the one that belongs to this node, or pass --member")),
    }
}

/// The member that `--member NAME|ID|URL` means; `Code::NotFound` with the candidates.
pub fn pick(members: &[MemberView], wanted: &str) -> Result<Chosen> {
    find(members, wanted, "--member").ok_or_else(|| {
        Error::new(Code::NotFound, "find member", wanted)
            .because(format!("the cluster has {}", candidates(members, &[])))
            .remedy("pass a name, id or client URL of this list")
    })
}

/// Name first, then id, then URL. A URL that no answering member has is taken at its word: that member may be
/// the one that is down.
fn find(members: &[MemberView], wanted: &str, reason: &'static str) -> Option<Chosen> {
    let id = wanted.trim_start_matches("0x");
    let by_name = members.iter().find(|m| !m.info.name.is_empty() && m.info.name == wanted);
    let by_id = || members.iter().find(|m| m.info.hex_id().eq_ignore_ascii_case(id));
    if let Some(member) = by_name.or_else(by_id) {
        let url = member.url.clone().or_else(|| member.info.client_urls.first().cloned())?;
        return Some(Chosen { url, info: Some(member.info.clone()), reason });
    }
    wanted.contains("://").then(|| chosen(members, wanted, reason))
}

fn chosen(members: &[MemberView], url: &str, reason: &'static str) -> Chosen {
    let info = members.iter().find(|m| m.has_url(url)).map(|m| m.info.clone());
    Chosen { url: url.to_string(), info, reason }
}

/// Endpoints of one and the same member (a loopback and a public address) count once.
fn distinct<'a>(members: &[MemberView], endpoints: &[&'a Endpoint]) -> Vec<&'a Endpoint> {
    let mut seen: Vec<(Option<u64>, String)> = Vec::new();
    let mut kept = Vec::new();
    for endpoint in endpoints {
        let id = members.iter().find(|m| m.has_url(&endpoint.url)).map(|m| m.info.id);
        let url = normal(&endpoint.url);
        if seen.iter().any(|(i, u)| *u == url || (i.is_some() && *i == id)) {
            continue;
        }
        seen.push((id, url));
        kept.push(*endpoint);
    }
    kept
}

fn candidates(members: &[MemberView], endpoints: &[Endpoint]) -> String {
    let mut list: Vec<String> = members
        .iter()
        .map(|m| {
            let url = m.url.as_deref().or(m.info.client_urls.first().map(String::as_str)).unwrap_or("no client URL");
            format!("{} ({}, {url})", m.info.label(), m.info.hex_id())
        })
        .collect();
    list.extend(endpoints.iter().filter(|e| !members.iter().any(|m| m.has_url(&e.url))).map(|e| e.url.clone()));
    if list.is_empty() { "no member that answers".into() } else { list.join(", ") }
}

/// A URL in one spelling: default port and a slash at the end make no difference.
pub(super) fn normal(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_string(), |u| u.as_str().trim_end_matches('/').to_string())
}

/// The addresses of this host's interfaces, loopback included.
pub fn host_addresses() -> Result<Vec<IpAddr>> {
    let list =
        nix::ifaddrs::getifaddrs().map_err(|e| Error::io("list addresses of", "this host", std::io::Error::from(e)))?;
    let mut addresses: Vec<IpAddr> = list
        .filter_map(|interface| interface.address)
        .filter_map(|address| {
            let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))
        })
        .collect();
    addresses.sort();
    addresses.dedup();
    Ok(addresses)
}

/// Looks up the hosts of all endpoints at once; a name without an answer within `deadline` has no addresses.
pub async fn resolve(urls: &[String], deadline: Duration) -> Vec<Endpoint> {
    let mut lookups = tokio::task::JoinSet::new();
    for (place, url) in urls.iter().enumerate() {
        let parsed = Url::parse(url);
        lookups.spawn(async move {
            let addresses = match parsed.as_ref().map(Url::host) {
                Ok(Some(Host::Ipv4(ip))) => vec![IpAddr::V4(ip)],
                Ok(Some(Host::Ipv6(ip))) => vec![IpAddr::V6(ip)],
                Ok(Some(Host::Domain(name))) => match timeout(deadline, tokio::net::lookup_host((name, 0))).await {
                    Ok(Ok(found)) => found.map(|a| a.ip()).collect(),
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            };
            (place, addresses)
        });
    }
    let mut endpoints: Vec<Endpoint> =
        urls.iter().map(|url| Endpoint { url: url.clone(), addresses: Vec::new() }).collect();
    while let Some(done) = lookups.join_next().await {
        if let Ok((place, addresses)) = done {
            endpoints[place].addresses = addresses;
        }
    }
    endpoints
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members a, b, c with ids 0xa1, 0xb2, 0xc3 at 10.0.0.1 to 10.0.0.3; b does not answer.
    fn members() -> Vec<MemberView> {
        let view = |id, name: &str, host: u8| {
            let url = format!("https://10.0.0.{host}:2379");
            let info = MemberInfo {
                id,
                name: name.into(),
                peer_urls: vec![],
                client_urls: vec![url.clone()],
                is_learner: false,
            };
            let status = Err(Error::new(Code::MemberGone, "read status of", &url));
            MemberView { info, url: Some(url.clone()), endpoints: if name == "b" { vec![] } else { vec![url] }, status }
        };
        vec![view(0xa1, "a", 1), view(0xb2, "b", 2), view(0xc3, "c", 3)]
    }

    fn endpoint(url: &str, address: &str) -> Endpoint {
        Endpoint { url: url.into(), addresses: address.parse().into_iter().collect() }
    }

    fn three() -> Vec<Endpoint> {
        (1..=3).map(|i| endpoint(&format!("https://10.0.0.{i}:2379"), &format!("10.0.0.{i}"))).collect()
    }

    fn host(address: &str) -> Vec<IpAddr> {
        ["127.0.0.1", "::1", address].iter().filter_map(|a| a.parse().ok()).collect()
    }

    #[test]
    fn the_setting_goes_first() {
        for (setting, url, id) in [
            ("a", "https://10.0.0.1:2379", Some(0xa1)),
            ("b", "https://10.0.0.2:2379", Some(0xb2)),
            ("c3", "https://10.0.0.3:2379", Some(0xc3)),
            ("0xC3", "https://10.0.0.3:2379", Some(0xc3)),
            ("https://10.0.0.2:2379/", "https://10.0.0.2:2379/", Some(0xb2)),
            // Nobody knows this URL: it is taken at its word.
            ("https://10.0.0.9:2379", "https://10.0.0.9:2379", None),
        ] {
            let own = own_member(&members(), Some(setting), &three(), &host("10.0.0.3")).expect(setting);
            assert_eq!((own.url.as_str(), own.info.map(|m| m.id)), (url, id), "{setting}");
            assert_eq!(own.reason, "[etcd] member");
            assert_eq!(pick(&members(), setting).expect(setting).url, url);
        }
    }

    #[test]
    fn a_setting_that_names_nobody_is_an_error_with_the_candidates() {
        for setting in ["d", "", "10.0.0.1", "a1b"] {
            let error = own_member(&members(), Some(setting), &three(), &host("10.0.0.3")).expect_err(setting);
            assert_eq!(error.code(), Code::Config);
            assert!(error.why()[0].contains("b (b2, https://10.0.0.2:2379)"), "{:?}", error.why());
            assert_eq!(pick(&members(), setting).expect_err(setting).code(), Code::NotFound);
        }
    }

    #[test]
    fn then_the_address_of_this_host_then_the_only_endpoint() {
        let here = "the endpoint with an address of this host";
        let only = "the only endpoint";
        let one = vec![endpoint("https://etcd.example:2379", "10.0.0.2")];
        let loopback = vec![endpoint("http://127.0.0.1:2379", "127.0.0.1")];
        for (members, endpoints, address, expected) in [
            (members(), three(), "10.0.0.2", Some(("https://10.0.0.2:2379", Some(0xb2), here))),
            (members(), three(), "10.0.0.9", None),
            (vec![], three(), "10.0.0.2", Some(("https://10.0.0.2:2379", None, here))),
            (vec![], one.clone(), "10.0.0.2", Some(("https://etcd.example:2379", None, here))),
            (members(), one, "10.0.0.9", Some(("https://etcd.example:2379", None, only))),
            (vec![], loopback, "10.0.0.9", Some(("http://127.0.0.1:2379", None, here))),
            (members(), vec![], "10.0.0.1", None),
        ] {
            let own = own_member(&members, None, &endpoints, &host(address));
            let got = own.as_ref().ok().map(|c| (c.url.as_str(), c.info.as_ref().map(|m| m.id), c.reason));
            assert_eq!(got, expected, "{endpoints:?} on {address}");
            if let Err(error) = own {
                assert_eq!(error.code(), Code::Config);
                assert!(error.get_remedy().is_some_and(|r| r.contains("[etcd] member")));
            }
        }
    }

    #[test]
    fn two_endpoints_of_one_member_are_one_and_of_two_are_a_question() {
        let mut known = members();
        known[0].endpoints.push("http://127.0.0.1:2379".into());
        let mut endpoints = three();
        endpoints.insert(0, endpoint("http://127.0.0.1:2379", "127.0.0.1"));
        let own = own_member(&known, None, &endpoints, &host("10.0.0.1")).expect("one member with two endpoints");
        assert_eq!(own.info.map(|m| m.id), Some(0xa1));
        // Three members on one machine.
        let local: Vec<_> = (1..=3).map(|i| endpoint(&format!("http://127.0.0.1:{i}"), "127.0.0.1")).collect();
        let error = own_member(&[], None, &local, &host("10.0.0.1")).expect_err("three to choose from");
        assert_eq!(error.code(), Code::Config);
        assert!(error.why()[0].contains("http://127.0.0.1:3"), "{:?}", error.why());
    }

    #[test]
    fn this_host_has_a_loopback_address() {
        assert!(host_addresses().expect("list addresses").iter().any(IpAddr::is_loopback));
    }
}
