//! Every rule of docs/formats.md, "Lineage and timeline", as a row of a table.

use super::*;
use crate::catalog::KnownPoint;
use crate::catalog::history::Seen;
use crate::catalog::testing::{at, node};
use crate::catalog::value::{Digest, EtcdId};

const UID: &str = "3f0e8a52-6c1d-4b7e-9a60-1d2c3b4a5968";
const A: u64 = 0xcafe;
const B: u64 = 0xbeef;
const RANDOM: [u8; 8] = [7; 8];

/// The rows of history `h` at a revision: two histories share what they share by using the same letter.
fn rows(h: char, revision: i64) -> Digest {
    let mut bytes = [h as u8; 32];
    bytes[..8].copy_from_slice(&revision.to_be_bytes());
    Digest(bytes)
}

fn timeline(number: u16, cluster: u64, parent: Option<TimelineId>, points: &[(i64, char)]) -> KnownTimeline {
    let facts = TimelineFacts { parent, cluster_id: EtcdId(cluster), first_revision: 1 };
    let id = TimelineId { number, hex: facts.hex() };
    let mut points: Vec<KnownPoint> = points
        .iter()
        .map(|(revision, h)| KnownPoint {
            revision: *revision,
            tail: Some(rows(*h, *revision)),
            taken_at: at(*revision),
        })
        .collect();
    points.sort_by_key(|p| Reverse(p.revision));
    let file = TimelineFile {
        schema: 1,
        lineage: lineage_of_uid(UID),
        timeline: id,
        parent,
        cluster_id: EtcdId(cluster),
        first_revision: 1,
        seen: Seen { node: node("cp1"), at: at(0), revision: 1, reasons: Vec::new() },
    };
    KnownTimeline { id, cluster_id: Some(EtcdId(cluster)), file: Some(file), points }
}

fn lineage(id: LineageId, timelines: Vec<KnownTimeline>) -> KnownLineage {
    KnownLineage { id, origin: None, timelines }
}

/// A new file: history `h` up to `revision`, compacted at `compact`.
struct New {
    uid: Option<&'static str>,
    cluster: u64,
    revision: i64,
    compact: i64,
    linearizable: Option<i64>,
    /// The letter of the rows at a revision; `None` for no row.
    h: fn(i64) -> Option<char>,
}

impl Default for New {
    fn default() -> Self {
        New { uid: Some(UID), cluster: A, revision: 200, compact: 0, linearizable: Some(200), h: |_| Some('a') }
    }
}

impl New {
    fn place(&self, known: &[KnownLineage]) -> Placement {
        let evidence = Evidence {
            uid: self.uid.map_or(UidEvidence::Absent, |u| UidEvidence::Readable(u.into())),
            cluster_id: EtcdId(self.cluster),
            revision: self.revision,
            compact_revision: self.compact,
            linearizable_revision: self.linearizable,
        };
        let tail_at = |revision| match (self.h)(revision) {
            _ if revision <= self.compact => TailAt::Compacted,
            Some(h) => TailAt::Rows(rows(h, revision)),
            None => TailAt::NoRows,
        };
        place(&evidence, &tail_at, known, RANDOM).unwrap()
    }
}

/// (lineage is new, timeline number, timeline is new, alarm, a reason that must be among them)
type Want = (bool, u16, bool, bool, Reason);

fn check(name: &str, got: &Placement, want: Want) {
    let (new_lineage, number, new_timeline, alarm, reason) = want;
    assert_eq!(got.lineage.is_new(), new_lineage, "{name}: lineage, {got:?}");
    assert_eq!(got.timeline.id().number, number, "{name}: number, {got:?}");
    assert_eq!(got.timeline.is_new(), new_timeline, "{name}: timeline, {got:?}");
    assert_eq!(got.alarm, alarm, "{name}: alarm, {got:?}");
    assert!(got.reasons.contains(&reason), "{name}: no {reason:?} in {got:?}");
    if got.timeline.is_new() {
        assert_eq!(got.timeline_facts.unwrap().hex(), got.timeline.id().hex, "{name}");
    }
}

