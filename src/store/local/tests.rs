use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Barrier};

use proptest::prelude::*;

use super::super::codec::{FrameWriter, Framed, LEVEL};
use super::super::{Form, MARKER, Mode, OpenStore, list_all, open_database_object};
use super::*;

fn store() -> (tempfile::TempDir, LocalStore) {
    let tmp = tempfile::tempdir().unwrap();
    let store = open(tmp.path(), Mode::Write);
    (tmp, store)
}

fn open(path: &Path, mode: Mode) -> LocalStore {
    let url = format!("file://{}", path.display());
    LocalStore::open(&OpenStore { name: "local".into(), url, mode }, None).unwrap()
}

fn names(page: &Page) -> Vec<&str> {
    page.entries.iter().map(|e| e.name.as_str()).collect()
}

#[test]
fn objects_are_created_once_read_and_deleted() {
    let (_tmp, store) = store();
    store.create("l/snapshots/x.json", b"one").unwrap();
    assert_eq!(store.create("l/snapshots/x.json", b"two").unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(store.read("l/snapshots/x.json", 3).unwrap(), b"one");
    let source = store.open("l/snapshots/x.json").unwrap();
    store.put("copy", &*source).unwrap();
    assert_eq!(store.put("copy", &*source).unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(store.read("copy", 3).unwrap(), b"one");
    store.delete("copy").unwrap();
    for missing in ["copy", "none/x", "l/snapshots/x.json/y"] {
        assert!(store.delete(missing).is_err());
        assert!(store.read(missing, 1).is_err());
    }
    assert_eq!(store.delete("copy").unwrap_err().code(), Code::NotFound);
    assert_eq!(store.open("copy").err().unwrap().code(), Code::NotFound);
    let staged = store.stage().unwrap();
    staged.file().write_all(b"big").unwrap();
    store.publish(staged, "a/b/c/big").unwrap();
    assert_eq!(store.read("a/b/c/big", 3).unwrap(), b"big");
    assert_eq!(store.sweep().unwrap().removed, 0);
    let space = store.space().unwrap().unwrap();
    assert!(space.free <= space.total);
}

#[test]
fn names_that_are_not_objects_are_refused() {
    let (tmp, store) = store();
    std::fs::create_dir(tmp.path().join("lost+found")).unwrap();
    std::fs::write(tmp.path().join("lost+found/x"), b"").unwrap();
    for name in [MARKER, "lost+found/x", ".refloat-lock", "", "/etc/passwd", "../x", "a//b", "a\nb", "a\\b", "a/./b"] {
        assert_eq!(store.create(name, b"").unwrap_err().code(), Code::CannotCreate, "{name}");
        assert_eq!(store.delete(name).unwrap_err().code(), Code::NotFound, "{name}");
        assert_eq!(store.read(name, 999).unwrap_err().code(), Code::NotFound, "{name}");
        assert_eq!(store.open(name).err().unwrap().code(), Code::NotFound, "{name}");
    }
    assert!(tmp.path().join(MARKER).exists() && tmp.path().join("lost+found/x").exists());
    assert_eq!(list_all(&store).unwrap(), []);
}

#[test]
fn listed_in_order_page_by_page() {
    let (_tmp, store) = store();
    let mut want = vec!["a", "a-b", "a/b", "a/c/d", "a0", "b/1", "b/2", "b/3", "c", "\u{fc}"];
    for name in want.iter().filter(|n| **n != "a") {
        store.create(name, name.as_bytes()).unwrap();
    }
    want.remove(0);
    for limit in 1..12 {
        let (mut got, mut after) = (Vec::new(), None);
        loop {
            let page = store.list("", after.as_deref(), limit).unwrap();
            assert!(page.entries.len() <= limit);
            got.extend(page.entries.iter().map(|e| e.name.clone()));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(got, want, "{limit}");
    }
    assert_eq!(names(&store.list("b", None, 9).unwrap()), ["b/1", "b/2", "b/3"]);
    assert_eq!(names(&store.list("b/", Some("b/1"), 1).unwrap()), ["b/2"]);
    assert_eq!(names(&store.list("a", None, 9).unwrap()), ["a/b", "a/c/d"]);
    assert_eq!(store.list("none", None, 9).unwrap(), Page::default());
    let page = store.list("c", None, 9);
    assert!(page.is_err(), "a file is no prefix: {page:?}");
    assert_eq!(store.list("", Some("b/2"), 1).unwrap().entries[0].size, 3);
}

#[test]
fn odd_things_are_named_and_never_touched() {
    let (tmp, store) = store();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x"), b"").unwrap();
    store.create("good", b"").unwrap();
    symlink(outside.path(), tmp.path().join("link")).unwrap();
    nix::unistd::mkfifo(&tmp.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for raw in [&b"a\nb"[..], b"\xff", b"back\\slash"] {
        std::fs::write(tmp.path().join(OsStr::from_bytes(raw)), b"").unwrap();
    }
    std::fs::create_dir(tmp.path().join(OsStr::from_bytes(b"dir\xfe"))).unwrap();
    std::fs::write(tmp.path().join(OsStr::from_bytes(b"dir\xfe/in")), b"").unwrap();
    let want = [
        ("\\xff", true),
        ("a\\x0ab", true),
        ("back\\x5cslash", true),
        ("dir\\xfe/", true),
        ("fifo", true),
        ("good", false),
        ("link", true),
    ];
    for limit in [1, 2, 100] {
        let (mut got, mut after) = (Vec::new(), None);
        loop {
            let page = store.list("", after.as_deref(), limit).unwrap();
            got.extend(page.entries.into_iter().map(|e| (e.name, e.irregular)));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(got.iter().map(|(n, i)| (n.as_str(), *i)).collect::<Vec<_>>(), want);
    }
    for (name, irregular) in want {
        assert_eq!(store.delete(name).is_err(), irregular, "{name}");
    }
    assert!(store.delete("link/x").is_err());
    assert!(store.list("link", None, 9).is_err());
    assert!(outside.path().join("x").exists());
}

#[test]
fn too_deep_directories_are_named_not_entered() {
    let (tmp, store) = store();
    let deep = vec!["d"; 40].join("/");
    std::fs::create_dir_all(tmp.path().join(&deep)).unwrap();
    let all = list_all(&store).unwrap();
    assert_eq!(all.len(), 1);
    assert!(all[0].irregular && all[0].name.ends_with("d/"));
}

#[test]
fn opened_for_reading_nothing_can_change() {
    let (tmp, store) = store();
    store.create("x", b"1").unwrap();
    let reader = open(tmp.path(), Mode::Read);
    assert_eq!(reader.read("x", 1).unwrap(), b"1");
    for result in [
        reader.create("y", b""),
        reader.delete("x"),
        reader.put("y", &*reader.open("x").unwrap()),
        reader.stage().map(drop),
        reader.sweep().map(drop),
    ] {
        assert_eq!(result.unwrap_err().code(), Code::StoreNotWritable);
    }
}

#[test]
fn nothing_is_deleted_once_the_marker_is_gone() {
    let (tmp, store) = store();
    store.create("x", b"1").unwrap();
    let marker = tmp.path().join(MARKER);
    let text = std::fs::read_to_string(&marker).unwrap();
    std::fs::write(&marker, text.replace(store.id(), &"0".repeat(32))).unwrap();
    assert_eq!(store.delete("x").unwrap_err().code(), Code::StoreVanished);
    std::fs::remove_file(&marker).unwrap();
    assert_eq!(store.delete("x").unwrap_err().code(), Code::StoreVanished);
    assert_eq!(store.read("x", 1).unwrap(), b"1");
}

#[test]
fn of_two_creators_one_wins_also_with_large_objects() {
    let (_tmp, store) = store();
    store.create("source", &vec![7; 3 * COPY + 1]).unwrap();
    let start = Barrier::new(2);
    let wins = std::thread::scope(|s| {
        let run = || {
            let source = store.open("source").unwrap();
            start.wait();
            store.put("n/x", &*source).map_err(|e| e.code())
        };
        let threads = [s.spawn(run), s.spawn(run)];
        threads.map(|t| t.join().unwrap())
    });
    assert!(wins.contains(&Ok(())) && wins.contains(&Err(Code::AlreadyExists)), "{wins:?}");
    assert_eq!(store.open("n/x").unwrap().len(), 3 * COPY as u64 + 1);
}

#[test]
fn a_large_object_is_written_read_back_and_then_named() {
    let (_tmp, store) = store();
    let plain: Vec<u8> = (0..2_500_000u32).flat_map(u32::to_le_bytes).collect();
    let staged = store.stage().unwrap();
    let mut writer = FrameWriter::new(staged.file(), LEVEL).unwrap();
    writer.write_all(&plain).unwrap();
    let (written, _) = writer.finish(&[]).unwrap();
    let framed = Framed::open(Arc::new(store.read_back(&staged, "x").unwrap()) as Arc<dyn ReadAt>).unwrap();
    assert_eq!((framed.plain_len(), framed.stored_len()), (written.plain_bytes, written.stored_bytes));
    assert_eq!(list_all(&store).unwrap(), []);
    store.publish(staged, "l/snapshots/x.db.zst").unwrap();
    let opened = open_database_object(store.open("l/snapshots/x.db.zst").unwrap().into(), "x").unwrap();
    assert!(matches!(opened.form, Form::Framed(_)));
    let mut back = vec![0; plain.len()];
    opened.reader.read_at(0, &mut back).unwrap();
    assert!(back == plain);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_tree_is_listed_whole_once_and_in_order(
        names in prop::collection::btree_set("[-.0a]{1,2}(/[-.0a]{1,2}){0,2}", 0..20),
        limit in 1usize..8,
    ) {
        let (_tmp, store) = store();
        // A name that is also another one's directory, or has a part `.` or `..`, cannot be made.
        let mut made: Vec<String> = names.into_iter().filter(|n| store.create(n, b"").is_ok()).collect();
        made.sort();
        let (mut got, mut after) = (Vec::new(), None);
        loop {
            let page = store.list("", after.as_deref(), limit).unwrap();
            got.extend(page.entries.into_iter().map(|e| e.name));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        prop_assert_eq!(&got, &made);
        for prefix in ["a", "0/a"] {
            let below: Vec<&String> = made.iter().filter(|n| n.starts_with(&format!("{prefix}/"))).collect();
            if let Ok(page) = store.list(prefix, None, 99) {
                prop_assert_eq!(page.entries.iter().map(|e| &e.name).collect::<Vec<_>>(), below);
            } else {
                prop_assert!(made.iter().any(|n| n == prefix || *n == prefix[..1]));
            }
        }
    }
}
