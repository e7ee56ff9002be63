//! A file that is being written and has no final name yet.
//!
//! Best is a nameless file (`O_TMPFILE`): whatever happens to the writer, nothing stays behind. Some file systems
//! (NFS, some FUSE) refuse that; there it is a temporary name, locked while its writer lives, so that a sweep can
//! tell a living writer from a dead one without a clock and without a list of processes.

use std::fs::{File, TryLockError};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, openat, renameat2};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use super::patience::{is_undone, still_wanted};
use super::traced::trace;
use super::{Dir, os, random};
use crate::error::{Code, Error, Result};

/// Temporary names begin like this; 16 hex digits follow.
pub const STAGED_PREFIX: &str = ".refloat-tmp-";

/// Readable by the owner only: backups hold every secret of a cluster.
const MODE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

/// How many temporary names are tried when a sweep takes them away between creation and lock.
const NAMES: usize = 16;

/// A file without a final name. Dropped without [`Staged::publish`], it is gone.
#[derive(Debug)]
pub struct Staged {
    dir: Dir,
    file: File,
    /// `None` for a nameless file.
    pub(super) name: Option<String>,
}

impl Staged {
    pub(super) fn new(dir: &Dir) -> Result<Staged> {
        let flags = OFlag::O_TMPFILE | OFlag::O_RDWR | OFlag::O_CLOEXEC;
        match openat(dir, ".", flags, MODE) {
            Ok(fd) => {
                let file = File::from(fd);
                trace!(created(dir, &file));
                Ok(Staged { dir: dir.clone(), file, name: None })
            }
            // What file systems say that do not know nameless files.
            Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL | Errno::ENOSYS | Errno::ENOENT) => {
                Staged::named(dir)
            }
            Err(e) => Err(os::create_error("create temporary file in", dir.shown(""), e)),
        }
    }

    pub(super) fn named(dir: &Dir) -> Result<Staged> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        for _ in 0..NAMES {
            let name = temporary_name()?;
            let file = match dir.lookup(&name, flags, MODE) {
                Ok(fd) => File::from(fd),
                Err(Errno::EEXIST) => continue,
                Err(e) => return Err(os::create_error("create temporary file in", dir.shown(""), e)),
            };
            trace!(created(dir, &file));
            trace!(linked(dir, &name, &file));
            match file.try_lock() {
                Ok(()) => {}
                // A sweep found it before it was locked and is about to remove it.
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(e)) => {
                    // The lock is what keeps a sweep away; without locks there are no sweeps either, so the name
                    // would stay for ever if this process died.
                    let _ = unlinkat(dir, name.as_str(), UnlinkatFlags::NoRemoveDir);
                    return Err(os::io_error("lock temporary file in", dir.shown(""), e));
                }
            }
            if fstat(&file).is_ok_and(|s| s.st_nlink > 0) {
                return Ok(Staged { dir: dir.clone(), file, name: Some(name) });
            }
        }
        Err(Error::new(Code::Io, "create temporary file in", dir.shown(""))
            .because("each one was removed by somebody at once"))
    }

    /// Open for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether nothing stays behind even if this process is killed.
    pub fn is_nameless(&self) -> bool {
        self.name.is_none()
    }

    /// Gives the file its name beneath `dir` (same file system), durably: bytes first, then the name.
    /// `AlreadyExists` if the name is taken; the file is gone then.
    pub fn publish(mut self, dir: &Dir, rel: &str) -> Result<()> {
        let (parent, leaf) = dir.parent(rel)?;
        let on = || dir.shown(rel);
        self.sync(&on())?;
        crate::crash::point!("fs::before_name");
        still_wanted("create file", on)?;
        let named = match &self.name {
            None => linkat(AT_FDCWD, os::proc_path(&self.file).as_str(), &parent, leaf, AtFlags::AT_SYMLINK_FOLLOW),
            Some(temporary) => {
                match renameat2(&self.dir, temporary.as_str(), &parent, leaf, RenameFlags::RENAME_NOREPLACE) {
                    // Not every file system knows the flag. A link never replaces; the temporary name goes on drop.
                    Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
                        linkat(&self.dir, temporary.as_str(), &parent, leaf, AtFlags::empty())
                    }
                    Ok(()) => {
                        trace!(unlinked(&self.dir, temporary));
                        self.name = None;
                        Ok(())
                    }
                    refused => refused,
                }
            }
        };
        named.map_err(|e| os::create_error("create file", on(), e))?;
        trace!(linked(&parent, leaf, &self.file));
        crate::crash::point!("fs::after_name");
        parent.sync()?;
        if is_undone() {
            // Whoever asked was told that nothing was made: so it goes again, whatever happens then.
            let _ = unlinkat(&parent, leaf, UnlinkatFlags::NoRemoveDir).and_then(|()| nix::unistd::fsync(&parent));
            return still_wanted("create file", on);
        }
        Ok(())
    }

    /// Takes the place of `leaf` by the rename that the caller does.
    pub(super) fn replace(mut self, parent: &Dir, leaf: &str, rename: impl FnOnce(&str) -> Result<()>) -> Result<()> {
        self.sync(&parent.shown(leaf))?;
        crate::crash::point!("fs::before_name");
        still_wanted("replace file", || parent.shown(leaf))?;
        if let Some(temporary) = &self.name {
            rename(temporary)?;
            self.name = None;
        }
        crate::crash::point!("fs::after_name");
        parent.sync()
    }

    fn sync(&self, on: &str) -> Result<()> {
        #[cfg(any(test, feature = "failpoints"))]
        super::trace::fault(self.dir.path(), super::trace::Action::Sync)
            .map_err(|e| os::io_error("sync file", on, e))?;
        self.file.sync_all().map_err(|e| os::io_error("sync file", on, e))?;
        trace!(synced(self.dir.path(), &self.file, true));
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // A failure leaves a dead temporary name, which the next sweep takes.
            let _ = unlinkat(&self.dir, name.as_str(), UnlinkatFlags::NoRemoveDir);
            trace!(unlinked(&self.dir, name));
        }
    }
}

