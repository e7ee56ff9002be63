//! A regular file as random access.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::fs::check_regular;

/// Length as of opening: a file that grows or shrinks meanwhile gives the old bytes or an `UnexpectedEof`.
#[derive(Debug)]
pub struct PlainFile {
    file: File,
    len: u64,
}

/// Whether another process holds a lock on the file, as a running etcd does on its database.
pub fn in_use(path: &Path) -> bool {
    let Ok(file) = PlainFile::open(path) else { return false };
    matches!(file.file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock))
}

impl PlainFile {
    /// Opens a file that the user named; links are followed, since it is the user's path and not a store's.
    /// `NotFound` if it is missing; a directory, FIFO or device is refused without waiting for anything.
    pub fn open(path: &Path) -> Result<PlainFile> {
        let on = path.display().to_string();
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = File::options().read(true).custom_flags(flags.bits()).open(path).map_err(|e| {
            let code = if e.kind() == io::ErrorKind::NotFound { Code::NotFound } else { Code::Io };
            Error::new(code, "open file", &*on).because(e)
        })?;
        PlainFile::new(file, &on)
    }

    /// `on` names the file in errors.
    pub fn new(file: File, on: &str) -> Result<PlainFile> {
        let len = check_regular(&file, on)?.len();
        Ok(PlainFile { file, len })
    }
}

impl ReadAt for PlainFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.read_exact_at(buf, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_within_its_length_only() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("x");
        std::fs::write(&path, b"0123456789").unwrap();
        let file = PlainFile::open(&path).unwrap();
        let mut buf = [0; 4];
        file.read_at(6, &mut buf).unwrap();
        assert_eq!((&buf, file.len()), (b"6789", 10));
        for offset in [7, 10, u64::MAX - 1] {
            assert_eq!(file.read_at(offset, &mut buf).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        File::options().write(true).open(&path).unwrap().set_len(8).unwrap();
        assert_eq!(file.read_at(6, &mut buf).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_file_is_named() {
        let tmp = tempfile::tempdir().unwrap();
        let fifo = tmp.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (path, code, word) in [
            (tmp.path().join("none"), Code::NotFound, "No such file"),
            (tmp.path().into(), Code::DataInvalid, "directory"),
            (fifo, Code::DataInvalid, "FIFO"),
            ("/dev/null".into(), Code::DataInvalid, "device"),
        ] {
            let err = PlainFile::open(&path).unwrap_err();
            assert_eq!(err.code(), code, "{}", path.display());
            assert!(err.why()[0].contains(word), "{:?}", err.why());
        }
    }
}
