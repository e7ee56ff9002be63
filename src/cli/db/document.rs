//! What the db commands print. `db check` prints the document of `snapshot verify`.

use serde::{Serialize, Serializer};

use crate::cli::list::Row;
use crate::cli::output::{self, Document, fields, printable, table};
use crate::format::check::Content;
use crate::format::{buckets, keyspace, kubernetes};
use crate::snapshot::judge::Trailer;
use crate::store::Form;

/// `db inspect`.
#[derive(Debug, Serialize)]
pub struct InspectDocument {
    pub schema: u32,
    pub file: String,
    /// `plain` or `zstd`.
    pub codec: String,
    /// Bytes of the database without trailer, decompressed.
    pub size: u64,
    /// Bytes that are not on free pages.
    pub in_use: Option<u64>,
    /// Whether a SHA-256 trailer follows the database.
    pub trailer: bool,
    /// Bytes.
    pub page_size: u32,
    pub pages: u64,
    /// bbolt's transaction number.
    pub txid: u64,
    pub revision: u64,
    /// 0: never compacted.
    pub compact_revision: u64,
    /// Live keys at `revision`.
    pub keys: u64,
    /// Rows of all revisions, tombstones too.
    pub rows: u64,
    pub leases: u64,
    pub members: Vec<MemberRow>,
    pub alarms: Vec<String>,
    pub cluster_version: Option<String>,
    pub storage_version: Option<String>,
    pub term: Option<u64>,
    pub index: Option<u64>,
    /// What is wrong with the file; `db check` names it.
    pub findings: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberRow {
    /// Hex.
    pub id: String,
    pub name: String,
    pub peer_urls: Vec<String>,
    pub client_urls: Vec<String>,
    pub learner: bool,
}

#[derive(Debug, Serialize)]
pub struct HashKvDocument {
    pub schema: u32,
    pub hash: u32,
    pub revision: u64,
    /// 0: never compacted.
    pub compact_revision: u64,
}

/// `db keys` up to its list `keys`, whose rows follow one by one through [`List`](crate::cli::list::List): there may
/// be millions.
#[derive(Debug, Serialize)]
pub struct KeysHead {
    pub schema: u32,
    pub revision: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct KeyRow {
    pub key: Bytes,
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
    /// Hex; `null` without one.
    pub lease: Option<String>,
    /// Bytes of the value.
    pub size: u64,
}

/// `db get`; print it with [`Output::bytes_or`](output::Output::bytes_or), so that a pipe gets the value's bytes alone.
#[derive(Debug, Serialize)]
pub struct GetDocument {
    pub schema: u32,
    #[serde(flatten)]
    pub row: KeyRow,
    /// `null` when the value is no Kubernetes object that can be read.
    pub object: Option<ObjectRow>,
    pub value: Bytes,
}

/// Bytes that are text nearly always: a string, or `{"hex": …}` where they are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Hex {
            hex: String,
        }
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Hex { hex: self.0.iter().map(|byte| format!("{byte:02x}")).collect() }.serialize(serializer),
        }
    }
}

impl Bytes {
    /// On one line; what is not text as `\xNN`.
    pub(super) fn shown(&self) -> String {
        let mut text = String::new();
        for chunk in self.0.utf8_chunks() {
            text.push_str(&printable(chunk.valid()));
            text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
        }
        text
    }
}

impl InspectDocument {
    pub fn new(file: String, form: &Form, trailer: Trailer, size: u64, findings: usize, content: Content) -> Self {
        let member = |m: buckets::Member| MemberRow {
            id: format!("{:x}", m.id),
            name: m.name,
            peer_urls: m.peer_urls,
            client_urls: m.client_urls,
            learner: m.is_learner,
        };
        InspectDocument {
            schema: output::SCHEMA,
            file,
            codec: if *form == Form::Plain { "plain" } else { "zstd" }.into(),
            size,
            in_use: Some(content.in_use),
            trailer: trailer != Trailer::Absent,
            page_size: content.page_size,
            pages: content.size / u64::from(content.page_size.max(1)),
            txid: content.txid,
            revision: content.revision,
            compact_revision: content.compact_revision,
            keys: content.live_keys,
            rows: content.rows,
            leases: content.leases,
            members: content.members.into_iter().map(member).collect(),
            alarms: content.alarms.into_iter().map(|(id, name)| format!("{id:x} {name}")).collect(),
            cluster_version: content.cluster_version,
            storage_version: content.meta.storage_version,
            term: content.meta.term,
            index: content.meta.consistent_index,
            findings,
        }
    }
}

impl From<keyspace::Key> for KeyRow {
    fn from(key: keyspace::Key) -> Self {
        KeyRow {
            key: Bytes(key.key),
            create_revision: key.create_revision,
            mod_revision: key.mod_revision,
            version: key.version,
            lease: (key.lease != 0).then(|| format!("{:x}", key.lease)),
            size: key.size,
        }
    }
}

impl GetDocument {
    pub fn new(row: KeyRow, value: Vec<u8>) -> Self {
        let object = match kubernetes::decode(&value) {
            kubernetes::Stored::Object(object) => Some(ObjectRow {
                api_version: object.api_version,
                kind: object.kind,
                namespace: object.namespace,
                name: object.name,
                uid: object.uid,
            }),
            kubernetes::Stored::Encrypted(_) | kubernetes::Stored::Other => None,
        };
        GetDocument { schema: output::SCHEMA, row, object, value: Bytes(value) }
    }
}

