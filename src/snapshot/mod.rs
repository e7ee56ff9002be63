//! snapshot

pub mod progress;
