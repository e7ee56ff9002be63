//! Notes: what is said about a snapshot after its manifest was written.
//!
//! A note is a create-only document `<id>.<kind>-<time>.json`. Kind and time stand in the name, so that a pin counts
//! even when its content cannot be read. Kinds of later versions are tolerated: they are ours, and say nothing here.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::id::SnapshotId;
use super::manifest::{Agreement, MAX_BYTES, ManifestError, SCHEMA, check_schema};
use super::names::Name;
use super::time::rfc3339;
use super::value::{LineageId, Node};

/// What a note is about, as its name says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    Pin,
    Unpin,
    Tag,
    Verified,
    Agreement,
    /// A kind that this version does not know.
    Other(String),
}

impl NoteKind {
    /// `[a-z][a-z0-9]{0,31}`; no `-` and no `.`, because those separate the parts of the name.
    pub fn parse(text: &str) -> Option<Self> {
        let ok = (1..=32).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        ok.then(|| match text {
            "pin" => NoteKind::Pin,
            "unpin" => NoteKind::Unpin,
            "tag" => NoteKind::Tag,
            "verified" => NoteKind::Verified,
            "agreement" => NoteKind::Agreement,
            other => NoteKind::Other(other.into()),
        })
    }
}

impl fmt::Display for NoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoteKind::Pin => "pin",
            NoteKind::Unpin => "unpin",
            NoteKind::Tag => "tag",
            NoteKind::Verified => "verified",
            NoteKind::Agreement => "agreement",
            NoteKind::Other(word) => word,
        })
    }
}

/// A note with its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub schema: u32,
    pub id: SnapshotId,
    /// The same as in the name, in whole milliseconds.
    #[serde(with = "rfc3339")]
    pub at: Timestamp,
    /// Who wrote it.
    pub node: Node,
    #[serde(flatten)]
    pub body: NoteBody,
}

/// The content by kind; written as `kind` beside the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum NoteBody {
    Pin {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Unpin {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Tag {
        tags: Vec<String>,
    },
    /// A later look at the stored bytes of the store that holds the note.
    Verified {
        ok: bool,
        /// What was checked then; names as in the manifest.
        #[serde(default)]
        checks: Vec<String>,
        /// What was wrong, in words.
        #[serde(default)]
        findings: Vec<String>,
    },
    Agreement {
        agreement: Vec<Agreement>,
    },
}

impl NoteBody {
    pub fn kind(&self) -> NoteKind {
        match self {
            NoteBody::Pin { .. } => NoteKind::Pin,
            NoteBody::Unpin { .. } => NoteKind::Unpin,
            NoteBody::Tag { .. } => NoteKind::Tag,
            NoteBody::Verified { .. } => NoteKind::Verified,
            NoteBody::Agreement { .. } => NoteKind::Agreement,
        }
    }
}

impl Note {
    pub fn new(id: SnapshotId, at: Timestamp, node: Node, body: NoteBody) -> Self {
        Note { schema: SCHEMA, id, at: super::time::to_millis(at), node, body }
    }

    /// What the note about a snapshot of this lineage is called.
    pub fn name(&self, lineage: LineageId) -> Name {
        Name::Note(lineage, self.id.clone(), self.body.kind(), self.at)
    }

    /// Reads a note of a known kind and holds it against its name.
    pub fn parse(bytes: &[u8], id: &SnapshotId, kind: &NoteKind, at: Timestamp) -> Result<Self, ManifestError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(ManifestError::TooLarge(bytes.len() as u64));
        }
        check_schema(bytes)?;
        let note: Note = serde_json::from_slice(bytes).map_err(|e| ManifestError::Shape(e.to_string()))?;
        if note.id != *id {
            return Err(ManifestError::NotItsName("id"));
        }
        if note.body.kind() != *kind {
            return Err(ManifestError::NotItsName("kind"));
        }
        if super::time::to_millis(note.at) != at {
            return Err(ManifestError::NotItsName("time"));
        }
        Ok(note)
    }

    /// The document as it is stored: indented JSON with a final newline.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ManifestError> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|e| ManifestError::Shape(e.to_string()))?;
        bytes.push(b'\n');
        Note::parse(&bytes, &self.id, &self.body.kind(), super::time::to_millis(self.at))?;
        Ok(bytes)
    }
}

/// What [`is_tag`] wants, in words.
pub const TAG_RULE: &str = "letters, digits and - _ . : = / +, at most 63";

/// Whether this may be a tag: printed and compared everywhere, so a plain word.
pub fn is_tag(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '=' | '/' | '+');
    (1..=63).contains(&text.len()) && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::manifest::AgreementResult;
    use crate::catalog::testing::{at, node, snapshot};

    fn bodies() -> Vec<NoteBody> {
        vec![
            NoteBody::Pin { reason: Some("before the upgrade".into()) },
            NoteBody::Unpin { reason: None },
            NoteBody::Tag { tags: vec!["weekly".into()] },
            NoteBody::Verified { ok: false, checks: vec!["stored".into()], findings: vec!["page 7".into()] },
            NoteBody::Agreement { agreement: vec![Agreement::new("fold", AgreementResult::Equal)] },
        ]
    }

    #[test]
    fn round_trip() {
        for body in bodies() {
            let note = Note::new(snapshot(1, 7, 0, "cp1").id, at(9), node("cp2"), body);
            let kind = note.body.kind();
            let bytes = note.to_bytes().unwrap();
            assert_eq!(Note::parse(&bytes, &note.id, &kind, at(9)).unwrap(), note);
            assert_eq!(serde_json::to_value(&note).unwrap()["kind"], kind.to_string());
        }
    }

    #[test]
    fn a_note_must_be_the_one_of_its_name() {
        let note = Note::new(snapshot(1, 7, 0, "cp1").id, at(9), node("cp2"), NoteBody::Pin { reason: None });
        let bytes = note.to_bytes().unwrap();
        let why = |id: &SnapshotId, kind, time| Note::parse(&bytes, id, &kind, time).unwrap_err().to_string();
        assert_eq!(why(&snapshot(1, 8, 0, "cp1").id, NoteKind::Pin, at(9)), "its id is not that of its name");
        assert_eq!(why(&note.id, NoteKind::Unpin, at(9)), "its kind is not that of its name");
        assert_eq!(why(&note.id, NoteKind::Pin, at(8)), "its time is not that of its name");
    }

    #[test]
    fn kinds() {
        for known in ["pin", "unpin", "tag", "verified", "agreement"] {
            let kind = NoteKind::parse(known).unwrap();
            assert!(!matches!(kind, NoteKind::Other(_)) && kind.to_string() == known);
        }
        assert_eq!(NoteKind::parse("x1"), Some(NoteKind::Other("x1".into())));
        for bad in ["", "Pin", "1x", "a-b", "a.b", "é", &"x".repeat(33)] {
            assert_eq!(NoteKind::parse(bad), None, "{bad:?}");
        }
    }
}
