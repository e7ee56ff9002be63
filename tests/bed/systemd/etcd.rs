//! etcd in a systemd node: one member, laid out as kubeadm does it, or as a unit of its own.

use std::path::PathBuf;

use crate::bed::line::Line;
use crate::bed::pki::{Pair, Pki};
use crate::bed::run::Output;

use super::SystemdNode;

/// The node's own address, which a member of a real cluster would be reached by.
pub const ADDRESS: &str = "10.77.0.1";

const PKI: &str = "/etc/kubernetes/pki/etcd";

/// How etcd is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// TLS, files where kubeadm has them: manifests of static pods, `/etc/kubernetes/pki/etcd`, `/var/lib/etcd`. There
    /// is no kubelet in the bed: a unit of that name runs the one program that the manifest names.
    Kubeadm,
    /// `etcd.service`, plain HTTP on loopback, `/var/lib/etcd`.
    Plain,
}

/// A member in a node.
#[derive(Debug, Clone, Copy)]
pub struct NodeEtcd {
    pub layout: Layout,
}

/// Directory of etcd's programs, which each node sees as `/opt/etcd`.
pub(super) fn programs() -> PathBuf {
    let program = Line::V36.etcd_program();
    program.parent().expect("a program lies in a directory").to_owned()
}

impl NodeEtcd {
    /// Lays a member out in the node, has its unit start at each boot, and starts it.
    #[track_caller]
    pub fn start(node: &SystemdNode, layout: Layout) -> Self {
        let etcd = NodeEtcd { layout };
        match layout {
            Layout::Kubeadm => lay_out_kubeadm(node),
            Layout::Plain => node.write("/etc/systemd/system/etcd.service", "0644", unit("/opt/etcd/etcd", &plain())),
        }
        node.run(&["systemctl", "daemon-reload"]).ok();
        node.run(&["systemctl", "enable", "--now", etcd.unit()]).ok();
        etcd
    }

    /// The unit that runs it.
    pub fn unit(self) -> &'static str {
        match self.layout {
            Layout::Kubeadm => "kubelet.service",
            Layout::Plain => "etcd.service",
        }
    }

    pub fn endpoint(self) -> String {
        match self.layout {
            Layout::Kubeadm => format!("https://{ADDRESS}:2379"),
            Layout::Plain => "http://127.0.0.1:2379".into(),
        }
    }

    /// CA, certificate and key of a client, where there is TLS.
    pub fn client_files(self) -> Option<[String; 3]> {
        let files = ["ca.crt", "healthcheck-client.crt", "healthcheck-client.key"];
        (self.layout == Layout::Kubeadm).then(|| files.map(|file| format!("{PKI}/{file}")))
    }

    #[track_caller]
    pub fn ctl(self, node: &SystemdNode, args: &[&str]) -> Output {
        let endpoint = self.endpoint();
        let files = self.client_files();
        let mut all = vec!["/opt/etcd/etcdctl", "--endpoints", &endpoint];
        if let Some([ca, cert, key]) = &files {
            all.extend(["--cacert", ca, "--cert", cert, "--key", key]);
        }
        all.extend(args);
        node.run(&all)
    }
}

fn unit(program: &str, args: &[String]) -> String {
    format!(
        "[Unit]\nDescription=etcd of the bed\nAfter=network.target\n\n[Service]\nType=notify\n\
         ExecStartPre=-/bin/ip address replace {ADDRESS}/32 dev lo\nExecStart={program} {}\n\
         Restart=on-failure\nRestartSec=2\nTimeoutStopSec=30\nLimitNOFILE=40000\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        args.join(" ")
    )
}

fn plain() -> Vec<String> {
    let args = ["--name=cp1", "--data-dir=/var/lib/etcd", "--listen-client-urls=http://127.0.0.1:2379"];
    let args = args.into_iter().chain(["--advertise-client-urls=http://127.0.0.1:2379"]);
    args.map(str::to_owned).collect()
}

