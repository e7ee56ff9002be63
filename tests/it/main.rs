//! All integration tests in one binary: one link step, one start of shared helpers.

// Tests start processes and remove what they made; refloat itself must not (clippy.toml).
#![allow(clippy::disallowed_methods)]

#[path = "../bed/mod.rs"]
mod bed;

mod bed_liar;
mod bed_smoke;
