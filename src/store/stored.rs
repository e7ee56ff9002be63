//! An object of a store, read by a thread that may hang instead of the reader.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::PlainFile;
use crate::error::Result;
use crate::format::ReadAt;
use crate::fs::{Aside, Patience};

/// Length as of opening, like [`PlainFile`].
#[derive(Debug)]
pub struct StoredFile {
    file: Aside<Arc<PlainFile>>,
    len: u64,
    patience: Patience,
    /// The bytes go through a buffer of our own: the reader's may be gone when a call comes back late.
    buffer: Mutex<Vec<u8>>,
}

impl StoredFile {
    /// `on` names it in errors.
    pub(super) fn new(file: File, on: &str, patience: Patience) -> Result<StoredFile> {
        let plain = PlainFile::new(file, on)?;
        let len = plain.len();
        Ok(StoredFile { file: Aside::new(Arc::new(plain), patience.clone()), len, patience, buffer: Mutex::default() })
    }
}

impl ReadAt for StoredFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        const WHAT: &str = "read object in";
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.patience.check(WHAT).map_err(io::Error::other)?;
        let mut bytes = std::mem::take(&mut *self.buffer.lock().unwrap_or_else(PoisonError::into_inner));
        bytes.resize(buf.len(), 0);
        let file = Arc::clone(&self.file);
        let read = move || {
            crate::crash::point!("store::read_at");
            let done = file.read_at(offset, &mut bytes);
            Ok(done.map(|()| bytes))
        };
        let bytes = self.patience.look(WHAT, read).map_err(io::Error::other)??;
        buf.copy_from_slice(&bytes);
        *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
        Ok(())
    }
}
