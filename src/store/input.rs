//! The bytes of a database, in whatever form they come: a plain file, one of our objects, any other `.zst`.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::PlainFile;
use super::codec::{Framed, IndexState, ZSTD_MAGIC, first_content_size, is_skippable};
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::fs::{Dir, is_out_of_space};

/// How the bytes are had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Plain,
    /// Out of independent frames, in place.
    Framed(IndexState),
    /// Out of a temporary file into which a compressed file of one piece was unpacked.
    Unpacked,
}

/// A database's bytes, open.
#[derive(Clone)]
pub struct Opened {
    /// Plain bytes.
    pub reader: Arc<dyn ReadAt>,
    pub form: Form,
    /// Length of what is stored; the plain length is the reader's.
    pub stored_len: u64,
    /// For a pipeline over frames, where there are any.
    pub framed: Option<Arc<Framed>>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Opened { reader, form, stored_len, .. } = self;
        let plain_len = reader.len();
        write!(f, "Opened {{ form: {form:?}, stored_len: {stored_len}, plain_len: {plain_len} }}")
    }
}

/// First bytes of forms that are recognised only to say what to do.
const FOREIGN: &[(&[u8], &str, &str)] = &[
    (b"\x1f\x8b", "gzip", "unpack it first, with `gzip -dk`"),
    (b"\xfd7zXZ\0", "xz", "unpack it first, with `xz -dk`"),
    (b"age-encryption.org/v1", "age", "decrypt it first, with `age -d`"),
    (b"PK\x03\x04", "zip", "unpack it first"),
];

/// Space that unpacking leaves to others, in bytes.
const RESERVE: u64 = 64 * 1024 * 1024;

/// How much is unpacked between two looks at the free space, in bytes.
const STRIDE: u64 = 32 * 1024 * 1024;

/// Opens a file that the user named. `NotFound` if it is missing; `DataInvalid` if it is compressed and damaged;
/// `TooLittleSpace` if it has to be unpacked and `$TMPDIR` is too small.
pub fn open_database_bytes(path: &Path) -> Result<Opened> {
    open_database_object(Arc::new(PlainFile::open(path)?), &path.display().to_string())
}

/// The same for an object that is open already; `on` names it in errors.
pub fn open_database_object(source: Arc<dyn ReadAt>, on: &str) -> Result<Opened> {
    let stored_len = source.len();
    let mut head = [0; 32];
    let head = &mut head[..stored_len.min(32) as usize];
    source.read_at(0, head).map_err(|e| Error::io("read file", on, e))?;
    if let Some((_, form, remedy)) = FOREIGN.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Err(Error::new(Code::DataInvalid, "open database", on)
            .because(format!("it is a {form} file"))
            .remedy(*remedy));
    }
    let magic = head.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
    if magic != ZSTD_MAGIC && !is_skippable(magic) {
        return Ok(Opened { reader: source, form: Form::Plain, stored_len, framed: None });
    }
    match Framed::open(Arc::clone(&source)) {
        Ok(framed) => {
            let framed = Arc::new(framed);
            let form = Form::Framed(framed.index_state());
            let reader: Arc<dyn ReadAt> = Arc::clone(&framed) as _;
            Ok(Opened { reader, form, stored_len, framed: Some(framed) })
        }
        Err(e) if e.needs_unpacking() => {
            let dir = Dir::open(&std::env::temp_dir()).map_err(|e| {
                e.during("unpack database", on).remedy("set TMPDIR to a directory with room for the unpacked file")
            })?;
            let reader = unpack(source, &dir, RESERVE, on)?;
            Ok(Opened { reader: Arc::new(reader), form: Form::Unpacked, stored_len, framed: None })
        }
        Err(e) => Err(e.into_error("open database", on)),
    }
}

/// Unpacks into a temporary file in `dir`, which is gone when the reader is dropped, and leaves `reserve` bytes free
/// there: a small file may claim to be a huge one.
fn unpack(source: Arc<dyn ReadAt>, dir: &Dir, reserve: u64, on: &str) -> Result<PlainFile> {
    let what = "unpack database";
    let place = dir.path().display().to_string();
    let room = |needed: u64| {
        let free = dir.space()?.free;
        if free >= needed.saturating_add(reserve) {
            return Ok(());
        }
        Err(Error::new(Code::TooLittleSpace, what, on)
            .because(format!("{place} has {free} bytes free, {needed} more and a reserve of {reserve} are needed"))
            .remedy("set TMPDIR to a directory on a larger disk, or unpack it there first with `zstd -d`"))
    };
    room(first_content_size(&*source).unwrap_or(STRIDE))?;
    let staged = dir.stage().map_err(|e| e.during(what, on))?;
    let failed = |e| Error::new(Code::DataInvalid, what, on).because(Explained(e));
    let mut decoder = zstd::stream::read::Decoder::new(Sequential { source, at: 0 }).map_err(failed)?;
    let mut buf = vec![0; 1024 * 1024];
    let mut since = 0;
    loop {
        let n = match decoder.read(&mut buf) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(failed(e)),
        };
        since += n as u64;
        if since >= STRIDE {
            room(STRIDE)?;
            since = 0;
        }
        staged.file().write_all(&buf[..n]).map_err(|e| {
            let err = Error::io("write temporary file in", &*place, e);
            let full = is_out_of_space(&err);
            let err = err.during(what, on);
            if full { err.with_code(Code::TooLittleSpace) } else { err }
        })?;
    }
    let file = staged.file().try_clone().map_err(|e| Error::io(what, on, e))?;
    PlainFile::new(file, on)
}

