//! refloat: guarded, verified etcd snapshots for self-run Kubernetes control planes.
//!
//! Reading order, which is also the direction of calls (a test holds it):
//! [`cli`] is what a person types. It reads [`config`] and hands validated settings to [`snapshot`], which
//! streams from a member ([`etcd`]) into a [`store`], verifies the stored bytes with [`format`](mod@format)
//! and lets [`catalog`] say which cluster and which history they belong to before it publishes them.
//! [`fs`] holds everything that touches a directory; [`error`] how failures are told; [`crash`] where tests kill.
//!
//! Facts flow back as return values, never as calls upwards.

// Tests start processes and remove what they made; refloat itself must not (clippy.toml).
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod catalog;
pub mod cli;
pub mod config;
pub mod crash;
pub mod daemon;
pub mod discover;
pub mod engine;
pub mod error;
pub mod etcd;
pub mod format;
pub mod fs;
pub mod health;
pub mod host;
pub mod http;
pub mod kube;
pub mod ledger;
pub mod maintain;
pub mod setup;
pub mod snapshot;
pub mod status;
pub mod store;
