//! The one Lease of this node: its name, its document, and what an answer about it holds.
//!
//! It is fixed and named so that everybody can see whose it is: `refloat-<node>` in `kube-system`. Nothing waits for it
//! and nobody leads by it.

use jiff::Timestamp;
use serde_json::{Value, json};

pub const NAMESPACE: &str = "kube-system";
/// What is written between two packets' worth: more than any MTU.
const PADDING: usize = 16 << 10;
/// The annotation that holds it.
const PADDED: &str = "refloat/padding";
const COLLECTION: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// `refloat-cp1`.
pub fn name(node: &str) -> String {
    format!("refloat-{node}")
}

/// Where it is made.
pub fn collection() -> &'static str {
    COLLECTION
}

/// Where it is read and renewed. With `cached` the apiserver answers from memory, else it asks etcd.
pub fn path(node: &str, cached: bool) -> String {
    let query = if cached { "?resourceVersion=0" } else { "" };
    format!("{COLLECTION}/{}{query}", name(node))
}

/// A Lease as the apiserver has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lease {
    /// Of the whole cluster's history, as etcd counts it.
    pub revision: u64,
    document: Value,
}

impl Lease {
    /// `None` for anything else.
    pub fn read(body: &[u8]) -> Option<Lease> {
        let mut document: Value = serde_json::from_slice(body).ok()?;
        let revision = document.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()?;
        // Written by the apiserver, and of no use here.
        document.get_mut("metadata")?.as_object_mut()?.remove("managedFields");
        Some(Lease { revision, document })
    }

    /// The document that renews it: as it is, with a new time; `large`: padded.
    pub fn renewed(&self, node: &str, now: Timestamp, large: bool) -> Vec<u8> {
        let mut document = self.document.clone();
        document["spec"] = spec(node, now);
        if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.remove(PADDED);
                if large {
                    annotations.insert(PADDED.into(), "x".repeat(PADDING).into());
                }
            }
        }
        document.to_string().into_bytes()
    }
}

/// The document that makes it.
pub fn first(node: &str, now: Timestamp) -> Vec<u8> {
    let document = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": name(node), "namespace": NAMESPACE },
        "spec": spec(node, now),
    });
    document.to_string().into_bytes()
}

fn spec(node: &str, now: Timestamp) -> Value {
    json!({
        "holderIdentity": node,
        "leaseDurationSeconds": 40,
        "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_lease_keeps_what_others_wrote_and_loses_its_padding() {
        assert_eq!(
            path("cp1", true),
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/refloat-cp1?resourceVersion=0"
        );
        let body = br#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"refloat-cp1",
            "labels":{"a":"b"},"resourceVersion":"42","managedFields":[{}]},"spec":{"leaseTransitions":3}}"#;
        let lease = Lease::read(body).unwrap();
        assert_eq!(lease.revision, 42);
        let now = at("2026-12-01T00:00:00.5Z");
        let large = lease.renewed("cp1", now, true);
        assert!(large.len() > PADDING);
        let again: Value = serde_json::from_slice(&large).unwrap();
        assert_eq!(again["metadata"]["labels"]["a"], "b");
        assert_eq!(
            (&again["metadata"]["resourceVersion"], &again["metadata"]["managedFields"]),
            (&"42".into(), &Value::Null)
        );
        assert_eq!(again["spec"]["renewTime"], "2026-12-01T00:00:00.500000Z");
        let small = Lease::read(&large).unwrap().renewed("cp1", now, false);
        assert!(small.len() < 1024, "{}", small.len());
    }

    #[test]
    fn what_is_no_lease_is_none() {
        for body in ["", "{}", "[]", r#"{"metadata":{"resourceVersion":"x"}}"#, r#"{"metadata":{"resourceVersion":7}}"#]
        {
            assert_eq!(Lease::read(body.as_bytes()), None, "{body}");
        }
        let first: Value = serde_json::from_slice(&first("cp1", at("2026-12-01T00:00:00Z"))).unwrap();
        assert_eq!((&first["metadata"]["name"], &first["kind"]), (&"refloat-cp1".into(), &"Lease".into()));
    }
}