fn one(points: &[(i64, char)]) -> Vec<KnownLineage> {
    vec![lineage(lineage_of_uid(UID), vec![timeline(1, A, None, points)])]
}

/// Timeline 2 on cluster B branched off timeline 1 on cluster A behind revision 100.
fn two() -> Vec<KnownLineage> {
    let first = timeline(1, A, None, &[(100, 'a'), (180, 'a')]);
    let second = timeline(2, B, Some(first.id), &[(120, 'b')]);
    vec![lineage(lineage_of_uid(UID), vec![first, second])]
}

#[test]
fn with_a_uid() {
    let new = New::default;
    let base = || one(&[(100, 'a'), (150, 'a')]);
    let no_rows: fn(i64) -> Option<char> = |r| (r <= 100).then_some('a');
    let forked: fn(i64) -> Option<char> = |r| Some(if r <= 100 { 'a' } else { 'x' });
    let table: Vec<(&str, New, Vec<KnownLineage>, Want)> = vec![
        ("empty store", new(), vec![], (true, 1, true, false, Reason::FirstSnapshot)),
        ("goes on", new(), base(), (false, 1, false, false, Reason::RowsFound { revision: 150 })),
        (
            "goes on, everything compacted",
            New { compact: 199, ..new() },
            base(),
            (false, 1, false, false, Reason::NothingContradicts),
        ),
        (
            "the very same revision again",
            New { revision: 150, linearizable: Some(150), ..new() },
            base(),
            (false, 1, false, false, Reason::RowsFound { revision: 150 }),
        ),
        (
            "a member that lags",
            New { revision: 120, linearizable: Some(151), ..new() },
            base(),
            (false, 1, false, false, Reason::Lag { revision: 120, newest: 150 }),
        ),
        (
            "a member that lags in a cluster that stands exactly at the newest",
            New { revision: 120, linearizable: Some(150), ..new() },
            base(),
            (false, 1, false, false, Reason::Lag { revision: 120, newest: 150 }),
        ),
        (
            "lower, and nobody to ask",
            New { revision: 120, linearizable: None, ..new() },
            base(),
            (false, 1, false, false, Reason::BehindWithoutProof { revision: 120, newest: 150 }),
        ),
        (
            "restored to an older revision, same cluster id",
            New { revision: 120, linearizable: Some(120), ..new() },
            base(),
            (false, 2, true, true, Reason::RevisionBelow { linearizable: 120, newest: 150 }),
        ),
        (
            "restored to an older revision, one below the newest",
            New { revision: 149, linearizable: Some(149), ..new() },
            base(),
            (false, 2, true, true, Reason::RevisionBelow { linearizable: 149, newest: 150 }),
        ),
        (
            "restored, and already beyond the newest",
            New { h: forked, ..new() },
            base(),
            (false, 2, true, true, Reason::RowsDiffer { revision: 150 }),
        ),
        (
            "no row at the newest revision, where each revision has one",
            New { h: no_rows, ..new() },
            base(),
            (false, 2, true, true, Reason::RowsDiffer { revision: 150 }),
        ),
        (
            "other rows at an older snapshot's revision, lower, and nobody to ask",
            New { revision: 120, linearizable: None, h: |_| Some('x'), ..new() },
            base(),
            (false, 2, true, true, Reason::RowsDiffer { revision: 100 }),
        ),
        (
            "other rows, but compacted in the new file",
            New { compact: 150, h: forked, ..new() },
            base(),
            (false, 1, false, false, Reason::NothingContradicts),
        ),
        (
            "another cluster id",
            New { cluster: B, ..new() },
            base(),
            (false, 2, true, true, Reason::OtherClusterId { was: EtcdId(A), now: EtcdId(B) }),
        ),
        (
            "another cluster id, mark-compacted far above",
            New { cluster: B, revision: 1_000_000, compact: 1_000_000, linearizable: Some(1_000_000), ..new() },
            base(),
            (false, 2, true, true, Reason::OtherClusterId { was: EtcdId(A), now: EtcdId(B) }),
        ),
        (
            "rebuilt with the same name, URL and token: other UID, same cluster id, lower revision",
            New { uid: Some("other"), revision: 20, linearizable: Some(20), h: |_| Some('z'), ..new() },
            base(),
            (true, 1, true, false, Reason::SameClusterIdElsewhere(lineage_of_uid(UID))),
        ),
        (
            "the newest timeline goes on",
            New { cluster: B, h: |r| Some(if r <= 100 { 'a' } else { 'b' }), ..new() },
            two(),
            (false, 2, false, false, Reason::RowsFound { revision: 120 }),
        ),
        (
            "the old data directory is back, and it is the cluster",
            New { h: |_| Some('a'), ..new() },
            two(),
            (false, 3, true, true, Reason::OtherClusterId { was: EtcdId(B), now: EtcdId(A) }),
        ),
        (
            "a member of the old cluster without quorum",
            New { revision: 185, linearizable: None, ..new() },
            two(),
            (false, 1, false, false, Reason::OlderTimeline { newest: two()[0].timelines[1].id }),
        ),
        (
            "a timeline that another node wrote down, without a snapshot yet",
            New { revision: 90, linearizable: Some(90), ..new() },
            one(&[]),
            (false, 1, false, false, Reason::NothingContradicts),
        ),
        (
            "a lineage of imports alone",
            new(),
            vec![lineage(
                lineage_of_uid(UID),
                vec![KnownTimeline { id: TimelineId::IMPORTS, cluster_id: None, file: None, points: vec![] }],
            )],
            (false, 1, true, false, Reason::FirstSnapshot),
        ),
    ];
    for (name, new, known, want) in table {
        let got = new.place(&known);
        check(name, &got, want);
        let uid = new.uid.unwrap();
        assert_eq!(got.lineage.id(), lineage_of_uid(uid), "{name}");
        assert_eq!(got.origin, Some(Origin::Uid { kube_system_uid: uid.into() }), "{name}");
    }
}

