//! Refloat's own identity in Kubernetes: what is missing of it, then the same done. Asked for once, as an administrator:
//! roles, a client certificate of user refloat whose key never leaves this host, this node's Lease.
//!
//! Run again it finds all of it and does nothing; a certificate is kept while more than a third of its life is left.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use url::{Host, Url};

use super::node::below;
use crate::error::{Code, Error, Result};
use crate::etcd::host_addresses;
use crate::fs::Dir;
use crate::host::user::Owner;
use crate::kube::apply::{Manifest, rbac};
use crate::kube::{Access, Client, endpoints, kubeconfig, lease, signing};

/// Ours, with the certificate in it.
pub const KUBECONFIG: &str = "/etc/refloat/kubeconfig";
/// Where an administrator's lies: kubeadm, RKE2, k3s.
pub const ADMIN: [&str; 3] = ["/etc/kubernetes/admin.conf", "/etc/rancher/rke2/rke2.yaml", "/etc/rancher/k3s/k3s.yaml"];

/// Each call. An apiserver that is well answers in milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A certificate with less of its life left, in percent, is replaced.
const KEPT: i64 = 30;

/// What the cluster has, and what it lacks.
pub struct Cluster {
    admin: Access,
    client: Client,
    node: String,
    /// Each as `https://address:port`.
    pub apiservers: Vec<String>,
    /// This node's own, else the administrator's.
    pub server: String,
    /// Roles that are missing or not as they are to be.
    pub apply: Vec<Manifest>,
    /// Why a certificate has to be made; `None`: it is there.
    pub certificate: Option<String>,
    /// Whether this node's Lease has to be made.
    pub lease: bool,
    pub warnings: Vec<String>,
}

impl Cluster {
    /// Reads the administrator's kubeconfig and looks; changes nothing.
    pub async fn look(root: &Path, admin: &Path, node: &str, now: Timestamp) -> Result<Cluster> {
        let access = Access::read(admin)?;
        let client = Client::new(&access, TIMEOUT).await?;
        let apiservers = endpoints::apiservers(&client).await?;
        let mut warnings = Vec::new();
        let host = host_addresses()?;
        let own = apiservers.iter().find(|url| {
            let address = Url::parse(url).ok().and_then(|url| url.host().map(|host| host.to_owned()));
            host.iter().any(|own| match (own, &address) {
                (std::net::IpAddr::V4(own), Some(Host::Ipv4(address))) => own == address,
                (std::net::IpAddr::V6(own), Some(Host::Ipv6(address))) => own == address,
                _ => false,
            })
        });
        let server = own.cloned().unwrap_or_else(|| {
            warnings.push(format!(
                "no apiserver of the cluster has an address of this host ({}): the identity is made for {}",
                apiservers.join(", "),
                access.server()
            ));
            access.server().to_string()
        });
        // What is asked from here on is asked of the apiserver that the identity is for.
        let admin = if server == access.server() { access } else { access.with_server(&server) };
        let client = Client::new(&admin, TIMEOUT).await?;
        let mut apply = Vec::new();
        for manifest in rbac(node)? {
            if !manifest.is_there(&client).await? {
                apply.push(manifest);
            }
        }
        let lease = lease::read(&client, node).await?.is_none();
        let certificate = wanting(Access::read(&below(root, Path::new(KUBECONFIG))), &admin, now)?;
        Ok(Cluster { admin, client, node: node.into(), apiservers, server, apply, certificate, lease, warnings })
    }

    /// Each step in words.
    pub fn steps(&self) -> Vec<String> {
        let mut steps: Vec<String> = self.apply.iter().map(|one| format!("apply {}", one.shown())).collect();
        if let Some(why) = &self.certificate {
            steps.push(format!(
                "get a client certificate for user {} from {}, into {KUBECONFIG}: {why}",
                crate::kube::USER,
                self.server
            ));
        }
        if self.lease {
            steps.push(format!("create lease {}/{}", lease::NAMESPACE, lease::name(&self.node)));
        }
        steps
    }

