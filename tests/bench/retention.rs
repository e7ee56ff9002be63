//! The plan over a hundred thousand snapshots (design §21: at most a second): the decision alone, in this process.

use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use refloat::catalog::retention::{Candidate, Policy, Situation, Space, decide};
use refloat::catalog::{LineageId, Node, SnapshotId, State, TimelineId};
use refloat::config::{RetentionSettings, Scope};

use crate::TURNS;

const COUNT: i64 = 100_000;

pub fn plan() {
    println!("\n## plan over {COUNT} snapshots, one each five minutes");
    let node: Node = "cp1".parse().expect("a node");
    let at = |n: i64| Timestamp::from_second(1_700_000_000 + 300 * n).expect("a time");
    let candidates: Vec<Candidate> = (0..COUNT)
        .map(|n| Candidate {
            id: SnapshotId::new(1, n, at(n), node.clone()).expect("an id"),
            lineage: LineageId([1; 8]),
            timeline: TimelineId { number: 1, hex: [1; 4] },
            state: if n % 50 == 0 { State::Unverified } else { State::Verified },
            pinned: n % 1000 == 0,
            imported: false,
            finished_at: at(n) + SignedDuration::from_secs(20),
            bytes: 100_000_000,
        })
        .collect();
    let policy = Policy {
        rules: RetentionSettings { keep_weekly: 8, keep_monthly: 12, ..RetentionSettings::default() },
        timezone: TimeZone::get("Europe/Berlin").unwrap_or(TimeZone::UTC),
        scope: Scope::Node,
        node,
        lineage: LineageId([1; 8]),
        max_bytes: Some(5_000_000_000),
        trash_grace: Duration::from_secs(86_400),
    };
    let situation = Situation {
        now: at(COUNT),
        overdue_at: None,
        clock_jump: None,
        clock_trusted: false,
        freeze: None,
        space: Space { used: COUNT as u64 * 100_000_000, ..Space::default() },
    };
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..TURNS {
        let started = Instant::now();
        let decisions = decide(&candidates, &[], &policy, &situation);
        times.push(started.elapsed().as_secs_f64());
        assert_eq!(decisions.keep.len() + decisions.remove.len(), candidates.len());
    }
    times.sort_by(f64::total_cmp);
    println!("decide: {:.3} s ({:.3} to {:.3})", times[TURNS / 2], times[0], times[TURNS - 1]);
}
