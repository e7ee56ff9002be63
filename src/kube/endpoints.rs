//! All apiservers of the cluster, as they name themselves: the endpoints of the service default/kubernetes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};

use super::client::Client;
use crate::error::Result;

/// `https://address:port` each, sorted. An apiserver that died leaves the list after some fifteen seconds.
pub async fn apiservers(client: &Client) -> Result<Vec<String>> {
    let api: Api<EndpointSlice> = Api::namespaced(client.inner(), "default");
    let params = ListParams::default().labels("kubernetes.io/service-name=kubernetes").limit(100);
    let slices = client.call("list the apiservers", api.list(&params)).await?;
    Ok(urls(&slices.items))
}

fn urls(slices: &[EndpointSlice]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for slice in slices {
        let ports = || slice.ports.iter().flatten().filter(|port| port.name.as_deref() == Some("https"));
        let addresses = slice.endpoints.iter().flatten().flat_map(|endpoint| &endpoint.addresses);
        for address in addresses.filter_map(|text| text.parse::<IpAddr>().ok()) {
            for port in ports().filter_map(|port| u16::try_from(port.port?).ok()) {
                // Brackets for IPv6.
                found.insert(format!("https://{}", std::net::SocketAddr::new(address, port)));
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_address_with_the_port_called_https() {
        let slice = |addresses: &[&str], port: &str| {
            let value = json!({
                "addressType": "IPv4", "metadata": { "name": "kubernetes" },
                "endpoints": [{ "addresses": addresses }],
                "ports": [{ "name": port, "port": 6443, "protocol": "TCP" }],
            });
            serde_json::from_value::<EndpointSlice>(value).unwrap()
        };
        let slices = [
            slice(&["10.0.0.2", "10.0.0.1", "x"], "https"),
            slice(&["fd00::1"], "https"),
            slice(&["10.0.0.9"], "http"),
        ];
        assert_eq!(urls(&slices), ["https://10.0.0.1:6443", "https://10.0.0.2:6443", "https://[fd00::1]:6443"]);
        assert!(urls(&[]).is_empty());
    }
}
