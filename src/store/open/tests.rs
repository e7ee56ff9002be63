use std::os::unix::fs::symlink;

use super::super::{Store, list_all};
use super::*;

fn config(path: &Path, mode: Mode) -> OpenStore {
    OpenStore { name: "local".into(), url: format!("file://{}", path.display()), mode }
}

fn open(path: &Path, mode: Mode, known: Option<&Known>) -> Result<LocalStore> {
    LocalStore::open(&config(path, mode), known)
}

fn known(id: &str) -> Known {
    Known { path: "/s".into(), store_id: id.into(), newest_id: None }
}

#[test]
fn only_absolute_file_urls_are_stores() {
    let path = |url: &str| OpenStore { name: "s".into(), url: url.into(), mode: Mode::Read }.path();
    assert_eq!(path("file:///a/b").unwrap(), Path::new("/a/b"));
    assert_eq!(path("file:///a%20b/%23c").unwrap(), Path::new("/a b/#c"));
    for bad in [
        "",
        "a/b",
        "/a/b",
        "file:a",
        "file://a/b",
        "file:/a",
        "s3://bucket/x",
        "file:///a?b",
        "file:///a#b",
        "file:///a%00b",
    ] {
        let err = path(bad).and_then(|p| Dir::open(&p).map(drop)).unwrap_err();
        assert!(err.code() == Code::Config || bad.contains("%00"), "{bad}: {err:?}");
    }
}

#[test]
fn the_rules_as_a_table() {
    use Decision::*;
    let marker = || Found::Marker("1".into());
    let other = || Found::Other("x".into());
    let table = [
        (marker(), Mode::Read, None, Use),
        (marker(), Mode::Write, Some("1"), Use),
        (marker(), Mode::Read, Some("2"), Vanished),
        (marker(), Mode::Write, Some("2"), Vanished),
        (marker(), Mode::Init, Some("2"), Use),
        (Found::Empty, Mode::Read, None, Blank),
        (Found::Empty, Mode::Write, None, Initialise),
        (Found::Empty, Mode::Init, None, Initialise),
        (Found::Empty, Mode::Read, Some("1"), Vanished),
        (Found::Empty, Mode::Write, Some("1"), Vanished),
        (Found::Empty, Mode::Init, Some("1"), Initialise),
        (other(), Mode::Read, None, Foreign),
        (other(), Mode::Write, None, Foreign),
        (other(), Mode::Init, None, Initialise),
        (other(), Mode::Read, Some("1"), Vanished),
        (other(), Mode::Write, Some("1"), Vanished),
        (other(), Mode::Init, Some("1"), Initialise),
    ];
    for (found, mode, known, want) in table {
        assert_eq!(decide(&found, mode, known), want, "{found:?} {mode:?} {known:?}");
    }
}

#[test]
fn an_empty_directory_becomes_a_store_on_first_write_only() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir(tmp.path().join("lost+found")).unwrap();
    std::fs::write(tmp.path().join(".refloat-tmp-0123456789abcdef"), b"").unwrap();
    let blank = open(tmp.path(), Mode::Read, None).unwrap();
    assert_eq!((blank.id(), list_all(&blank).unwrap().len()), ("", 0));
    assert!(!tmp.path().join(MARKER).exists());
    let made = open(tmp.path(), Mode::Write, None).unwrap();
    assert_eq!(made.id().len(), 32);
    assert_eq!(open(tmp.path(), Mode::Init, None).unwrap().id(), made.id());
    assert_eq!(open(tmp.path(), Mode::Read, Some(&known(made.id()))).unwrap().id(), made.id());
}

#[test]
fn missing_is_refused_and_only_init_makes_it() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("a");
    for mode in [Mode::Read, Mode::Write] {
        let err = open(&path, mode, None).unwrap_err();
        assert_eq!(err.code(), Code::StoreMissing);
        assert!(err.get_remedy().unwrap().contains("store init local"));
    }
    assert_eq!(open(&path.join("b"), Mode::Init, None).unwrap_err().code(), Code::StoreMissing);
    assert!(!path.exists());
    open(&path, Mode::Init, None).unwrap();
    open(&path, Mode::Write, None).unwrap();
    symlink("nowhere", tmp.path().join("dangling")).unwrap();
    assert_eq!(open(&tmp.path().join("dangling"), Mode::Write, None).unwrap_err().code(), Code::StoreMissing);
}

