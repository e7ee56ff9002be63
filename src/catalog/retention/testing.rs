//! Test helpers: a case of a few words, and its answer as a text.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::catalog::{LineageId, SnapshotId, State, TimelineId};
use crate::config::{RetentionSettings, Scope};

pub(super) const MIB: u64 = 1 << 20;
pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const LINEAGE: LineageId = LineageId([1; 8]);
pub(super) const NO_RULES: RetentionSettings = RetentionSettings {
    keep_last: 0,
    keep_within: Duration::ZERO,
    keep_hourly: 0,
    keep_daily: 0,
    keep_weekly: 0,
    keep_monthly: 0,
    min_keep: 0,
};

/// Everything that `decide` wants. To begin with: node `cp1`, no rule, no limit, noon of 30 November 2026.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub candidates: Vec<Candidate>,
    pub trash: Vec<Trashed>,
    pub policy: Policy,
    pub situation: Situation,
}

impl Case {
    pub fn new(rules: RetentionSettings) -> Case {
        let now = at("2026-11-30T12:00:00Z");
        Case {
            candidates: Vec::new(),
            trash: Vec::new(),
            policy: Policy {
                rules,
                timezone: TimeZone::UTC,
                scope: Scope::Node,
                node: "cp1".parse().unwrap(),
                lineage: LINEAGE,
                max_bytes: None,
                trash_grace: 24 * HOUR,
            },
            situation: Situation {
                now,
                overdue_at: None,
                clock_jump: None,
                clock_trusted: false,
                freeze: None,
                space: Space::default(),
            },
        }
    }

    pub fn add(&mut self, candidate: Candidate) -> &mut Candidate {
        self.candidates.push(candidate);
        self.candidates.last_mut().unwrap()
    }

    /// One every `period`, the first at `from` with this revision, each next one ten revisions higher.
    pub fn series(&mut self, timeline: u16, revision: i64, from: &str, period: Duration, count: u32) {
        for nth in 0..count {
            let taken_at = at(from) + SignedDuration::try_from(period * nth).unwrap();
            self.add(candidate(timeline, revision + 10 * i64::from(nth), taken_at, "cp1"));
        }
    }

    /// As many bytes as the candidates and the trash have.
    pub fn used(&mut self) {
        let stored = self.candidates.iter().map(|c| c.bytes).chain(self.trash.iter().map(|t| t.bytes));
        self.situation.space.used = stored.sum::<u64>() + self.situation.space.unfinished;
    }

    pub fn decide(&self) -> Decisions {
        decide(&self.candidates, &self.trash, &self.policy, &self.situation)
    }

    /// Each decision on a line with its reasons, ids instead of indexes.
    pub fn shown(&self) -> String {
        let Decisions { keep, remove, empty, hold, conflicts, out_of_reach } = self.decide();
        let mut text = String::new();
        for hold in &hold {
            writeln!(text, "hold      [{}] {}", hold.word(), hold.say(&self.candidates)).unwrap();
        }
        for conflict in &conflicts {
            writeln!(text, "conflict  [{}] {conflict}", conflict.word()).unwrap();
        }
        for Kept { candidate, reasons } in &keep {
            let reasons: Vec<_> = reasons.iter().map(|r| format!("[{}] {r}", r.word())).collect();
            writeln!(text, "keep      {}: {}", self.candidates[*candidate].id, reasons.join("; ")).unwrap();
        }
        for Emptied { trashed, reason } in &empty {
            writeln!(text, "empty     {}: [{}] {reason}", self.trash[*trashed].id, reason.word()).unwrap();
        }
        for Removal { candidate, reasons, at_once } in &remove {
            let how = if *at_once { "at once" } else { "remove " };
            let reasons: Vec<_> =
                reasons.iter().map(|r| format!("[{}] {}", r.word(), r.say(&self.candidates))).collect();
            writeln!(text, "{how}   {}: {}", self.candidates[*candidate].id, reasons.join("; ")).unwrap();
        }
        for OutOfReach { lineage, node, snapshots, bytes } in &out_of_reach {
            let node = node.as_ref().map_or("-", |node| node.as_str());
            writeln!(text, "beyond    {lineage} {node}: {snapshots} with {bytes} B").unwrap();
        }
        text
    }
}

pub(super) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Verified, 1 MiB, taken within a minute.
pub(super) fn candidate(timeline: u16, revision: i64, taken_at: Timestamp, node: &str) -> Candidate {
    let timeline = TimelineId { number: timeline, hex: [timeline.to_le_bytes()[0]; 4] };
    Candidate {
        id: SnapshotId::new(timeline.number, revision, taken_at, node.parse().unwrap()).unwrap(),
        lineage: LINEAGE,
        timeline,
        state: State::Verified,
        pinned: false,
        imported: false,
        finished_at: taken_at + SignedDuration::from_secs(60),
        bytes: MIB,
    }
}

pub(super) fn trashed(revision: i64, put: &str) -> Trashed {
    let id = candidate(1, revision, at("2026-11-01T00:00:00Z"), "cp1").id;
    Trashed { id, lineage: LINEAGE, at: at(put), bytes: MIB }
}
