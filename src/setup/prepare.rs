//! Discovers, reads the configuration, looks at the node, and makes the plan.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::decide::decide;
use super::node::{Node, below};
use super::plan::Plan;
use super::{FRAGMENT, text};
use crate::config::{Besides, Loaded, Surroundings, load_with};
use crate::discover::{Found, discover};
use crate::error::{Code, Result};
use crate::etcd::AccessFiles;
use crate::host::user::Owner;

/// A plan with what it was made from.
pub struct Prepared {
    pub plan: Plan,
    /// `None`: nothing was found, and other configuration names the endpoints.
    pub found: Option<Found>,
    /// Whose the state is: the user that services run as.
    pub owner: Option<Owner>,
    /// Our units that are started at boot.
    pub enabled: Vec<&'static str>,
    /// The configuration as it will be.
    pub loaded: Loaded,
    /// Where the credentials come from, so that they can be checked before anybody has them.
    pub access: AccessFiles,
}

/// The apiservers that an earlier run wrote: those are kept while nobody can be asked.
fn earlier(fragment: &Path) -> Vec<String> {
    let table: toml::Table =
        std::fs::read_to_string(fragment).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let list = table.get("health").and_then(|health| health.get("apiservers")).and_then(|list| list.as_array());
    list.into_iter().flatten().filter_map(|url| url.as_str().map(String::from)).collect()
}

/// Changes nothing. `apiservers`: all of the cluster; `None`: nobody could be asked. `NotFound` when nothing is found and nothing else names etcd; `Config` when the other files are
/// wrong, or when a path cannot be written into a unit.
pub fn prepare(surroundings: &Surroundings, apiservers: Option<&[String]>, now: Timestamp) -> Result<Prepared> {
    let root = &surroundings.root;
    let path = below(root, Path::new(FRAGMENT));
    let besides = Besides::read(surroundings, &path)?;
    let found = match discover(root, now) {
        Ok(found) => Some(found),
        Err(error) if error.code() == Code::NotFound && besides.origin("etcd.endpoints").is_some() => None,
        Err(error) => return Err(error),
    };
    let apiservers = apiservers.map_or_else(|| earlier(&path), <[String]>::to_vec);
    let fragment = text::fragment(found.as_ref(), &apiservers, &besides);
    let loaded = load_with(surroundings, &path, &fragment.text)?;
    let node = Node::look(root, &loaded.settings)?;
    let mut plan = decide(&fragment, &loaded.settings, &node)?;
    if let Some(found) = &found {
        plan.warnings.splice(0..0, found.warnings.iter().cloned());
        if found.member.is_none() && loaded.settings.etcd.member.is_none() {
            plan.warnings.push(
                "no member of etcd is on this host: name the one that this node takes snapshots of as [etcd] member, each \
                 node another"
                    .into(),
            );
        }
    } else {
        plan.warnings.push("nothing was found here; the endpoints are those of the configuration".into());
    }
    let etcd = &loaded.settings.etcd;
    // What will be handed over is read where it lies now.
    let file = |name: &str, configured: Option<&PathBuf>| {
        let source = fragment.credentials.iter().find(|one| one.name == name).map(|one| below(root, &one.file));
        source.or_else(|| configured.cloned())
    };
    let pair = etcd.client_cert.as_ref();
    let access = AccessFiles {
        ca_file: file("etcd.ca", etcd.ca_file.as_ref()),
        cert_file: file("etcd.cert", pair.map(|pair| &pair.cert_file)),
        key_file: file("etcd.key", pair.map(|pair| &pair.key_file)),
        username: etcd.login.as_ref().map(|login| login.username.clone()),
        password_file: etcd.login.as_ref().map(|login| login.password_file.clone()),
        timeout: etcd.timeout,
    };
    Ok(Prepared { plan, found, owner: node.owner, enabled: node.enabled, loaded, access })
}
