//! A regular file that is written in place: for logs, which grow at their end and are cut there.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, fallocate, open};
use nix::sys::stat::Mode;

use super::traced::trace;
use super::{Dir, names, os};
use crate::error::{Code, Error, Result};

/// Open for reading and writing at offsets. Nothing is durable before a sync has returned.
#[derive(Debug)]
pub struct Writable {
    file: File,
    shown: String,
}

impl Dir {
    /// Opens an existing regular file with one name for writing in place; anything else is refused without being
    /// opened. `NotFound` if it is missing.
    pub fn open_writable(&self, rel: &str) -> Result<Writable> {
        names::check(rel)?;
        let shown = self.shown(rel);
        let failed = |e| os::create_error("open file", shown.clone(), e);
        // As for reading: a handle that opens nothing, then that very file.
        let found = File::from(self.lookup(rel, OFlag::O_PATH | OFlag::O_NOFOLLOW, Mode::empty()).map_err(failed)?);
        let meta = os::check_regular(&found, &shown)?;
        let links = std::os::unix::fs::MetadataExt::nlink(&meta);
        if links > 1 {
            return Err(os::linked("open file", shown, links));
        }
        let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = File::from(open(os::proc_path(&found).as_str(), flags, Mode::empty()).map_err(failed)?);
        Ok(Writable { file, shown })
    }
}

impl Writable {
    /// For messages.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Bytes.
    pub fn size(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| os::io_error("look at file", &*self.shown, e))?.len())
    }

    /// Fills `into` from `offset`; `Io` if the file ends before.
    pub fn read_exact_at(&self, into: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(into, offset).map_err(|e| os::io_error("read file", &*self.shown, e))
    }

    /// All bytes or an error, after which some of them may be there.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let failed = |e| os::io_error("write file", &*self.shown, e);
        #[cfg(any(test, feature = "failpoints"))]
        if let Err(e) = super::trace::fault(self.shown.as_ref(), super::trace::Action::Write) {
            // As a disk that fills up does it.
            let half = &bytes[..bytes.len() / 2];
            self.file.write_all_at(half, offset).map_err(failed)?;
            trace!(written(&self.shown, &self.file, half, offset));
            return Err(failed(e));
        }
        self.file.write_all_at(bytes, offset).map_err(failed)?;
        trace!(written(&self.shown, &self.file, bytes, offset));
        Ok(())
    }

    /// Cuts the file, or lengthens it with zeros. What was reserved beyond the end is given back.
    pub fn set_len(&self, len: u64) -> Result<()> {
        let failed = |e| os::io_error("cut file", &*self.shown, e);
        #[cfg(any(test, feature = "failpoints"))]
        super::trace::fault(self.shown.as_ref(), super::trace::Action::SetLen).map_err(failed)?;
        self.file.set_len(len).map_err(failed)?;
        trace!(cut(&self.shown, &self.file, len));
        Ok(())
    }

    /// Reserves room on the disk for `len` bytes from `offset` on, without changing the size. False where the file
    /// system knows no such thing; an error that [`super::is_out_of_space`] knows where there is no room.
    pub fn reserve(&self, offset: u64, len: u64) -> Result<bool> {
        const WHAT: &str = "reserve space in";
        let signed = |n: u64| i64::try_from(n).map_err(|e| Error::new(Code::Internal, WHAT, &*self.shown).because(e));
        let (offset, len) = (signed(offset)?, signed(len)?);
        loop {
            return match fallocate(&self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, offset, len) {
                Ok(()) => Ok(true),
                Err(Errno::EINTR) => continue,
                Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL) => Ok(false),
                Err(e) => Err(os::error(WHAT, &*self.shown, e)),
            };
        }
    }

    /// Makes bytes and size durable.
    pub fn sync(&self) -> Result<()> {
        let failed = |e| os::io_error("sync file", &*self.shown, e);
        #[cfg(any(test, feature = "failpoints"))]
        if let Err(e) = super::trace::fault(self.shown.as_ref(), super::trace::Action::Sync) {
            trace!(sync_failed(&self.shown, &self.file));
            return Err(failed(e));
        }
        self.file.sync_data().map_err(failed)?;
        trace!(synced(self.shown.as_ref(), &self.file, false));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_and_is_cut_in_place() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        dir.create("log", b"head").unwrap();
        let file = dir.open_writable("log").unwrap();
        file.reserve(4, 1 << 20).unwrap();
        assert_eq!(file.size().unwrap(), 4, "a reserve is no size");
        file.write_all_at(b"tail", 4).unwrap();
        file.sync().unwrap();
        let mut bytes = [0; 6];
        file.read_exact_at(&mut bytes, 2).unwrap();
        assert_eq!(&bytes, b"adtail");
        assert_eq!(file.read_exact_at(&mut bytes, 4).unwrap_err().code(), Code::Io);
        file.set_len(5).unwrap();
        assert_eq!(dir.read("log", 100).unwrap(), b"headt");
    }

    #[test]
    fn links_and_devices_are_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        dir.create("two", b"").unwrap();
        std::fs::hard_link(tmp.path().join("two"), tmp.path().join("names")).unwrap();
        std::os::unix::fs::symlink("two", tmp.path().join("link")).unwrap();
        nix::unistd::mkfifo(&tmp.path().join("fifo"), Mode::S_IRWXU).unwrap();
        for name in ["two", "names", "link", "fifo"] {
            assert!(dir.open_writable(name).is_err(), "{name}");
        }
        assert_eq!(dir.open_writable("none").unwrap_err().code(), Code::NotFound);
    }
}