fn temporary_name() -> Result<String> {
    Ok(format!("{STAGED_PREFIX}{:016x}", u64::from_ne_bytes(random()?)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn dir() -> (tempfile::TempDir, Dir) {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        (tmp, dir)
    }

    fn both(dir: &Dir) -> [Staged; 2] {
        [Staged::new(dir).unwrap(), Staged::named(dir).unwrap()]
    }

    #[test]
    fn published_under_its_name_with_its_bytes() {
        let (tmp, dir) = dir();
        dir.create_dirs("a/b").unwrap();
        for (i, staged) in both(&dir).into_iter().enumerate() {
            staged.file().write_all(b"bytes").unwrap();
            staged.publish(&dir, &format!("a/b/{i}")).unwrap();
            assert_eq!(std::fs::read(tmp.path().join(format!("a/b/{i}"))).unwrap(), b"bytes");
        }
        assert_eq!(dir.entries().unwrap().len(), 1);
    }

    #[test]
    fn a_taken_name_is_refused_and_nothing_stays() {
        let (tmp, dir) = dir();
        std::fs::write(tmp.path().join("x"), b"old").unwrap();
        std::os::unix::fs::symlink("nowhere", tmp.path().join("y")).unwrap();
        for name in ["x", "y"] {
            for staged in both(&dir) {
                assert_eq!(staged.publish(&dir, name).unwrap_err().code(), Code::AlreadyExists);
            }
        }
        assert_eq!(std::fs::read(tmp.path().join("x")).unwrap(), b"old");
        assert_eq!(dir.entries().unwrap().len(), 2);
    }

    #[test]
    fn dropped_is_gone() {
        let (_tmp, dir) = dir();
        drop(both(&dir));
        assert!(dir.entries().unwrap().is_empty());
    }
}
