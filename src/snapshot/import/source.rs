//! The file that is imported, open, with what makes it the same file at the end as at the beginning.

use std::fs::{File, Metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use nix::fcntl::OFlag;

use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::snapshot::judge::Object;
use crate::store::{PlainFile, in_use, open_database_object};

/// First bytes of a zip archive: what k3s and RKE2 write with `--etcd-snapshot-compress` (one deflated file in it).
const ZIP: &[u8] = b"PK\x03\x04";

/// A file that somebody else captured.
pub struct Source {
    path: PathBuf,
    file: File,
    stamp: Stamp,
    /// The database's bytes, whatever form the file has.
    pub object: Object,
    pub reader: Arc<dyn ReadAt>,
    /// Last change of the file.
    pub modified: Timestamp,
    /// Another process holds it, as a running etcd does with its own database.
    pub live: bool,
}

/// What changes when somebody writes to a file or puts another one into its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Stamp {
        let modified = (meta.mtime(), meta.mtime_nsec());
        Stamp { device: meta.dev(), inode: meta.ino(), size: meta.size(), modified }
    }
}

impl Source {
    /// Opens a plain, framed or otherwise zstd-compressed database. `NotFound` if it is missing, `DataInvalid` for
    /// forms that have to be unpacked first, and for what is no regular file.
    pub fn open(path: &Path) -> Result<Source> {
        let on = path.display().to_string();
        // A FIFO must not make the command wait for a writer.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = File::options().read(true).custom_flags(flags.bits()).open(path).map_err(|e| {
            let code = if e.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Io };
            Error::new(code, "open file", &*on).because(e)
        })?;
        let looked = |e| Error::io("look at file", &*on, e);
        let meta = file.metadata().map_err(looked)?;
        let plain = PlainFile::new(file.try_clone().map_err(looked)?, &on)?;
        refuse_zip(&plain, &on)?;
        let opened = open_database_object(Arc::new(plain), &on)?;
        let object = match opened.framed {
            Some(framed) => Object::Framed(framed),
            None => Object::Plain(opened.reader.clone()),
        };
        let nanos = i32::try_from(meta.mtime_nsec()).unwrap_or(0);
        let modified = Timestamp::new(meta.mtime(), nanos)
            .map_err(|e| Error::new(Code::DataInvalid, "read time of file", &*on).because(e))?;
        let stamp = Stamp::of(&meta);
        Ok(Source { path: path.into(), file, stamp, object, reader: opened.reader, modified, live: in_use(path) })
    }

    /// For messages and the manifest: as given.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// `DataInvalid` when the file is not what it was when it was opened, neither behind the handle nor under its name.
    pub fn check_unchanged(&self) -> Result<()> {
        let looked = |e| Error::io("look at file", self.name(), e);
        let now = Stamp::of(&self.file.metadata().map_err(looked)?);
        // A file that is gone from its path was read to its end all the same; another one in its place was not.
        let named = std::fs::metadata(&self.path).ok().map(|meta| Stamp::of(&meta));
        if now == self.stamp && named.is_none_or(|named| named == self.stamp) {
            return Ok(());
        }
        Err(self.changed())
    }

    /// The error for bytes that are not those which were judged.
    pub fn changed(&self) -> Error {
        Error::new(Code::DataInvalid, "import", self.name())
            .because("the file changed while it was read")
            .remedy("import it once it is complete and nobody writes to it; nothing was stored")
    }
}

fn refuse_zip(plain: &PlainFile, on: &str) -> Result<()> {
    let mut head = [0; ZIP.len()];
    if plain.len() < head.len() as u64 {
        return Ok(());
    }
    plain.read_at(0, &mut head).map_err(|e| Error::io("read file", on, e))?;
    if head != ZIP {
        return Ok(());
    }
    Err(Error::new(Code::DataInvalid, "open file", on)
        .because("it is a zip archive: k3s and RKE2 put compressed snapshots into one")
        .remedy("unpack it with `unzip`, then import the file that was in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_is_noticed() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("db");
        let other = tmp.path().join("other");
        type Change = fn(&Path, &Path);
        let changes: [(&str, Change); 4] = [
            ("grown", |path, _| std::fs::write(path, b"0123456789abcdef").unwrap()),
            ("cut", |path, _| std::fs::write(path, b"0").unwrap()),
            ("touched", |path, _| {
                let file = File::options().write(true).open(path).unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            }),
            ("replaced", |path, other| std::fs::rename(other, path).unwrap()),
        ];
        for (name, change) in changes {
            std::fs::write(&path, b"0123456789").unwrap();
            std::fs::write(&other, b"0123456789").unwrap();
            let source = Source::open(&path).unwrap();
            assert!(source.check_unchanged().is_ok(), "{name}");
            change(&path, &other);
            assert_eq!(source.check_unchanged().unwrap_err().code(), Code::DataInvalid, "{name}");
        }
        std::fs::write(&path, b"0123456789").unwrap();
        let source = Source::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(source.check_unchanged().is_ok(), "the open file is still the same");
    }

    #[test]
    fn archives_and_other_forms_are_named() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("file");
        for (bytes, word, remedy) in [
            (&b"PK\x03\x04rest"[..], "zip", "unzip"),
            (b"\x1f\x8b\x08\0", "gzip", "gzip -dk"),
            (b"\xfd7zXZ\0\0", "xz", "xz -dk"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = Source::open(&path).err().unwrap();
            assert_eq!(error.code(), Code::DataInvalid);
            assert!(error.why()[0].contains(word), "{:?}", error.why());
            assert!(error.get_remedy().unwrap().contains(remedy), "{error}");
        }
        assert_eq!(Source::open(&tmp.path().join("none")).err().map(|e| e.code()), Some(Code::NotFound));
        assert_eq!(Source::open(tmp.path()).err().map(|e| e.code()), Some(Code::DataInvalid));
    }
}
