//! Reads files below a root, each once and never too large, and remembers what was looked at: a discovery that finds
//! nothing has to say where it looked, and one broken file must not hide the others.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

/// More than any manifest, unit, environment file or certificate needs.
const LIMIT: u64 = 1 << 20;
/// As the kernel has it.
const LINKS: usize = 40;
/// More names than any folder of units or manifests has.
const NAMES: usize = 4096;

/// What came of looking at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "result", content = "why")]
pub enum Look {
    Read,
    Missing,
    /// There, but of no use: not readable, too large, broken.
    Unusable(String),
}

/// The file system below a root. Paths go in and come out as the host has them, without the root.
pub struct Files {
    root: PathBuf,
    looked: BTreeMap<PathBuf, Look>,
}

impl Files {
    pub fn below(root: &Path) -> Files {
        Files { root: root.into(), looked: BTreeMap::new() }
    }

    /// Everything that was asked for, by path.
    pub fn looked(&self) -> &BTreeMap<PathBuf, Look> {
        &self.looked
    }

    /// Notes that a file was read but cannot be used.
    pub fn unusable(&mut self, path: &Path, why: impl ToString) {
        self.looked.insert(path.into(), Look::Unusable(why.to_string()));
    }

    /// UTF-8 text; `None` and a note for all that cannot be had.
    pub fn text(&mut self, path: &Path) -> Option<String> {
        let bytes = self.bytes(path)?;
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(_) => {
                self.unusable(path, "it is not UTF-8 text");
                None
            }
        }
    }

    pub fn bytes(&mut self, path: &Path) -> Option<Vec<u8>> {
        match self.read(path) {
            Ok(bytes) => {
                self.looked.insert(path.into(), Look::Read);
                Some(bytes)
            }
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                self.looked.insert(path.into(), Look::Missing);
                None
            }
            Err(e) => {
                self.unusable(path, e);
                None
            }
        }
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        // A FIFO must not make the command wait for a writer.
        let flags = nix::fcntl::OFlag::O_NONBLOCK.bits() | nix::fcntl::OFlag::O_NOCTTY.bits();
        let file = File::options().read(true).custom_flags(flags).open(self.real(path)?)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(LIMIT + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LIMIT { Err(std::io::Error::other("it is larger than 1 MiB")) } else { Ok(bytes) }
    }

    /// Names in a folder, sorted, without hidden ones; none and a note where it cannot be listed.
    pub fn names(&mut self, folder: &Path) -> Vec<String> {
        let listed = self.real(folder).and_then(std::fs::read_dir).and_then(|entries| {
            entries.take(NAMES).map(|entry| entry.map(|entry| entry.file_name())).collect::<std::io::Result<Vec<_>>>()
        });
        match listed {
            Ok(names) => {
                self.looked.insert(folder.into(), Look::Read);
                let mut names: Vec<String> =
                    names.iter().filter_map(|n| n.to_str()).filter(|n| !n.starts_with('.')).map(String::from).collect();
                names.sort();
                names
            }
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                self.looked.insert(folder.into(), Look::Missing);
                Vec::new()
            }
            Err(e) => {
                self.unusable(folder, e);
                Vec::new()
            }
        }
    }

    /// Without a note.
    pub fn exists(&self, path: &Path) -> bool {
        self.real(path).is_ok_and(|real| real.symlink_metadata().is_ok())
    }

    pub fn is_dir(&self, path: &Path) -> bool {
        self.real(path).is_ok_and(|real| real.is_dir())
    }

    /// Whether it is hidden by a link to `/dev/null`, as systemd masks units.
    pub fn is_masked(&self, path: &Path) -> bool {
        let at = self.root.join(path.strip_prefix("/").unwrap_or(path));
        std::fs::read_link(at).is_ok_and(|target| target == Path::new("/dev/null"))
    }

    /// Where a path of the host leads: links, also absolute ones, stay below the root.
    fn real(&self, path: &Path) -> std::io::Result<PathBuf> {
        if self.root == Path::new("/") {
            return Ok(path.into());
        }
        let mut todo: Vec<std::ffi::OsString> = parts(path);
        let mut at: Vec<std::ffi::OsString> = Vec::new();
        let mut links = 0;
        while let Some(part) = todo.pop() {
            if part == OsStr::new("..") {
                at.pop();
                continue;
            }
            at.push(part);
            let here = self.root.join(at.iter().collect::<PathBuf>());
            if let Ok(target) = std::fs::read_link(&here) {
                links += 1;
                if links > LINKS {
                    return Err(std::io::Error::from(nix::errno::Errno::ELOOP));
                }
                at.pop();
                if target.is_absolute() {
                    at.clear();
                }
                todo.extend(parts(&target));
            }
        }
        Ok(self.root.join(at.iter().collect::<PathBuf>()))
    }
}

/// Parts of a path, the last one first.
fn parts(path: &Path) -> Vec<std::ffi::OsString> {
    let kept = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    let mut list: Vec<std::ffi::OsString> = kept.map(|part| part.as_os_str().into()).collect();
    list.reverse();
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_was_looked_at_is_remembered_and_links_stay_below_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("usr/lib")).unwrap();
        std::fs::write(root.join("usr/lib/x"), "text").unwrap();
        std::fs::write(root.join("usr/lib/binary"), [0xff]).unwrap();
        std::fs::write(root.join("usr/lib/big"), vec![b'x'; LIMIT as usize + 1]).unwrap();
        nix::unistd::mkfifo(&root.join("usr/lib/pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        symlink("/usr/lib", root.join("lib")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("../../../../../etc/passwd", root.join("out")).unwrap();
        let mut files = Files::below(root);
        assert_eq!(files.text(Path::new("/lib/x")).as_deref(), Some("text"));
        for path in ["/lib/none", "/lib/x/below", "/out"] {
            assert_eq!(files.text(Path::new(path)), None, "{path}");
            assert_eq!(files.looked()[Path::new(path)], Look::Missing, "{path}");
        }
        for (path, why) in [
            ("/lib/binary", "not UTF-8"),
            ("/lib/big", "larger than 1 MiB"),
            ("/lib/pipe", "not a regular"),
            ("/loop", "links"),
        ] {
            assert_eq!(files.text(Path::new(path)), None, "{path}");
            let Look::Unusable(said) = &files.looked()[Path::new(path)] else { panic!("{path}") };
            assert!(said.contains(why), "{path}: {said}");
        }
        assert_eq!(files.names(Path::new("/lib")), ["big", "binary", "pipe", "x"]);
        assert!(files.is_dir(Path::new("/lib")) && !files.exists(Path::new("/lib/none")));
    }
}
