//! A file system of a given size, to be full when a test wants it to be.

use std::path::Path;

use tempfile::TempDir;

use super::run::Run;

/// A tmpfs; needs root, so ask [`super::skip_unless_root`] first. Unmounted when dropped.
pub struct SmallDisk {
    dir: TempDir,
}

impl SmallDisk {
    #[track_caller]
    pub fn new(bytes: u64) -> Self {
        let dir = tempfile::Builder::new().prefix("refloat-disk-").tempdir().expect("make a temporary directory");
        let options = format!("size={bytes},mode=0700");
        Run::new("mount").args(["-t", "tmpfs", "-o", &options, "refloat-test"]).args([dir.path()]).run().ok();
        SmallDisk { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a test that failed may have files open, and its temporary directory must still go.
        let unmounted = Run::new("umount").args(["-l".as_ref(), self.dir.path().as_os_str()]).run();
        if !unmounted.success() {
            eprintln!("{unmounted}");
        }
    }
}
