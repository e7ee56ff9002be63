//! What a disk may hold after a power loss, worked out from a trace (pure; for tests alone).
//!
//! The model is stricter than most file systems: a write is durable once its file was synced, a name once its
//! directory was, and nothing else is. For each moment of a trace there is the disk with all of the rest dropped, with
//! all of it kept, and with each one of it kept alone, writes also in half and with the right length but zeros.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::path::Path;

use super::trace::{Id, Op};

/// A directory tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Disk {
    root: Id,
    dirs: BTreeMap<Id, BTreeMap<OsString, Id>>,
    /// A file that has a name but is not in here has lost its bytes: it is empty.
    files: BTreeMap<Id, Vec<u8>>,
}

/// One outcome.
#[derive(Debug)]
pub struct Loss {
    /// For messages: after how many operations, and what of the rest was kept.
    pub case: String,
    /// Marks that the test had set by then.
    pub marks: usize,
    pub disk: Disk,
}

impl Disk {
    pub fn new(root: Id) -> Disk {
        Disk { root, dirs: BTreeMap::from([(root, BTreeMap::new())]), files: BTreeMap::new() }
    }

    pub fn has_dir(&mut self, above: Id, name: &OsStr, dir: Id) {
        self.dirs.entry(dir).or_default();
        self.dirs.entry(above).or_default().insert(name.into(), dir);
    }

    pub fn has_file(&mut self, above: Id, name: &OsStr, file: Id, bytes: Vec<u8>) {
        self.files.insert(file, bytes);
        self.dirs.entry(above).or_default().insert(name.into(), file);
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Mkdir { dir, name, made } => self.has_dir(*dir, name, *made),
            Op::Link { dir, name, file } => drop(self.dirs.entry(*dir).or_default().insert(name.clone(), *file)),
            Op::Unlink { dir, name } => drop(self.dirs.entry(*dir).or_default().remove(name)),
            Op::Rename { dir, from, into, to, file } => {
                self.dirs.entry(*dir).or_default().remove(from);
                self.dirs.entry(*into).or_default().insert(to.clone(), *file);
            }
            Op::Write { file, offset, bytes } => {
                let content = self.files.entry(*file).or_default();
                let from = usize::try_from(*offset).expect("a test's file fits into memory");
                content.resize(content.len().max(from + bytes.len()), 0);
                content[from..from + bytes.len()].copy_from_slice(bytes);
            }
            Op::SetLen { file, len } => {
                let len = usize::try_from(*len).expect("a test's file fits into memory");
                self.files.entry(*file).or_default().resize(len, 0);
            }
            Op::SyncFile { .. } | Op::FailedSync { .. } | Op::SyncDir { .. } | Op::Mark => {}
        }
    }

    /// Makes this tree below an empty directory.
    pub fn restore(&self, into: &Path) -> std::io::Result<()> {
        self.restore_dir(self.root, into)
    }

    fn restore_dir(&self, dir: Id, into: &Path) -> std::io::Result<()> {
        for (name, id) in self.dirs.get(&dir).into_iter().flatten() {
            let path = into.join(name);
            if self.dirs.contains_key(id) {
                std::fs::create_dir(&path)?;
                self.restore_dir(*id, &path)?;
            } else {
                std::fs::write(&path, self.files.get(id).map_or(&[][..], |bytes| bytes))?;
            }
        }
        Ok(())
    }
}

/// Which directory must be synced for it.
fn name_in(op: &Op) -> Option<Id> {
    match op {
        Op::Mkdir { dir, .. } | Op::Link { dir, .. } | Op::Unlink { dir, .. } | Op::Rename { dir, .. } => Some(*dir),
        _ => None,
    }
}

/// Which file must be synced for it.
fn bytes_of(op: &Op) -> Option<Id> {
    match op {
        Op::Write { file, .. } | Op::SetLen { file, .. } => Some(*file),
        _ => None,
    }
}

/// Each outcome once, in the order of the trace.
pub fn losses(before: &Disk, ops: &[Op]) -> Vec<Loss> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |case: String, marks: usize, disk: Disk| {
        let mut hasher = DefaultHasher::new();
        (marks, &disk).hash(&mut hasher);
        if seen.insert(hasher.finish()) {
            found.push(Loss { case, marks, disk });
        }
    };
    let (mut durable, mut open, mut marks) = (before.clone(), Vec::new(), 0);
    for (at, op) in std::iter::once(None).chain(ops.iter().map(Some)).enumerate() {
        match op {
            None => {}
            Some(Op::Mark) => marks += 1,
            Some(Op::SyncFile { file, content }) => {
                settle(&mut durable, &mut open, |op| bytes_of(op) == Some(*file));
                if let Some(content) = content {
                    durable.files.insert(*file, content.clone());
                }
            }
            Some(Op::SyncDir { dir }) => {
                // The old name may outlive this; it goes with a sync of its own directory.
                for op in &mut open {
                    if let Op::Rename { dir: old, from, into, to, file } = op
                        && into == dir
                        && old != dir
                    {
                        durable.apply(&Op::Link { dir: *into, name: to.clone(), file: *file });
                        *op = Op::Unlink { dir: *old, name: std::mem::take(from) };
                    }
                }
                settle(&mut durable, &mut open, |op| name_in(op) == Some(*dir));
            }
            // What was written is gone for good, in memory too as far as a later sync is concerned.
            Some(Op::FailedSync { file }) => {
                open.retain(|op| !matches!(op, Op::Write { file: of, .. } if of == file));
            }
            Some(other) => open.push(other.clone()),
        }
        add(format!("after {at}, nothing kept"), marks, durable.clone());
        let mut all = durable.clone();
        open.iter().for_each(|op| all.apply(op));
        add(format!("after {at}, everything kept"), marks, all);
        for kept in &open {
            for (how, part) in parts(kept) {
                let mut disk = durable.clone();
                disk.apply(&part);
                add(format!("after {at}, kept {how} {kept:?}"), marks, disk);
            }
        }
    }
    found
}

fn settle(durable: &mut Disk, open: &mut Vec<Op>, belongs: impl Fn(&Op) -> bool) {
    for op in open.extract_if(.., |op| belongs(op)) {
        durable.apply(&op);
    }
}

/// What of an operation may have reached the disk.
fn parts(op: &Op) -> Vec<(&'static str, Op)> {
    let Op::Write { file, offset, bytes } = op else { return vec![("all of", op.clone())] };
    let (half, write) = (bytes.len() / 2, |bytes: Vec<u8>| Op::Write { file: *file, offset: *offset, bytes });
    let second = [vec![0; half], bytes[half..].to_vec()].concat();
    vec![
        ("all of", op.clone()),
        ("the first half of", write(bytes[..half].to_vec())),
        ("the second half of", write(second)),
        ("the length of", write(vec![0; bytes.len()])),
    ]
}

#[cfg(test)]
mod tests;
