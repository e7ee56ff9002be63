//! A directory opened once; everything beneath it goes through that handle.
//!
//! A path is a question that can get another answer each time: a disk is unmounted, a link is swapped, a `cd` fails
//! and the next command runs in `/`. A handle is an answer. `openat2` lets the kernel refuse, for each name beneath,
//! to leave the directory, to follow a link or to cross into another mount.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, RenameFlags, ResolveFlag, open, openat2, renameat, renameat2};
use nix::sys::stat::{Mode, fchmod, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, fchown, fsync, unlinkat};

use super::traced::trace;
use super::{Kind, Staged, names, os};
use crate::error::{Code, Error, Result};

const DIRECTORY: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// How often a lookup is tried again that the kernel gave up because of a rename at the same moment.
const RACES: usize = 64;

/// A handle on a directory. Clones share it.
#[derive(Debug, Clone)]
pub struct Dir {
    handle: Arc<OwnedFd>,
    path: PathBuf,
    identity: (u64, u64),
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl AsRawFd for Dir {
    fn as_raw_fd(&self) -> RawFd {
        self.handle.as_raw_fd()
    }
}

impl Dir {
    /// Opens a directory; links in `path` are resolved, this once. `NotFound` if it is missing.
    pub fn open(path: &Path) -> Result<Dir> {
        let on = || path.display().to_string();
        let handle = open(path, DIRECTORY, Mode::empty()).map_err(|e| os::error("open directory", on(), e))?;
        // The kernel's own name of what was opened: it cannot differ from the handle, as a second lookup could.
        let real = std::fs::read_link(os::proc_path(&handle))
            .map_err(|e| os::io_error("read real path of", on(), e).remedy("mount /proc"))?;
        Dir::from_handle(handle, real)
    }

    fn from_handle(handle: OwnedFd, path: PathBuf) -> Result<Dir> {
        let stat = fstat(&handle).map_err(|e| os::error("look at directory", path.display().to_string(), e))?;
        Ok(Dir { handle: Arc::new(handle), path, identity: (stat.st_dev, stat.st_ino) })
    }

    /// The real path at the time of opening. For people: never used to open anything.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode: equal means the same directory.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Path of a name beneath, for messages.
    pub(super) fn shown(&self, rel: &str) -> String {
        if rel.is_empty() { self.path.display().to_string() } else { self.path.join(rel).display().to_string() }
    }

    /// Raw lookup of a checked name beneath this directory.
    pub(super) fn lookup(&self, rel: &str, flags: OFlag, mode: Mode) -> Result<OwnedFd, Errno> {
        let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).mode(mode).resolve(
            ResolveFlag::RESOLVE_BENEATH
                | ResolveFlag::RESOLVE_NO_SYMLINKS
                | ResolveFlag::RESOLVE_NO_MAGICLINKS
                | ResolveFlag::RESOLVE_NO_XDEV,
        );
        let mut tries = 0;
        loop {
            match openat2(&self.handle, rel, how) {
                Err(Errno::EAGAIN | Errno::EINTR) if tries < RACES => tries += 1,
                other => return other,
            }
        }
    }

    /// A directory beneath; the empty name is this one. `NotFound` if it is missing.
    pub fn open_dir(&self, rel: &str) -> Result<Dir> {
        if rel.is_empty() {
            return Ok(self.clone());
        }
        names::check(rel)?;
        let fd =
            self.lookup(rel, DIRECTORY, Mode::empty()).map_err(|e| os::error("open directory", self.shown(rel), e))?;
        Dir::from_handle(fd, self.path.join(rel))
    }

    /// Opens a directory beneath and makes each missing level (mode 0700) durably; the empty name is this one.
    pub fn create_dirs(&self, rel: &str) -> Result<Dir> {
        if rel.is_empty() {
            return Ok(self.clone());
        }
        names::check(rel)?;
        let mut at = self.clone();
        for part in rel.split('/') {
            at = match at.open_dir(part) {
                Err(e) if e.code() == Code::NotFound => {
                    match mkdirat(&at, part, Mode::S_IRWXU) {
                        Ok(()) => {
                            trace!(made_dir(&at, part));
                        }
                        // Somebody else may just have made it; only a synced parent makes it ours to build on.
                        Err(Errno::EEXIST) => {}
                        Err(e) => return Err(os::create_error("create directory", at.shown(part), e)),
                    }
                    at.sync()?;
                    at.open_dir(part)?
                }
                other => other?,
            };
        }
        Ok(at)
    }