#[test]
fn without_a_uid() {
    let new = || New { uid: None, ..New::default() };
    let local = |byte: u8, timelines| lineage(LineageId([byte; 8]), timelines);
    let base = || vec![local(1, vec![timeline(1, A, None, &[(100, 'a'), (150, 'a')])])];
    let forked: fn(i64) -> Option<char> = |r| Some(if r <= 100 { 'a' } else { 'x' });
    let table: Vec<(&str, New, Vec<KnownLineage>, Want)> = vec![
        ("empty store", new(), vec![], (true, 1, true, false, Reason::FirstSnapshot)),
        ("same cluster id, rows found", new(), base(), (false, 1, false, false, Reason::RowsFound { revision: 150 })),
        (
            "same cluster id, not lower, everything compacted",
            New { compact: 199, ..new() },
            base(),
            (false, 1, false, false, Reason::NothingContradicts),
        ),
        (
            "same cluster id, a lagging member",
            New { revision: 120, linearizable: Some(160), ..new() },
            base(),
            (false, 1, false, false, Reason::Lag { revision: 120, newest: 150 }),
        ),
        (
            "same cluster id, lower, nothing shared: rebuilt",
            New { revision: 120, linearizable: Some(120), h: |_| Some('z'), ..new() },
            base(),
            (true, 1, true, false, Reason::SameClusterIdElsewhere(LineageId([1; 8]))),
        ),
        (
            "same cluster id, lower, nothing to compare",
            New { revision: 120, compact: 119, linearizable: Some(120), ..new() },
            base(),
            (true, 1, true, false, Reason::SameClusterIdElsewhere(LineageId([1; 8]))),
        ),
        (
            "same cluster id, higher, other rows everywhere: rebuilt and grown",
            New { h: |_| Some('z'), ..new() },
            base(),
            (true, 1, true, false, Reason::FirstSnapshot),
        ),
        (
            "same cluster id, lower, older rows found: restored to an older revision",
            New { revision: 120, linearizable: Some(120), ..new() },
            base(),
            (false, 2, true, true, Reason::RowsFound { revision: 100 }),
        ),
        (
            "same cluster id, restored and already beyond",
            New { h: forked, ..new() },
            base(),
            (false, 2, true, true, Reason::RowsDiffer { revision: 150 }),
        ),
        (
            "other cluster id, rows found",
            New { cluster: B, ..new() },
            base(),
            (false, 2, true, true, Reason::OtherClusterId { was: EtcdId(A), now: EtcdId(B) }),
        ),
        (
            "other cluster id, nothing to compare",
            New { cluster: B, compact: 199, ..new() },
            base(),
            (true, 1, true, false, Reason::FirstSnapshot),
        ),
        (
            "other cluster id, other rows",
            New { cluster: B, h: |_| Some('z'), ..new() },
            base(),
            (true, 1, true, false, Reason::FirstSnapshot),
        ),
    ];
    for (name, new, known, want) in table {
        let got = new.place(&known);
        check(name, &got, want);
        let id = if got.lineage.is_new() { LineageId(RANDOM) } else { known[0].id };
        assert_eq!(got.lineage.id(), id, "{name}");
        assert!(got.reasons.contains(&Reason::NoUid), "{name}");
    }
}

