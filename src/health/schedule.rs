//! Which probe of which target is due: pure, `now` is an argument.
//!
//! Each probe of a target has a period and a place of its own within it, by the names of node, target and probe: so
//! nodes do not beat together, and one node's requests are spread. After a failure [`super::facts::Facts::next`] says how
//! soon it is repeated, on a fresh connection. The next one is never asked before the last one has ended.
//!
//! What all of it costs on five members and five apiservers is held by a test: ≤ 15 requests a second, ≤ 0.4 writes
//! of etcd and ≤ 1.5 raft proposals a second while all are good.

use std::time::Duration;

use super::model::{Kind, Mono, Probe, Target, TargetId, Watched};
use super::rules::Rules;

/// A shorter pause counts from the answer, a longer one from the question.
const SHORT: Duration = Duration::from_secs(1);
/// After a start the first round is spread over this.
const FIRST: Duration = Duration::from_secs(1);
/// An apiserver shows its certificate on a new connection alone.
const ANEW: Duration = Duration::from_secs(60);

/// One probe to be run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    pub target: TargetId,
    pub probe: Probe,
    /// The repeat of one that failed: on a connection made for it.
    pub repeat: bool,
    /// On a new connection, for what only a handshake shows.
    pub anew: bool,
    /// Its answer has so long.
    pub deadline: Duration,
}

#[derive(Debug, Clone)]
struct Entry {
    target: TargetId,
    probe: Probe,
    period: Duration,
    /// Milliseconds within the period.
    place: u64,
    next: Mono,
    running: bool,
    /// When it was last.
    asked: Option<Mono>,
    /// The next one is a repeat.
    repeat: bool,
    /// Once more after the one that runs: it was asked before something that it is to be compared with.
    again: bool,
    /// The first failure waits for its repeat.
    open: bool,
    anew_after: Mono,
}

/// When everything is asked next.
#[derive(Debug, Clone)]
pub struct Schedule {
    rules: Rules,
    entries: Vec<Entry>,
}

/// Whether it is asked of this target by itself. A4 comes with A3 and A5; without `writes`, nothing is written.
fn is_asked(probe: Probe, target: &Target, writes: bool) -> bool {
    use Probe::*;
    let kind = match probe {
        E1 | E2 | E3 | E4 | E5 | E6 => Kind::Member,
        A1 | A2 | A3 | A4 | A5 => Kind::Apiserver,
        V1 => Kind::Balancer,
    };
    // A learner refuses everything else.
    let refused = target.learner && !matches!(probe, E1 | E2 | E6);
    kind == target.kind && !refused && probe != A4 && (writes || !matches!(probe, E5 | A3 | A5))
}

impl Schedule {
    /// Everything is asked within the first second, what writes at its own place.
    pub fn new(watched: &Watched, rules: &Rules, writes: bool, now: Mono) -> Schedule {
        let mut entries = Vec::new();
        for (id, target) in (0..=u16::MAX).map(TargetId).zip(&watched.targets) {
            for probe in Probe::ALL.into_iter().filter(|probe| is_asked(*probe, target, writes)) {
                let period = rules.period(probe, target.own);
                let spread = spread(&[&watched.node, &target.name, &probe.to_string()]);
                let place = spread % millis(period).max(1);
                let soon = now.plus(Duration::from_millis(spread % millis(FIRST)));
                entries.push(Entry {
                    target: id,
                    probe,
                    period,
                    place,
                    next: if writes_much(probe) { after(now, period, place) } else { soon },
                    running: false,
                    asked: None,
                    repeat: false,
                    again: false,
                    open: false,
                    anew_after: now.plus(ANEW),
                });
            }
        }
        Schedule { rules: *rules, entries }
    }

    /// Those that are due, in the order in which they were; they count as running until [`Schedule::done`].
    pub fn due(&mut self, now: Mono) -> Vec<Ask> {
        let due = |entry: &&Entry| !entry.running && entry.next <= now;
        // A5 is an A3 with more in it: the one that would come with it is left out.
        let with: Vec<TargetId> =
            self.entries.iter().filter(due).filter(|e| e.probe == Probe::A5).map(|e| e.target).collect();
        let plain = |e: &&mut Entry| e.probe == Probe::A3 && !e.repeat && with.contains(&e.target);
        for entry in self.entries.iter_mut().filter(plain) {
            entry.asked = Some(now);
            entry.next = after(entry.next.max(now), entry.period, entry.place);
        }
        let mut places: Vec<usize> = (0..self.entries.len()).filter(|at| due(&&self.entries[*at])).collect();
        places.sort_by_key(|at| self.entries[*at].next);
        places.into_iter().map(|at| start(&mut self.entries[at], &self.rules, now)).collect()
    }

