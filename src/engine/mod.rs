//! Jobs: queue, lanes, deadlines, cancel; schedules and their cursor; the single writer of the ledger (design §10).
//!
//! In: commands and facts, as messages. Out: events in the ledger, and a [`Turn`] after each change, which is all that
//! anybody else sees. Serves promises 7 (no silent job) and 11 (crash anywhere) and laws 2, 4 and 6.
//!
//! | what | file |
//! |---|---|
//! | what a job is, its phases, what may run beside what | [`job`], [`phase`], [`lane`] |
//! | what is recorded, and what is known from it | [`event`], [`record`], [`failure`] |
//! | pure deciders: the next slot, what may start, until when, what was interrupted | [`schedule`], [`queue`], [`deadline`], [`settle`] |
//! | the loop that carries them out, its clocks, its way to the ledger | [`command`], [`core`](mod@core), [`clock`], [`outbox`] |
//! | what a job does | [`work`] |
//! | what the journal says of an event | [`journal`] |

pub mod clock;
pub mod command;
pub mod core;
pub mod deadline;
pub mod event;
pub mod failure;
pub mod job;
pub mod journal;
pub mod lane;
pub mod outbox;
pub mod phase;
pub mod queue;
pub mod record;
pub mod running;
pub mod schedule;
pub mod settle;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod work;
pub mod works;
