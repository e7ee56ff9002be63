//! Compares two databases key by key: files, stored snapshots, or one of each.
//!
//! Both are judged first, whole, by the same code as everything else: what is damaged is not compared. The rows are
//! shown to [`diff`](crate::format::diff) on the way, and a second time to tell which ones differ.

use std::collections::hash_map::RandomState;

use tokio_util::sync::CancellationToken;

use super::evidence;
use super::judge::{Judgement, Object, judge_showing};
use super::progress::Progress;
use crate::catalog::{Digest, UidEvidence};
use crate::error::{Code, Error, Result};
use crate::format::check::{HashKv, Options, Visitor};
use crate::format::diff::{Differences, Second, Side, Table};

/// Kubernetes' own prefix: a file does not say which one its apiservers use.
const PREFIX: &str = "/registry";

const WHAT: &str = "compare database";

/// One of the two.
pub struct Compared {
    pub object: Object,
    /// A path, or an id and its store.
    pub on: String,
    /// Default: the newest.
    pub revision: Option<u64>,
    /// SHA-256 that the database must have, by its manifest.
    pub sha256: Option<Digest>,
}

/// What to tell.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only keys that begin with this.
    pub prefix: Vec<u8>,
    /// Parts of a path that make a prefix; default: see [`prefix`](crate::format::diff::prefix::of).
    pub depth: Option<usize>,
    /// The single keys too.
    pub keys: bool,
}

/// Where one of the two stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    pub revision: u64,
    pub compact_revision: u64,
    pub hash_kv: Option<HashKv>,
    /// Of the namespace `kube-system`; `None` where there is none that can be read.
    pub uid: Option<String>,
}

#[derive(Debug)]
pub struct Comparison {
    pub a: Point,
    pub b: Point,
    pub differences: Differences,
}

impl Comparison {
    /// Two clusters, as far as their own UIDs tell.
    pub fn of_two_clusters(&self) -> bool {
        matches!((&self.a.uid, &self.b.uid), (Some(a), Some(b)) if a != b)
    }
}

/// `DataInvalid` for damage in either, with the first finding; `RevisionNotReachable` for a revision that one of them
/// cannot tell of. Memory: 44 bytes a key in a hash table, beside what judging takes (measured: 165 bytes a key in all
/// for 2,000,000 keys); a differing key that is to be listed takes its name and about 250 bytes.
pub fn compare(
    a: &Compared,
    b: &Compared,
    wanted: &Wanted,
    secret: RandomState,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Comparison> {
    let mut table = Table::new(secret, wanted.prefix.clone());
    let mut points = Vec::new();
    let mut digests = Vec::new();
    for (side, one) in [(Side::A, a), (Side::B, b)] {
        progress.step(&format!("read {}", one.on));
        let judged = look(one, &mut table.first(side), progress, cancel)?;
        digests.push(judged.db_sha256);
        points.push(point(one, judged)?);
    }
    let mut second = Second::new(&table, wanted.depth, wanted.keys);
    let totals = table.totals();
    for ((side, one), digest) in [(Side::A, a), (Side::B, b)].into_iter().zip(digests) {
        second.turn(side);
        if totals.concern(side) {
            progress.step(&format!("compare {}", one.on));
            if look(one, &mut second, progress, cancel)?.db_sha256 != digest {
                return Err(Error::new(Code::DataInvalid, WHAT, &one.on)
                    .because("it changed while it was read")
                    .remedy("compare a snapshot, not the file of a running etcd"));
            }
        }
    }
    let [a, b] = <[Point; 2]>::try_from(points).map_err(|_| Error::new(Code::Internal, WHAT, "two databases"))?;
    Ok(Comparison { a, b, differences: second.finish() })
}

fn look(
    one: &Compared,
    visitor: &mut dyn Visitor,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Judgement> {
    let options = Options { revision: one.revision, wanted_key: evidence::namespace_key(PREFIX), ..Options::default() };
    let judged = judge_showing(&one.object, &one.on, options, Some(visitor), progress, cancel)?;
    let invalid = || Error::new(Code::DataInvalid, WHAT, &one.on);
    if let Some(finding) = judged.findings.first() {
        return Err(invalid()
            .because(finding.to_string())
            .remedy("see `refloat db check` for a file, `refloat snapshot verify` for a snapshot"));
    }
    if one.sha256.is_some_and(|digest| digest != judged.db_sha256) {
        return Err(invalid()
            .because("SHA-256 of the database is not the one in its manifest")
            .remedy("see `refloat snapshot verify`"));
    }
    Ok(judged)
}

fn point(one: &Compared, judged: Judgement) -> Result<Point> {
    let Some(content) = judged.content else {
        return Err(Error::new(Code::DataInvalid, WHAT, &one.on).because("no key space could be read"));
    };
    let compact = content.meta.compact_revision();
    let revision = one.revision.unwrap_or(content.revision);
    if !(compact..=content.revision).contains(&revision) {
        let why = format!("revision {revision} lies outside of what it can tell: {compact} to {}", content.revision);
        return Err(Error::new(Code::RevisionNotReachable, WHAT, &one.on).because(why));
    }
    let uid = match evidence::uid(content.wanted.as_deref()) {
        UidEvidence::Readable(uid) => Some(uid),
        UidEvidence::Encrypted | UidEvidence::Absent => None,
    };
    Ok(Point { revision, compact_revision: compact, hash_kv: judged.hash_kv, uid })
}
