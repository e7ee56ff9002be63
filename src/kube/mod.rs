//! The apiserver, as far as refloat talks to one. [`probe`] asks for health.

pub mod probe;
