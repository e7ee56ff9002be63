//! Health by real reads and real writes: probes make facts, a pure function makes verdicts of them, a pure rule decides
//! what, if anything, is taken out of service (design §11).
//!
//! Touches no disk: it must work on the frozen disk that it judges. Backup trouble never enters. The default only advises.
//!
//! [`model`] holds the words. [`facts`] takes samples in: [`window`] has the repeat rule for one question, [`past`] what
//! answers told beside. [`verdict`](mod@verdict) says what facts mean, by [`judge`]; [`fence`] what to do about it; [`storm`]
//! warns of evictions. [`rules`] has every number. `sim` (tests) scores all of it on simulated faults.
//!
//! [`schedule`] says what is asked when, [`probes`] asks, [`watch`] knows whom.

pub mod facts;
pub mod fence;
pub mod judge;
pub mod model;
pub mod past;
pub mod probes;
pub mod rules;
pub mod schedule;
#[cfg(test)]
mod sim;
pub mod storm;
pub mod trace;
pub mod verdict;
pub mod watch;
pub mod window;