    /// Does them in that order; what is done stays done when a later one fails. `owner`: whose group may read the key.
    pub async fn act(&self, root: &Path, owner: Option<&Owner>) -> Result<()> {
        for manifest in &self.apply {
            manifest.apply(&self.client).await?;
        }
        if self.certificate.is_some() {
            let issued = signing::issue(&self.client, &self.node).await?;
            let text = kubeconfig::ours(&self.server, &self.admin.authority()?, &issued.certificate, &issued.key);
            let path = below(root, Path::new(KUBECONFIG));
            let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
                return Err(Error::new(Code::Internal, "write", KUBECONFIG));
            };
            let folder = Dir::open(folder)?;
            match owner {
                Some(owner) => folder.replace_for_group(name, text.as_bytes(), owner.gid)?,
                None => folder.replace(name, text.as_bytes())?,
            }
        }
        if self.lease {
            lease::create(&self.client, &self.node).await?;
        }
        Ok(())
    }
}

/// Why our kubeconfig does not do; `None`: it does.
fn wanting(ours: Result<Access>, admin: &Access, now: Timestamp) -> Result<Option<String>> {
    let ours = match ours {
        Ok(ours) => ours,
        Err(e) if e.code() == Code::NotFound => return Ok(Some("there is none".into())),
        Err(e) if e.code() == Code::Permission => return Err(e),
        Err(e) => return Ok(Some(format!("the one that is there cannot be used: {}", e.line()))),
    };
    if ours.server() != admin.server() {
        return Ok(Some(format!("the one that is there is for {}", ours.server())));
    }
    if ours.authority().ok() != Some(admin.authority()?) {
        return Ok(Some("the certificate authority of the cluster is another one now".into()));
    }
    Ok(match ours.lifetime() {
        None => Some("the one that is there holds no certificate".into()),
        Some((from, to)) => {
            let (life, left) = (to.as_second() - from.as_second(), to.as_second() - now.as_second());
            let days = |seconds: i64| seconds.max(0) / 86_400;
            (left <= life / 100 * KEPT).then(|| format!("{} of {} days are left", days(left), days(life)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &[u8] = include_bytes!("testdata/client.crt");

    fn access(server: &str, authority: &[u8], certificate: &[u8]) -> Access {
        Access::parse(&kubeconfig::ours(server, authority, certificate, b"KEY"), "k", None).unwrap()
    }

    #[test]
    fn a_certificate_is_kept_while_a_third_of_its_life_is_left() {
        const URL: &str = "https://10.0.0.1:6443";
        let good = || access(URL, b"CA", CERTIFICATE);
        let (from, to) = good().lifetime().unwrap();
        let at = |percent: i64| {
            let second = from.as_second() + (to.as_second() - from.as_second()) / 100 * percent;
            Timestamp::from_second(second).unwrap()
        };
        let refused = || Err(Error::new(Code::Config, "use kubeconfig", "k").because("it goes through a proxy"));
        let missing = || Err(Error::new(Code::NotFound, "read kubeconfig", "k"));
        for (ours, percent, why) in [
            (Ok(good()), 1, None),
            (Ok(good()), 69, None),
            (Ok(good()), 71, Some("of 365 days are left")),
            (Ok(good()), 150, Some("0 of 365 days are left")),
            (Ok(access("https://10.0.0.2:6443", b"CA", CERTIFICATE)), 1, Some("is for https://10.0.0.2:6443")),
            (Ok(access(URL, b"OLD", CERTIFICATE)), 1, Some("is another one now")),
            (Ok(access(URL, b"CA", b"nothing")), 1, Some("holds no certificate")),
            (refused(), 1, Some("it goes through a proxy")),
            (missing(), 1, Some("there is none")),
        ] {
            let found = wanting(ours, &good(), at(percent)).unwrap();
            match why {
                None => assert_eq!(found, None, "{percent}"),
                Some(why) => assert!(found.as_ref().is_some_and(|found| found.contains(why)), "{why}: {found:?}"),
            }
        }
        let forbidden = Err(Error::new(Code::Permission, "read kubeconfig", "k"));
        assert_eq!(wanting(forbidden, &good(), at(1)).unwrap_err().code(), Code::Permission);
    }
}
