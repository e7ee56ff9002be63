//! A lock that names its holder.
//!
//! The kernel holds it (`flock`), so it is free the moment its holder ends, however that happens; the text in the
//! file is for people. The file is never removed: whoever removed it would let two processes hold two files.

use std::fmt;
use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use serde::{Deserialize, Serialize};

use super::{Dir, names, os};
use crate::error::{Code, Error, Result};

/// Larger texts are not a holder.
const HOLDER_MAX: usize = 4096;

/// How often it is tried again while it is held and nobody says by whom: the holder is just taking it or letting it go,
/// or a child that another thread starts has not yet closed what it was born with.
const NAMELESS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Who holds a lock and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// What is being done, as a phrase: "snapshot take".
    pub what: String,
    pub pid: u32,
    pub node: String,
    /// RFC 3339, UTC.
    pub since: String,
}

impl Holder {
    /// This process, from now on.
    pub fn current(what: &str, node: &str) -> Holder {
        let since = jiff::Timestamp::now().to_string();
        Holder { what: what.into(), pid: std::process::id(), node: node.into(), since }
    }

    fn unknown() -> Holder {
        Holder { what: "unknown holder".into(), pid: 0, node: String::new(), since: String::new() }
    }

    pub fn is_unknown(&self) -> bool {
        self.pid == 0
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holder { what, pid, node, since } = self;
        if self.is_unknown() { f.write_str(what) } else { write!(f, "{what} (pid {pid} on {node}, since {since})") }
    }
}

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// What came of asking for a lock.
#[derive(Debug)]
pub enum Attempt {
    Acquired(Lock),
    Held(Holder),
}

impl Attempt {
    /// `LockHeld` with the holder's name if somebody else has it; `what` on `on` is what the lock was wanted for.
    pub fn into_lock(self, what: &str, on: &str) -> Result<Lock> {
        match self {
            Attempt::Acquired(lock) => Ok(lock),
            Attempt::Held(holder) => Err(Error::new(Code::LockHeld, what, on)
                .because(format!("held by {holder}"))
                .remedy("wait until it ends, then try again")),
        }
    }
}

impl Lock {
    /// Takes the lock `rel` beneath `dir` or says who has it. Waits for nobody who has a name, a fifth of a second for
    /// one who has none yet.
    pub fn try_acquire(dir: &Dir, rel: &str, holder: &Holder) -> Result<Attempt> {
        names::check(rel)?;
        let on = dir.shown(rel);
        // Never blocks on a FIFO; never follows a link.
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let fd = dir
            .lookup(rel, flags, Mode::S_IRUSR | Mode::S_IWUSR)
            .map_err(|e| os::create_error("open lock file", on.clone(), e))?;
        let file = File::from(fd);
        os::check_regular(&file, &on).map_err(|e| e.with_code(Code::CannotCreate))?;
        let mut tries = 0;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => match read_holder(&file) {
                    holder if holder.is_unknown() && tries < NAMELESS => {
                        tries += 1;
                        std::thread::sleep(PAUSE);
                    }
                    holder => return Ok(Attempt::Held(holder)),
                },
                Err(TryLockError::Error(e)) => return Err(os::io_error("lock", on, e)),
            }
        }
        // Whoever fails to take it from here on reads the new text, an empty one, or half of one.
        let text = serde_json::to_vec(holder)
            .map_err(|e| Error::new(Code::Internal, "name holder of lock", &*on).because(e))?;
        // A full disk must not keep a prune, which frees space, from getting its lock: the text is a courtesy.
        let _ = file.set_len(0).and_then(|()| file.write_all_at(&text, 0));
        Ok(Attempt::Acquired(Lock { file }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // So that nobody takes this holder for the next one.
        let _ = self.file.set_len(0);
    }
}

fn read_holder(file: &File) -> Holder {
    let mut text = vec![0; HOLDER_MAX];
    match file.read_at(&mut text, 0) {
        Ok(n) => serde_json::from_slice(&text[..n]).unwrap_or_else(|_| Holder::unknown()),
        Err(_) => Holder::unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(dir: &Dir) -> Attempt {
        Lock::try_acquire(dir, "lock", &Holder::current("test", "cp1")).unwrap()
    }

    #[test]
    fn the_second_hears_who_has_it_until_the_first_lets_go() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        let first = attempt(&dir).into_lock("lock", "x").unwrap();
        let Attempt::Held(holder) = attempt(&dir) else { panic!("two hold it") };
        assert_eq!((holder.what.as_str(), holder.pid, holder.node.as_str()), ("test", std::process::id(), "cp1"));
        let err = attempt(&dir).into_lock("take snapshot", "").unwrap_err();
        assert_eq!(err.code(), Code::LockHeld);
        assert!(err.why()[0].contains("cp1"), "{:?}", err.why());
        drop(first);
        assert!(matches!(attempt(&dir), Attempt::Acquired(_)));
        assert!(tmp.path().join("lock").exists());
    }

    #[test]
    fn a_torn_text_is_an_unknown_holder() {
        for text in [&b""[..], b"{\"what\":\"sna", b"\xff\xff", &[b'x'; 9000]] {
            let tmp = tempfile::tempdir().unwrap();
            let path = tmp.path().join("lock");
            std::fs::write(&path, text).unwrap();
            let other = File::open(&path).unwrap();
            other.try_lock().unwrap();
            let Attempt::Held(holder) = attempt(&Dir::open(tmp.path()).unwrap()) else { panic!("two hold it") };
            assert!(holder.is_unknown());
            assert_eq!(holder.to_string(), "unknown holder");
        }
    }

    #[test]
    fn one_who_has_no_name_yet_is_waited_for() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("lock");
        let other = File::create(&path).unwrap();
        other.try_lock().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| attempt(&dir));
            std::fs::write(&path, serde_json::to_vec(&Holder::current("other", "cp2")).unwrap()).unwrap();
            let Attempt::Held(holder) = asking.join().unwrap() else { panic!("two hold it") };
            assert_eq!(holder.what, "other");
        });
    }

    #[test]
    fn a_stale_text_does_not_hold() {
        let tmp = tempfile::tempdir().unwrap();
        let stale = serde_json::to_vec(&Holder { pid: 1, ..Holder::current("old and longer than the new one", "x") });
        std::fs::write(tmp.path().join("lock"), stale.unwrap()).unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        let _lock = attempt(&dir).into_lock("lock", "x").unwrap();
        let text: Holder = serde_json::from_slice(&std::fs::read(tmp.path().join("lock")).unwrap()).unwrap();
        assert_eq!(text.what, "test");
    }

    #[test]
    fn a_link_or_a_fifo_is_no_lock_file() {
        let tmp = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("elsewhere", tmp.path().join("link")).unwrap();
        nix::unistd::mkfifo(&tmp.path().join("fifo"), Mode::S_IRWXU).unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        for name in ["link", "fifo"] {
            assert!(Lock::try_acquire(&dir, name, &Holder::current("test", "cp1")).is_err(), "{name}");
        }
        assert!(!tmp.path().join("elsewhere").exists());
    }
}
