//! Which snapshots of a store stay and which go, each with all its reasons (design §7).
//!
//! In: what a store holds as [`Candidate`]s and [`Trashed`], a [`Policy`], a [`Situation`] with `now`. Out:
//! [`Decisions`]. Pure: no clock, no file, no store. Serves promise 2 (never delete the wrong thing): whatever this
//! code does not understand it keeps, and a clock in doubt or a freeze holds everything.

mod input;
mod reason;

pub use input::{Candidate, Freeze, Policy, Situation, Space, Trashed};
pub use reason::{Beyond, Conflict, Decisions, Emptied, Emptying, Hold, Keep, Kept, OutOfReach, Removal, Remove, Slot};
