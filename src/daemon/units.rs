//! The units of etcd, kubelet and the container runtime, as systemd tells them.

use tokio::sync::mpsc;

use super::Shared;
use crate::host::units::{UnitReport, watch as watch_units};

/// Those that a control-plane node may have; what is not there is not shown.
const UNITS: &[&str] = &[
    "etcd.service",
    "kubelet.service",
    "containerd.service",
    "crio.service",
    "docker.service",
    "rke2-server.service",
    "k3s.service",
];

pub(super) async fn watch(shared: Shared) {
    let (sender, mut reports) = mpsc::channel(UNITS.len());
    let units = UNITS.iter().map(|unit| unit.to_string()).collect();
    tokio::spawn(watch_units(units, None, sender, shared.stop.clone()));
    while let Some(report) = reports.recv().await {
        shared.facts.send_modify(|facts| match report {
            UnitReport::Unit(unit) => {
                facts.no_bus = None;
                facts.units.insert(unit.name.clone(), unit);
            }
            // What was seen before may have changed since.
            UnitReport::Absent { why } => {
                facts.units.clear();
                facts.no_bus = Some(why);
            }
        });
    }
}
