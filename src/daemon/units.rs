//! The units of etcd, kubelet and the container runtime, as systemd tells them.

use super::Shared;

pub(super) async fn watch(shared: Shared) {
    shared.stop.cancelled().await;
}
