//! A cluster that is written to, compacted, snapshotted from lagging members and restored, at random: a new timeline
//! begins exactly when there was a restore that can be seen.

use proptest::prelude::*;

use super::*;
use crate::catalog::KnownPoint;
use crate::catalog::testing::at;
use crate::catalog::value::{Digest, EtcdId};

const UID: &str = "uid";

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Compact(f64),
    /// From a member so many revisions behind; with or without a linearizable read.
    Snapshot(usize, bool),
    /// To this part of the history, with another cluster id or the same.
    Restore(f64, bool),
}

/// The cluster: one stamp for each revision, from 1.
struct Cluster {
    rows: Vec<u64>,
    compact: usize,
    id: u64,
    stamp: u64,
}

impl Cluster {
    fn tail(&self, revision: usize) -> Option<Digest> {
        let stamp = self.rows.get(revision.checked_sub(1)?)?;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&stamp.to_be_bytes());
        Some(Digest(bytes))
    }

    fn write(&mut self, count: usize) {
        for _ in 0..count {
            self.stamp += 1;
            self.rows.push(self.stamp);
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1usize..30).prop_map(Step::Write),
        2 => (0.0..1.0f64).prop_map(Step::Compact),
        6 => (0usize..8, prop::bool::weighted(0.9)).prop_map(|(lag, read)| Step::Snapshot(lag, read)),
        1 => (0.3..1.0f64, any::<bool>()).prop_map(|(part, other)| Step::Restore(part, other)),
    ];
    prop::collection::vec(step, 1..60)
}

/// Writes down what a placement said, as a store would.
fn remember(known: &mut Vec<KnownLineage>, placement: &Placement, cluster: EtcdId, point: KnownPoint) {
    let id = placement.lineage.id();
    if !known.iter().any(|l| l.id == id) {
        known.push(KnownLineage { id, origin: placement.origin.clone(), timelines: Vec::new() });
    }
    let Some(lineage) = known.iter_mut().find(|l| l.id == id) else { return };
    let timeline = placement.timeline.id();
    if !lineage.timelines.iter().any(|t| t.id == timeline) {
        let new = KnownTimeline { id: timeline, cluster_id: Some(cluster), file: None, points: Vec::new() };
        lineage.timelines.push(new);
    }
    if let Some(t) = lineage.timelines.iter_mut().find(|t| t.id == timeline) {
        t.points.push(point);
        t.points.sort_by_key(|p| Reverse(p.revision));
    }
}

fn run(steps: Vec<Step>, with_uid: bool) -> Result<(), TestCaseError> {
    let mut cluster = Cluster { rows: Vec::new(), compact: 0, id: 0xcafe, stamp: 0 };
    cluster.write(10);
    let mut known: Vec<KnownLineage> = Vec::new();
    let mut restores = 0;
    let uid = if with_uid { UidEvidence::Readable(UID.into()) } else { UidEvidence::Absent };
    for (turn, step) in steps.into_iter().enumerate() {
        let (lag, read) = match step {
            Step::Write(count) => {
                cluster.write(count);
                continue;
            }
            Step::Compact(part) => {
                let to = (cluster.rows.len() as f64 * part) as usize;
                cluster.compact = cluster.compact.max(to);
                continue;
            }
            Step::Restore(part, other) => {
                let to = ((cluster.rows.len() as f64 * part) as usize).max(cluster.compact).max(1);
                cluster.rows.truncate(to);
                cluster.write(1);
                cluster.id += u64::from(other);
                restores += 1;
                continue;
            }
            Step::Snapshot(lag, read) => (lag, read),
        };
        let newest = known.first().and_then(|l| l.timelines.iter().max_by_key(|t| t.id.number));
        let revision = cluster.rows.len().saturating_sub(lag).max(cluster.compact).max(1);
        let evidence = Evidence {
            uid: uid.clone(),
            cluster_id: EtcdId(cluster.id),
            revision: revision as i64,
            compact_revision: cluster.compact as i64,
            linearizable_revision: read.then_some(cluster.rows.len() as i64),
        };
        // Below the compact revision anything may be left.
        let tail_at = |r: i64| match (cluster.tail(r as usize), r as usize <= cluster.compact) {
            (Some(tail), false) => TailAt::Rows(tail),
            (None, false) => TailAt::NoRows,
            (_, true) => [TailAt::Compacted, TailAt::NoRows, TailAt::Rows(Digest([0xee; 32]))][r as usize % 3],
        };

        let placement = place(&evidence, &tail_at, &known, [turn as u8; 8]).unwrap();

        // No restore since the last placement that began something: nothing may begin.
        let begins = placement.timeline.is_new() && newest.is_some();
        prop_assert!(!begins || restores > 0, "false alarm: {placement:?} for {evidence:?}, {known:?}");
        prop_assert_eq!(placement.alarm, begins && !placement.lineage.is_new());
        if let Some(newest) = newest {
            let shows = |p: &KnownPoint| {
                let r = p.revision as usize;
                r > cluster.compact && r <= revision && p.tail != cluster.tail(r)
            };
            let lost = read && newest.points.iter().any(|p| p.revision > cluster.rows.len() as i64);
            let visible = (read && newest.cluster_id != Some(EtcdId(cluster.id)))
                || lost
                || (read && newest.points.iter().any(shows));
            prop_assert!(!visible || begins, "missed: {placement:?} for {evidence:?}, {known:?}");
        }
        if begins {
            restores = 0;
        }
        let taken_at = at(turn as i64);
        let tail = cluster.tail(revision).filter(|_| cluster.compact < revision);
        let point = KnownPoint { revision: revision as i64, tail, taken_at };
        remember(&mut known, &placement, EtcdId(cluster.id), point);
        if !with_uid && known.len() > 1 {
            // Without a UID a restore that shares nothing is a rebuild; what follows is another story.
            return Ok(());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn timelines_begin_with_restores_and_with_nothing_else(steps in steps()) {
        run(steps, true)?;
    }

    #[test]
    fn so_they_do_without_a_uid(steps in steps()) {
        run(steps, false)?;
    }
}