/// zstd's streaming decoder says "incomplete frame" for a file that ends early; the cause stays below it.
#[derive(Debug, thiserror::Error)]
#[error("the compressed bytes are damaged or end early")]
struct Explained(#[source] io::Error);

/// A source read in order.
struct Sequential {
    source: Arc<dyn ReadAt>,
    at: u64,
}

impl Read for Sequential {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = (self.source.len() - self.at).min(buf.len() as u64) as usize;
        self.source.read_at(self.at, &mut buf[..n])?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::{FrameWriter, LEVEL};
    use super::*;

    fn open(bytes: &[u8]) -> Result<Opened> {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("db");
        std::fs::write(&path, bytes).unwrap();
        open_database_bytes(&path)
    }

    fn all(opened: &Opened) -> Vec<u8> {
        let mut bytes = vec![0; opened.reader.len() as usize];
        opened.reader.read_at(0, &mut bytes).unwrap();
        bytes
    }

    fn data(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 7 % 251) as u8).collect()
    }

    fn streamed(bytes: &[u8]) -> Vec<u8> {
        // One frame without content size, as `zstd < db` makes it.
        zstd::stream::encode_all(bytes, 1).unwrap()
    }

    #[test]
    fn each_form_gives_the_same_bytes() {
        let plain = data(3_000_000);
        let mut framed = Vec::new();
        let mut writer = FrameWriter::new(&mut framed, LEVEL).unwrap();
        writer.write_all(&plain).unwrap();
        writer.finish(&[]).unwrap();
        let sized = zstd::bulk::compress(&plain, 1).unwrap();
        let huge = zstd::bulk::compress(&data(17 << 20), 1).unwrap();
        let mut two = streamed(&plain[..1000]);
        two.extend(streamed(&plain[1000..]));
        for (stored, form) in [
            (plain.clone(), Form::Plain),
            (framed, Form::Framed(IndexState::Stored)),
            (sized, Form::Framed(IndexState::Rebuilt("the object has none"))),
            (streamed(&plain), Form::Unpacked),
            (two, Form::Unpacked),
        ] {
            let opened = open(&stored).unwrap();
            assert_eq!((opened.form, opened.stored_len), (form, stored.len() as u64));
            assert!(all(&opened) == plain);
        }
        let opened = open(&huge).unwrap();
        assert_eq!((opened.form, opened.reader.len()), (Form::Unpacked, 17 << 20));
        for short in [&b""[..], b"x", b"etcd"] {
            let opened = open(short).unwrap();
            assert_eq!((opened.form, all(&opened)), (Form::Plain, short.to_vec()));
        }
    }

    #[test]
    fn a_damaged_or_cut_stream_is_an_error() {
        let stored = streamed(&data(3_000_000));
        for i in 1..64 {
            let cut = &stored[..stored.len() * i / 64];
            // What is shorter than the magic is a plain file of that many bytes.
            if cut.len() >= 4 {
                assert_eq!(open(cut).unwrap_err().code(), Code::DataInvalid, "{i}");
            }
        }
        let mut garbage = stored.clone();
        garbage.extend(b"garbage");
        assert_eq!(open(&garbage).unwrap_err().code(), Code::DataInvalid);
    }

    #[test]
    fn other_forms_are_named() {
        for (bytes, word) in
            [(&b"\x1f\x8b\x08\0"[..], "gzip"), (b"age-encryption.org/v1\n-> X25519", "age"), (b"\xfd7zXZ\0\0", "xz")]
        {
            let err = open(bytes).unwrap_err();
            assert_eq!(err.code(), Code::DataInvalid);
            assert!(err.why()[0].contains(word) && err.get_remedy().is_some());
        }
    }

    #[test]
    fn too_little_space_is_known_before_and_nothing_stays() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        for stored in [streamed(&data(1000)), zstd::bulk::compress(&data(17 << 20), 1).unwrap()] {
            let source = tmp.path().join("source");
            std::fs::write(&source, &stored).unwrap();
            let open = || Arc::new(PlainFile::open(&source).unwrap());
            let err = unpack(open(), &dir, u64::MAX / 2, "x").unwrap_err();
            assert_eq!(err.code(), Code::TooLittleSpace);
            assert!(unpack(open(), &dir, 0, "x").is_ok());
            assert_eq!(dir.entries().unwrap().len(), 1);
        }
    }
}
