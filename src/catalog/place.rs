//! Which cluster and which history a snapshot belongs to: a pure decision with its reasons.
//!
//! In: evidence from the database file and the live member, and what the stores know ([`KnownLineage`], read by
//! [`read_known`](super::read_known)). Out: a [`Placement`]. Rules: design §7, written out in docs/formats.md. Two
//! principles rule all cases: lag is not history, and what is unknown decides nothing. A raft term never decides.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::history::{Origin, TimelineFile};
use super::value::{Digest, EtcdId, LineageId, TimelineId};

/// What the file says about the UID of the `kube-system` namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UidEvidence {
    /// The UID's text as it stands in the object.
    Readable(String),
    /// The namespace is there, its value is encrypted at rest.
    Encrypted,
    /// No such namespace: no Kubernetes, or another prefix.
    Absent,
}

/// What is known about a new snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    pub uid: UidEvidence,
    pub cluster_id: EtcdId,
    /// Of the file.
    pub revision: i64,
    /// Of the file.
    pub compact_revision: i64,
    /// Header revision of a linearizable read under the same cluster id; `None` when there was none.
    ///
    /// It must be read **after** the stores were, or a snapshot that another node publishes in between looks like a
    /// revision that this cluster has lost.
    pub linearizable_revision: Option<i64>,
}

/// The rows that the new file has at one revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailAt {
    /// SHA-256 of the rows, made like `tail` in a manifest.
    Rows(Digest),
    /// At or below the file's compact revision and gone: says nothing.
    Compacted,
    /// Above the compact revision, not above the file's revision, and no row there.
    NoRows,
    /// Could not be read.
    Unknown,
}

/// A verified snapshot of the past, as far as history needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPoint {
    pub revision: i64,
    pub tail: Option<Digest>,
    pub taken_at: Timestamp,
}

/// A timeline that some store knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTimeline {
    pub id: TimelineId,
    /// From the timeline's file, else from its manifests; unknown decides nothing.
    pub cluster_id: Option<EtcdId>,
    /// The timeline's file, where it could be read.
    pub file: Option<TimelineFile>,
    /// Verified snapshots, highest revision first; not all of them, but always the newest.
    pub points: Vec<KnownPoint>,
}

/// A lineage that some store knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLineage {
    pub id: LineageId,
    pub origin: Option<Origin>,
    pub timelines: Vec<KnownTimeline>,
}

/// A word that exists already, or one that this snapshot begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<T> {
    Existing(T),
    New(T),
}

impl<T: Copy> Place<T> {
    pub fn id(&self) -> T {
        match self {
            Place::Existing(id) | Place::New(id) => *id,
        }
    }

    pub fn is_new(&self) -> bool {
        matches!(self, Place::New(_))
    }
}

/// Where a snapshot belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub lineage: Place<LineageId>,
    pub origin: Option<Origin>,
    pub timeline: Place<TimelineId>,
    /// What the timeline's file holds or will hold; absent when an existing one could not be read.
    pub timeline_facts: Option<TimelineFacts>,
    /// A history that began without refloat's doing: a person must look.
    pub alarm: bool,
    /// Never empty.
    pub reasons: Vec<Reason>,
}

/// What a timeline is: its `hex` is made from these, so nodes that saw the same restore compute the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineFacts {
    pub parent: Option<TimelineId>,
    pub cluster_id: EtcdId,
    /// The earliest revision that may belong to this timeline and not to its parent; 1 where nothing shared is known.
    pub first_revision: i64,
}

impl TimelineFacts {
    /// First 4 bytes of SHA-256 over the ASCII text `refloat timeline <parent or -> <cluster id> <first revision>`.
    pub fn hex(&self) -> [u8; 4] {
        let parent = self.parent.map_or_else(|| "-".to_string(), |p| p.to_string());
        let text = format!("refloat timeline {parent} {} {}", self.cluster_id, self.first_revision);
        first_bytes(&Sha256::digest(text.as_bytes()))
    }
}

/// First 8 bytes of SHA-256 over `refloat lineage` and the UID, nothing between them.
pub fn lineage_of_uid(uid: &str) -> LineageId {
    LineageId(first_bytes(&Sha256::new().chain_update("refloat lineage").chain_update(uid).finalize()))
}

fn first_bytes<const N: usize>(digest: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.iter_mut().zip(digest).for_each(|(o, d)| *o = *d);
    out
}

