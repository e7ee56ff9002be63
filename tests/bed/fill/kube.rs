//! Objects as an apiserver stores them: the prefix `k8s\0`, then `runtime.Unknown` around the object, both in
//! protobuf. Field numbers are those of k8s.io/api and k8s.io/apimachinery (generated.proto).

use bytes::Bytes;

use super::super::proto::Message;
use super::super::rng::Rng;
use super::text::text;

/// A fixed moment, so that the same seed gives the same bytes: 2025-10-09 08:53:20 UTC.
const BORN: u64 = 1_760_000_000;

fn envelope(api_version: &'static str, kind: &'static str, object: Message) -> Bytes {
    let unknown = Message::default()
        .with_message(1, Message::default().with(1, api_version).with(2, kind))
        .with(2, object.encode())
        .with(3, "")
        .with(4, "");
    [b"k8s\0", &*unknown.encode()].concat().into()
}

fn meta(name: &str, namespace: &str, uid: &str, labels: &[(&str, &str)]) -> Message {
    let mut meta = Message::default()
        .with(1, name.to_owned())
        .with(2, "")
        .with(3, namespace.to_owned())
        .with(4, "")
        .with(5, uid.to_owned())
        .with(6, "")
        .with_number(7, 0)
        .with_message(8, Message::default().with_number(1, BORN).with_number(2, 0));
    for (key, value) in labels {
        meta = meta.with_message(11, Message::default().with(1, (*key).to_owned()).with(2, (*value).to_owned()));
    }
    meta
}

pub fn namespace(name: &str, uid: &str) -> Bytes {
    let object = Message::default()
        .with_message(1, meta(name, "", uid, &[("kubernetes.io/metadata.name", name)]))
        .with_message(2, Message::default().with(1, "kubernetes"))
        .with_message(3, Message::default().with(1, "Active"));
    envelope("v1", "Namespace", object)
}

/// `round` counts what the kubelet reported so far.
pub fn pod(name: &str, namespace: &str, uid: &str, node: &str, round: u64, rng: &mut Rng) -> Bytes {
    let container = Message::default().with(1, "app").with(2, format!("registry.example.org/app:{}", rng.hex(12)));
    let size = 600 + rng.below(1800) as usize;
    let environment = Message::default().with(1, "CONFIG").with(2, text(rng, size));
    let spec = Message::default()
        .with_message(2, container.with_message(7, environment))
        .with(3, "Always")
        .with(8, "default")
        .with(10, node.to_owned());
    let condition = Message::default().with(1, "Ready").with(2, if round > 0 { "True" } else { "False" });
    let status = Message::default()
        .with(1, if round > 0 { "Running" } else { "Pending" })
        .with_message(2, condition.with_message(3, Message::default().with_number(1, BORN + round)))
        .with(6, format!("10.244.{}.{}", rng.below(256), rng.below(256)));
    let labels = [("app", "demo"), ("pod-template-hash", "5d4f8c7b9")];
    let object = Message::default().with_message(1, meta(name, namespace, uid, &labels));
    envelope("v1", "Pod", object.with_message(2, spec).with_message(3, status))
}

pub fn config_map(name: &str, namespace: &str, uid: &str, rng: &mut Rng) -> Bytes {
    let mut object = Message::default().with_message(1, meta(name, namespace, uid, &[]));
    for _ in 0..=rng.below(3) {
        let (file, size) = (format!("{}.conf", rng.hex(5)), 200 + rng.below(3000) as usize);
        object = object.with_message(2, Message::default().with(1, file).with(2, text(rng, size)));
    }
    envelope("v1", "ConfigMap", object)
}

/// A node's heartbeat, renewed `round` times.
pub fn lease(node: &str, uid: &str, round: u64) -> Bytes {
    let renewed = Message::default().with_number(1, BORN + 10 * round).with_number(2, 0);
    let spec = Message::default().with(1, node.to_owned()).with_number(2, 40).with_message(4, renewed);
    let object = Message::default().with_message(1, meta(node, "kube-node-lease", uid, &[])).with_message(2, spec);
    envelope("coordination.k8s.io/v1", "Lease", object)
}

pub fn event(name: &str, namespace: &str, uid: &str, pod: &str, rng: &mut Rng) -> Bytes {
    let involved = Message::default().with(1, "Pod").with(2, namespace.to_owned()).with(3, pod.to_owned());
    let size = 60 + rng.below(200) as usize;
    let object = Message::default()
        .with_message(1, meta(name, namespace, uid, &[]))
        .with_message(2, involved)
        .with(3, *rng.pick(&["Scheduled", "Pulled", "Created", "Started", "Unhealthy"]))
        .with(4, text(rng, size));
    envelope("v1", "Event", object)
}
