//! Simulated clusters.
