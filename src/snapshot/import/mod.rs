//! Brings a file that somebody else captured into the stores: of `etcdctl snapshot save`, etcdutl, RKE2, k3s,
//! kubespray, or one that refloat exported (design §6 "Also", §7).
//!
//! In: settings, a file. Out: a snapshot that is verified like our own, marked imported, in every store that could take
//! it. The file is judged first, so nothing of a damaged one is ever written; then it is stored in the form of all
//! snapshots, read back, judged once more on the stored bytes, and published as a take does it. Serves promises 1
//! (verified means checked), 5 (refuse before harm) and 11 (crash anywhere).
//!
//! | step | file |
//! |---|---|
//! | all of it, under one lock | [`run`](mod@run) |
//! | open it, and notice when it changes | [`source`] |
//! | which lineage, is it there already, which id | [`belongs`](mod@belongs), `place` |
//! | compress it into a nameless file | [`copy`](mod@copy) |
//! | what was there before; pin and tags | `again` |
//! | asked and answered in | [`outcome`] |

mod again;
pub mod belongs;
mod copy;
pub mod outcome;
mod place;
pub mod run;
pub mod source;

pub use outcome::{ImportPlan, ImportRequest, Imported, Outcome};
pub use run::import;
pub use source::Source;