    /// Asks it at once, because of what another answer said; one that runs is asked once more when it ends.
    pub fn hurry(&mut self, target: TargetId, probe: Probe, now: Mono) {
        let probe = if probe == Probe::A4 { Probe::A3 } else { probe };
        match self.entries.iter_mut().find(|e| e.target == target && e.probe == probe) {
            Some(entry) if entry.running => entry.again = true,
            Some(entry) => entry.next = entry.next.min(now),
            None => {}
        }
    }

    /// It ended. `pause` and `fresh` are what [`super::facts::Facts::next`] says.
    pub fn done(&mut self, target: TargetId, probe: Probe, (pause, fresh): (Duration, bool), now: Mono) {
        let Some(entry) = self.entries.iter_mut().find(|e| e.target == target && e.probe == probe) else { return };
        entry.running = false;
        entry.repeat = fresh;
        entry.open = fresh && pause < SHORT;
        let again = std::mem::take(&mut entry.again) && !fresh;
        let asked = entry.asked.unwrap_or(now);
        entry.next = match pause {
            _ if again => now,
            pause if pause < SHORT => now.plus(pause),
            pause if pause >= entry.period => after(now, entry.period, entry.place),
            pause => asked.plus(pause).max(now),
        };
    }

    /// Asks everything at once.
    pub fn hurry_all(&mut self, now: Mono) {
        self.entries.iter_mut().filter(|entry| !entry.running).for_each(|entry| entry.next = now);
    }

    /// Whether nothing is being asked or repeated, and nothing has never been asked.
    pub fn is_settled(&self) -> bool {
        self.entries.iter().all(|entry| entry.asked.is_some() && !entry.running && !entry.open)
    }

    /// When something is due next; `None` while everything runs.
    pub fn next(&self) -> Option<Mono> {
        self.entries.iter().filter(|entry| !entry.running).map(|entry| entry.next).min()
    }
}

fn start(entry: &mut Entry, rules: &Rules, now: Mono) -> Ask {
    (entry.running, entry.asked) = (true, Some(now));
    let anew = entry.probe == Probe::A1 && entry.anew_after <= now;
    if anew {
        entry.anew_after = now.plus(ANEW);
    }
    Ask { target: entry.target, probe: entry.probe, repeat: entry.repeat, anew, deadline: rules.deadline(entry.probe) }
}

/// A service that starts again and again must not do it each time.
fn writes_much(probe: Probe) -> bool {
    matches!(probe, Probe::E5 | Probe::A5)
}

