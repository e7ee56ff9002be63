//! This node's Lease `kube-system/refloat-<node>`: what probes read and renew. Nobody else looks at it.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{Api, PostParams};

use super::client::Client;
use crate::error::{Code, Result};

pub const NAMESPACE: &str = "kube-system";

/// `refloat-cp1`.
pub fn name(node: &str) -> String {
    format!("refloat-{node}")
}

/// For calls of one's own.
pub fn api(client: &Client) -> Api<Lease> {
    Api::namespaced(client.inner(), NAMESPACE)
}

/// Read through etcd, not from the apiserver's cache; `None`: it is not there.
pub async fn read(client: &Client, node: &str) -> Result<Option<Lease>> {
    let name = name(node);
    client.call(&format!("read lease {NAMESPACE}/{name}"), api(client).get_opt(&name)).await
}

/// Makes it; one that is there stays as it is.
pub async fn create(client: &Client, node: &str) -> Result<()> {
    let name = name(node);
    let mut lease = Lease {
        spec: Some(LeaseSpec { holder_identity: Some(node.into()), ..Default::default() }),
        ..Default::default()
    };
    lease.metadata.name = Some(name.clone());
    lease.metadata.labels = Some([("app.kubernetes.io/name".to_string(), "refloat".to_string())].into());
    let api = api(client);
    let params = PostParams::default();
    match client.call(&format!("create lease {NAMESPACE}/{name}"), api.create(&params, &lease)).await {
        Err(e) if e.code() == Code::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}