/// What a stored Kubernetes object is.
#[derive(Debug, Clone, Serialize)]
pub struct ObjectRow {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl Document for InspectDocument {
    fn table(&self) -> String {
        let optional = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
        let in_use = self.in_use.map(|bytes| format!(", {} in use", output::size(bytes))).unwrap_or_default();
        let trailer = if self.trailer { "SHA-256" } else { "none: value bytes cannot be proven" };
        let mut text = fields(&[
            ("file", self.file.clone()),
            ("codec", self.codec.clone()),
            ("size", format!("{}{in_use}", output::size(self.size))),
            ("trailer", trailer.into()),
            ("pages", format!("{} of {} bytes", self.pages, self.page_size)),
            ("transaction", self.txid.to_string()),
            ("revision", format!("{} (compacted at {})", self.revision, self.compact_revision)),
            ("keys", format!("{} ({} rows)", self.keys, self.rows)),
            ("leases", self.leases.to_string()),
            ("alarms", self.alarms.join(", ")),
            ("cluster version", self.cluster_version.clone().unwrap_or_default()),
            ("storage version", self.storage_version.clone().unwrap_or_default()),
            ("raft term", optional(self.term)),
            ("raft index", optional(self.index)),
            (
                "findings",
                if self.findings == 0 { String::new() } else { format!("{}: see `refloat db check`", self.findings) },
            ),
        ]);
        if !self.members.is_empty() {
            let rows = self.members.iter().map(|member| {
                let role = if member.learner { "learner" } else { "voter" };
                vec![member.id.clone(), member.name.clone(), role.into(), member.peer_urls.join(",")]
            });
            text.push('\n');
            text.push_str(&table(&["MEMBER", "NAME", "ROLE", "PEER URLS"], &[], rows));
        }
        text
    }
}

impl Document for HashKvDocument {
    fn table(&self) -> String {
        format!("{} at revision {}, compact revision {}\n", self.hash, self.revision, self.compact_revision)
    }
}

impl Row for KeyRow {
    /// The key and nothing else, for other tools.
    fn text(&self) -> String {
        self.key.shown()
    }
}

impl Document for GetDocument {
    fn table(&self) -> String {
        self.value.shown() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Format;
    use crate::cli::output::tests::printed;

    fn row(key: &[u8]) -> KeyRow {
        KeyRow { key: Bytes(key.into()), create_revision: 2, mod_revision: 5, version: 3, lease: None, size: 4 }
    }

    #[test]
    fn hashkv_has_the_documented_names() {
        let document = HashKvDocument { schema: 1, hash: 7, revision: 9, compact_revision: 0 };
        assert_eq!(
            printed(&document, Format::Jsonl),
            "{\"schema\":1,\"hash\":7,\"revision\":9,\"compact_revision\":0}\n"
        );
        assert_eq!(printed(&document, Format::Table), "7 at revision 9, compact revision 0\n");
    }

    #[test]
    fn keys_that_are_not_text_stay_on_their_line() {
        assert_eq!((row(b"/a\n").text(), row(b"/\xff\x00b").text()), ("/a\\n".into(), "/\\xff\\0b".into()));
        let rest = "\"create_revision\":2,\"mod_revision\":5,\"version\":3,\"lease\":null,\"size\":4}";
        for (key, json) in [(&b"/a\n"[..], "\"/a\\n\""), (b"/\xff\x00b", "{\"hex\":\"2fff0062\"}")] {
            assert_eq!(serde_json::to_string(&row(key)).unwrap(), format!("{{\"key\":{json},{rest}"));
        }
    }

    #[test]
    fn a_pipe_gets_the_value_as_it_is() {
        let document = GetDocument::new(row(b"k"), b"v\nw".to_vec());
        for (format, expected) in [(Format::Table, "v\nw"), (Format::Jsonl, "{\"schema\":1")] {
            let sink = output::tests::Captured::default();
            output::Output::new(format, Box::new(sink.clone())).bytes_or(&document.value.0, &document).unwrap();
            assert!(sink.text().starts_with(expected), "{}", sink.text());
        }
        assert_eq!(printed(&document, Format::Table), "v\\nw\n");
    }

    #[test]
    fn get_has_row_and_value() {
        let document = GetDocument::new(row(b"k"), b"v".to_vec());
        assert_eq!(
            printed(&document, Format::Jsonl),
            "{\"schema\":1,\"key\":\"k\",\"create_revision\":2,\"mod_revision\":5,\"version\":3,\"lease\":null,\"size\":4,\
             \"object\":null,\"value\":\"v\"}\n"
        );
    }

    #[test]
    fn inspect_says_what_cannot_be_proven() {
        let member = MemberRow {
            id: "8e9e05c52164694d".into(),
            name: "cp1".into(),
            peer_urls: vec!["http://10.0.0.1:2380".into()],
            client_urls: vec![],
            learner: false,
        };
        let document = InspectDocument {
            schema: 1,
            file: "db".into(),
            codec: "plain".into(),
            size: 1 << 20,
            in_use: None,
            trailer: false,
            page_size: 4096,
            pages: 256,
            txid: 8,
            revision: 9,
            compact_revision: 0,
            keys: 3,
            rows: 8,
            leases: 0,
            members: vec![member],
            alarms: vec![],
            cluster_version: Some("3.6.0".into()),
            storage_version: None,
            term: Some(2),
            index: Some(12),
            findings: 0,
        };
        let text = printed(&document, Format::Table);
        assert!(text.contains("trailer          none: value bytes cannot be proven\n"), "{text}");
        assert!(text.ends_with(
            "MEMBER            NAME  ROLE   PEER URLS\n8e9e05c52164694d  cp1   voter  http://10.0.0.1:2380\n"
        ));
        assert!(!text.contains("storage version") && !text.contains("alarms"), "{text}");
    }
}
