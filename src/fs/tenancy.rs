//! Writers and sweepers of one directory keep out of each other's way, also across processes and nodes.
//!
//! Whoever creates something in steps shares the directory meanwhile, with any number of others; whoever removes
//! what seems to be left over needs it alone. The kernel holds both (`flock` on a handle of the directory itself,
//! so nothing is written), and lets go when the process ends, however that happens.

use std::fs::{File, TryLockError};
use std::time::Duration;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use super::patience::still_wanted;
use super::{Dir, os};
use crate::error::{Code, Error, Result};

/// A sweep is short: a listing and a few removals.
const PATIENCE: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// Held until dropped.
#[derive(Debug)]
pub struct Tenancy {
    _handle: File,
}

impl Tenancy {
    fn handle(dir: &Dir) -> Result<File> {
        // A handle of its own: locks belong to an open file, which clones share.
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let fd = openat(dir, ".", flags, Mode::empty()).map_err(|e| os::error("open directory", dir.shown(""), e))?;
        Ok(File::from(fd))
    }

    /// For a writer, together with others. Waits while somebody sweeps, ten seconds at most.
    ///
    /// A file system without locks gives none, and no sweep either: [`Tenancy::alone`] then fails.
    pub fn share(dir: &Dir) -> Result<Tenancy> {
        let handle = Tenancy::handle(dir)?;
        for _ in 0..PATIENCE {
            match handle.try_lock_shared() {
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Tenancy { _handle: handle }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            }
            still_wanted("wait to write to", || dir.shown(""))?;
        }
        Err(Error::new(Code::LockHeld, "write to", dir.shown(""))
            .because(format!("somebody has been sweeping it for {:?}", PAUSE * PATIENCE))
            .remedy("look for another refloat process that uses this store, then try again"))
    }

    /// For a sweeper; `None` while anybody writes.
    pub fn alone(dir: &Dir) -> Result<Option<Tenancy>> {
        let handle = Tenancy::handle(dir)?;
        match handle.try_lock() {
            Ok(()) => Ok(Some(Tenancy { _handle: handle })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(os::io_error("lock", dir.shown(""), e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_share_and_a_sweeper_is_alone() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        let (a, b) = (Tenancy::share(&dir).unwrap(), Tenancy::share(&dir).unwrap());
        assert!(Tenancy::alone(&dir).unwrap().is_none());
        drop(a);
        assert!(Tenancy::alone(&dir).unwrap().is_none());
        drop(b);
        let alone = Tenancy::alone(&dir).unwrap();
        assert!(alone.is_some());
        assert!(Tenancy::alone(&dir).unwrap().is_none());
        drop(alone);
        assert!(Tenancy::share(&dir).is_ok());
    }
}
