//! The one status that everything shows: folded from what the ledger holds and what is the case now (law 3).
//!
//! In: the engine's last [`Turn`](crate::engine::command::Turn), the facts that watchers gather, and the time. Out:
//! [`Status`], a document. The command line, `STATUS=` of systemd and the control interface all show this value, so
//! they cannot differ. [`health`] is what the health process says, in full and in short.

mod document;
mod facts;
pub mod health;
mod jobs;
mod render;
mod summary;

#[cfg(test)]
mod tests;

pub use document::{
    LedgerWord, Member, Newest, RecoveryPoint, Schedule, ScheduleDecision, Status, Store, StorePoint, Trouble, Unit,
};
pub use facts::{Answer, Facts, MemberFact};
pub use jobs::{Job, job, jobs};
pub use render::render;
pub use summary::ago;
