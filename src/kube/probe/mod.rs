//! One question to one apiserver for health: with a deadline, and every failure as a value.
//!
//! In: a kubeconfig and the addresses of apiservers. Out: [`Asker`], which asks one apiserver and never another. Probes
//! must tell a refused port from a hung process from an expired certificate, on connections that are their own; so this
//! is plain HTTP over TLS, and no library retries, balances or follows anything (docs/decisions.md).
//!
//! [`identity`] reads who we are and refuses what would start a program (law 9); [`lease`] knows the one object that
//! health reads and writes.

mod asker;
mod identity;
pub mod lease;

pub use asker::{Answer, Asker, Why};
pub use identity::Identity;
