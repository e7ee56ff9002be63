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
    /// `<lineage>/trash/<time>-<name in snapshots>`: data, manifest or note of a removed snapshot, and when it was
    /// removed.
    Trash(LineageId, Timestamp, TrashedName),
    /// `<lineage>/freeze.json`
    Freeze(LineageId),
    /// `…/.refloat-tmp-<anything>`: a write that was under way, or never will be.
    Temp(String),
}

/// What a removed object was; its lineage is that of the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrashedName {
    Data(SnapshotId, Codec),
    Manifest(SnapshotId),
    Note(SnapshotId, NoteKind, Timestamp),
}

impl TrashedName {
    /// What it was called before.
    pub fn before(self, lineage: LineageId) -> Name {
        match self {
            TrashedName::Data(id, codec) => Name::Data(lineage, id, codec),
            TrashedName::Manifest(id) => Name::Manifest(lineage, id),
            TrashedName::Note(id, kind, at) => Name::Note(lineage, id, kind, at),
        }
    }
}

impl Name {
    /// What a part of a snapshot is called once it was removed at `at`; `None` for all other names.
    pub fn in_trash(self, at: Timestamp) -> Option<Name> {
        let (lineage, was) = match self {
            Name::Data(lineage, id, codec) => (lineage, TrashedName::Data(id, codec)),
            Name::Manifest(lineage, id) => (lineage, TrashedName::Manifest(id)),
            Name::Note(lineage, id, kind, noted) => (lineage, TrashedName::Note(id, kind, noted)),
            _ => return None,
        };
        Some(Name::Trash(lineage, time::to_millis(at), was))
    }

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
            ["freeze.json"] => Some(Name::Freeze(lineage)),
            ["trash", file] => trashed(lineage, file),
            _ => None,
        }
    }

    /// The lineage whose folder the name stands in, if it is one of a lineage's own files.
    pub fn lineage(&self) -> Option<LineageId> {
        match self {
            Name::Marker | Name::Temp(_) => None,
            Name::Lineage(l) | Name::Timeline(l, _) | Name::Data(l, ..) | Name::Manifest(l, _) => Some(*l),
            Name::Note(l, ..) | Name::Segment { lineage: l, .. } | Name::Trash(l, ..) | Name::Freeze(l) => Some(*l),
        }
    }
}