/// Flags of a kubeadm cluster's first member, as they stand in its manifest.
fn kubeadm() -> Vec<String> {
    let url = |port: u16| format!("https://{ADDRESS}:{port}");
    vec![
        format!("--advertise-client-urls={}", url(2379)),
        format!("--cert-file={PKI}/server.crt"),
        "--client-cert-auth=true".into(),
        "--data-dir=/var/lib/etcd".into(),
        format!("--initial-advertise-peer-urls={}", url(2380)),
        format!("--initial-cluster=cp1={}", url(2380)),
        format!("--key-file={PKI}/server.key"),
        format!("--listen-client-urls=https://127.0.0.1:2379,{}", url(2379)),
        "--listen-metrics-urls=http://127.0.0.1:2381".into(),
        format!("--listen-peer-urls={}", url(2380)),
        "--name=cp1".into(),
        format!("--peer-cert-file={PKI}/peer.crt"),
        "--peer-client-cert-auth=true".into(),
        format!("--peer-key-file={PKI}/peer.key"),
        format!("--peer-trusted-ca-file={PKI}/ca.crt"),
        "--snapshot-count=10000".into(),
        format!("--trusted-ca-file={PKI}/ca.crt"),
    ]
}

/// A static pod: name, program with arguments, and directories of the host that it sees.
fn manifest(name: &str, image: &str, args: &[String], mounts: &[(&str, &str)]) -> String {
    let list = |indent: &str, items: Vec<String>| items.iter().map(|i| format!("{indent}- {i}\n")).collect::<String>();
    let args: Vec<String> = std::iter::once(name.to_owned()).chain(args.iter().cloned()).collect();
    let inside: Vec<String> =
        mounts.iter().map(|(name, path)| format!("mountPath: {path}\n      name: {name}")).collect();
    let outside: Vec<String> = mounts
        .iter()
        .map(|(name, path)| format!("hostPath:\n      path: {path}\n      type: DirectoryOrCreate\n    name: {name}"))
        .collect();
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    component: {name}\n    tier: control-plane\n  \
         name: {name}\n  namespace: kube-system\nspec:\n  containers:\n  - command:\n{}    image: {image}\n    \
         name: {name}\n    volumeMounts:\n{}  hostNetwork: true\n  priorityClassName: system-node-critical\n  volumes:\n{}",
        list("    ", args),
        list("    ", inside),
        list("  ", outside)
    )
}

#[track_caller]
fn lay_out_kubeadm(node: &SystemdNode) {
    let dir = tempfile::tempdir().expect("make a temporary directory");
    let pki = Pki::make_for(dir.path(), &format!(",IP:{ADDRESS}"));
    node.copy_in(&pki.ca, &format!("{PKI}/ca.crt"), "0644");
    for (name, Pair { cert, key }) in
        [("server", &pki.server), ("peer", &pki.server), ("healthcheck-client", &pki.client)]
    {
        node.copy_in(cert, &format!("{PKI}/{name}.crt"), "0644");
        node.copy_in(key, &format!("{PKI}/{name}.key"), "0600");
    }
    let etcd = [("etcd-data", "/var/lib/etcd"), ("etcd-certs", PKI)];
    let pods = "/etc/kubernetes/manifests";
    node.write(
        &format!("{pods}/etcd.yaml"),
        "0600",
        manifest("etcd", "registry.k8s.io/etcd:3.6.16-0", &kubeadm(), &etcd),
    );
    let apiserver = [
        format!("--advertise-address={ADDRESS}"),
        format!("--etcd-cafile={PKI}/ca.crt"),
        "--etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt".into(),
        "--etcd-keyfile=/etc/kubernetes/pki/apiserver-etcd-client.key".into(),
        "--etcd-servers=https://127.0.0.1:2379".into(),
        "--secure-port=6443".into(),
    ];
    let certs = [("k8s-certs", "/etc/kubernetes/pki")];
    let image = "registry.k8s.io/kube-apiserver:v1.36.3";
    node.write(&format!("{pods}/kube-apiserver.yaml"), "0600", manifest("kube-apiserver", image, &apiserver, &certs));
    // The flags stand in a script, so that no unit of a kubeadm node looks as if it ran etcd.
    let run = format!("#!/bin/sh\nexec /opt/etcd/etcd {}\n", kubeadm().join(" "));
    node.write("/usr/local/bin/kubelet", "0755", run);
    node.write("/etc/systemd/system/kubelet.service", "0644", unit("/usr/local/bin/kubelet", &[]));
}
