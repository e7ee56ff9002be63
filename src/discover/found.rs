//! What was found on this node, with its evidence.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::certificates::ClientFiles;
use super::fact::Fact;
use super::files::Look;
use super::member::Run;

/// How the cluster was built, as far as it matters where things lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// etcd as a static pod beside the apiserver.
    Kubeadm,
    Rke2,
    K3s,
    /// A unit with `/etc/etcd.env`.
    Kubekey,
    Kubespray,
    /// Any other unit that runs etcd.
    Plain,
    /// An apiserver whose etcd is elsewhere.
    External,
}

impl Layout {
    pub fn word(self) -> &'static str {
        match self {
            Layout::Kubeadm => "kubeadm",
            Layout::Rke2 => "rke2",
            Layout::K3s => "k3s",
            Layout::Kubekey => "kubekey",
            Layout::Kubespray => "kubespray",
            Layout::Plain => "plain",
            Layout::External => "external",
        }
    }
}

/// Everything that the files of this node tell.
#[derive(Debug, Clone)]
pub struct Found {
    pub layout: Layout,
    /// The member on this host.
    pub member: Option<LocalMember>,
    pub apiserver: Option<ApiServer>,
    /// Client URLs of the cluster, the own member's first.
    pub endpoints: Vec<Fact<String>>,
    /// `None`: etcd is reached without certificates, or none was found.
    pub client: Option<ClientFiles>,
    /// Members that were found as well, and why they are not the one.
    pub others: Vec<Other>,
    /// What a person should read.
    pub warnings: Vec<String>,
    pub looked: BTreeMap<PathBuf, Look>,
}

#[derive(Debug, Clone)]
pub struct LocalMember {
    pub run: Fact<Run>,
    pub name: Option<Fact<String>>,
    /// As clients are told to use them, else as it listens.
    pub client_urls: Option<Fact<Vec<String>>>,
    pub peer_urls: Option<Fact<Vec<String>>>,
    /// `name=peer URL` of each member: no client can use them.
    pub initial_cluster: Option<Fact<Vec<String>>>,
    pub data_dir: Option<Fact<PathBuf>>,
    pub wal_dir: Option<Fact<PathBuf>>,
    /// Of the data directory, such as `ext4`.
    pub file_system: Option<Fact<String>>,
}

#[derive(Debug, Clone)]
pub struct ApiServer {
    pub run: Fact<Run>,
    pub etcd_servers: Option<Fact<Vec<String>>>,
    /// It uses this host's member alone: when that hangs, this apiserver does.
    pub local_only: bool,
    pub prefix: Option<Fact<String>>,
    /// A second etcd, for events: named, not backed up.
    pub events: Option<Fact<String>>,
}

/// A member that was found and not chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Other {
    pub layout: Layout,
    pub run: Fact<Run>,
    pub why: String,
}
