//! The corpus, and that it notices each rule.

use std::time::Instant;

use super::super::rules::Rules;
use super::fault::Schedule;
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
fn two_hundred_thousand_rounds_without_an_error() {
    corpus(200_000);
}

/// `./dev soak` runs it.
#[test]
#[ignore = "long"]
fn a_million_rounds_without_an_error() {
    corpus(1_000_000);
}

#[test]
fn one() {
    let Ok(text) = std::env::var("ONE") else { return };
    let score = play(Schedule::random(text.parse().unwrap()), &Rules::default());
    eprintln!("{score:#?}");
}
