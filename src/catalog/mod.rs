//! The catalogue: which snapshots exist, which cluster and which history they belong to, and what they are called.
//!
//! In: names, manifests and notes from a [`Store`](crate::store::Store), and evidence that a caller read from a
//! database file and from a live member. Out: a listing, a placement with its reasons, a plan for the sweep. Nothing
//! here talks to etcd or reads a database. Serves promise 1 (only what was checked counts as verified), promise 2
//! (only own names are ever touched) and law 5 (the store is the truth: every answer is read from it at that moment).
//!
//! Reading order:
//! [`value`] and [`time`] are the small words of every file and name, [`id`] the name of a snapshot, [`names`] the
//! grammar of all names in a store. [`manifest`] and [`note`] are the documents beside the data, [`shown`] is both
//! folded into what a person sees. [`place`](mod@place) decides lineage and timeline from [`evidence`], purely; [`history`] is what a
//! store knows about them and how that is written down. [`index`] reads a store's names in bounded memory (as
//! `copies`), [`list`] shows them with their manifests (`load`), `find` answers `latest` and abbreviations,
//! [`retention`] decides what stays, [`prune`](mod@prune) removes the rest, unless [`freeze`](mod@freeze) says no, and
//! [`sweep`] what a killed run left behind.
//!
//! File formats, to the byte: docs/formats.md.

mod copies;
pub mod evidence;
pub mod find;
pub mod freeze;
pub mod history;
pub mod id;
pub mod index;
pub mod list;
mod load;
pub mod manifest;
pub mod names;
pub mod note;
pub mod place;
pub mod prune;
pub mod retention;
pub mod shown;
pub mod sweep;
#[cfg(test)]
pub(crate) mod testing;
pub mod time;
pub mod value;

pub use evidence::{
    Evidence, KnownLineage, KnownPoint, KnownTimeline, Place, Placement, Reason, TailAt, TailHasher, TimelineFacts,
    UidEvidence, lineage_of_uid,
};
pub use history::{LineageFile, Origin, Seen, TimelineFile, read_known, write_evidence};
pub use id::SnapshotId;
pub use index::{Catalog, Entry};
pub use list::{Filter, ForeignName, Lineages, OtherLineage, Unfinished, Unreadable};
pub use load::Loaded;
pub use manifest::{
    Agreement, AgreementResult, Codec, HashKv, Imported, Manifest, NotChecked, Sha256, Size, State, check,
};
pub use names::Name;
pub use note::{Note, NoteBody, NoteKind};
pub use place::{PlaceError, place};
pub use shown::{PinWord, Shown};
pub use sweep::{SweepPlan, SweepReport, SweepScope};
pub use value::{Digest, EtcdId, LineageId, Node, TimelineId};
