//! What is in a directory, seen through its handle.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, SFlag, fstatat};

use super::patience::still_wanted;
use super::{Dir, os};
use crate::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Link,
    /// A FIFO, a socket or a device.
    Other,
}

/// One name, as raw bytes, and what it stands for. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    pub name: OsString,
    pub kind: Kind,
}

/// Facts of one name. Links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    pub modified: jiff::Timestamp,
    /// Names that lead to it.
    pub links: u64,
    /// Device and inode.
    pub identity: (u64, u64),
}

impl Dir {
    /// All names in this directory itself, by bytes; `.` and `..` aside. One directory is held in memory, without
    /// sizes and times: those cost a system call for each name, see [`Dir::stat`].
    pub fn entries(&self) -> Result<Vec<DirEntry>> {
        let mut found = Vec::new();
        self.scan(|entry| found.push(entry))?;
        found.sort_unstable_by(|a, b| by_bytes(&a.name, &b.name));
        Ok(found)
    }

    /// The same one by one, in no order, for a directory that need not be held in memory.
    pub fn scan(&self, mut see: impl FnMut(DirEntry)) -> Result<()> {
        let failed = |e| os::io_error("list directory", self.shown(""), e);
        for entry in std::fs::read_dir(os::proc_path(self)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = match entry.file_type() {
                Ok(t) if t.is_file() => Kind::File,
                Ok(t) if t.is_dir() => Kind::Dir,
                Ok(t) if t.is_symlink() => Kind::Link,
                Ok(_) => Kind::Other,
                // It vanished between the two calls, where the file system does not give kinds with the names.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(failed(e)),
            };
            // A long directory that is read is not one that hangs.
            still_wanted("list directory", || self.shown(""))?;
            see(DirEntry { name: entry.file_name(), kind });
        }
        Ok(())
    }

    /// Facts of one name in this directory itself; `None` if it is not there.
    pub fn stat(&self, name: &OsStr) -> Result<Option<Stat>> {
        if name.is_empty() || name.as_bytes().contains(&b'/') {
            return Ok(None);
        }
        match fstatat(self, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(raw) => Ok(Some(Stat::of(&raw))),
            Err(Errno::ENOENT) => Ok(None),
            Err(e) => Err(os::error("look at", self.shown(&name.to_string_lossy()), e)),
        }
    }
}

impl Stat {
    fn of(raw: &FileStat) -> Stat {
        let kind = match SFlag::from_bits_truncate(raw.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => Kind::File,
            SFlag::S_IFDIR => Kind::Dir,
            SFlag::S_IFLNK => Kind::Link,
            _ => Kind::Other,
        };
        // A time outside of years -9999 to 9999 can only be damage; the epoch is the harmless reading.
        let nanos = i32::try_from(raw.st_mtime_nsec).unwrap_or(0);
        let modified = jiff::Timestamp::new(raw.st_mtime, nanos).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let size = u64::try_from(raw.st_size).unwrap_or(0);
        Stat { kind, size, modified, links: raw.st_nlink, identity: (raw.st_dev, raw.st_ino) }
    }
}

fn by_bytes(a: &OsStr, b: &OsStr) -> Ordering {
    a.as_bytes().cmp(b.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn odd_names_come_back_as_they_are_and_in_order() {
        let tmp = tempfile::tempdir().unwrap();
        let odd = [b"-rf".to_vec(), b"a\nb".to_vec(), b"\xff\xfe".to_vec(), vec![b'x'; 255], b" ".to_vec()];
        for name in &odd {
            std::fs::write(tmp.path().join(OsStr::from_bytes(name)), b"12").unwrap();
        }
        std::fs::create_dir(tmp.path().join("dir")).unwrap();
        std::os::unix::fs::symlink("/", tmp.path().join("link")).unwrap();
        nix::unistd::mkfifo(&tmp.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();

        let dir = Dir::open(tmp.path()).unwrap();
        let entries = dir.entries().unwrap();
        let mut want: Vec<OsString> = odd.iter().cloned().map(OsString::from_vec).collect();
        want.extend(["dir", "link", "fifo"].map(OsString::from));
        want.sort();
        assert_eq!(entries.iter().map(|e| e.name.clone()).collect::<Vec<_>>(), want);
        for entry in entries {
            let stat = dir.stat(&entry.name).unwrap().unwrap();
            assert_eq!(stat.kind, entry.kind);
            match entry.name.to_str() {
                Some("dir") => assert_eq!(stat.kind, Kind::Dir),
                Some("link") => assert_eq!(stat.kind, Kind::Link),
                Some("fifo") => assert_eq!(stat.kind, Kind::Other),
                _ => assert_eq!((stat.kind, stat.size), (Kind::File, 2)),
            }
        }
        assert_eq!(dir.stat(OsStr::new("none")).unwrap(), None);
        assert_eq!(dir.stat(OsStr::new("dir/x")).unwrap(), None);
    }
}
