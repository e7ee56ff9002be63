//! What the names in a store say about one snapshot: its copy, the notes about it, what a removal made of it.
//!
//! Names and sizes alone; nothing is read.

use jiff::Timestamp;

use super::id::SnapshotId;
use super::manifest::Codec;
use super::names::{Name, TrashedName};
use super::note::NoteKind;
use super::value::LineageId;

/// What one store has under one id.
#[derive(Debug)]
pub(super) struct CopyNames {
    pub(super) lineage: LineageId,
    pub(super) id: SnapshotId,
    pub(super) store: u16,
    pub(super) manifest: bool,
    /// Sizes of the data object by codec.
    pub(super) plain: Option<u64>,
    pub(super) encrypted: Option<u64>,
    pub(super) modified: Timestamp,
}

impl CopyNames {
    pub(super) fn key(&self) -> (LineageId, std::cmp::Reverse<&SnapshotId>, u16) {
        (self.lineage, std::cmp::Reverse(&self.id), self.store)
    }

    /// Data objects with their sizes; more than one only if something went wrong.
    pub(super) fn data(&self) -> impl Iterator<Item = (Codec, u64)> {
        let plain = self.plain.map(|size| (Codec::Zstd, size));
        plain.into_iter().chain(self.encrypted.map(|size| (Codec::ZstdAge, size)))
    }

    pub(super) fn absorb(&mut self, other: &CopyNames) {
        self.manifest |= other.manifest;
        self.plain = self.plain.or(other.plain);
        self.encrypted = self.encrypted.or(other.encrypted);
        self.modified = self.modified.max(other.modified);
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NoteName {
    pub(super) lineage: LineageId,
    pub(super) id: SnapshotId,
    pub(super) store: u16,
    pub(super) at: Timestamp,
    pub(super) kind: NoteKind,
    /// Something else stands under its name, a link or a directory: what it said is not known.
    pub(super) irregular: bool,
}

/// What one removal put into the trash of one store; sizes in bytes.
#[derive(Debug)]
pub(super) struct TrashedCopy {
    pub(super) lineage: LineageId,
    pub(super) store: u16,
    /// When the removal began.
    pub(super) at: Timestamp,
    pub(super) id: SnapshotId,
    pub(super) manifest: Option<u64>,
    plain: Option<u64>,
    encrypted: Option<u64>,
    notes: Vec<(NoteKind, Timestamp, u64)>,
}

impl TrashedCopy {
    pub(super) fn key(&self) -> (u16, LineageId, Timestamp, &SnapshotId) {
        (self.store, self.lineage, self.at, &self.id)
    }

    pub(super) fn of(lineage: LineageId, store: u16, at: Timestamp, was: TrashedName, size: u64) -> TrashedCopy {
        let (mut manifest, mut plain, mut encrypted, mut notes) = (None, None, None, Vec::new());
        let id = match was {
            TrashedName::Manifest(id) => (manifest = Some(size), id).1,
            TrashedName::Data(id, Codec::Zstd) => (plain = Some(size), id).1,
            TrashedName::Data(id, Codec::ZstdAge) => (encrypted = Some(size), id).1,
            TrashedName::Note(id, kind, noted) => (notes.push((kind, noted, size)), id).1,
        };
        TrashedCopy { lineage, store, at, id, manifest, plain, encrypted, notes }
    }

    pub(super) fn absorb(&mut self, other: &mut TrashedCopy) {
        self.manifest = self.manifest.or(other.manifest);
        self.plain = self.plain.or(other.plain);
        self.encrypted = self.encrypted.or(other.encrypted);
        self.notes.append(&mut other.notes);
    }

    pub(super) fn has_data(&self) -> bool {
        self.plain.is_some() || self.encrypted.is_some()
    }

    /// Of everything.
    pub(super) fn bytes(&self) -> u64 {
        let data = [self.manifest, self.plain, self.encrypted].into_iter().flatten();
        data.chain(self.notes.iter().map(|(.., size)| *size)).fold(0, u64::saturating_add)
    }

    /// Each object with its size, the manifest last.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Name, u64)> {
        let name = |was| Name::Trash(self.lineage, self.at, was);
        let notes = self
            .notes
            .iter()
            .map(move |(kind, noted, size)| (name(TrashedName::Note(self.id.clone(), kind.clone(), *noted)), *size));
        let data = |codec, size: Option<u64>| size.map(|s| (name(TrashedName::Data(self.id.clone(), codec)), s));
        let manifest = self.manifest.map(|size| (name(TrashedName::Manifest(self.id.clone())), size));
        notes.chain(data(Codec::Zstd, self.plain)).chain(data(Codec::ZstdAge, self.encrypted)).chain(manifest)
    }
}
