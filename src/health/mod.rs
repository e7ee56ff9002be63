//! Health by real reads and real writes: probes make facts, a pure function makes verdicts of them, a pure rule decides
//! what, if anything, is taken out of service (design §11).
//!
//! Touches no disk: it must work on the frozen disk that it judges. Backup trouble never enters. The default only advises.
//!
//! [`model`] holds the words, [`verdict`] what facts mean, [`fence`] what comes of it.

pub mod fence;
pub mod model;
pub mod verdict;
