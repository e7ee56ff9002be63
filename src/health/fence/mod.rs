//! Taking this node's path out of service, and the way from that decision to a balancer.
//!
//! The health process decides ([`decide`](mod@decide), pure; [`proof`] is the difference that it needs) and writes what it
//! decided into one small file, each second; whoever answers balancers passes it on while it is fresh. Nothing else
//! connects the two: a health process that is dead, hung, stopped or upgraded fences nobody (promise 9). A person's word
//! lies in a file of its own and wins over both.
//!
//! | file | holds |
//! |---|---|
//! | [`decide`](mod@decide), [`proof`] | the rule |
//! | [`file`](mod@file) | the fence file, and the dead-man rule |
//! | [`hand`] | what a person said |
//! | [`told`] | what a balancer is told, from both and the mode |

pub mod decide;
pub mod file;
pub mod hand;
pub mod proof;
#[cfg(test)]
mod tests;
pub mod told;

pub use file::{Answer, FenceFile, Word};
pub use hand::Hand;
