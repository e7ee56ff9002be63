//! Talks to etcd members, one connection per member, and says what went wrong in words a person can act on.
//!
//! In: URLs and an [`Access`]. Out: facts about members and clusters, a bounded snapshot stream, and errors that
//! name the member and the cause. Serves law 6 (every call has a deadline, a stream must make progress in bytes),
//! law 7 (an unknown version is a warning, not a clean bill) and law 10 (own member only: [`own_member`]).
//!
//! [`Member`] is the connection, [`view`] asks a whole cluster at once, [`SnapshotStream`] holds the rules of a
//! stream, [`defects`] knows the faults of etcd versions, [`Asker`] asks one question for health. What a failure means is decided in `failure`; since
//! the transport hides most causes, `probe` looks again with a connection of its own. [`expiry`] warns before
//! certificates end.

mod access;
mod asker;
mod cluster;
mod defects;
pub mod expiry;
mod facts;
mod failure;
mod lock;
mod maintenance;
mod member;
mod own;
mod pace;
mod probe;
mod stream;
mod verify;

pub use access::{Access, AccessFiles, install_crypto_provider};
pub use asker::{Asker, Why};
pub use cluster::{ClusterView, MemberView, view};
pub use defects::{Defect, Version, defects};
pub use facts::{Alarm, AlarmKind, HashKv, KeyValue, MemberInfo, MemberStatus, ReadHeader};
pub use lock::ClusterLock;
pub use member::Member;
pub use own::{Chosen, Endpoint, host_addresses, own_member, pick, resolve};
pub use stream::{DEFAULT_FLOOR, SnapshotStream, StreamLimits};
