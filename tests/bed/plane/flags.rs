//! The flags of a member and of an apiserver, as kubeadm sets them.

use super::node::Plan;
use super::pki::KubePki;
use super::{API_PORT, CLIENT_PORT, METRICS_PORT, PEER_PORT};

/// `cluster` is the initial cluster: names and peer URLs.
pub(super) fn member(plan: &Plan, pki: &KubePki, cluster: &str, more: &[String]) -> Vec<String> {
    let Plan { name, address, .. } = plan;
    let listen = |port| format!("https://{address}:{port}");
    let mut args = vec![
        format!("--name={name}"),
        format!("--data-dir={}", plan.data.path().join("data").display()),
        format!("--listen-client-urls=https://127.0.0.1:{CLIENT_PORT},{}", listen(CLIENT_PORT)),
        format!("--advertise-client-urls={}", listen(CLIENT_PORT)),
        format!("--listen-peer-urls={}", listen(PEER_PORT)),
        format!("--initial-advertise-peer-urls={}", listen(PEER_PORT)),
        format!("--initial-cluster={cluster}"),
        "--initial-cluster-state=new".into(),
        // Also for others, because Prometheus asks from elsewhere.
        format!("--listen-metrics-urls=http://127.0.0.1:{METRICS_PORT},http://{address}:{METRICS_PORT}"),
    ];
    if let Some(wal) = &plan.wal {
        args.push(format!("--wal-dir={}", wal.path().join("wal").display()));
    }
    let server = &pki.etcd.server;
    for side in ["", "peer-"] {
        args.push(format!("--{side}client-cert-auth"));
        args.push(format!("--{side}trusted-ca-file={}", pki.etcd.ca.display()));
        args.push(format!("--{side}cert-file={}", server.cert.display()));
        args.push(format!("--{side}key-file={}", server.key.display()));
    }
    args.extend_from_slice(more);
    args
}

/// `etcd` is the list of members that it asks.
pub(super) fn apiserver(plan: &Plan, pki: &KubePki, etcd: &str, more: &[String]) -> Vec<String> {
    let client = &pki.etcd.client;
    let mut args = vec![
        "--bind-address=0.0.0.0".into(),
        format!("--secure-port={API_PORT}"),
        format!("--advertise-address={}", plan.address),
        format!("--etcd-servers={etcd}"),
        format!("--etcd-cafile={}", pki.etcd.ca.display()),
        format!("--etcd-certfile={}", client.cert.display()),
        format!("--etcd-keyfile={}", client.key.display()),
        format!("--client-ca-file={}", pki.ca.cert.display()),
        format!("--tls-cert-file={}", pki.apiserver.cert.display()),
        format!("--tls-private-key-file={}", pki.apiserver.key.display()),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", pki.accounts.cert.display()),
        format!("--service-account-signing-key-file={}", pki.accounts.key.display()),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        // Pods without the controller that makes accounts for them.
        "--disable-admission-plugins=ServiceAccount".into(),
    ];
    args.extend_from_slice(more);
    args
}
