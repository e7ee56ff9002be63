//! One apiserver: a client made of a kubeconfig, with a deadline on every call.
//!
//! In: a kubeconfig and an apiserver's URL. Out: documents of Kubernetes, or an error that says what was asked, of which
//! apiserver, and why not. Nothing here runs another program, follows a proxy, tries again by itself, or waits without an
//! end (law 6); who wants another try makes it, and knows that it is one.
//!
//! | file | holds |
//! |---|---|
//! | [`kubeconfig`] | reading one, refusing what would run programs or trust anybody; writing ours |
//! | [`client`] | connecting, calling, deadlines |
//! | [`failure`] | what an error means |
//! | [`request`] | a key and the request for its certificate (PKCS#10) |
//! | [`signing`] | the certificate from the cluster: ask, approve, wait |
//! | [`apply`] | manifests, by server-side apply |
//! | [`lease`] | this node's Lease |
//! | [`endpoints`] | all apiservers, as they name themselves |
//! | [`probe`] | what health asks: connections of its own, in little memory |

pub mod apply;
pub mod client;
pub mod endpoints;
mod failure;
pub mod kubeconfig;
pub mod lease;
pub mod probe;
pub mod request;
pub mod signing;

pub use client::Client;
pub use kubeconfig::Access;

/// What changes are written under.
pub const MANAGER: &str = "refloat";
/// The user of our certificate, which the roles are bound to.
pub const USER: &str = "refloat";
