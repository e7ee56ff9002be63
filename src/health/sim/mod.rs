//! Simulated clusters with random faults, watched by the real rules on every node: facts, verdicts and fences are scored for
//! both errors, and each rule is switched off once to show that the corpus misses it. Seeds are printed; REFLOAT_SEED=N repeats.
//!
//! [`fault`] draws a schedule, [`world`] answers probes, [`node`] is one observer, [`score`] holds what should have been.

mod fault;
mod node;
mod rng;
mod score;
mod tests;
mod world;
