//! Documents that only this interface has.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::failure::Failure;
use crate::engine::job::JobId;
use crate::status::Job;

/// Whose daemon answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    pub schema: u32,
    pub version: String,
    pub pid: u32,
    pub node: String,
    /// Its state directory: another one is another daemon's.
    pub state: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Jobs {
    pub schema: u32,
    pub jobs: Vec<Job>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub schema: u32,
    pub job: JobId,
    /// Joined to that job, which was there.
    pub coalesced: bool,
}

/// Without an end it lasts until it is resumed: a word that is not known may have been meant as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    #[serde(default)]
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub schema: u32,
    pub done: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    pub schema: u32,
    pub error: Failure,
}
