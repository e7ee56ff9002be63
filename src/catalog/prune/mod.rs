//! Removes what retention lets go: found, planned, then done one by one (design §7).
//!
//! In: a catalogue, which exists only if every list was read to its end, and what is wanted. Out: a [`Plan`] that
//! prints, serialises and hashes; then a [`Report`]. Serves promise 2 and laws 1, 4 and 5. The caller keeps writers
//! out of the store meanwhile ([`Tenancy`](crate::fs::Tenancy)), and plans a second time from a second look before
//! anything is done.
//!
//! | step | file |
//! |---|---|
//! | what a store holds, as retention wants to know it; what a killed run left | `found` |
//! | the plan and its hash | `plan` |
//! | one removal after the other, the manifest first | `act` |
//! | a whole lineage or timeline, because a person says so | [`retire`] |
//!
//! A removal's own intent is the manifest in the trash: first in, last out. Whatever comes between is found by the
//! next run, which goes on.

mod act;
mod found;
mod plan;
pub mod retire;
#[cfg(test)]
mod tests;

pub use act::{Refused, Removed, Report, act};
pub use found::{Found, Leftover, Reach, Removals, Usage, find, usage};
pub use plan::{Plan, plan};
