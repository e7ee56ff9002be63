//! Full, read-only and foreign file systems: real ones, which only root can mount.

use std::path::PathBuf;
use std::process::Command;

use super::super::{KnownStores, MARKER, Mode, OpenStore, PlainFile, list_all};
use super::*;
use crate::fs::is_out_of_space as full;

/// A small tmpfs for as long as it lives.
struct Mount(PathBuf);

impl Mount {
    /// `None`, said on stderr, where this process may not mount.
    fn new(at: &Path, options: &str) -> Option<Mount> {
        std::fs::create_dir_all(at).unwrap();
        let mounted = nix::unistd::geteuid().is_root()
            && Command::new("mount")
                .args(["-t", "tmpfs", "-o", options, "tmpfs"])
                .arg(at)
                .status()
                .is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("skipped: needs root and mount rights");
            return None;
        }
        Some(Mount(at.into()))
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn open(path: &Path, mode: Mode) -> Result<LocalStore> {
    let url = format!("file://{}", path.display());
    LocalStore::open(&OpenStore { name: "local".into(), url, mode }, None)
}

#[test]
fn a_full_file_system_is_refused_with_its_figures_and_nothing_stays() {
    let tmp = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(&tmp.path().join("m"), "size=64k") else { return };
    let store = open(&mount.0, Mode::Write).unwrap();
    store.create("a/small", b"1").unwrap();
    let err = store.create("a/large", &[1; 200_000]).unwrap_err();
    assert_eq!(err.code(), Code::Io);
    assert!(full(&err) && err.get_remedy().unwrap().contains("of 65536 bytes"), "{:?}", err.get_remedy());
    std::fs::write(tmp.path().join("source"), vec![1; 200_000]).unwrap();
    let source = PlainFile::open(&tmp.path().join("source")).unwrap();
    assert!(full(&store.put("a/large", &source).unwrap_err()));
    let names: Vec<String> = list_all(&store).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["a/small"]);
    assert_eq!(std::fs::read_dir(&mount.0).unwrap().count(), 2, "marker and a");

    // Full to the last byte: what is there is still read and deleted, an empty directory becomes no store.
    std::fs::create_dir(mount.0.join("new")).unwrap();
    let _ = std::fs::write(mount.0.join("fill"), [0; 70_000]);
    assert_eq!(store.space().unwrap().unwrap().free, 0);
    let err = open(&mount.0.join("new"), Mode::Write).unwrap_err();
    assert_eq!(err.code(), Code::TooLittleSpace);
    assert!(err.on().contains("0 of 65536 bytes free"), "{}", err.on());
    assert_eq!(std::fs::read_dir(mount.0.join("new")).unwrap().count(), 0);
    let state = Dir::open(&mount.0.join("new")).unwrap();
    assert!(KnownStores::default().save(&state).is_err());
    assert!(state.entries().unwrap().is_empty());
    assert_eq!(open(&mount.0, Mode::Write).unwrap().read("a/small", 9).unwrap(), b"1");
    store.delete("a/small").unwrap();
}

#[test]
fn a_read_only_file_system_is_read_and_not_written() {
    let tmp = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(&tmp.path().join("m"), "size=64k") else { return };
    let before = open(&mount.0, Mode::Write).unwrap();
    before.create("x", b"1").unwrap();
    std::fs::create_dir(mount.0.join("empty")).unwrap();
    mount.remount("ro");
    assert_eq!(open(&mount.0, Mode::Read).unwrap().read("x", 9).unwrap(), b"1");
    for path in [mount.0.clone(), mount.0.join("empty")] {
        assert_eq!(open(&path, Mode::Write).unwrap_err().code(), Code::StoreNotWritable);
    }
    for result in [before.create("y", b""), before.delete("x"), before.stage().map(drop)] {
        assert_eq!(result.unwrap_err().code(), Code::StoreNotWritable);
    }
}

#[test]
fn what_is_mounted_within_is_named_and_not_entered() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().join("s");
    std::fs::create_dir(&root).unwrap();
    let store = open(&root, Mode::Write).unwrap();
    store.create("in/x", b"1").unwrap();
    let Some(mount) = Mount::new(&root.join("in"), "size=64k") else { return };
    std::fs::write(mount.0.join("foreign"), b"").unwrap();
    let all = list_all(&store).unwrap();
    assert_eq!(all.iter().map(|e| (e.name.as_str(), e.irregular)).collect::<Vec<_>>(), [("in/", true)]);
    for name in ["in/foreign", "in/x"] {
        assert!(store.delete(name).is_err() && store.read(name, 9).is_err() && store.create(name, b"").is_err());
    }
    assert!(mount.0.join("foreign").exists());
    assert!(store.list("in", None, 9).is_err());
}

#[test]
fn what_is_mounted_over_a_store_is_another_directory() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().join("s");
    std::fs::create_dir(&root).unwrap();
    let store = open(&root, Mode::Write).unwrap();
    let Some(mount) = Mount::new(&root, "size=64k") else { return };
    store.create("x", b"1").unwrap();
    assert!(!mount.0.join("x").exists());
    let known = super::super::Known { path: String::new(), store_id: store.id().into(), newest_id: None };
    let config = OpenStore { name: "s".into(), url: format!("file://{}", root.display()), mode: Mode::Write };
    assert_eq!(LocalStore::open(&config, Some(&known)).unwrap_err().code(), Code::StoreVanished);
    assert!(!mount.0.join(MARKER).exists());
}
