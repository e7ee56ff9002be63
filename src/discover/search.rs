//! Which members and apiservers are on this host, by layout, and which of several members is the one.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::fact::{Fact, Source};
use super::files::Files;
use super::found::{Layout, Other};
use super::member::{Member, Run};
use super::options::{of_config_file, yaml};
use super::{pod, unit};

const ETCD: &str = "etcd";
const APISERVER: &str = "kube-apiserver";
/// kubekey keeps its scripts here; kubespray has no such folder.
const KUBEKEY: &str = "/usr/local/bin/kube-scripts";
const ETCD_ENV: &str = "/etc/etcd.env";

/// Everything that runs etcd or an apiserver.
#[derive(Default)]
pub struct Search {
    pub members: Vec<(Layout, Member)>,
    pub apiservers: Vec<Member>,
    /// Unit files that were read, which are not named one by one.
    pub units: usize,
}

impl Search {
    pub fn run(files: &mut Files) -> Search {
        let mut search = Search::default();
        for folder in pod::folders(files) {
            search.pods(files, &folder, Layout::Kubeadm);
        }
        search.rancher(files, Layout::Rke2);
        search.rancher(files, Layout::K3s);
        let (units, count) = unit::running(files, &[ETCD, APISERVER]);
        search.units = count;
        for (program, unit) in units {
            let member = Member::of_unit(files, unit, program == ETCD);
            if program == APISERVER {
                search.apiservers.push(member);
                continue;
            }
            let by_env = member.environment_files.iter().any(|path| path == Path::new(ETCD_ENV));
            let layout = match by_env {
                true if files.is_dir(Path::new(KUBEKEY)) => Layout::Kubekey,
                true => Layout::Kubespray,
                false => Layout::Plain,
            };
            search.members.push((layout, member));
        }
        search
    }

    fn pods(&mut self, files: &mut Files, folder: &Path, layout: Layout) {
        for pod in pod::running(files, folder, &[ETCD, APISERVER]) {
            let is_etcd = pod.program == ETCD;
            let member = Member::of_pod(files, pod);
            if is_etcd { self.members.push((layout, member)) } else { self.apiservers.push(member) }
        }
    }

    /// Both keep etcd's configuration file below their data directory; RKE2 runs it as a static pod, k3s in its own
    /// process.
    fn rancher(&mut self, files: &mut Files, layout: Layout) {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "kebab-case")]
        struct Config {
            data_dir: Option<PathBuf>,
        }
        let product = layout.word();
        let config = PathBuf::from(format!("/etc/rancher/{product}/config.yaml"));
        let mut base = PathBuf::from(format!("/var/lib/rancher/{product}"));
        if let Some(text) = files.text(&config) {
            match yaml::<Config>(&text) {
                Ok(Config { data_dir }) => base = data_dir.filter(|dir| dir.is_absolute()).unwrap_or(base),
                Err(why) => files.unusable(&config, why),
            }
        }
        let before = self.members.len();
        if layout == Layout::Rke2 {
            self.pods(files, &base.join("agent/pod-manifests"), layout);
        }
        let path = base.join("server/db/etcd/config");
        let Some(text) = files.text(&path).filter(|_| self.members.len() == before) else { return };
        match of_config_file(&text, &Source::file(&path)) {
            Ok(options) => {
                let unit = if layout == Layout::Rke2 { "rke2-server.service" } else { "k3s.service" };
                let run = Fact::new(Run::Unit { name: unit.into() }, Source::file(&path));
                self.members.push((layout, Member::embedded(run, options)));
            }
            Err(why) => files.unusable(&path, why),
        }
    }
}

/// What speaks for a member, the strongest reason first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    used: bool,
    has_data: bool,
    enabled: bool,
}

/// The member that is meant, and the others with what it has and they have not.
pub fn choose(
    files: &Files,
    mut members: Vec<(Layout, Member)>,
    servers: &[String],
) -> (Option<(Layout, Member)>, Vec<Other>) {
    let score = |member: &Member| Score {
        used: member.client_urls().is_some_and(|urls| servers.iter().any(|server| is_same(server, &urls.value))),
        has_data: member.data_dir().is_some_and(|dir| files.is_dir(&dir.value.join("member"))),
        enabled: member.enabled,
    };
    // Stable: of equals the first layout of the table stays first.
    members.sort_by_key(|(layout, member)| (std::cmp::Reverse(score(member)), *layout));
    let mut members = members.into_iter();
    let Some((layout, chosen)) = members.next() else { return (None, Vec::new()) };
    let best = score(&chosen);
    let other = |(layout, member): (Layout, Member)| {
        let run = &chosen.run.value;
        let why = match score(&member) {
            one if one.used != best.used => format!("the apiserver uses {run}, not this one"),
            one if one.has_data != best.has_data => format!("its data directory holds no member, that of {run} does"),
            one if one.enabled != best.enabled => format!("nothing starts it at boot; {run} is started"),
            _ => format!("nothing tells which is meant, and {run} comes first in the order of layouts"),
        };
        Other { layout, run: member.run, why }
    };
    let others = members.map(other).collect();
    (Some((layout, chosen)), others)
}

/// Whether a URL of the apiserver leads to one of these: the same, or this host by its loopback address and port.
pub fn is_same(server: &str, urls: &[String]) -> bool {
    let port = |url: &str| url.rsplit_once(':').map(|(_, port)| port.trim_end_matches('/').to_string());
    let trimmed = server.trim_end_matches('/');
    urls.iter().any(|url| url.trim_end_matches('/') == trimmed || (is_loopback(server) && port(url) == port(server)))
}

/// Only this host can use it.
pub fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"].iter().any(|own| host.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_port_are_this_host() {
        let urls = ["https://10.0.0.1:2379".to_string()];
        for (server, same) in [
            ("https://10.0.0.1:2379", true),
            ("https://10.0.0.1:2379/", true),
            ("https://127.0.0.1:2379", true),
            ("https://localhost:2379", true),
            ("https://127.0.0.1:2381", false),
            ("https://10.0.0.2:2379", false),
        ] {
            assert_eq!(is_same(server, &urls), same, "{server}");
        }
    }
}