#[test]
fn other_content_is_refused_untouched_and_init_decides() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("photo\n.jpg"), b"mine").unwrap();
    for mode in [Mode::Read, Mode::Write] {
        let err = open(tmp.path(), mode, None).unwrap_err();
        assert_eq!(err.code(), Code::StoreForeign);
        assert!(err.why()[0].contains("photo"), "{:?}", err.why());
    }
    assert_eq!(tmp.path().read_dir().unwrap().count(), 1);
    let store = open(tmp.path(), Mode::Init, None).unwrap();
    assert!(list_all(&store).unwrap()[0].irregular);
}

#[test]
fn a_link_to_the_root_directory_is_refused_under_its_real_path() {
    let tmp = tempfile::tempdir().unwrap();
    let link = tmp.path().join("backups");
    symlink("/", &link).unwrap();
    for mode in [Mode::Read, Mode::Write, Mode::Init] {
        for path in [link.as_path(), Path::new("/")] {
            let err = open(path, mode, None).unwrap_err();
            assert_eq!(err.code(), Code::StoreForeign);
        }
        let err = open(&link, mode, None).unwrap_err();
        assert_eq!(err.on(), format!("local at / (configured as {})", link.display()));
    }
    assert!(!Path::new("/").join(MARKER).exists());
}

#[test]
fn a_link_to_a_store_is_that_store() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir(tmp.path().join("real")).unwrap();
    symlink("real", tmp.path().join("link")).unwrap();
    let real = open(&tmp.path().join("real"), Mode::Write, None).unwrap();
    let linked = open(&tmp.path().join("link"), Mode::Write, None).unwrap();
    assert_eq!((real.id(), real.location()), (linked.id(), linked.location()));
}

#[test]
fn a_marker_that_vanished_or_changed_is_named() {
    let tmp = tempfile::tempdir().unwrap();
    let id = open(tmp.path(), Mode::Write, None).unwrap().id().to_owned();
    let (same, other) = (known(&id), known("0"));
    assert!(open(tmp.path(), Mode::Write, Some(&same)).is_ok());
    let err = open(tmp.path(), Mode::Read, Some(&other)).unwrap_err();
    assert_eq!(err.code(), Code::StoreVanished);
    assert!(err.why()[0].contains(&id), "{:?}", err.why());
    std::fs::remove_file(tmp.path().join(MARKER)).unwrap();
    for mode in [Mode::Read, Mode::Write] {
        assert_eq!(open(tmp.path(), mode, Some(&same)).unwrap_err().code(), Code::StoreVanished);
    }
    assert!(!tmp.path().join(MARKER).exists());
}

#[test]
fn a_linked_marker_is_none() {
    let (tmp, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    open(elsewhere.path(), Mode::Write, None).unwrap();
    symlink(elsewhere.path().join(MARKER), tmp.path().join(MARKER)).unwrap();
    for mode in [Mode::Read, Mode::Write, Mode::Init] {
        assert_eq!(open(tmp.path(), mode, None).unwrap_err().code(), Code::StoreForeign);
        assert_eq!(open(tmp.path(), mode, Some(&known("1"))).unwrap_err().code(), Code::StoreVanished);
    }
    let file = elsewhere.path().join(MARKER);
    assert_eq!(open(&file, Mode::Read, None).unwrap_err().code(), Code::StoreForeign);
}

#[test]
fn what_this_user_may_not_write_or_read_is_said() {
    use std::os::unix::fs::PermissionsExt;
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: root may write everywhere; a file system mounted read-only is tested instead");
        return;
    }
    let tmp = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    open(tmp.path(), Mode::Write, None).unwrap().create("sub/x", b"1").unwrap();
    set(tmp.path(), 0o500);
    let err = open(tmp.path(), Mode::Write, None).unwrap_err();
    assert_eq!(err.code(), Code::StoreNotWritable);
    let reader = open(tmp.path(), Mode::Read, None).unwrap();
    assert_eq!(list_all(&reader).unwrap().len(), 1);
    // A part that cannot be read makes the whole list unknown, never shorter.
    set(&tmp.path().join("sub"), 0o000);
    assert!(list_all(&reader).is_err());
    set(tmp.path(), 0o000);
    assert!(open(tmp.path(), Mode::Read, None).is_err());
    assert_eq!(open(tmp.path(), Mode::Write, None).unwrap_err().code(), Code::StoreNotWritable);
    set(tmp.path(), 0o700);
    set(&tmp.path().join("sub"), 0o700);
}