/// Temporary names are made beside their targets, so only in directories of ours.
fn temp_place(dirs: &[&str]) -> bool {
    match dirs {
        [] => true,
        [lineage, rest @ ..] => {
            lineage.parse::<LineageId>().is_ok()
                && matches!(rest, [] | ["timelines" | "snapshots" | "trash"] | ["changes", ..])
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

fn trashed(lineage: LineageId, file: &str) -> Option<Name> {
    let (at, rest) = file.split_at_checked(COMPACT_LEN)?;
    snapshot_file(lineage, rest.strip_prefix('-')?)?.in_trash(time::parse_compact(at)?)
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
            Name::Trash(l, at, was) => {
                let before = was.clone().before(*l).to_string();
                let file = before.rsplit('/').next().unwrap_or_default();
                write!(f, "{l}/trash/{}-{file}", time::compact(*at).unwrap_or_default())
            }
            Name::Freeze(l) => write!(f, "{l}/freeze.json"),
            Name::Temp(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const L: &str = "00112233445566ff";
    const ID: &str = "0001-00000000000000004711-20261130T143000500Z-cp1";

    #[test]
    fn our_names() {
        let lineage: LineageId = L.parse().unwrap();
        let id: SnapshotId = ID.parse().unwrap();
        let timeline: TimelineId = "0001-89abcdef".parse().unwrap();
        let at = time::parse_compact("20261201T000000000Z").unwrap();
        let table = [
            ("refloat-store.json".to_string(), Name::Marker),
            (format!("{L}/lineage.json"), Name::Lineage(lineage)),
            (format!("{L}/timelines/0001-89abcdef.json"), Name::Timeline(lineage, timeline)),
            (format!("{L}/snapshots/{ID}.db.zst"), Name::Data(lineage, id.clone(), Codec::Zstd)),
            (format!("{L}/snapshots/{ID}.db.zst.age"), Name::Data(lineage, id.clone(), Codec::ZstdAge)),
            (format!("{L}/snapshots/{ID}.json"), Name::Manifest(lineage, id.clone())),
            (
                format!("{L}/snapshots/{ID}.pin-20261201T000000000Z.json"),
                Name::Note(lineage, id.clone(), NoteKind::Pin, at),
            ),
            (
                format!("{L}/snapshots/{ID}.later2-20261201T000000000Z.json"),
                Name::Note(lineage, id.clone(), NoteKind::Other("later2".into()), at),
            ),
            (
                format!("{L}/changes/0001-89abcdef/cp1/00000000000000000002-00000000000000000009.seg.zst"),
                Name::Segment {
                    lineage,
                    timeline,
                    node: "cp1".parse().unwrap(),
                    first: 2,
                    last: 9,
                    codec: Codec::Zstd,
                },
            ),
            (
                format!("{L}/trash/20261201T000000000Z-{ID}.db.zst"),
                Name::Trash(lineage, at, TrashedName::Data(id.clone(), Codec::Zstd)),
            ),
            (
                format!("{L}/trash/20261201T000000000Z-{ID}.json"),
                Name::Trash(lineage, at, TrashedName::Manifest(id.clone())),
            ),
            (
                format!("{L}/trash/20261201T000000000Z-{ID}.pin-20261201T000000000Z.json"),
                Name::Trash(lineage, at, TrashedName::Note(id.clone(), NoteKind::Pin, at)),
            ),
            (format!("{L}/freeze.json"), Name::Freeze(lineage)),
            (".refloat-tmp-00ff".to_string(), Name::Temp(".refloat-tmp-00ff".into())),
            (format!("{L}/snapshots/.refloat-tmp-1"), Name::Temp(format!("{L}/snapshots/.refloat-tmp-1"))),
        ];
        for (text, name) in table {
            assert_eq!(Name::parse(&text).as_ref(), Some(&name), "{text}");
            assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn nodes_that_look_like_endings_are_told_apart() {
        for node in ["a.db.zst", "a.json", "a.pin-20261201", "a.db.zst.age", "a.seg.zst"] {
            let id: SnapshotId = ID.replace("cp1", node).parse().unwrap();
            let at = time::parse_compact("20261201T000000000Z").unwrap();
            let lineage: LineageId = L.parse().unwrap();
            for name in [
                Name::Data(lineage, id.clone(), Codec::Zstd),
                Name::Data(lineage, id.clone(), Codec::ZstdAge),
                Name::Manifest(lineage, id.clone()),
                Name::Note(lineage, id.clone(), NoteKind::Pin, at),
            ] {
                assert_eq!(Name::parse(&name.to_string()), Some(name));
            }
        }
    }

    #[test]
    fn foreign_names() {
        for text in [
            "",
            "/",
            "readme.txt",
            "refloat-store.json/x",
            "refloat-store.json.bak",
            L,
            &format!("{L}/lineage.json.old"),
            &format!("{}/lineage.json", L.to_uppercase()),
            &format!("{L}/timelines/0001-89abcdef"),
            &format!("{L}/timelines/x/0001-89abcdef.json"),
            &format!("{L}/snapshots/{ID}"),
            &format!("{L}/snapshots/{ID}.db"),
            &format!("{L}/snapshots/{ID}.db.zst.gz"),
            &format!("{L}/snapshots/sub/{ID}.json"),
            &format!("{L}/snapshots/../{ID}.json"),
            &format!("{L}//snapshots/{ID}.json"),
            &format!("x/snapshots/{ID}.json"),
            &format!("{L}/snapshots/{ID}.Pin-20261201T000000000Z.json"),
            &format!("{L}/snapshots/{ID}.pin-20261301T000000000Z.json"),
            &format!("{L}/changes/0001-89abcdef/cp1/00000000000000000009-00000000000000000002.seg.zst"),
            &format!("{L}/changes/0001-89abcdef/../00000000000000000002-00000000000000000009.seg.zst"),
            &format!("{L}/trash"),
            &format!("{L}/trash/{ID}.json"),
            &format!("{L}/trash/a/b"),
            &format!("{L}/trash/20261201T000000000Z-{ID}"),
            &format!("{L}/trash/20261201T000000000Z-lineage.json"),
            &format!("{L}/trash/20261201T000000000Z/{ID}.json"),
            &format!("{L}/snapshots/20261201T000000000Z-{ID}.json"),
            &format!("{L}/freeze.json/x"),
            ".refloat-tmp-",
            "photos/.refloat-tmp-1",
            &format!("{L}/photos/.refloat-tmp-1"),
        ] {
            assert_eq!(Name::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_ours_is_written_back_the_same(text in "[0-9a-f/.TZ\\-jsonpidbzt]{0,90}") {
            if let Some(name) = Name::parse(&text) {
                prop_assert_eq!(name.to_string(), text);
            }
        }

        #[test]
        fn hostile_names_never_panic(text in "\\PC{0,120}", cut in 0usize..90) {
            let good = format!("{L}/snapshots/{ID}.pin-20261201T000000000Z.json");
            for mixed in [text.clone(), format!("{}{text}", &good[..cut.min(good.len())])] {
                if let Some(name) = Name::parse(&mixed) {
                    prop_assert_eq!(name.to_string(), mixed);
                }
            }
        }
    }
}
