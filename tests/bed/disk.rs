//! A file system of a given size, to be full when a test wants it to be.

use std::path::{Path, PathBuf};

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

/// An ext4 of its own in a file, to be frozen; needs root. Thawed and unmounted when dropped.
pub struct FreezableDisk {
    dir: TempDir,
}

impl FreezableDisk {
    /// Of so many MiB.
    #[track_caller]
    pub fn new(mib: u64) -> Self {
        let dir = tempfile::Builder::new().prefix("refloat-freeze-").tempdir().expect("make a temporary directory");
        let (image, at) = (dir.path().join("image"), dir.path().join("disk"));
        std::fs::File::create(&image).and_then(|file| file.set_len(mib << 20)).expect("make an image");
        std::fs::create_dir(&at).expect("make a directory");
        Run::new("mkfs.ext4").args(["-q", "-E", "lazy_itable_init=1,nodiscard"]).args([&image]).run().ok();
        Run::new("mount").args(["-o", "loop"]).args([&image, &at]).run().ok();
        FreezableDisk { dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("disk")
    }

    /// Nothing is written there until it is thawed: by the guard, or by a timer that outlives a test that is killed.
    #[track_caller]
    pub fn freeze(&self) -> Frozen<'_> {
        let at = self.path();
        let script = "setsid sh -c 'sleep 90; fsfreeze -u \"$0\" 2>/dev/null' \"$0\" >/dev/null 2>&1 </dev/null &";
        Run::new("sh").args(["-c".as_ref(), script.as_ref(), at.as_os_str()]).run().ok();
        Run::new("fsfreeze").args(["-f".as_ref(), at.as_os_str()]).run().ok();
        Frozen(self)
    }

    fn thaw(&self) {
        let _ = Run::new("fsfreeze").args(["-u".as_ref(), self.path().as_os_str()]).run();
    }
}

/// Thaws it when dropped.
pub struct Frozen<'a>(&'a FreezableDisk);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.0.thaw();
    }
}

impl Drop for FreezableDisk {
    fn drop(&mut self) {
        self.thaw();
        let unmounted = Run::new("umount").args(["-l".as_ref(), self.path().as_os_str()]).run();
        if !unmounted.success() {
            eprintln!("{unmounted}");
        }
    }
}
