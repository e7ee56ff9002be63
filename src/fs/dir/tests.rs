use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::Barrier;

use super::*;

fn dir() -> (tempfile::TempDir, Dir) {
    let tmp = tempfile::tempdir().unwrap();
    let dir = Dir::open(tmp.path()).unwrap();
    (tmp, dir)
}

#[test]
fn the_real_path_is_kept_and_the_handle_stays() {
    let (tmp, _) = dir();
    std::fs::create_dir(tmp.path().join("real")).unwrap();
    symlink("real", tmp.path().join("link")).unwrap();
    let real = tmp.path().canonicalize().unwrap().join("real");
    let through = Dir::open(&tmp.path().join("link")).unwrap();
    assert_eq!(through.path(), real);
    assert_eq!(through.identity(), Dir::open(&real).unwrap().identity());
    // Whatever takes its path later: the handle keeps what it opened.
    std::fs::rename(&real, tmp.path().join("moved")).unwrap();
    std::fs::create_dir(&real).unwrap();
    through.create("x", b"1").unwrap();
    assert!(tmp.path().join("moved/x").exists() && !real.join("x").exists());
}

#[test]
fn what_is_no_directory_is_an_error() {
    let (tmp, _) = dir();
    std::fs::write(tmp.path().join("file"), b"").unwrap();
    assert_eq!(Dir::open(&tmp.path().join("none")).unwrap_err().code(), Code::NotFound);
    assert_eq!(Dir::open(&tmp.path().join("file")).unwrap_err().code(), Code::Io);
    assert_eq!(Dir::open(Path::new("a\0b")).unwrap_err().code(), Code::Io);
}

#[test]
fn links_are_never_followed_beneath() {
    let (tmp, dir) = dir();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), b"s").unwrap();
    std::fs::create_dir(tmp.path().join("in")).unwrap();
    std::fs::write(tmp.path().join("in/file"), b"f").unwrap();
    symlink(outside.path(), tmp.path().join("out")).unwrap();
    symlink("in", tmp.path().join("inner")).unwrap();
    symlink(outside.path().join("secret"), tmp.path().join("leaf")).unwrap();
    for name in ["out/secret", "inner/file", "leaf"] {
        assert!(dir.read(name, 10).is_err(), "{name}");
        assert!(dir.open_file(name).is_err(), "{name}");
        assert!(dir.remove_file(name).is_err(), "{name}");
        assert!(dir.replace(name, b"x").is_err(), "{name}");
        assert!(dir.create(name, b"x").is_err(), "{name}");
    }
    for name in ["out", "inner", "out/sub", "../x", "/tmp"] {
        assert!(dir.open_dir(name).is_err(), "{name}");
        assert!(dir.create_dirs(name).is_err(), "{name}");
    }
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"s");
    assert_eq!(std::fs::read(tmp.path().join("in/file")).unwrap(), b"f");
    assert_eq!(outside.path().read_dir().unwrap().count(), 1);
}

#[test]
fn a_fifo_or_a_directory_is_no_file_and_nothing_hangs() {
    let (tmp, dir) = dir();
    nix::unistd::mkfifo(&tmp.path().join("fifo"), Mode::S_IRWXU).unwrap();
    std::fs::create_dir(tmp.path().join("sub")).unwrap();
    for (name, word) in [("fifo", "FIFO"), ("sub", "directory")] {
        let err = dir.open_file(name).unwrap_err();
        assert!(err.why()[0].contains(word), "{:?}", err.why());
        assert!(dir.remove_file(name).is_err() && dir.replace(name, b"").is_err());
        assert!(tmp.path().join(name).exists());
    }
}

#[test]
fn directories_are_made_for_the_owner_only() {
    let (tmp, dir) = dir();
    let deep = dir.create_dirs("a/b/c").unwrap();
    assert_eq!(deep.path(), tmp.path().canonicalize().unwrap().join("a/b/c"));
    assert_eq!(dir.create_dirs("a/b/c").unwrap().identity(), deep.identity());
    assert_eq!(std::fs::metadata(tmp.path().join("a/b")).unwrap().mode() & 0o777, 0o700);
    dir.create("a/b/c/x", b"1").unwrap();
    assert_eq!(std::fs::metadata(tmp.path().join("a/b/c/x")).unwrap().mode() & 0o777, 0o600);
    dir.create("file", b"").unwrap();
    assert!(dir.create_dirs("file/x").is_err());
}

#[test]
fn create_read_replace_remove() {
    let (_tmp, dir) = dir();
    assert_eq!(dir.read("x", 9).unwrap_err().code(), Code::NotFound);
    assert_eq!(dir.remove_file("x").unwrap_err().code(), Code::NotFound);
    dir.create("x", b"one").unwrap();
    assert_eq!(dir.create("x", b"two").unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(dir.read("x", 3).unwrap(), b"one");
    assert_eq!(dir.read("x", 2).unwrap_err().code(), Code::DataInvalid);
    dir.replace("x", b"longer").unwrap();
    dir.replace("y", b"new").unwrap();
    assert_eq!(dir.read("x", 99).unwrap(), b"longer");
    assert_eq!(dir.read("y", 99).unwrap(), b"new");
    dir.remove_file("x").unwrap();
    assert_eq!(dir.entries().unwrap().len(), 1);
}

#[test]
fn odd_names_work() {
    let (_tmp, dir) = dir();
    for name in ["-rf", "a\nb", " ", "\u{fc}", &"x".repeat(255)] {
        dir.create(name, name.as_bytes()).unwrap();
        assert_eq!(dir.read(name, 300).unwrap(), name.as_bytes());
        dir.replace(name, b"").unwrap();
        dir.remove_file(name).unwrap();
    }
    assert!(dir.entries().unwrap().is_empty());
}

#[test]
fn of_many_creators_one_wins() {
    let (_tmp, dir) = dir();
    for round in 0..20 {
        let name = format!("r{round}");
        let start = Barrier::new(4);
        let wins: Vec<u8> = std::thread::scope(|s| {
            let threads: Vec<_> = (0..4u8)
                .map(|i| {
                    let (dir, name, start) = (&dir, &name, &start);
                    s.spawn(move || {
                        start.wait();
                        match dir.create(name, &[i; 1000]) {
                            Ok(()) => Some(i),
                            Err(e) => {
                                assert_eq!(e.code(), Code::AlreadyExists);
                                None
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().filter_map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(wins.len(), 1);
        assert_eq!(dir.read(&name, 1000).unwrap(), [wins[0]; 1000]);
    }
    assert_eq!(dir.entries().unwrap().len(), 20);
}
