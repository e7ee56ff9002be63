//! Reads one snapshot of a catalogue: its manifests in all stores, and the notes about it.
//!
//! Copies that disagree, lack their data or have another size than their manifest says are named, not shown.

use super::copies::{CopyNames, NoteName};
use super::index::{Catalog, Entry};
use super::list::Unreadable;
use super::manifest::{MAX_BYTES, Manifest};
use super::names::Name;
use super::note::{Note, NoteKind};
use super::shown::{Copy, Shown};
use crate::error::Code;
use crate::store::Store;

/// One snapshot, read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// `None` when no store holds a usable copy.
    pub shown: Option<Shown>,
    /// Copies and notes that cannot be used.
    pub unreadable: Vec<Unreadable>,
}

impl Catalog<'_> {
    /// Reads the manifest from every store that has one, and its notes.
    ///
    /// A manifest that was removed since the names were listed is left out without a word.
    pub fn load(&self, entry: &Entry<'_>) -> Loaded {
        let mut loaded = Loaded::default();
        let mut base: Option<Manifest> = None;
        let mut copies = Vec::new();
        for copy in entry.copies.iter().filter(|c| c.manifest) {
            let Some(store) = self.store(usize::from(copy.store)) else { continue };
            let name = Name::Manifest(copy.lineage, copy.id.clone()).to_string();
            match read_manifest(store, &name, copy, base.as_ref()) {
                Ok(Some(manifest)) => {
                    base.get_or_insert(manifest);
                    copies.push(read_notes(store, self.notes_of(copy), copy, &mut loaded.unreadable));
                }
                Ok(None) => {}
                Err(reason) => loaded.unreadable.push(Unreadable { store: store.name().into(), name, reason }),
            }
        }
        loaded.shown = base.map(|manifest| Shown::fold(manifest, &copies));
        loaded
    }
}

/// `Ok(None)` when it is gone; the error is a reason for people.
fn read_manifest(
    store: &dyn Store,
    name: &str,
    copy: &CopyNames,
    base: Option<&Manifest>,
) -> Result<Option<Manifest>, String> {
    let bytes = match store.read(name, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(e) if e.code() == Code::NotFound => return Ok(None),
        Err(e) => return Err(e.line()),
    };
    let manifest = Manifest::parse_named(&bytes, copy.lineage, &copy.id).map_err(|e| e.to_string())?;
    match copy.data().find(|(codec, _)| *codec == manifest.codec) {
        None => return Err("data object missing".into()),
        Some((_, size)) if size != manifest.size.stored => {
            return Err(format!("data object has {size} bytes, the manifest says {}", manifest.size.stored));
        }
        Some(_) => {}
    }
    match base {
        Some(base) if *base != manifest => Err("says something else than its copy in another store".into()),
        _ => Ok(Some(manifest)),
    }
}

fn read_notes<'n>(
    store: &dyn Store,
    names: impl Iterator<Item = &'n NoteName>,
    copy: &CopyNames,
    unreadable: &mut Vec<Unreadable>,
) -> Copy {
    let mut read = Copy { store: store.name().into(), ..Copy::default() };
    for NoteName { kind, at, irregular, .. } in names {
        if matches!(kind, NoteKind::Other(_)) && !irregular {
            continue;
        }
        let name = Name::Note(copy.lineage, copy.id.clone(), kind.clone(), *at).to_string();
        let note = match store.read(&name, MAX_BYTES) {
            _ if *irregular => Err("it is a link, a directory or a device, not a regular file".into()),
            Ok(bytes) => Note::parse(&bytes, &copy.id, kind, *at).map_err(|e| e.to_string()),
            Err(e) if e.code() == Code::NotFound => continue,
            Err(e) => Err(e.line()),
        };
        match note {
            Ok(note) => read.notes.push(note),
            Err(reason) => {
                if *kind == NoteKind::Pin {
                    read.blind_pins.push(*at);
                }
                unreadable.push(Unreadable { store: read.store.clone(), name, reason });
            }
        }
    }
    read
}
