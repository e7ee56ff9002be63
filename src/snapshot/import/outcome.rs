//! What an import is asked for, and what came of it.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::catalog::{Digest, HashKv, LineageId, Shown, SnapshotId};
use crate::error::{Code, Error, Result};
use crate::snapshot::publish::StoreOutcome;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct ImportRequest {
    pub file: PathBuf,
    /// For a file that does not tell by itself which cluster it is from.
    pub lineage: Option<LineageId>,
    pub tags: Vec<String>,
    pub pin: bool,
    /// Take a file without trailer too, as an unverified snapshot.
    pub allow_unproven: bool,
    /// Only these stores; empty: all.
    pub stores: Vec<String>,
    /// Look, judge, and store nothing.
    pub dry_run: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Imported {
    pub snapshot: Shown,
    /// Stores in which something was written or failed; none when everything was there.
    pub stores: Vec<StoreOutcome>,
    /// The same bytes were in this lineage before.
    pub already: bool,
}

impl Imported {
    /// The error that the whole run ends with, although the snapshot is there.
    pub fn failure(&self) -> Option<Error> {
        let failed: Vec<&str> = self.stores.iter().filter(|s| s.result.is_err()).map(|s| s.name.as_str()).collect();
        (!failed.is_empty()).then(|| {
            Error::new(Code::SomeStoresFailed, "import snapshot", self.snapshot.manifest.id.to_string())
                .because(format!("it is not whole in store {}", failed.join(", ")))
                .remedy("see the error of that store, then import the file again: that adds what is missing")
        })
    }
}

/// The outcome of a dry run: the file is sound and would be imported like this.
#[derive(Debug)]
pub struct ImportPlan {
    /// The id that it would get; of the one that is there already, if it is.
    pub id: SnapshotId,
    /// `None`: one of its own, whose id is made when it is imported.
    pub lineage: Option<LineageId>,
    /// No store knows the lineage yet.
    pub new_lineage: bool,
    /// Why this lineage.
    pub reason: String,
    pub modified: Timestamp,
    /// The file has a trailer, and it fits.
    pub proven: bool,
    pub already: bool,
    /// Bytes of the database.
    pub db_size: u64,
    pub sha256: Digest,
    pub compact_revision: i64,
    pub keys: u64,
    pub hash_kv: Option<HashKv>,
    /// Expected stored bytes, and bytes that must be free, by store.
    pub stores: Vec<(String, Result<(u64, u64)>)>,
}

/// Either the snapshot or, for a dry run, what would become of the file.
#[derive(Debug)]
pub enum Outcome {
    Imported(Box<Imported>),
    Plan(Box<ImportPlan>),
}