#[test]
fn proof_goes_before_absence_of_contradiction() {
    // Two clusters were built one after the other with one id; the file has rows of the older one.
    let older = lineage(LineageId([1; 8]), vec![timeline(1, A, None, &[(100, 'a')])]);
    let newer = lineage(LineageId([2; 8]), vec![timeline(1, A, None, &[(50, 'z')])]);
    let new = New { uid: None, compact: 60, ..New::default() };
    let known = vec![newer.clone(), older.clone()];
    assert_eq!(new.place(&known).lineage, Place::Existing(older.id));
    // With nothing to compare, the one that was seen last.
    let later = lineage(LineageId([3; 8]), vec![timeline(1, A, None, &[(190, 'z')])]);
    let new = New { uid: None, compact: 199, ..New::default() };
    assert_eq!(new.place(&[later.clone(), older]).lineage, Place::Existing(later.id));
}

#[test]
fn an_encrypted_uid_stays_in_the_lineage_that_it_had() {
    let known = one(&[(150, 'a')]);
    let new = New { uid: None, ..New::default() };
    let got = new.place(&known);
    assert_eq!(got.lineage, Place::Existing(lineage_of_uid(UID)));
    assert!(!got.alarm);
}

#[test]
fn parent_and_first_revision_come_from_what_is_shared() {
    let known = one(&[(50, 'a'), (100, 'a'), (150, 'a')]);
    let parent = known[0].timelines[0].id;
    // Two nodes see the same restore at different revisions and compute the same timeline.
    let restored: fn(i64) -> Option<char> = |r| Some(if r <= 110 { 'a' } else { 'x' });
    let early = New { revision: 111, linearizable: Some(111), h: restored, ..New::default() }.place(&known);
    let late = New { revision: 140, linearizable: Some(141), h: restored, ..New::default() }.place(&known);
    let beyond = New { revision: 400, linearizable: Some(400), h: restored, ..New::default() }.place(&known);
    let facts = TimelineFacts { parent: Some(parent), cluster_id: EtcdId(A), first_revision: 101 };
    for placement in [&early, &late, &beyond] {
        assert_eq!(placement.timeline_facts, Some(facts));
        assert_eq!(placement.timeline, early.timeline);
    }
    // A restore of the first timeline after a second one began has the first as its parent.
    let got = New { cluster: 0xd, h: |_| Some('a'), ..New::default() }.place(&two());
    assert_eq!(got.timeline_facts.unwrap().parent, Some(two()[0].timelines[0].id));
    assert_eq!(got.timeline_facts.unwrap().first_revision, 181);
    // Nothing shared that is known: the newest is the parent, the bound is the lowest.
    let got = New { cluster: 0xd, h: |_| Some('q'), ..New::default() }.place(&two());
    assert_eq!(got.timeline_facts.unwrap().parent, Some(two()[0].timelines[1].id));
    assert_eq!(got.timeline_facts.unwrap().first_revision, 1);
}

