//! What runs on this node, read from its files: etcd, the apiserver, their certificates (design §5).
//!
//! In: the root of a file system, the time. Out: [`Found`], each fact with the file and flag that it was read from, or
//! an error that lists what was looked at. Changes nothing, asks nobody; what cannot be read is named and hides nothing
//! else. Serves promise 5 (refuse before harm) and law 10 (which member is the own one).
//!
//! | step | file |
//! |---|---|
//! | read below a root, bounded, remembered | [`files`] |
//! | static pods, units, options from flags, variables and YAML | [`pod`], [`unit`], [`options`], [`member`] |
//! | which layouts are there, and which member is the one | [`search`] |
//! | a client certificate that etcd will take | [`certificates`] |
//! | the file system of the data | [`mounts`] |
//! | what was found | [`found`], [`fact`] |

mod assemble;
pub mod certificates;
pub mod fact;
pub mod files;
pub mod found;
mod member;
mod mounts;
mod options;
mod pod;
mod search;
mod unit;

pub use assemble::discover;
pub use certificates::{CertificateFile, ClientFiles};
pub use fact::{Fact, Source};
pub use files::Look;
pub use found::{ApiServer, Found, Layout, LocalMember, Other};
pub use member::Run;
