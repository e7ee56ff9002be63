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

/// How long a file system stays frozen at most: nothing may hang for ever because a test was killed.
const THAW_AFTER: &str = "60";

/// An ext4 of its own that can be frozen: writes to it then hang until it thaws. Needs root, like [`SmallDisk`].
pub struct FrozenDisk {
    dir: TempDir,
    /// Outlives this process if it must, and thaws.
    timer: std::sync::Mutex<Option<std::process::Child>>,
}

impl FrozenDisk {
    #[track_caller]
    pub fn new(bytes: u64) -> Self {
        let dir = tempfile::Builder::new().prefix("refloat-frozen-").tempdir().expect("make a temporary directory");
        let image = dir.path().join("image");
        std::fs::File::create(&image).and_then(|file| file.set_len(bytes)).expect("make an image");
        std::fs::create_dir(dir.path().join("mount")).expect("make a directory");
        let image = image.display().to_string();
        Run::new("mkfs.ext4").args(["-q", "-E", "lazy_itable_init=1,nodiscard", &image]).run().ok();
        let disk = FrozenDisk { dir, timer: std::sync::Mutex::new(None) };
        Run::new("mount").args(["-o", "loop", &image, &disk.shown()]).run().ok();
        disk
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("mount")
    }

    fn shown(&self) -> String {
        self.path().display().to_string()
    }

    /// The timer first: a process that starts on a frozen disk may never run.
    #[track_caller]
    pub fn freeze(&self) {
        let timer = std::process::Command::new("setsid")
            .args(["sh", "-c", "sleep \"$1\"; fsfreeze -u \"$2\"", "thaw", THAW_AFTER, &self.shown()])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("start the timer");
        *self.timer.lock().expect("no test panics here") = Some(timer);
        Run::new("fsfreeze").args(["-f", &self.shown()]).run().ok();
    }

    #[track_caller]
    pub fn thaw(&self) {
        Run::new("fsfreeze").args(["-u", &self.shown()]).run().ok();
        self.forget_timer();
    }

    fn forget_timer(&self) {
        if let Some(mut timer) = self.timer.lock().ok().and_then(|mut timer| timer.take()) {
            // Its sleep ends by itself; without the shell nothing follows.
            let _ = timer.kill();
            let _ = timer.wait();
        }
    }
}

impl Drop for FrozenDisk {
    fn drop(&mut self) {
        if self.timer.lock().is_ok_and(|timer| timer.is_some()) {
            let _ = Run::new("fsfreeze").args(["-u", &self.shown()]).run();
            self.forget_timer();
        }
        let unmounted = Run::new("umount").args(["-l", &self.shown()]).run();
        if !unmounted.success() {
            eprintln!("{unmounted}");
        }
    }
}
