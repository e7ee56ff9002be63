//! All integration tests in one binary: one link step, one start of shared helpers.

#[path = "../bed/mod.rs"]
mod bed;

mod bed_smoke;
