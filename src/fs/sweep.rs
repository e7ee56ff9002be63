//! Removes temporary names whose writers are dead.

use std::fs::TryLockError;

use nix::sys::stat::fstat;
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::traced::trace;
use super::{Dir, Kind, STAGED_PREFIX, is_refused, os};
use crate::error::{Code, Error, Result};

/// How deep a second name is looked for; refloat's own layout has four levels.
const DEPTH_MAX: usize = 16;

/// What a sweep came to.
#[derive(Debug, Default)]
pub struct Swept {
    pub removed: usize,
    /// Names that stay, each with the reason: refloat leaves nothing like that behind.
    pub refused: Vec<Error>,
}

/// Removes temporary names in `dir` itself whose writer is dead.
pub fn sweep_staged(dir: &Dir) -> Result<Swept> {
    let mut swept = Swept::default();
    for entry in dir.entries()? {
        let Some(name) = entry.name.to_str().filter(|n| entry.kind == Kind::File && is_temporary(n)) else {
            continue;
        };
        let file = match dir.open_file(name) {
            Err(e) if e.code() == Code::NotFound => continue,
            // Another user's, in a shared directory: that user's sweep takes it.
            Err(e) if is_refused(&e) => continue,
            other => other?,
        };
        match file.try_lock() {
            // Its writer lives.
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(e)) => return Err(os::io_error("lock file", dir.shown(name), e)),
            Ok(()) => {}
        }
        // Under the lock the name still stands for the same file, or it was published or removed meanwhile.
        let ours = fstat(&file).map_err(|e| os::error("look at file", dir.shown(name), e))?;
        let identity = (ours.st_dev, ours.st_ino);
        let Some(stat) = dir.stat(name.as_ref())?.filter(|s| s.identity == identity) else { continue };
        // Where a file system cannot rename without replacing, a killed writer leaves both of its names.
        let published = stat.links == 2 && has_other_name(dir, name, identity, 0)?;
        let removed = if published { remove_name(dir, name) } else { dir.remove_file(name) };
        match removed {
            Ok(()) => swept.removed += 1,
            Err(e) if e.code() == Code::NotFound => {}
            Err(e) if stat.links > 1 => swept.refused.push(e),
            Err(e) => return Err(e),
        }
    }
    Ok(swept)
}

/// The name alone: the file lives on under its other one.
fn remove_name(dir: &Dir, name: &str) -> Result<()> {
    unlinkat(dir, name, UnlinkatFlags::NoRemoveDir)
        .map_err(|e| os::create_error("remove temporary name", dir.shown(name), e))?;
    trace!(unlinked(dir, name));
    dir.sync()
}

/// Whether the file has another name beneath `at`, which is where refloat publishes.
fn has_other_name(at: &Dir, but: &str, identity: (u64, u64), depth: usize) -> Result<bool> {
    for entry in at.entries()? {
        let Some(name) = entry.name.to_str() else { continue };
        let found = match entry.kind {
            Kind::File if depth == 0 && name == but => false,
            Kind::File => at.stat(&entry.name)?.is_some_and(|s| s.identity == identity),
            Kind::Dir if depth < DEPTH_MAX => match at.open_dir(name) {
                Ok(sub) => has_other_name(&sub, but, identity, depth + 1)?,
                // A mount point, or not for this user: what is there was not published from here.
                Err(_) => false,
            },
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_temporary(name: &str) -> bool {
    name.strip_prefix(STAGED_PREFIX)
        .is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::fs::Staged;

    fn dir() -> (tempfile::TempDir, Dir) {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        (tmp, dir)
    }

    #[test]
    fn a_sweep_takes_dead_names_only() {
        let (tmp, dir) = dir();
        let living = Staged::named(&dir).unwrap();
        let dead = format!("{STAGED_PREFIX}0123456789abcdef");
        let others = [".refloat-tmp-0123456789abcdeX", ".refloat-tmp-1", "0123456789abcdef", "data"];
        for name in others.iter().copied().chain([dead.as_str()]) {
            std::fs::write(tmp.path().join(name), b"").unwrap();
        }
        let link = format!("{STAGED_PREFIX}0000000000000000");
        std::os::unix::fs::symlink("data", tmp.path().join(&link)).unwrap();
        assert_eq!(sweep_staged(&dir).unwrap().removed, 1);
        let mut want: Vec<String> = others.map(String::from).into();
        want.extend([link, living.name.clone().unwrap()]);
        want.sort();
        let left: Vec<String> = dir.entries().unwrap().iter().map(|e| e.name.to_string_lossy().into()).collect();
        assert_eq!(left, want);
        drop(living);
        assert_eq!(sweep_staged(&dir).unwrap().removed, 0);
    }

    #[test]
    fn a_sweep_at_the_same_time_costs_no_writer_its_file() {
        let (_tmp, dir) = dir();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            let sweeper = s.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    sweep_staged(&dir).unwrap();
                }
            });
            for i in 0..300 {
                let staged = Staged::named(&dir).unwrap();
                staged.file().write_all(b"x").unwrap();
                staged.publish(&dir, &format!("f{i}")).unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            sweeper.join().unwrap();
        });
        assert_eq!(dir.entries().unwrap().len(), 300);
    }

    #[test]
    fn a_second_name_of_our_own_goes_and_somebody_elses_stays() {
        let (tmp, dir) = dir();
        let outside = tempfile::tempdir_in(tmp.path().parent().unwrap()).unwrap();
        let temporary = |n: u8| format!("{STAGED_PREFIX}000000000000000{n}");
        std::fs::create_dir_all(tmp.path().join("a/b")).unwrap();
        let linked = [tmp.path().join("a/b/published"), outside.path().join("theirs")];
        for (n, other) in (0..).zip(&linked) {
            std::fs::write(tmp.path().join(temporary(n)), b"1").unwrap();
            std::fs::hard_link(tmp.path().join(temporary(n)), other).unwrap();
        }
        std::fs::write(tmp.path().join(temporary(2)), b"dead").unwrap();
        let swept = sweep_staged(&dir).unwrap();
        assert_eq!(swept.removed, 2, "one refusal stops nothing else");
        assert!(swept.refused[0].on().ends_with(&temporary(1)) && swept.refused.len() == 1, "{:?}", swept.refused);
        let links: Vec<u64> = linked.iter().map(|path| path.metadata().unwrap().nlink()).collect();
        assert_eq!(links, [1, 2]);
    }
}
