//! The corpus, and that it notices each rule.

use std::time::{Duration, Instant};

use super::super::rules::{Guards, Rules};
use super::fault::{KINDS, Kind, Schedule};
use super::score::{Score, play};

fn seed() -> u64 {
    let seed = std::env::var("REFLOAT_SEED").ok().map_or(1, |text| text.parse().expect("REFLOAT_SEED is a number"));
    eprintln!("seed {seed} (repeat with REFLOAT_SEED={seed})");
    seed
}

fn corpus(rounds: u64) {
    let first = seed().wrapping_mul(1_000_000);
    let begun = Instant::now();
    let mut score = Score::default();
    let mut next = first;
    while score.rounds < rounds {
        score.add(play(Schedule::random(next), &Rules::default()));
        next += 1;
    }
    let rate = score.rounds as f64 / begun.elapsed().as_secs_f64();
    eprintln!(
        "{} rounds in {} schedules ({rate:.0} a second): {} of {} names missed or late, {} of {} fences, {} wrong fences, \
         {} wrong names; worst own {} ms, elsewhere {} ms, fence {} ms",
        score.rounds,
        score.schedules,
        score.missed.len(),
        score.wanted,
        score.fences_missed.len(),
        score.fences_wanted,
        score.wrong_fences.len(),
        score.wrong_names.len(),
        score.worst[0],
        score.worst[1],
        score.worst[2],
    );
    for (what, list) in [
        ("wrong fences", &score.wrong_fences),
        ("fences missed", &score.fences_missed),
        ("missed", &score.missed),
        ("wrong names", &score.wrong_names),
    ] {
        list.iter().take(8).for_each(|line| eprintln!("{what}: {line}"));
    }
    assert!(score.wanted > 0 && score.fences_wanted > 0);
    assert_eq!(score.errors(), 0);
}

#[test]
fn a_million_rounds_without_an_error() {
    corpus(1_000_000);
}

/// `./dev soak` runs it.
#[test]
#[ignore = "long"]
fn ten_million_rounds_without_an_error() {
    corpus(10_000_000);
}

/// Each rule switched off or bent, and the kinds on which that must show.
fn mutants() -> Vec<(&'static str, Rules, &'static [Kind])> {
    let all: &[Kind] = &KINDS;
    let guards = Guards::default();
    let with = |guards: Guards| Rules { guards, ..Rules::default() };
    let seconds = Duration::from_secs;
    vec![
        ("one failure is enough", Rules { fails: 1, ..Rules::default() }, all),
        ("four failures", Rules { fails: 4, ..Rules::default() }, all),
        (
            "late answers count",
            Rules { late: seconds(9), starved_lateness: seconds(99), ..Rules::default() },
            &[Kind::Starved],
        ),
        ("no difference needed", with(Guards { difference: false, ..guards }), all),
        ("old answers prove", with(Guards { proof: false, ..guards }), all),
        ("rank", with(Guards { rank: false, ..guards }), &[Kind::HungApiserver]),
        ("quorum", with(Guards { quorum: false, ..guards }), &[Kind::QuorumLost]),
        ("nospace", with(Guards { nospace: false, ..guards }), &[Kind::NoSpaceOne]),
        ("defragmentation", with(Guards { defragmentation: false, ..guards }), &[Kind::Defragmentation]),
        ("election", with(Guards { election: false, proof: false, ..guards }), &[Kind::ElectionStorm]),
        ("restart", with(Guards { restart: false, ..guards }), &[Kind::RollingRestart]),
        ("starved", with(Guards { starved: false, ..guards }), &[Kind::Starved]),
        ("isolated", with(Guards { isolated: false, ..guards }), &[Kind::Isolated]),
        ("clock", with(Guards { clock: false, ..guards }), &[Kind::ClockStep]),
        ("certificate", with(Guards { certificate: false, ..guards }), &[Kind::OwnCertificate]),
        ("started", with(Guards { started: false, ..guards }), &[Kind::Boot]),
        ("checks alone", with(Guards { checks_alone: false, ..guards }), &[Kind::NotReady]),
        ("unknown is failed", with(Guards { unknown_is_unknown: false, ..guards }), &[Kind::Throttled]),
        (
            "settling takes longer than a fence is kept",
            Rules { settle: seconds(20), ..Rules::default() },
            &[Kind::HungMember],
        ),
        ("fences end with the first good answer", with(Guards { hysteresis: false, ..guards }), &[Kind::Flapping]),
        ("restarts take a second", Rules { restart: seconds(1), ..Rules::default() }, &[Kind::RollingRestart]),
        (
            "defragmentation is never seen",
            Rules { defrag_fall: u64::MAX, ..Rules::default() },
            &[Kind::Defragmentation],
        ),
        ("an instant interval", Rules { interval: seconds(3), ..Rules::default() }, all),
        ("good after a minute", Rules { steady: seconds(120), ..Rules::default() }, &[Kind::HungMember]),
    ]
}

#[test]
fn the_corpus_notices_each_rule() {
    let mut unnoticed = Vec::new();
    for (name, rules, kinds) in mutants() {
        let noticed = (1..=40_u64)
            .any(|round| kinds.iter().any(|kind| play(Schedule::of(*kind, round * 7_919), &rules).errors() > 0));
        if !noticed {
            unnoticed.push(name);
        }
    }
    assert!(unnoticed.is_empty(), "no error with these rules: {unnoticed:?}");
}
