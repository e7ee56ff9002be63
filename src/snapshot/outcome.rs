//! What a take is asked for, and what came of it.

use super::publish::StoreOutcome;
use crate::catalog::{AgreementResult, Shown, State};
use crate::error::{Code, Error, Result};
use crate::etcd::Access;
use crate::format::check::Finding;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct TakeRequest {
    /// Another member than the own one: name, id or client URL.
    pub member: Option<String>,
    pub tags: Vec<String>,
    /// Fail at once when another take is under way.
    pub no_wait: bool,
    /// Only these stores; empty: all.
    pub stores: Vec<String>,
    /// Stop after the preflight.
    pub dry_run: bool,
    /// Bytes of the database a second; `None`: as fast as the member sends them.
    pub rate: Option<u64>,
    /// Credentials that were read before; `None`: they are read from the files that the settings name.
    pub access: Option<Access>,
}

/// What came of it.
#[derive(Debug)]
pub struct Taken {
    pub snapshot: Shown,
    pub stores: Vec<StoreOutcome>,
    /// Why its lineage and timeline are these.
    pub reasons: Vec<String>,
    /// Faults of the member's own database: bytes that arrived whole, but are not sound.
    pub findings: Vec<Finding>,
}

impl Taken {
    /// The error that the whole run ends with, although the snapshot was kept.
    pub fn failure(&self) -> Option<Error> {
        let id = self.snapshot.manifest.id.to_string();
        let failed: Vec<&str> = self.stores.iter().filter(|s| s.result.is_err()).map(|s| s.name.as_str()).collect();
        match self.snapshot.state {
            State::Disputed => {
                Some(Error::new(Code::Disputed, "agree on snapshot", id).because(self.dispute()).remedy(
                    "compare the members with `etcdctl endpoint hashkv --cluster` before trusting any backup of them",
                ))
            }
            State::Unverified => Some(
                Error::new(Code::DataInvalid, "verify snapshot", id)
                    .because(
                        self.findings.first().map_or_else(|| "not everything was checked".into(), ToString::to_string),
                    )
                    .remedy("the bytes arrived as the member sent them: check that member's own database"),
            ),
            State::Verified if !failed.is_empty() => Some(
                Error::new(Code::SomeStoresFailed, "publish snapshot", id)
                    .because(format!("it is not in store {}", failed.join(", ")))
                    .remedy("see the error of that store; the others have the snapshot"),
            ),
            State::Verified => None,
        }
    }

    /// Who differs, and at which revision.
    fn dispute(&self) -> String {
        let different = self.snapshot.agreement.iter().filter(|a| a.result == AgreementResult::Different);
        let who: Vec<&str> = different.map(|a| a.with.as_str()).collect();
        format!(
            "another content at the same revision {} has {}: the members of this cluster differ",
            self.snapshot.manifest.revision,
            who.join(", ")
        )
    }
}

/// The outcome of a dry run.
#[derive(Debug)]
pub struct Preflight {
    pub member: String,
    pub url: String,
    /// Why this member.
    pub reason: &'static str,
    pub etcd_version: String,
    /// Bytes.
    pub db_size: u64,
    /// Expected stored bytes, and bytes that must be free, by store.
    pub stores: Vec<(String, Result<(u64, u64)>)>,
}

/// Either the snapshot or, for a dry run, what was found before it.
pub enum Outcome {
    Taken(Box<Taken>),
    Preflight(Preflight),
}