#[test]
fn of_two_timelines_with_one_number_the_one_that_fits_goes_on() {
    let first = timeline(1, A, None, &[(100, 'a')]);
    let b = timeline(2, B, Some(first.id), &[(120, 'b')]);
    let d = timeline(2, 0xd, Some(first.id), &[(130, 'd')]);
    let known = vec![lineage(lineage_of_uid(UID), vec![first, b.clone(), d.clone()])];
    let of = |cluster| New { cluster, compact: 199, ..New::default() }.place(&known);
    assert_eq!(of(B).timeline, Place::Existing(b.id));
    assert_eq!(of(0xd).timeline, Place::Existing(d.id));
    assert_eq!(of(A).timeline.id().number, 3);
}

#[test]
fn what_is_unknown_decides_nothing() {
    let mut known = one(&[(150, 'a')]);
    known[0].timelines[0].points[0].tail = None;
    check(
        "snapshot without tail",
        &New { h: |_| Some('x'), ..New::default() }.place(&known),
        (false, 1, false, false, Reason::NothingContradicts),
    );
    let evidence = Evidence {
        uid: UidEvidence::Readable(UID.into()),
        cluster_id: EtcdId(A),
        revision: 200,
        compact_revision: 0,
        linearizable_revision: Some(200),
    };
    let got = place(&evidence, &|_| TailAt::Unknown, &one(&[(150, 'a')]), RANDOM).unwrap();
    check("unreadable rows", &got, (false, 1, false, false, Reason::NothingContradicts));
    let mut known = one(&[(150, 'a')]);
    known[0].timelines[0].cluster_id = None;
    let got = New { cluster: B, ..New::default() }.place(&known);
    check("unknown cluster id", &got, (false, 1, false, false, Reason::RowsFound { revision: 150 }));
}

#[test]
fn numbers_end() {
    let known = vec![lineage(lineage_of_uid(UID), vec![timeline(9999, A, None, &[(150, 'a')])])];
    let evidence = Evidence {
        uid: UidEvidence::Readable(UID.into()),
        cluster_id: EtcdId(B),
        revision: 200,
        compact_revision: 0,
        linearizable_revision: Some(200),
    };
    let got = place(&evidence, &|_| TailAt::Compacted, &known, RANDOM);
    assert_eq!(got, Err(PlaceError::NoNumberLeft(lineage_of_uid(UID))));
}

#[test]
fn hashes_are_those_of_sha256sum() {
    // printf 'refloat lineage%s' 3f0e8a52-6c1d-4b7e-9a60-1d2c3b4a5968 | sha256sum
    assert_eq!(lineage_of_uid(UID).to_string(), "d10be457ef34a223");
    // printf 'refloat timeline - cafe 1' | sha256sum
    let first = TimelineFacts { parent: None, cluster_id: EtcdId(A), first_revision: 1 };
    let id = TimelineId { number: 1, hex: first.hex() };
    assert_eq!(id.to_string(), "0001-475752fa");
    // printf 'refloat timeline 0001-475752fa beef 101' | sha256sum
    let second = TimelineFacts { parent: Some(id), cluster_id: EtcdId(B), first_revision: 101 };
    assert_eq!(TimelineId { number: 2, hex: second.hex() }.to_string(), "0002-c39caf6b");
}
