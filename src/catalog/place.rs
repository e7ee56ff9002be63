//! Which cluster and which history a snapshot belongs to: a pure decision with its reasons.
//!
//! In: evidence from the database file and the live member, and what the stores know ([`KnownLineage`], read by
//! [`read_known`](super::read_known)). Out: a [`Placement`]. Rules: design §7, written out in docs/formats.md. Two
//! principles rule all cases: lag is not history, and what is unknown decides nothing. A raft term never decides.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::evidence::{
    Evidence, KnownLineage, KnownTimeline, Place, Placement, Reason, TailAt, TimelineFacts, UidEvidence, lineage_of_uid,
};
use super::history::{Origin, TimelineFile};
use super::value::{LineageId, TimelineId};

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
            let Some(lineage) = known.iter().find(|l| l.id == id) else {
                return Ok(file.first_of(Place::New(id), origin, Reason::Uid, known));
            };
            // A lineage may stand in a store before its first timeline: a run that was killed.
            let Some(decision) = file.timeline_in(lineage) else {
                return Ok(file.first_of(Place::Existing(id), origin, Reason::Uid, known));
            };
            let placement = file.placement(lineage, decision, Reason::Uid)?;
            Ok(Placement { origin: Some(origin), ..placement })
        }
        UidEvidence::Encrypted | UidEvidence::Absent => match file.lineage_without_uid(known) {
            Some((lineage, decision)) => file.placement(lineage, decision, Reason::NoUid),
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
        real.sort_by_key(|t| (Reverse(t.id.number), t.id.hex));
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
    fn lineage_without_uid<'k>(&self, known: &'k [KnownLineage]) -> Option<(&'k KnownLineage, Decision)> {
        let candidates = known.iter().filter_map(|lineage| {
            let decision = self.timeline_in(lineage)?;
            let rank = match &decision {
                Decision::Keep { fit: Fit { found: Some(_), .. }, .. } => 0,
                Decision::Keep { timeline, .. } if timeline.cluster_id == Some(self.evidence.cluster_id) => 1,
                Decision::Begin { fit: Fit { found: Some(_), .. }, .. } => 2,
                _ => return None,
            };
            Some((rank, Reverse(newest_time(lineage)), lineage.id, lineage, decision))
        });
        let best = candidates.min_by_key(|(rank, time, id, ..)| (*rank, *time, *id))?;
        Some((best.3, best.4))
    }

    fn placement(&self, lineage: &KnownLineage, decision: Decision, why: Reason) -> Result<Placement, PlaceError> {
        let (timeline, timeline_facts, alarm, reasons) = match decision {
            Decision::Keep { timeline, reasons, .. } => {
                (Place::Existing(timeline.id), timeline.file.as_ref().map(TimelineFile::facts), false, reasons)
            }
            Decision::Begin { parent, fit, reason } => {
                let number = newest_number(lineage).saturating_add(1);
                if number > TimelineId::MAX_NUMBER {
                    return Err(PlaceError::NoNumberLeft(lineage.id));
                }
                let facts = TimelineFacts {
                    parent: Some(parent.id),
                    cluster_id: self.evidence.cluster_id,
                    first_revision: fit.shared().map_or(1, |r| r.saturating_add(1)),
                };
                let reasons = [Some(reason), fit.found.map(|revision| Reason::RowsFound { revision })];
                let id = TimelineId { number, hex: facts.hex() };
                (Place::New(id), Some(facts), true, reasons.into_iter().flatten().collect())
            }
        };
        let reasons = std::iter::once(why).chain(reasons).collect();
        let lineage_place = Place::Existing(lineage.id);
        let origin = lineage.origin.clone();
        Ok(Placement { lineage: lineage_place, origin, timeline, timeline_facts, alarm, reasons })
    }

    /// The first timeline of a lineage: every node computes the same one, at whatever revision it comes in.
    fn first_of(&self, lineage: Place<LineageId>, origin: Origin, why: Reason, known: &[KnownLineage]) -> Placement {
        let facts = TimelineFacts { parent: None, cluster_id: self.evidence.cluster_id, first_revision: 1 };
        let same = |l: &&KnownLineage| l.timelines.iter().any(|t| t.cluster_id == Some(self.evidence.cluster_id));
        let mut reasons = vec![why, Reason::FirstSnapshot];
        reasons.extend(known.iter().filter(same).map(|l| Reason::SameClusterIdElsewhere(l.id)));
        Placement {
            lineage,
            origin: Some(origin),
            timeline: Place::New(TimelineId { number: 1, hex: facts.hex() }),
            timeline_facts: Some(facts),
            alarm: false,
            reasons,
        }
    }
}

fn newest_revision(timeline: &KnownTimeline) -> Option<i64> {
    timeline.points.iter().map(|p| p.revision).max()
}

fn newest_time(lineage: &KnownLineage) -> Option<Timestamp> {
    lineage.timelines.iter().flat_map(|t| t.points.iter().map(|p| p.taken_at)).max()
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
