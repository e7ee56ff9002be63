//! Opens what is to be judged: a stored snapshot or a file that somebody named.

use std::path::Path;
use std::sync::Arc;

use super::judge::Object;
use crate::catalog::{Manifest, Name};
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::store::codec::{Framed, IndexState};
use crate::store::{Form, LocalStore, Store, open_database_bytes};

/// A file, open, and how its bytes are had.
pub struct OpenFile {
    pub object: Object,
    pub form: Form,
}

/// Any database file: with or without trailer, plain or zstd.
pub fn file(path: &Path) -> Result<OpenFile> {
    let opened = open_database_bytes(path)?;
    let object = match opened.framed {
        Some(framed) => Object::Framed(framed),
        None => Object::Plain(opened.reader),
    };
    Ok(OpenFile { object, form: opened.form })
}

/// A snapshot's object in one store; the note says when its frame index had to be rebuilt.
pub fn stored(store: &LocalStore, manifest: &Manifest) -> Result<(Object, Option<String>)> {
    let name = Name::Data(manifest.lineage, manifest.id.clone(), manifest.codec).to_string();
    let source: Arc<dyn ReadAt> = store.open(&name)?.into();
    let len = source.len();
    if len != manifest.size.stored {
        return Err(Error::new(Code::DataInvalid, "open", format!("{name} in store {}", store.name()))
            .because(format!("it has {len} bytes, its manifest says {}", manifest.size.stored)));
    }
    let framed =
        Framed::open(source).map_err(|e| e.into_error("open", &format!("{name} in store {}", store.name())))?;
    let note = match framed.index_state() {
        IndexState::Stored => None,
        IndexState::Rebuilt(why) => Some(format!("the frame index was rebuilt: {why}")),
    };
    Ok((Object::Framed(Arc::new(framed)), note))
}