    /// Makes one directory beneath with exactly this mode, durably. `AlreadyExists` if the name is taken.
    pub fn make_dir(&self, name: &str, mode: u32) -> Result<Dir> {
        names::check(name)?;
        let (parent, leaf) = self.parent(name)?;
        let mode = Mode::from_bits_truncate(mode);
        let failed = |e| os::create_error("create directory", self.shown(name), e);
        mkdirat(&parent, leaf, mode).map_err(failed)?;
        trace!(made_dir(&parent, leaf));
        let made = parent.open_dir(leaf)?;
        // The mask of the process has no say in it.
        fchmod(&made, mode).map_err(failed)?;
        parent.sync()?;
        Ok(made)
    }

    /// The directory that holds the last part of `rel`, and that part.
    pub(super) fn parent<'n>(&self, rel: &'n str) -> Result<(Dir, &'n str)> {
        names::check(rel)?;
        let (parent, leaf) = names::split(rel);
        Ok((self.open_dir(parent)?, leaf))
    }

    /// Makes this directory, not what is in it, somebody else's; one that is not root's stays as it is.
    pub fn give_to(&self, uid: u32, gid: u32) -> Result<()> {
        let failed = |e| os::error("change owner of directory", self.shown(""), e);
        if fstat(self).map_err(failed)?.st_uid != 0 {
            return Ok(());
        }
        fchown(self, Some(uid.into()), Some(gid.into())).map_err(failed)
    }

    /// Makes this directory's names durable.
    pub fn sync(&self) -> Result<()> {
        const WHAT: &str = "sync directory";
        #[cfg(any(test, feature = "failpoints"))]
        super::trace::fault(&self.path, super::trace::Action::SyncDir)
            .map_err(|e| os::io_error(WHAT, self.shown(""), e))?;
        fsync(self).map_err(|e| os::error(WHAT, self.shown(""), e))?;
        trace!(synced_dir(self));
        Ok(())
    }

    /// Opens a regular file for reading. Anything else (link, FIFO, device) is refused without being opened.
    pub fn open_file(&self, rel: &str) -> Result<File> {
        names::check(rel)?;
        let on = self.shown(rel);
        let failed = |e| os::error("open file", on.clone(), e);
        // First a handle that opens nothing; then, once it is known to be a regular file, that very file.
        let found = File::from(self.lookup(rel, OFlag::O_PATH | OFlag::O_NOFOLLOW, Mode::empty()).map_err(failed)?);
        os::check_regular(&found, &on)?;
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        Ok(File::from(open(os::proc_path(&found).as_str(), flags, Mode::empty()).map_err(failed)?))
    }

    /// The whole file; `DataInvalid` if it is larger than `limit` bytes, `NotFound` if it is missing.
    pub fn read(&self, rel: &str, limit: u64) -> Result<Vec<u8>> {
        let file = self.open_file(rel)?;
        let on = self.shown(rel);
        let size = file.metadata().map_err(|e| os::io_error("look at file", on.clone(), e))?.len();
        let too_large = |size: u64| {
            Error::new(Code::DataInvalid, "read file", on.clone())
                .because(format!("it has {size} bytes, at most {limit} are expected"))
        };
        if size > limit {
            return Err(too_large(size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        file.take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|e| os::io_error("read file", on.clone(), e))?;
        // It grew meanwhile.
        if bytes.len() as u64 > limit { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
    }

    /// Creates a file with all its bytes, durably and at once: after a crash it is there whole or not at all.
    /// The directory that holds it must exist. `AlreadyExists` if the name is taken, by whatever.
    pub fn create(&self, rel: &str, bytes: &[u8]) -> Result<()> {
        let staged = self.filled(Staged::new(self)?, rel, bytes)?;
        staged.publish(self, rel)
    }

    /// Creates or replaces a file durably: after a crash it has the old bytes or the new ones.
    pub fn replace(&self, rel: &str, bytes: &[u8]) -> Result<()> {
        let (parent, leaf) = self.parent(rel)?;
        // Only a file that has a name can take another one's place.
        let staged = self.filled(Staged::named(&parent)?, rel, bytes)?;
        self.take_place(staged, &parent, leaf, rel)
    }

    /// The same for a file that everybody may read (mode 0644): configuration, never what is backed up.
    pub fn replace_public(&self, rel: &str, bytes: &[u8]) -> Result<()> {
        let (parent, leaf) = self.parent(rel)?;
        let staged = self.filled(Staged::named(&parent)?, rel, bytes)?;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR | Mode::S_IRGRP | Mode::S_IROTH;
        fchmod(staged.file(), mode).map_err(|e| os::create_error("set mode of", self.shown(rel), e))?;
        self.take_place(staged, &parent, leaf, rel)
    }

    /// The same for a secret that one group may read (mode 0640).
    pub fn replace_for_group(&self, rel: &str, bytes: &[u8], gid: u32) -> Result<()> {
        let (parent, leaf) = self.parent(rel)?;
        let staged = self.filled(Staged::named(&parent)?, rel, bytes)?;
        let failed = |e| os::create_error("set owner and mode of", self.shown(rel), e);
        fchown(staged.file(), None, Some(gid.into())).map_err(failed)?;
        fchmod(staged.file(), Mode::S_IRUSR | Mode::S_IWUSR | Mode::S_IRGRP).map_err(failed)?;
        self.take_place(staged, &parent, leaf, rel)
    }

    fn take_place(&self, staged: Staged, parent: &Dir, leaf: &str, rel: &str) -> Result<()> {
        if let Some(stat) = parent.stat(leaf.as_ref())?
            && stat.kind != Kind::File
        {
            return Err(os::irregular("replace file", self.shown(rel)));
        }
        staged.replace(parent, leaf, |from| {
            renameat(parent, from, parent, leaf).map_err(|e| os::create_error("replace file", self.shown(rel), e))?;
            trace!(renamed(parent, from, parent, leaf));
            Ok(())
        })
    }

    fn filled(&self, staged: Staged, rel: &str, bytes: &[u8]) -> Result<Staged> {
        staged.file().write_all(bytes).map_err(|e| os::io_error("write file", self.shown(rel), e))?;
        Ok(staged)
    }

    /// A file on this directory's file system that has no name yet.
    pub fn stage(&self) -> Result<Staged> {
        Staged::new(self)
    }

    /// Removes a regular file durably; a directory, a link, anything on another file system or with a second name
    /// (hard link) is refused. `NotFound` if it is missing.
    pub fn remove_file(&self, rel: &str) -> Result<()> {
        const WHAT: &str = "remove file";
        let (parent, leaf) = self.own_file(WHAT, rel)?;
        unlinkat(&parent, leaf, UnlinkatFlags::NoRemoveDir).map_err(|e| os::create_error(WHAT, self.shown(rel), e))?;
        trace!(unlinked(&parent, leaf));
        parent.sync()
    }

    /// Gives a regular file another name beneath, durably: after a crash it has the old name or the new one. Refused
    /// for all that [`Dir::remove_file`] refuses; `AlreadyExists` if the name is taken. The directory that is to hold
    /// it must exist.
    pub fn rename_file(&self, rel: &str, to: &str) -> Result<()> {
        const WHAT: &str = "rename file";
        let (from, leaf) = self.own_file(WHAT, rel)?;
        let (into, new) = self.parent(to)?;
        let failed = |e| os::create_error(WHAT, format!("{} to {to}", self.shown(rel)), e);
        match renameat2(&from, leaf, &into, new, RenameFlags::RENAME_NOREPLACE) {
            // Not every file system knows the flag; there nobody else takes the name between look and rename.
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => match into.stat(new.as_ref())? {
                Some(_) => Err(Errno::EEXIST),
                None => renameat(&from, leaf, &into, new),
            },
            other => other,
        }
        .map_err(failed)?;
        trace!(renamed(&from, leaf, &into, new));
        into.sync()?;
        if into.identity == from.identity { Ok(()) } else { from.sync() }
    }

    /// Refuses what [`Dir::remove_file`] would refuse.
    pub fn check_own(&self, rel: &str) -> Result<()> {
        self.own_file("look at file", rel).map(drop)
    }

    /// The directory of a file that refloat may have written, and its name there.
    fn own_file<'n>(&self, what: &str, rel: &'n str) -> Result<(Dir, &'n str)> {
        let (parent, leaf) = self.parent(rel)?;
        let failed = |e| os::create_error(what, self.shown(rel), e);
        let stat = parent.stat(leaf.as_ref())?.ok_or_else(|| failed(Errno::ENOENT))?;
        if stat.kind != Kind::File {
            return Err(os::irregular(what, self.shown(rel)));
        }
        if stat.identity.0 != self.identity.0 {
            return Err(failed(Errno::EXDEV));
        }
        if stat.links > 1 {
            return Err(os::linked(what, self.shown(rel), stat.links));
        }
        Ok((parent, leaf))
    }
}

#[cfg(test)]
mod tests;
