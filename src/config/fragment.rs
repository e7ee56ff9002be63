//! Which files make up the configuration, and reading them safely.
//!
//! In: the root of the file system and, optionally, one file that replaces all others. Out: the text of each file,
//! in the order in which later ones win.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Code, Error, Result};

/// Lowest first: systemd's order.
const PLACES: [&str; 4] = ["usr/lib/refloat", "usr/local/lib/refloat", "run/refloat", "etc/refloat"];
const MAIN: &str = "etc/refloat/refloat.toml";
/// No configuration is nearly as large; a wrong path might be.
const LARGEST: u64 = 1 << 20;

/// One configuration file.
#[derive(Debug, Clone)]
pub(super) struct Fragment {
    pub path: PathBuf,
    pub text: String,
}

/// `only`: the file of `--config`, which then must exist; the others may all be absent.
pub(super) fn read_all(root: &Path, only: Option<&Path>) -> Result<Vec<Fragment>> {
    match only {
        Some(path) => match read(path)? {
            Some(text) => Ok(vec![Fragment { path: path.into(), text }]),
            None => Err(refused(path, "no such file").remedy("check the path given with --config")),
        },
        None => find(root)?
            .into_iter()
            .filter_map(|path| read(&path).map(|text| text.map(|text| Fragment { path, text })).transpose())
            .collect(),
    }
}

/// All files but `fragment`, which is not even looked at.
pub(super) fn read_besides(root: &Path, fragment: &Path) -> Result<Vec<Fragment>> {
    let besides = find(root)?.into_iter().filter(|path| path != fragment);
    besides.filter_map(|path| read(&path).map(|text| text.map(|text| Fragment { path, text })).transpose()).collect()
}

/// The main file, then the fragments in the order of their names. One with the same name in a higher place hides
/// the lower, and a link to `/dev/null` hides it without a replacement.
fn find(root: &Path) -> Result<Vec<PathBuf>> {
    let mut by_name: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    for place in PLACES {
        let folder = root.join(place).join("conf.d");
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(refused(&folder, e)),
        };
        for entry in entries {
            let name = entry.map_err(|e| refused(&folder, e))?.file_name();
            let path = Path::new(&name);
            let hidden = name.as_encoded_bytes().starts_with(b".");
            if !hidden && path.extension().is_some_and(|e| e == "toml") {
                by_name.insert(name.clone(), folder.join(path));
            }
        }
    }
    let files = std::iter::once(root.join(MAIN)).chain(by_name.into_values());
    Ok(files.filter(|path| !is_masked(path)).collect())
}

fn is_masked(path: &Path) -> bool {
    std::fs::read_link(path).is_ok_and(|target| target == Path::new("/dev/null"))
}

/// `None` when there is no such file.
fn read(path: &Path) -> Result<Option<String>> {
    // As an empty file, like a mask: `--config /dev/null` asks for the defaults alone.
    if path == Path::new("/dev/null") {
        return Ok(Some(String::new()));
    }
    // Without O_NONBLOCK a named pipe at this path would hang the start of every command.
    let nonblock = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let file = match OpenOptions::new().read(true).custom_flags(nonblock).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(refused(path, e)),
    };
    check_access(&file, path)?;
    let mut bytes = Vec::new();
    (&file).take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| refused(path, e))?;
    if bytes.len() as u64 > LARGEST {
        return Err(refused(path, format!("larger than {}", super::units::format_size(LARGEST))));
    }
    String::from_utf8(bytes).map(Some).map_err(|e| {
        let line = 1 + e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        refused(path, format!("line {line} is not UTF-8 text"))
    })
}

/// Asks the open file, not the path: what was checked is what is read.
fn check_access(file: &File, path: &Path) -> Result<()> {
    let meta = file.metadata().map_err(|e| refused(path, e))?;
    if !meta.is_file() {
        return Err(refused(path, "not a regular file"));
    }
    match writable_by_others(meta.mode(), meta.uid(), meta.gid()) {
        None => Ok(()),
        Some((who, fix)) => {
            let mode = meta.mode() & 0o7777;
            Err(refused(
                path,
                format!("writable by {who} (mode {mode:04o}), so anybody there decides what refloat does"),
            )
            .remedy(format!("check its content, then `chmod {fix} {}`", path.display())))
        }
    }
}