/// One step of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// No store knows this cluster yet.
    FirstSnapshot,
    /// The lineage follows from the UID of the kube-system namespace.
    Uid,
    /// No UID can be read, so the lineage is a local one.
    NoUid,
    /// The same cluster id belongs to another lineage: a rebuilt cluster, or one that had no readable UID before.
    SameClusterIdElsewhere(LineageId),
    /// The rows of a known snapshot are in this file.
    RowsFound { revision: i64 },
    /// Same cluster id, nothing contradicts: what could be compared is compacted.
    NothingContradicts,
    /// The member is behind; the cluster is not.
    Lag { revision: i64, newest: i64 },
    /// The file is behind the store and no linearizable read says whether the cluster is too.
    BehindWithoutProof { revision: i64, newest: i64 },
    /// An old member without quorum: its own older timeline goes on.
    OlderTimeline { newest: TimelineId },
    /// Another cluster id with the same UID, or with known rows.
    OtherClusterId { was: EtcdId, now: EtcdId },
    /// A linearizable read stands below the newest snapshot.
    RevisionBelow { linearizable: i64, newest: i64 },
    /// The rows of one revision differ from those that a snapshot has recorded.
    RowsDiffer { revision: i64 },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::FirstSnapshot => write!(f, "no store knows this cluster yet"),
            Reason::Uid => write!(f, "lineage from the UID of the kube-system namespace"),
            Reason::NoUid => write!(f, "no UID of a kube-system namespace can be read"),
            Reason::SameClusterIdElsewhere(l) => write!(f, "the same cluster id belongs to lineage {l} as well"),
            Reason::RowsFound { revision } => write!(f, "the rows of the snapshot at revision {revision} are in it"),
            Reason::NothingContradicts => write!(f, "same cluster id, and nothing contradicts"),
            Reason::Lag { revision, newest } => {
                write!(f, "the member lags at revision {revision}, the cluster has reached the store's {newest}")
            }
            Reason::BehindWithoutProof { revision, newest } => write!(
                f,
                "revision {revision} is below the store's {newest}, and without a linearizable read this may be lag"
            ),
            Reason::OlderTimeline { newest } => {
                write!(f, "without a linearizable read it goes on with its own timeline, although {newest} is newer")
            }
            Reason::OtherClusterId { was, now } => write!(f, "the cluster id changed from {was} to {now}"),
            Reason::RevisionBelow { linearizable, newest } => {
                write!(f, "the cluster stands at revision {linearizable}, below the store's {newest}")
            }
            Reason::RowsDiffer { revision } => write!(f, "revision {revision} holds other rows than were recorded"),
        }
    }
}

/// Why no placement is possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error("lineage {0} has no timeline number left below 10000")]
    NoNumberLeft(LineageId),
}

/// Decides lineage and timeline of a new snapshot.
///
/// `tail_at` reads the rows of one revision of the new file; it is asked for a few dozen revisions at most. `random`
/// becomes the id of a new lineage without UID and is used for nothing else.
pub fn place(
    evidence: &Evidence,
    tail_at: &dyn Fn(i64) -> TailAt,
    known: &[KnownLineage],
    random: [u8; 8],
) -> Result<Placement, PlaceError> {
    let file = File { evidence, tail_at };
    match &evidence.uid {
        UidEvidence::Readable(uid) => {
            let id = lineage_of_uid(uid);
            let origin = Origin::Uid { kube_system_uid: uid.clone() };
            match known.iter().find(|l| l.id == id && newest_number(l) > 0) {
                Some(lineage) => {
                    let found = file.timeline_in(lineage);
                    let mut placement = file.placement(lineage, found)?;
                    placement.origin = Some(origin);
                    placement.reasons.insert(0, Reason::Uid);
                    Ok(placement)
                }
                None => {
                    // A lineage may stand in a store before its first snapshot: a run that was killed.
                    let exists = known.iter().any(|l| l.id == id);
                    let place = if exists { Place::Existing(id) } else { Place::New(id) };
                    Ok(file.first_of(place, origin, Reason::Uid, known))
                }
            }
        }
        UidEvidence::Encrypted | UidEvidence::Absent => match file.lineage_without_uid(known) {
            Some((lineage, found)) => {
                let mut placement = file.placement(lineage, found)?;
                placement.reasons.insert(0, Reason::NoUid);
                Ok(placement)
            }
            None => Ok(file.first_of(Place::New(LineageId(random)), Origin::Local, Reason::NoUid, known)),
        },
    }
}

fn newest_number(lineage: &KnownLineage) -> u16 {
    lineage.timelines.iter().map(|t| t.id.number).max().unwrap_or(0)
}

