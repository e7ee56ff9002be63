//! Just enough of a stored Kubernetes object to show what it is.
//!
//! Stored forms: protobuf (`k8s\0` + runtime.Unknown {typeMeta=1 {apiVersion=1, kind=2}, raw=2}, where raw is
//! the object with metadata=1 {name=1, namespace=3, uid=5}), JSON (custom resources), or encrypted at rest
//! (`k8s:enc:<provider>:…`). Source: apimachinery `runtime/serializer/protobuf`, `meta/v1/generated.proto`.

use super::proto::bytes_field;
use serde::Deserialize;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    Object(Object),
    /// Encrypted at rest; the provider, such as "aescbc".
    Encrypted(String),
    /// Not a Kubernetes object, or a damaged one.
    Other,
}

#[derive(Deserialize)]
struct JsonObject {
    #[serde(default, rename = "apiVersion")]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: JsonMetadata,
}

#[derive(Default, Deserialize)]
struct JsonMetadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    uid: String,
}

/// Says what a value holds.
pub fn decode(value: &[u8]) -> Stored {
    if let Some(rest) = value.strip_prefix(b"k8s:enc:") {
        let provider = rest.split(|b| *b == b':').next().unwrap_or_default();
        return Stored::Encrypted(String::from_utf8_lossy(provider).into_owned());
    }
    if let Some(unknown) = value.strip_prefix(b"k8s\0") {
        return protobuf(unknown).map_or(Stored::Other, Stored::Object);
    }
    if value.first() == Some(&b'{') {
        return match serde_json::from_slice::<JsonObject>(value) {
            Ok(o) if !o.kind.is_empty() => Stored::Object(Object {
                api_version: o.api_version,
                kind: o.kind,
                namespace: o.metadata.namespace,
                name: o.metadata.name,
                uid: o.metadata.uid,
            }),
            _ => Stored::Other,
        };
    }
    Stored::Other
}

fn protobuf(unknown: &[u8]) -> Option<Object> {
    let text = |message: &[u8], number| {
        bytes_field(message, number).map(|b| String::from_utf8_lossy(b).into_owned()).unwrap_or_default()
    };
    let type_meta = bytes_field(unknown, 1)?;
    let metadata = bytes_field(bytes_field(unknown, 2)?, 1).unwrap_or_default();
    Some(Object {
        api_version: text(type_meta, 1),
        kind: text(type_meta, 2),
        namespace: text(metadata, 3),
        name: text(metadata, 1),
        uid: text(metadata, 5),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decodes_each_form() {
        let json = br#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"u-1"}}"#;
        let Stored::Object(object) = decode(json) else { panic!("json") };
        assert_eq!((object.kind.as_str(), object.uid.as_str()), ("Namespace", "u-1"));

        let mut message = b"k8s\0".to_vec();
        message.extend([0x0a, 7, 0x0a, 2, b'v', b'1', 0x12, 1, b'N']);
        message.extend([0x12, 9, 0x0a, 7, 0x0a, 1, b'a', 0x2a, 2, b'i', b'd']);
        let Stored::Object(object) = decode(&message) else { panic!("protobuf") };
        assert_eq!((object.kind.as_str(), object.name.as_str(), object.uid.as_str()), ("N", "a", "id"));

        assert_eq!(decode(b"k8s:enc:aescbc:v1:key1:xx"), Stored::Encrypted("aescbc".into()));
        assert_eq!(decode(b"plain"), Stored::Other);
        assert_eq!(decode(b"{}"), Stored::Other);
        assert_eq!(decode(b"k8s\0\x0a\xff"), Stored::Other);
    }

    proptest! {
        #[test]
        fn never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(&bytes);
            bytes.splice(0..0, *b"k8s\0");
            let _ = decode(&bytes);
        }
    }
}
