//! Reads one snapshot of a catalogue: its manifests in all stores, and the notes about it.
//!
//! Copies that disagree, lack their data or have another size than their manifest says are named, not shown.

use std::collections::{HashMap, VecDeque};

use super::copies::{CopyNames, NoteName};
use super::index::{Catalog, Entry};
use super::list::Unreadable;
use super::manifest::{MAX_BYTES, Manifest};
use super::names::Name;
use super::note::{Note, NoteKind};
use super::shown::{Copy, Shown};
use crate::error::{Code, Error};
use crate::store::Store;

/// One snapshot, read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// `None` when no store holds a usable copy.
    pub shown: Option<Shown>,
    /// Copies and notes that cannot be used.
    pub unreadable: Vec<Unreadable>,
}

/// Snapshots that are read together at most: a call to a store has a price of its own.
const BATCH: usize = 64;

/// Bytes that were read, by place of the store and name.
type Bytes = HashMap<(u16, String), crate::error::Result<Vec<u8>>>;

/// Reads snapshots one after the other, some ahead. What is ahead is bounded, and forgotten once it was handed out.
pub struct Loading<'a, I> {
    catalog: &'a Catalog<'a>,
    entries: I,
    ahead: VecDeque<(Entry<'a>, Loaded)>,
    /// Whoever wants a few gets a few: it begins with one and doubles.
    batch: usize,
}

impl<'a, I: Iterator<Item = Entry<'a>>> Loading<'a, I> {
    /// How many are still to come, without reading them.
    pub fn left(self) -> usize {
        self.ahead.len() + self.entries.count()
    }
}

impl<'a, I: Iterator<Item = Entry<'a>>> Iterator for Loading<'a, I> {
    type Item = (Entry<'a>, Loaded);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ahead.is_empty() {
            let entries: Vec<Entry<'a>> = self.entries.by_ref().take(self.batch).collect();
            self.batch = BATCH.min(self.batch * 2);
            let mut bytes = self.catalog.bytes_of(&entries);
            let load = |entry| (entry, self.catalog.fold(&entry, &mut bytes));
            self.ahead = entries.into_iter().map(load).collect();
        }
        self.ahead.pop_front()
    }
}

impl<'a> Catalog<'a> {
    /// Reads the manifest from every store that has one, and its notes.
    ///
    /// A manifest that was removed since the names were listed is left out without a word.
    pub fn load(&self, entry: &Entry<'_>) -> Loaded {
        self.fold(entry, &mut self.bytes_of(std::slice::from_ref(entry)))
    }

    /// The same for many.
    pub fn loading<'c, I: Iterator<Item = Entry<'c>>>(&'c self, entries: I) -> Loading<'c, I> {
        Loading { catalog: self, entries, ahead: VecDeque::new(), batch: 1 }
    }

    /// All that tells about some snapshots, read in one go from each store.
    fn bytes_of(&self, entries: &[Entry<'_>]) -> Bytes {
        let mut bytes = Bytes::new();
        for (at, store) in self.stores().iter().enumerate() {
            let at = u16::try_from(at).unwrap_or(u16::MAX);
            let copies = entries.iter().flat_map(|e| e.copies).filter(|c| c.manifest && c.store == at);
            let names: Vec<String> = copies.flat_map(|copy| self.names_of(copy)).collect();
            if names.is_empty() {
                continue;
            }
            let read = store.read_each(names.clone(), MAX_BYTES);
            bytes.extend(names.into_iter().map(|name| (at, name)).zip(read));
        }
        bytes
    }

    /// The manifest and the notes that say something to this version.
    fn names_of<'s>(&'s self, copy: &'s CopyNames) -> impl Iterator<Item = String> + 's {
        let manifest = Name::Manifest(copy.lineage, copy.id.clone()).to_string();
        let notes = self.notes_of(copy).filter(|n| !n.irregular && !matches!(n.kind, NoteKind::Other(_)));
        std::iter::once(manifest).chain(notes.map(|n| note_name(copy, n)))
    }

    fn fold(&self, entry: &Entry<'_>, bytes: &mut Bytes) -> Loaded {
        let mut loaded = Loaded::default();
        let mut base: Option<Manifest> = None;
        let mut copies = Vec::new();
        for copy in entry.copies.iter().filter(|c| c.manifest) {
            let Some(store) = self.store(usize::from(copy.store)) else { continue };
            let name = Name::Manifest(copy.lineage, copy.id.clone()).to_string();
            match understand(take(bytes, copy, &name), copy, base.as_ref()) {
                Ok(Some(manifest)) => {
                    base.get_or_insert(manifest);
                    copies.push(fold_notes(store, self.notes_of(copy), copy, bytes, &mut loaded.unreadable));
                }
                Ok(None) => {}
                Err(reason) => loaded.unreadable.push(Unreadable { store: store.name().into(), name, reason }),
            }
        }
        loaded.shown = base.map(|manifest| Shown::fold(manifest, &copies));
        loaded
    }
}

fn note_name(copy: &CopyNames, note: &NoteName) -> String {
    Name::Note(copy.lineage, copy.id.clone(), note.kind.clone(), note.at).to_string()
}

/// What was not read is not there.
fn take(bytes: &mut Bytes, copy: &CopyNames, name: &str) -> crate::error::Result<Vec<u8>> {
    let read = bytes.remove(&(copy.store, name.to_string()));
    read.unwrap_or_else(|| Err(Error::new(Code::NotFound, "read object", name)))
}

/// `Ok(None)` when it is gone; the error is a reason for people.
fn understand(
    read: crate::error::Result<Vec<u8>>,
    copy: &CopyNames,
    base: Option<&Manifest>,
) -> Result<Option<Manifest>, String> {
    let bytes = match read {
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

fn fold_notes<'n>(
    store: &dyn Store,
    names: impl Iterator<Item = &'n NoteName>,
    copy: &CopyNames,
    bytes: &mut Bytes,
    unreadable: &mut Vec<Unreadable>,
) -> Copy {
    let mut read = Copy { store: store.name().into(), ..Copy::default() };
    for named in names {
        let NoteName { kind, at, irregular, .. } = named;
        if matches!(kind, NoteKind::Other(_)) && !irregular {
            continue;
        }
        let name = note_name(copy, named);
        let note = match take(bytes, copy, &name) {
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