/// Group-write is harmless for root's group and for a user's private group (same number as the user).
fn writable_by_others(mode: u32, uid: u32, gid: u32) -> Option<(&'static str, &'static str)> {
    match mode {
        _ if mode & 0o002 != 0 => Some(("everybody", "go-w")),
        _ if mode & 0o020 != 0 && gid != 0 && gid != uid => Some(("its group", "g-w")),
        _ => None,
    }
}

fn refused(path: &Path, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(Code::Config, "read configuration", path.display().to_string()).because(cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn texts(root: &Path) -> Vec<String> {
        read_all(root, None).unwrap().into_iter().map(|f| f.text).collect()
    }

    #[test]
    fn order_and_masking_are_systemds() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert_eq!(texts(root), [""; 0]);
        put(root, "usr/lib/refloat/conf.d/10-a.toml", "lib a");
        put(root, "usr/lib/refloat/conf.d/20-b.toml", "lib b");
        put(root, "usr/lib/refloat/conf.d/30-c.toml", "lib c");
        put(root, "usr/local/lib/refloat/conf.d/20-b.toml", "local b");
        put(root, "run/refloat/conf.d/05-z.toml", "run z");
        put(root, "etc/refloat/conf.d/40-d.toml", "etc d");
        put(root, "etc/refloat/conf.d/.hidden.toml", "no");
        put(root, "etc/refloat/conf.d/README", "no");
        put(root, "etc/refloat/conf.d/50-e.toml.bak", "no");
        put(root, "etc/refloat/refloat.toml", "main");
        symlink("/dev/null", root.join("etc/refloat/conf.d/30-c.toml")).unwrap();
        assert_eq!(texts(root), ["main", "run z", "lib a", "local b", "etc d"]);

        // Higher places win, whatever the order of reading.
        put(root, "run/refloat/conf.d/20-b.toml", "run b");
        put(root, "etc/refloat/conf.d/10-a.toml", "etc a");
        assert_eq!(texts(root), ["main", "run z", "etc a", "run b", "etc d"]);
    }

    #[test]
    fn an_only_file_replaces_all_and_must_exist() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        put(root, "etc/refloat/refloat.toml", "main");
        put(root, "my.toml", "mine");
        assert_eq!(read_all(root, Some(&root.join("my.toml"))).unwrap()[0].text, "mine");
        assert_eq!(read_all(root, Some(Path::new("/dev/null"))).unwrap()[0].text, "");
        let error = read_all(root, Some(&root.join("other.toml"))).unwrap_err();
        assert_eq!((error.code(), error.why()), (Code::Config, vec!["no such file".into()]));
    }

    #[test]
    fn who_may_write() {
        for (mode, uid, gid, refused) in [
            (0o644, 0, 0, false),
            (0o600, 1000, 1000, false),
            (0o664, 1000, 1000, false),
            (0o664, 0, 0, false),
            (0o664, 0, 50, true),
            (0o664, 1000, 50, true),
            (0o646, 0, 0, true),
            (0o666, 1000, 1000, true),
        ] {
            assert_eq!(writable_by_others(mode, uid, gid).is_some(), refused, "{mode:o} {uid} {gid}");
        }
    }

    #[test]
    fn unsafe_and_odd_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        put(root, "w.toml", "");
        std::fs::set_permissions(root.join("w.toml"), std::fs::Permissions::from_mode(0o666)).unwrap();
        std::fs::create_dir(root.join("d.toml")).unwrap();
        std::fs::write(root.join("bin.toml"), b"a = 1\n\xff").unwrap();
        std::fs::write(root.join("big.toml"), vec![b'#'; LARGEST as usize + 1]).unwrap();
        nix::unistd::mkfifo(&root.join("pipe.toml"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        for (name, cause) in [
            ("w.toml", "writable by everybody (mode 0666), so anybody there decides what refloat does"),
            ("d.toml", "not a regular file"),
            ("bin.toml", "line 2 is not UTF-8 text"),
            ("big.toml", "larger than 1MiB"),
            ("pipe.toml", "not a regular file"),
        ] {
            let error = read_all(root, Some(&root.join(name))).unwrap_err();
            assert_eq!((error.code(), error.why()), (Code::Config, vec![cause.to_string()]), "{name}");
        }
    }
}
