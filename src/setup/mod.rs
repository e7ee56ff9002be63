//! What was discovered becomes configuration, credentials and running services (design §5): a plan, then the act.
//!
//! In: the root of a file system. Out: a [`Plan`], which prints and can be shown without acting, then the same done by
//! durable writes; what was done before is in no plan, so running it again changes nothing. Explicit configuration
//! wins: a key that another file sets is left out and named. Serves law 1 (plan, then act) and promise 5 (refuse before
//! harm).
//!
//! | step | file |
//! |---|---|
//! | which units | [`units`] |
//! | what is there now: files, directories, units, mounts | [`node`] |
//! | the texts: configuration and drop-ins, with every value escaped | [`text`], [`escape`] |
//! | what is to be done | [`plan`], [`decide`](mod@decide) |
//! | do certificate, key and authority fit, does the member answer | [`check`] |
//! | the identity in Kubernetes | [`cluster`] |
//! | doing it | [`act`](mod@act), [`services`] |

pub mod act;
pub mod check;
pub mod cluster;
mod decide;
pub mod escape;
pub mod node;
pub mod plan;
mod prepare;
pub mod services;
pub mod text;
pub mod units;

pub use check::Check;
pub use plan::{Action, Kept, Plan};
pub use prepare::{Prepared, prepare};

/// Below the root; also what messages name.
pub const FRAGMENT: &str = "/etc/refloat/conf.d/10-discovered.toml";
