//! What a file system still holds.

use nix::sys::statvfs::{FsFlags, fstatvfs};

use super::{Dir, os};
use crate::error::Result;

/// In bytes. `free` is what this process may still use: the part reserved for root does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    pub free: u64,
    /// Files that may still be made; `None` where the file system has no such limit.
    pub free_files: Option<u64>,
    pub read_only: bool,
}

impl Dir {
    pub fn space(&self) -> Result<Space> {
        let fs = fstatvfs(self).map_err(|e| os::error("read free space of", self.shown(""), e))?;
        // Some file systems leave the fragment size at 0 and mean the block size.
        let unit = if fs.fragment_size() == 0 { fs.block_size() } else { fs.fragment_size() };
        Ok(Space {
            total: fs.blocks().saturating_mul(unit),
            free: fs.blocks_available().saturating_mul(unit),
            free_files: (fs.files() > 0).then(|| fs.files_available()),
            read_only: fs.flags().contains(FsFlags::ST_RDONLY),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_is_within_total() {
        let tmp = tempfile::tempdir().unwrap();
        let space = Dir::open(tmp.path()).unwrap().space().unwrap();
        assert!(space.total > 0 && space.free <= space.total, "{space:?}");
        assert!(!space.read_only);
    }
}