/// The next one after `now` at its place. Whatever was missed is not made up for.
fn after(now: Mono, period: Duration, place: u64) -> Mono {
    let period = millis(period).max(1);
    let since = now.0.saturating_sub(place) / period;
    let next = place + since * period;
    Mono(if next > now.0 { next } else { next + period })
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// FNV-1a over the words: the same on every start, so that a restart does not move a node onto another's place.
fn spread(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)) >> 16
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::health::facts::Facts;
    use crate::health::model::{Failure, Outcome, Reading, Sample};

    fn target(kind: Kind, name: &str, own: bool) -> Target {
        Target { kind, name: name.into(), url: format!("https://{name}"), own, learner: false }
    }

    /// Five members, five apiservers and their balancer, seen from the first node.
    fn five(node: &str) -> Watched {
        let names = ["a", "b", "c", "d", "e"];
        let of = |kind| names.iter().map(move |name| target(kind, name, *name == "a"));
        let balancer = target(Kind::Balancer, "vip", false);
        let targets = of(Kind::Member).chain(of(Kind::Apiserver)).chain([balancer]).collect();
        Watched { node: node.into(), targets, ..Watched::default() }
    }

    /// A pause as after so many failures in a row.
    fn pause(probe: Probe, own: bool, failures: u32) -> (Duration, bool) {
        let rules = Rules::default();
        let mut facts =
            Facts::new(rules, &Watched { targets: vec![target(Kind::Member, "a", own)], ..Watched::default() });
        let sample =
            |outcome| Sample { target: TargetId(0), probe, at: Mono(0), took: Duration::ZERO, fresh: false, outcome };
        facts.fold(&sample(Outcome::Good(Reading::Nothing)));
        (0..failures).for_each(|_| facts.fold(&sample(Outcome::Failed(Failure::Silent))));
        facts.next(TargetId(0), probe)
    }

    /// Runs it for `span`; each asking ends after `took`, failed or not. What was asked when.
    fn run(watched: &Watched, span: Duration, took: Duration, fails: bool) -> Vec<(Mono, Ask)> {
        let mut now = Mono(1_234_567);
        let end = now.plus(span);
        let mut schedule = Schedule::new(watched, &Rules::default(), true, now);
        let mut open: Vec<(Mono, Ask)> = Vec::new();
        let mut asked = Vec::new();
        while now < end {
            open.retain(|(ends, ask)| {
                if *ends <= now {
                    let failures =
                        asked.iter().filter(|(_, a): &&(Mono, Ask)| a.target == ask.target && a.probe == ask.probe);
                    let failures = if fails { failures.count() as u32 } else { 0 };
                    let own = watched.target(ask.target).unwrap().own;
                    schedule.done(ask.target, ask.probe, pause(ask.probe, own, failures.min(10)), now);
                }
                *ends > now
            });
            for ask in schedule.due(now) {
                let again = open.iter().any(|(_, other)| (other.target, other.probe) == (ask.target, ask.probe));
                assert!(!again, "{ask:?} while the last one runs");
                open.push((now.plus(took), ask));
                asked.push((now, ask));
            }
            let ends = open.iter().map(|(ends, _)| *ends).min();
            now = schedule.next().into_iter().chain(ends).min().unwrap().max(now.plus(Duration::from_millis(1)));
        }
        asked
    }

    /// Requests, writes of etcd and raft proposals of one asking.
    fn cost(ask: &Ask) -> (u32, u32, u32) {
        match ask.probe {
            Probe::E4 => (1, 0, 1),
            Probe::E5 => (2, 1, 1),
            // With A4.
            Probe::A3 | Probe::A5 => (2, 1, 1),
            Probe::A1 => (2, 0, 0),
            _ => (1, 0, 0),
        }
    }

    #[test]
    fn five_and_five_cost_no_more_than_was_promised() {
        let span = Duration::from_secs(1800);
        for (took, fails, most) in [
            (Duration::from_millis(3), false, 15.0),
            // Everything is hung, or refuses at once: what fails is asked sooner, so that its end is seen.
            (Duration::from_secs(1), true, 24.0),
            (Duration::from_millis(1), true, 24.0),
        ] {
            let asked = run(&five("cp1"), span, took, fails);
            let sum = asked.iter().map(|(_, ask)| cost(ask)).fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
            let each = |n: u32| f64::from(n) / span.as_secs_f64();
            let (requests, writes, proposals) = (each(sum.0), each(sum.1), each(sum.2));
            assert!(requests <= most, "{requests}");
            assert!(fails || writes <= 0.4 && proposals <= 1.5, "{writes} {proposals}");
            assert!(requests > 7.0 && writes > 0.3, "{requests} {writes}: something is not asked");
        }
    }

    #[test]
    fn nothing_waits_longer_than_its_period() {
        let watched = five("cp1");
        let asked = run(&watched, Duration::from_secs(900), Duration::from_millis(3), false);
        let mut last: BTreeMap<(TargetId, Probe), Mono> = BTreeMap::new();
        for (at, ask) in &asked {
            let target = watched.target(ask.target).unwrap();
            let period = Rules::default().period(ask.probe, target.own);
            if let Some(before) = last.insert((ask.target, ask.probe), *at) {
                let gap = at.since(before);
                // One may be left out for an A5.
                let most = if ask.probe == Probe::A3 { period * 3 } else { period };
                assert!(gap <= most + Duration::from_millis(5), "{ask:?}: {gap:?}");
            }
        }
        // A5 stands for an A3.
        for (id, target) in watched.of(Kind::Apiserver) {
            let count = |probe| asked.iter().filter(|(_, ask)| (ask.target, ask.probe) == (id, probe)).count();
            let (want, large) = if target.own { (180, 30) } else { (30, 3) };
            let (small, padded) = (count(Probe::A3), count(Probe::A5));
            assert!(padded.abs_diff(large) <= 1 && (small + padded).abs_diff(want) <= 6, "{target:?} {small} {padded}");
        }
    }

    #[test]
    fn what_fails_is_repeated_as_facts_say() {
        let watched = Watched { targets: vec![target(Kind::Member, "a", false)], ..Watched::default() };
        let mut schedule = Schedule::new(&watched, &Rules::default(), true, Mono(0));
        let id = TargetId(0);
        let start = Mono(5_000);
        schedule.due(start).iter().for_each(|ask| schedule.done(id, ask.probe, pause(ask.probe, false, 0), start));
        let mut entry = |pause: (Duration, bool), asked: Mono, ended: Mono| {
            schedule.hurry(id, Probe::E3, asked);
            let ask = schedule.due(asked).into_iter().find(|ask| ask.probe == Probe::E3).unwrap();
            schedule.done(id, Probe::E3, pause, ended);
            let entry = schedule.entries.iter().find(|entry| entry.probe == Probe::E3).unwrap();
            (ask.repeat, entry.next.since(ended), entry.open)
        };
        let half = Duration::from_millis(500);
        // The repeat counts from the end of waiting, what comes after it from the question.
        assert_eq!(entry(pause(Probe::E3, false, 1), Mono(6_000), Mono(7_000)), (false, half, true));
        assert_eq!(entry(pause(Probe::E3, false, 2), Mono(7_500), Mono(8_000)), (true, half, false));
        let (repeat, wait, open) = entry(pause(Probe::E3, false, 0), Mono(8_500), Mono(8_600));
        assert!(repeat && !open && wait <= Duration::from_secs(5), "{wait:?}");
        assert!(!entry(pause(Probe::E3, false, 0), Mono(9_000), Mono(9_100)).0);
    }

    #[test]
    fn nodes_and_probes_do_not_beat_together() {
        let places = |node: &str| {
            let schedule = Schedule::new(&five(node), &Rules::default(), true, Mono(0));
            schedule.entries.iter().filter(|e| e.probe == Probe::E3).map(|e| e.place).collect::<Vec<_>>()
        };
        let nodes: Vec<Vec<u64>> = ["cp1", "cp2", "cp3", "cp4", "cp5"].map(places).into();
        let mut all: Vec<u64> = nodes.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        assert!(all.len() > 20, "{nodes:?}");
        assert_eq!(places("cp1"), nodes[0], "a restart moved it");
    }

    #[test]
    fn who_is_asked_what() {
        let asked = |target: &Target, writes: bool| {
            let watched = Watched { targets: vec![target.clone()], ..Watched::default() };
            let schedule = Schedule::new(&watched, &Rules::default(), writes, Mono(0));
            schedule.entries.iter().map(|entry| entry.probe).collect::<Vec<_>>()
        };
        let member = target(Kind::Member, "a", true);
        let learner = Target { learner: true, ..member.clone() };
        use Probe::*;
        for (target, writes, probes) in [
            (member.clone(), true, &[E1, E2, E3, E4, E5, E6][..]),
            (member, false, &[E1, E2, E3, E4, E6]),
            (learner, true, &[E1, E2, E6]),
            (target(Kind::Apiserver, "a", true), true, &[A1, A2, A3, A5]),
            (target(Kind::Apiserver, "a", false), false, &[A1, A2]),
            (target(Kind::Balancer, "a", false), true, &[V1]),
        ] {
            assert_eq!(asked(&target, writes), probes, "{target:?}");
        }
    }

    #[test]
    fn what_is_in_a_hurry_is_asked_once() {
        let watched = five("cp1");
        let mut schedule = Schedule::new(&watched, &Rules::default(), true, Mono(0));
        let now = Mono(2_000);
        schedule.due(now).iter().for_each(|ask| schedule.done(ask.target, ask.probe, pause(ask.probe, false, 0), now));
        let (remote, _) = watched.of(Kind::Member).nth(3).unwrap();
        let (api, _) = watched.of(Kind::Apiserver).nth(3).unwrap();
        schedule.hurry(remote, Probe::E3, now);
        schedule.hurry(api, Probe::A4, now);
        schedule.hurry(TargetId(999), Probe::E3, now);
        let due = |schedule: &mut Schedule| schedule.due(now).iter().map(|a| (a.target, a.probe)).collect::<Vec<_>>();
        assert_eq!(due(&mut schedule), [(remote, Probe::E3), (api, Probe::A3)]);
        schedule.hurry(remote, Probe::E3, now);
        assert!(due(&mut schedule).is_empty(), "it is being asked");
        // What runs was asked before: once more when it has ended.
        schedule.done(remote, Probe::E3, pause(Probe::E3, false, 0), now);
        assert_eq!(due(&mut schedule), [(remote, Probe::E3)]);
    }

    #[test]
    fn a_machine_that_slept_is_not_behind() {
        let watched = five("cp1");
        let mut schedule = Schedule::new(&watched, &Rules::default(), true, Mono(0));
        let now = Mono(3_600_000);
        let due = schedule.due(now);
        let probes = due.len();
        due.iter().for_each(|ask| schedule.done(ask.target, ask.probe, pause(ask.probe, false, 0), now));
        assert!(schedule.due(now).is_empty());
        // A5 stands for an A3.
        assert_eq!(probes, schedule.entries.len() - 5);
    }
}
