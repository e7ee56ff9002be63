//! Memory that stays: a process that judges or answers while the disk stands still must not wait for a page of it.

use nix::sys::mman::{MlockAllFlags, mlockall};

/// Locks what this process has and will have in memory, its program included. Why not, where it may not: that is told
/// in a status and stops nothing. Threads come with whole stacks, so they have small ones.
pub fn lock() -> Result<(), String> {
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE)
        .map_err(|e| format!("memory is not locked: {} (LimitMEMLOCK=, @memlock)", e.desc()))
}
