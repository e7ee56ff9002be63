//! Keeps a member's database small: guarded defragmentation, and the way out of NOSPACE (design §13).
//!
//! In: what members say of themselves and how much room the disk has. Out: a plan with its reasons (pure), then its steps.
//! Each node does its own member (law 10), one after the other under a lock of the whole cluster, the leader last.
//!
//! [`plan`] decides, [`look`] asks, [`defrag`] acts; [`nospace`] explains the alarm and plans the way out of it.

pub mod defrag;
pub mod look;
pub mod nospace;
pub mod plan;