/// How one timeline's recorded rows compare with the file's.
#[derive(Debug, Clone, Copy, Default)]
struct Fit {
    /// Highest revision whose rows are in the file.
    found: Option<i64>,
    /// Highest revision whose rows are others.
    differs: Option<i64>,
    /// Highest revision that could not be compared.
    undecided: Option<i64>,
}

impl Fit {
    /// The highest revision that the file does not contradict.
    fn shared(&self) -> Option<i64> {
        self.found.max(self.undecided)
    }
}

enum Decision {
    Keep { timeline: KnownTimeline, fit: Fit, reasons: Vec<Reason> },
    Begin { parent: KnownTimeline, fit: Fit, reason: Reason },
}

/// The new file with everything that may be asked of it.
struct File<'a> {
    evidence: &'a Evidence,
    tail_at: &'a dyn Fn(i64) -> TailAt,
}

impl File<'_> {
    fn fit(&self, timeline: &KnownTimeline) -> Fit {
        let mut fit = Fit::default();
        for point in timeline.points.iter().filter(|p| p.revision <= self.evidence.revision) {
            let Some(tail) = point.tail else {
                fit.undecided = fit.undecided.max(Some(point.revision));
                continue;
            };
            let compacted = point.revision <= self.evidence.compact_revision;
            match (self.tail_at)(point.revision) {
                TailAt::Rows(rows) if rows == tail => {
                    fit.found = Some(point.revision);
                    break;
                }
                // A compaction takes rows away, so what is left below it may differ without meaning anything.
                TailAt::Rows(_) | TailAt::NoRows if !compacted => fit.differs = fit.differs.max(Some(point.revision)),
                _ => fit.undecided = fit.undecided.max(Some(point.revision)),
            }
        }
        fit
    }

    /// Why the file cannot be of this timeline.
    fn contradiction(&self, timeline: &KnownTimeline, fit: &Fit) -> Option<Reason> {
        let now = self.evidence.cluster_id;
        if let Some(was) = timeline.cluster_id
            && was != now
        {
            return Some(Reason::OtherClusterId { was, now });
        }
        if let (Some(linearizable), Some(newest)) = (self.evidence.linearizable_revision, newest_revision(timeline))
            && linearizable < newest
        {
            return Some(Reason::RevisionBelow { linearizable, newest });
        }
        fit.differs.map(|revision| Reason::RowsDiffer { revision })
    }

    /// Why it stays.
    fn agreement(&self, timeline: &KnownTimeline, fit: &Fit) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let revision = self.evidence.revision;
        if let Some(newest) = newest_revision(timeline)
            && revision < newest
        {
            reasons.push(match self.evidence.linearizable_revision {
                Some(_) => Reason::Lag { revision, newest },
                None => Reason::BehindWithoutProof { revision, newest },
            });
        }
        match fit.found {
            Some(revision) => reasons.push(Reason::RowsFound { revision }),
            None => reasons.push(Reason::NothingContradicts),
        }
        reasons
    }

    /// The decision within one lineage that has a timeline.
    fn timeline_in(&self, lineage: &KnownLineage) -> Option<Decision> {
        let number = newest_number(lineage);
        let mut real: Vec<&KnownTimeline> = lineage.timelines.iter().filter(|t| !t.id.is_imports()).collect();
        // Newest first; of two with one number, every node tries them in the same order.
        real.sort_by_key(|t| (std::cmp::Reverse(t.id.number), t.id.hex));
        let fits: BTreeMap<TimelineId, Fit> = real.iter().map(|t| (t.id, self.fit(t))).collect();
        let fit_of = |t: &KnownTimeline| fits.get(&t.id).copied().unwrap_or_default();

        let mut contradiction = None;
        for timeline in real.iter().filter(|t| t.id.number == number) {
            let fit = fit_of(timeline);
            match self.contradiction(timeline, &fit) {
                None => {
                    let reasons = self.agreement(timeline, &fit);
                    return Some(Decision::Keep { timeline: (*timeline).clone(), fit, reasons });
                }
                Some(reason) => contradiction = contradiction.or(Some((*timeline, reason))),
            }
        }
        let (newest, reason) = contradiction?;

        // A member that was left behind by a restore, cut off from its quorum, must not begin a history.
        if self.evidence.linearizable_revision.is_none() {
            let own = |t: &&&KnownTimeline| {
                let fit = fit_of(t);
                t.id.number < number
                    && t.cluster_id == Some(self.evidence.cluster_id)
                    && self.contradiction(t, &fit).is_none()
                    && (fit.found.is_some() || matches!(reason, Reason::OtherClusterId { .. }))
            };
            if let Some(older) = real.iter().find(own) {
                let fit = fit_of(older);
                let mut reasons = vec![Reason::OlderTimeline { newest: newest.id }];
                reasons.extend(self.agreement(older, &fit));
                return Some(Decision::Keep { timeline: (*older).clone(), fit, reasons });
            }
        }
        // The parent is the timeline that shares most with the file; where nothing is found, the newest.
        let parent = real.iter().copied().filter(|t| fit_of(t).found.is_some());
        let parent = parent.max_by_key(|t| (fit_of(t).found, t.id.number)).unwrap_or(newest);
        Some(Decision::Begin { parent: parent.clone(), fit: fit_of(parent), reason })
    }

    /// Without a UID only rows and cluster ids can tell; proof goes before mere absence of contradiction.
    fn lineage_without_uid<'k>(&self, known: &'k [KnownLineage]) -> Option<(&'k KnownLineage, Option<Decision>)> {
        let candidates = known.iter().filter_map(|lineage| {
            let decision = self.timeline_in(lineage)?;
            let rank = match &decision {
                Decision::Keep { fit: Fit { found: Some(_), .. }, .. } => 0,
                Decision::Keep { timeline, .. } if timeline.cluster_id == Some(self.evidence.cluster_id) => 1,
                Decision::Begin { fit: Fit { found: Some(_), .. }, .. } => 2,
                _ => return None,
            };
            Some((rank, std::cmp::Reverse(newest_time(lineage)), lineage.id, lineage, decision))
        });
        let best = candidates.min_by_key(|(rank, time, id, ..)| (*rank, *time, *id))?;
        Some((best.3, Some(best.4)))
    }

    fn placement(&self, lineage: &KnownLineage, decision: Option<Decision>) -> Result<Placement, PlaceError> {
        let base = |timeline, timeline_facts, alarm, reasons| Placement {
            lineage: Place::Existing(lineage.id),
            origin: lineage.origin.clone(),
            timeline,
            timeline_facts,
            alarm,
            reasons,
        };
        match decision {
            Some(Decision::Keep { timeline, reasons, .. }) => {
                let facts = timeline.file.as_ref().map(TimelineFile::facts);
                Ok(base(Place::Existing(timeline.id), facts, false, reasons))
            }
            Some(Decision::Begin { parent, fit, reason }) => {
                let facts = TimelineFacts {
                    parent: Some(parent.id),
                    cluster_id: self.evidence.cluster_id,
                    first_revision: fit.shared().map_or(1, |r| r.saturating_add(1)),
                };
                let number = newest_number(lineage) + 1;
                if number > TimelineId::MAX_NUMBER {
                    return Err(PlaceError::NoNumberLeft(lineage.id));
                }
                let mut reasons = vec![reason];
                reasons.extend(fit.found.map(|revision| Reason::RowsFound { revision }));
                Ok(base(Place::New(TimelineId { number, hex: facts.hex() }), Some(facts), true, reasons))
            }
            None => Ok(self.first_timeline(base, Vec::new())),
        }
    }

    fn first_timeline(
        &self,
        base: impl FnOnce(Place<TimelineId>, Option<TimelineFacts>, bool, Vec<Reason>) -> Placement,
        reasons: Vec<Reason>,
    ) -> Placement {
        let facts = TimelineFacts { parent: None, cluster_id: self.evidence.cluster_id, first_revision: 1 };
        base(Place::New(TimelineId { number: 1, hex: facts.hex() }), Some(facts), false, reasons)
    }

    fn first_of(&self, lineage: Place<LineageId>, origin: Origin, why: Reason, known: &[KnownLineage]) -> Placement {
        let mut reasons = vec![why, Reason::FirstSnapshot];
        let same = |l: &&KnownLineage| l.timelines.iter().any(|t| t.cluster_id == Some(self.evidence.cluster_id));
        reasons.extend(known.iter().filter(same).map(|l| Reason::SameClusterIdElsewhere(l.id)));
        self.first_timeline(
            |timeline, timeline_facts, alarm, reasons| Placement {
                lineage,
                origin: Some(origin),
                timeline,
                timeline_facts,
                alarm,
                reasons,
            },
            reasons,
        )
    }
}

fn newest_revision(timeline: &KnownTimeline) -> Option<i64> {
    timeline.points.iter().map(|p| p.revision).max()
}

fn newest_time(lineage: &KnownLineage) -> Option<Timestamp> {
    lineage.timelines.iter().flat_map(|t| t.points.iter().map(|p| p.taken_at)).max()
}
