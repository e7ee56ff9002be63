//! Everything below a directory, to be compared before and after: names as raw bytes, kinds, modes, content, link counts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::Digest;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    pub mode: u32,
    pub inode: u64,
    /// Of a file; a directory's change with what is in it.
    pub links: u64,
    /// A file's SHA-256 or a link's target.
    pub content: Vec<u8>,
}

pub type Tree = BTreeMap<OsString, Leaf>;

/// Links are noted and not followed.
#[track_caller]
pub fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).expect("read a directory") {
            let path = entry.expect("read a directory").path();
            let meta = path.symlink_metadata().expect("look at a name");
            let content = if meta.is_symlink() {
                path.read_link().expect("read a link").into_os_string().into_encoded_bytes()
            } else if meta.is_file() {
                sha2::Sha256::digest(std::fs::read(&path).expect("read a file")).to_vec()
            } else {
                Vec::new()
            };
            if meta.is_dir() {
                open.push(path.clone());
            }
            let name = path.strip_prefix(root).expect("below it").as_os_str().to_owned();
            let links = if meta.is_file() { meta.nlink() } else { 0 };
            found.insert(name, Leaf { mode: meta.mode(), inode: meta.ino(), links, content });
        }
    }
    found
}

/// The names of one tree that another one has not, or has with other content.
pub fn missing_or_changed(before: &Tree, after: &Tree) -> Vec<OsString> {
    before.iter().filter(|(name, leaf)| after.get(*name) != Some(leaf)).map(|(name, _)| name.clone()).collect()
}
