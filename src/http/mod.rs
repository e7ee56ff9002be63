//! The control interface: HTTP on a unix socket, JSON documents, and the client that the command line uses.
//!
//! In: requests of people on this host. Out: the status document and parts of it; commands to the engine. Whoever may
//! open the socket may read; root and the daemon's own user may change something.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/daemon` | [`api::Daemon`]: whose daemon this is |
//! | `GET /v1/status` | [`Status`](crate::status::Status); `/v1/status/follow`: one a line, on each change |
//! | `GET /v1/jobs`, `/v1/jobs/ID` | jobs; `/v1/jobs/ID/follow`: one a line, on each change, until it is over |
//! | `POST /v1/jobs` | a [`Task`](crate::engine::job::Task) to queue; [`api::Queued`] |
//! | `DELETE /v1/jobs/ID` | cancels it |
//! | `GET /v1/schedules` | [`Schedule`](crate::status::Schedule)s |
//! | `POST /v1/schedules/NAME/pause`, `/resume` | [`api::Pause`] |
//!
//! The health process has a socket of its own, see [`serve_health`].
//! Apart from all that, [`answer`] is what balancers ask, in a process of its own.

pub mod answer;
pub mod api;
pub mod client;
mod connections;
mod follow;
mod health;
mod server;

pub use health::{HEALTH_SOCKET, QUIET, serve_health};
pub use server::{App, bind, serve};

/// In the runtime directory.
pub const SOCKET: &str = "control.sock";
