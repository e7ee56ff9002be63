//! Everything that touches a directory: a handle opened once, durable writes, locks, space.
//!
//! In: a path from the configuration, then names below it. Out: bytes, entries, figures. Serves promise 2 (deletes
//! happen only beneath a handle, never by a path that somebody may have changed) and promise 11 (what has a name is
//! whole: bytes and name are on disk before a call returns).
//!
//! Reading order: [`Dir`] is the handle; [`Staged`] a file that has no name yet; [`Writable`] one that is written in
//! place; [`Lock`] names its holder; [`Space`] says what is left; [`Patience`] waits for a place that may hang (law 6).
//! The file system is reached through `/proc/self/fd` in two places (listing a handle,
//! naming a nameless file), so `/proc` must be mounted, as it is under systemd.

mod boot;
mod dir;
mod entries;
mod lock;
mod names;
mod os;
pub mod patience;
#[cfg(any(test, feature = "failpoints"))]
pub mod power;
mod random;
mod space;
mod stage;
mod sweep;
mod tenancy;
#[cfg(any(test, feature = "failpoints"))]
pub mod trace;
mod traced;
mod writable;

pub use boot::BootTime;
pub use dir::Dir;
pub use entries::{DirEntry, Kind, Stat};
pub use lock::{Attempt, Holder, Lock};
pub use names::is_name;
pub use os::{check_regular, is_elsewhere, is_lost, is_not_a_directory, is_out_of_space, is_refused};
pub use patience::{Aside, Limits, Patience, Pending};
pub use random::random;
pub use space::Space;
pub use stage::{STAGED_PREFIX, Staged};
pub use sweep::{Swept, sweep_staged};
pub use tenancy::Tenancy;
pub use writable::Writable;
