//! A store is a place for backups: named objects that are created once and never changed.
//!
//! In: names and bytes from `snapshot` and `catalog`. Out: bytes, pages of names, free space. Serves promise 2
//! (deletes only beneath the store's own handle) and law 5 (the store is the truth: it is read at that moment).
//!
//! Reading order: [`Store`] is the contract; [`LocalStore`] keeps it on a directory, found again by its marker;
//! [`KnownStores`] remembers which marker was seen where; [`codec`] is the form in which databases are stored.
//! [`DryRun`] and [`Unreliable`] stand before another store: one changes nothing, one fails on purpose.

pub mod codec;
mod contract;
mod dry_run;
mod input;
mod known;
mod list;
mod local;
mod marker;
mod open;
mod plain;
mod shown;
mod stored;
mod unreliable;

#[cfg(test)]
use contract::list_all;
pub use contract::{Entry, Page, Store, StoreSpace, each_entry};
pub use dry_run::{DryRun, Planned};
pub use input::{Form, Opened, open_database_bytes, open_database_object};
pub use known::{Known, KnownStores};
pub use local::LocalStore;
pub use marker::{MARKER, Marker};
pub use open::{Mode, OpenStore};
pub use plain::{PlainFile, in_use};
pub use shown::shown;
pub use stored::StoredFile;
pub use unreliable::{Call, Fault, Unreliable};
