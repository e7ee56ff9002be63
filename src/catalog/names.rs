//! The grammar of every name in a store.
//!
//! Deletes and sweeps act only on what this grammar calls ours (promise 2); everything else is foreign: counted,
//! shown, never touched. Names are the whole path below the store's root. Grammar in words: docs/formats.md.

use std::fmt;

use jiff::Timestamp;

use super::id::SnapshotId;
use super::manifest::Codec;
use super::note::NoteKind;
use super::time::{self, COMPACT_LEN};
use super::value::{LineageId, Node, TimelineId};

/// The marker's name.
pub const MARKER: &str = "refloat-store.json";
/// What a temporary name begins with, in whatever directory it is made.
pub const TEMP_PREFIX: &str = ".refloat-tmp-";

/// What a name that refloat writes stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// `refloat-store.json`
    Marker,
    /// `<lineage>/lineage.json`
    Lineage(LineageId),
    /// `<lineage>/timelines/<number>-<hex>.json`
    Timeline(LineageId, TimelineId),
    /// `<lineage>/snapshots/<id>.db.zst[.age]`
    Data(LineageId, SnapshotId, Codec),
    /// `<lineage>/snapshots/<id>.json`
    Manifest(LineageId, SnapshotId),
    /// `<lineage>/snapshots/<id>.<kind>-<time>.json`
    Note(LineageId, SnapshotId, NoteKind, Timestamp),
    /// `<lineage>/changes/<timeline>/<node>/<first, 20>-<last, 20>.seg.zst[.age]`
    Segment { lineage: LineageId, timeline: TimelineId, node: Node, first: i64, last: i64, codec: Codec },
    /// `<lineage>/trash/…`, whatever stands behind it.
    Trash(LineageId, String),
    /// `…/.refloat-tmp-<anything>`: a write that was under way, or never will be.
    Temp(String),
}

impl Name {
    /// `None` is foreign.
    pub fn parse(name: &str) -> Option<Name> {
        if name == MARKER {
            return Some(Name::Marker);
        }
        let parts: Vec<&str> = name.split('/').collect();
        // What a store lists has no such parts; if it does, it is none of ours.
        if parts.iter().any(|p| p.is_empty() || *p == "." || *p == "..") {
            return None;
        }
        if let Some(last) = parts.last()
            && last.len() > TEMP_PREFIX.len()
            && last.starts_with(TEMP_PREFIX)
            && temp_place(&parts[..parts.len() - 1])
        {
            return Some(Name::Temp(name.into()));
        }
        let lineage: LineageId = parts.first()?.parse().ok()?;
        match parts[1..] {
            ["lineage.json"] => Some(Name::Lineage(lineage)),
            ["timelines", file] => Some(Name::Timeline(lineage, file.strip_suffix(".json")?.parse().ok()?)),
            ["snapshots", file] => snapshot_file(lineage, file),
            ["changes", timeline, node, file] => segment(lineage, timeline, node, file),
            ["trash", _, ..] => Some(Name::Trash(lineage, parts[2..].join("/"))),
            _ => None,
        }
    }

    /// The lineage whose folder the name stands in, if it is one of a lineage's own files.
    pub fn lineage(&self) -> Option<LineageId> {
        match self {
            Name::Marker | Name::Temp(_) => None,
            Name::Lineage(l) | Name::Timeline(l, _) | Name::Data(l, ..) | Name::Manifest(l, _) => Some(*l),
            Name::Note(l, ..) | Name::Segment { lineage: l, .. } | Name::Trash(l, _) => Some(*l),
        }
    }
}

/// Temporary names are made beside their targets, so only in directories of ours.
fn temp_place(dirs: &[&str]) -> bool {
    match dirs {
        [] => true,
        [lineage, rest @ ..] => {
            lineage.parse::<LineageId>().is_ok()
                && matches!(rest, [] | ["timelines" | "snapshots" | "trash"] | ["changes", ..] | ["trash", ..])
        }
    }
}

fn data_suffix(file: &str, kind: &str) -> Option<(String, Codec)> {
    let (file, codec) = match file.strip_suffix(".age") {
        Some(inner) => (inner, Codec::ZstdAge),
        None => (file, Codec::Zstd),
    };
    Some((file.strip_suffix(kind)?.to_string(), codec))
}

fn snapshot_file(lineage: LineageId, file: &str) -> Option<Name> {
    if let Some((id, codec)) = data_suffix(file, ".db.zst") {
        return Some(Name::Data(lineage, id.parse().ok()?, codec));
    }
    let stem = file.strip_suffix(".json")?;
    // A node has no capitals and a note's time has two, so the two forms never overlap.
    if let Ok(id) = stem.parse() {
        return Some(Name::Manifest(lineage, id));
    }
    let (front, at) = stem.split_at_checked(stem.len().checked_sub(COMPACT_LEN)?)?;
    let (id, kind) = front.strip_suffix('-')?.rsplit_once('.')?;
    Some(Name::Note(lineage, id.parse().ok()?, NoteKind::parse(kind)?, time::parse_compact(at)?))
}

fn segment(lineage: LineageId, timeline: &str, node: &str, file: &str) -> Option<Name> {
    let (range, codec) = data_suffix(file, ".seg.zst")?;
    let (first, last) = range.split_once('-')?;
    let revision = |t: &str| -> Option<i64> {
        (t.len() == 20 && t.bytes().all(|b| b.is_ascii_digit())).then(|| t.parse().ok()).flatten()
    };
    let (first, last) = (revision(first)?, revision(last)?);
    (first <= last).then_some(())?;
    let (timeline, node) = (timeline.parse().ok()?, node.parse().ok()?);
    Some(Name::Segment { lineage, timeline, node, first, last, codec })
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Marker => f.write_str(MARKER),
            Name::Lineage(l) => write!(f, "{l}/lineage.json"),
            Name::Timeline(l, t) => write!(f, "{l}/timelines/{t}.json"),
            Name::Data(l, id, codec) => write!(f, "{l}/snapshots/{id}{}", codec.suffix()),
            Name::Manifest(l, id) => write!(f, "{l}/snapshots/{id}.json"),
            Name::Note(l, id, kind, at) => {
                write!(f, "{l}/snapshots/{id}.{kind}-{}.json", time::compact(*at).unwrap_or_default())
            }
            Name::Segment { lineage, timeline, node, first, last, codec } => {
                let age = if *codec == Codec::ZstdAge { ".age" } else { "" };
                write!(f, "{lineage}/changes/{timeline}/{node}/{first:020}-{last:020}.seg.zst{age}")
            }
            Name::Trash(l, rest) => write!(f, "{l}/trash/{rest}"),
            Name::Temp(name) => f.write_str(name),
        }
    }
}
