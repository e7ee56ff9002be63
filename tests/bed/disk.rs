//! A file system of a given size, to be full when a test wants it to be.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;

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

/// The id of the test process follows.
const FREEZE_PREFIX: &str = "refloat-freeze-";

/// An ext4 of its own in a file, to be frozen; needs root. Thawed and unmounted when dropped, or by the next one that is
/// made where a test was killed.
#[derive(Clone)]
pub struct FreezableDisk {
    // Shared with what will thaw it.
    mount: Arc<Mount>,
}

struct Mount {
    dir: TempDir,
}

impl FreezableDisk {
    /// Of so many MiB.
    #[track_caller]
    pub fn new(mib: u64) -> Self {
        sweep();
        let prefix = format!("{FREEZE_PREFIX}{}-", std::process::id());
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir().expect("make a temporary directory");
        let (image, at) = (dir.path().join("image"), dir.path().join("disk"));
        std::fs::File::create(&image).and_then(|file| file.set_len(mib << 20)).expect("make an image");
        std::fs::create_dir(&at).expect("make a directory");
        Run::new("mkfs.ext4").args(["-q", "-E", "lazy_itable_init=1,nodiscard"]).args([&image]).run().ok();
        Run::new("mount").args(["-o", "loop"]).args([&image, &at]).run().ok();
        FreezableDisk { mount: Arc::new(Mount { dir }) }
    }

    pub fn path(&self) -> PathBuf {
        self.mount.path()
    }

    /// Nothing is written there until it is thawed: by the guard, or by a process that outlives a test that is killed.
    #[track_caller]
    pub fn freeze(&self) -> Frozen {
        let at = self.path();
        // A line takes it back; the end of the test process and the end of its patience do not.
        let script = "read -r -t 90 line || fsfreeze -u \"$0\" 2>/dev/null";
        let mut command = std::process::Command::new("setsid");
        command.args(["bash", "-c", script]).arg(&at).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let watch = command.spawn().expect("start what thaws it should the test be killed");
        let frozen = Frozen { mount: Arc::clone(&self.mount), watch };
        Run::new("fsfreeze").args(["-f".as_ref(), at.as_os_str()]).run().ok();
        frozen
    }

    /// For those who hold no guard: no process that writes there can be ended while it is frozen.
    pub fn thaw(&self) {
        self.mount.thaw();
    }
}

impl Mount {
    fn path(&self) -> PathBuf {
        self.dir.path().join("disk")
    }

    fn thaw(&self) {
        let _ = Run::new("fsfreeze").args(["-u".as_ref(), self.path().as_os_str()]).run();
    }
}

/// Thaws it when dropped.
pub struct Frozen {
    mount: Arc<Mount>,
    watch: Child,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.mount.thaw();
        // It may have ended by itself.
        let _ = self.watch.stdin.take().map(|mut stdin| stdin.write_all(b"thawed\n"));
        let _ = self.watch.wait();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.thaw();
        let unmounted = Run::new("umount").args(["-l".as_ref(), self.path().as_os_str()]).run();
        if !unmounted.success() {
            eprintln!("{unmounted}");
        }
    }
}

/// Unmounts and removes what test processes left that were killed.
fn sweep() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(FREEZE_PREFIX).and_then(|rest| rest.split_once('-')).map(|(pid, _)| pid);
        if pid.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            let at = entry.path().join("disk");
            let _ = Run::new("fsfreeze").args(["-u".as_ref(), at.as_os_str()]).run();
            let _ = Run::new("umount").args(["-l".as_ref(), at.as_os_str()]).run();
            // Another test process may be at it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
