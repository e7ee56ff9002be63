//! Which snapshots of a store stay and which go, each with all its reasons (design §7).
//!
//! In: what a store holds as [`Candidate`]s and [`Trashed`], a [`Policy`], a [`Situation`] with `now`. Out:
//! [`Decisions`]. Pure: no clock, no file, no store. Serves promise 2 (never delete the wrong thing): whatever this
//! code does not understand it keeps, and a clock in doubt or a freeze holds everything.
//!
//! Reading order: `input` and `reason` are the words of question and answer, `say` is how the answer reads.
//! `decide` puts the parts together: `reach` (whose snapshots count at all), `history` (their order, and
//! the newest verified one of each timeline), `always` (what no rule and no limit takes), `rules` with `calendar`
//! (the `keep_…` of the configuration), `thinning` (`max_bytes`, `min_free`, the trash), `hold` (why nothing may be
//! done now).

mod always;
mod calendar;
mod decide;
mod history;
mod hold;
mod input;
mod reach;
mod reason;
mod rules;
mod say;
mod thinning;

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod model;
#[cfg(test)]
mod property;
#[cfg(test)]
mod property_space;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use decide::decide;
pub use hold::holds_always;
pub use input::{Candidate, Freeze, Policy, Situation, Space, Trashed};
pub use reason::{Beyond, Conflict, Decisions, Emptied, Emptying, Hold, Keep, Kept, OutOfReach, Removal, Remove, Slot};
