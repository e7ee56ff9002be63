//! One observer: asks at the periods of the real one, folds, judges and decides by the very same code.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::facts::Facts;
use super::super::fence::decide::{FenceRules, FenceState, Mode, decide};
use super::super::model::{Kind as Sort, Mono, Observer, Outcome, Probe, Sample, TargetId, Watched};
use super::super::rules::Rules;
use super::super::verdict::{Verdicts, verdict};
use super::fault::Kind;
use super::rng::Rng;
use super::world::World;

/// A round: what came is folded, then judged and decided.
pub const ROUND: u64 = 250;

const MEMBER: [Probe; 6] = [Probe::E1, Probe::E2, Probe::E3, Probe::E4, Probe::E5, Probe::E6];
const APISERVER: [Probe; 6] = [Probe::E1, Probe::A1, Probe::A2, Probe::A3, Probe::A4, Probe::A5];

#[derive(Debug)]
struct Slot {
    target: TargetId,
    probe: Probe,
    asked: u64,
    /// While an answer is waited for.
    outcome: Option<Outcome>,
    due: u64,
    fresh: bool,
    /// Wanted while an older question was out.
    again: bool,
}

#[derive(Debug)]
pub struct Node {
    me: usize,
    watched: Watched,
    fence: FenceRules,
    pub facts: Facts,
    pub verdicts: Verdicts,
    pub state: FenceState,
    slots: Vec<Slot>,
    /// (when, slot); an entry that does not fit its slot any more is passed over.
    events: BinaryHeap<Reverse<(u64, usize)>>,
    rng: Rng,
    started: u64,
    observer: Observer,
}

impl Node {
    pub fn new(world: &World, rules: Rules, me: usize) -> Node {
        let watched = world.watched(me);
        let mut node = Node {
            me,
            fence: FenceRules { mode: Mode::Balancer, ..FenceRules::default() },
            facts: Facts::new(rules, &watched),
            watched,
            verdicts: Verdicts::default(),
            state: FenceState::default(),
            slots: Vec::new(),
            events: BinaryHeap::new(),
            rng: Rng::new(world.schedule.seed.wrapping_mul(31) ^ me as u64),
            started: 0,
            observer: world.observer(me, 0, 0),
        };
        node.begin(0);
        node
    }

    /// The process starts: nothing is known but what the fence file says.
    fn begin(&mut self, at: u64) {
        self.started = at;
        self.facts = Facts::new(*self.facts.rules(), &self.watched);
        self.verdicts = Verdicts::default();
        self.slots.clear();
        self.events.clear();
        for (place, target) in self.watched.targets.iter().enumerate() {
            let probes: &[Probe] = match target.kind {
                Sort::Member => &MEMBER,
                Sort::Apiserver => &APISERVER,
                Sort::Balancer => &[Probe::V1],
            };
            for probe in probes {
                // All at once, a little apart.
                let due = at + self.rng.below(900);
                let target = TargetId(place as u16);
                self.slots.push(Slot {
                    target,
                    probe: *probe,
                    asked: 0,
                    outcome: None,
                    due,
                    fresh: true,
                    again: false,
                });
                self.events.push(Reverse((due, self.slots.len() - 1)));
            }
        }
    }

    /// One round, up to that moment.
    pub fn round(&mut self, world: &World, now: u64) {
        let restart = |kind: Kind| matches!(kind, Kind::ObserverRestart | Kind::Boot);
        let begins = world.schedule.faults.iter().find(|fault| {
            restart(fault.kind)
                && fault.nodes >> self.me & 1 == 1
                && (now.saturating_sub(ROUND)..now).contains(&fault.from)
        });
        if begins.is_some() {
            self.begin(now);
            self.observer = world.observer(self.me, now, now);
        }
        while let Some(Reverse((when, place))) = self.events.peek().copied().filter(|Reverse((when, _))| *when <= now) {
            self.events.pop();
            if self.slots[place].due == when {
                if self.slots[place].outcome.is_some() {
                    self.answered(place, when)
                } else {
                    self.ask(world, place, when)
                }
            }
        }
        if now % 1_000 < ROUND {
            self.observer = world.observer(self.me, now, self.started);
            self.facts.observe(&self.observer);
        }
        let now = Mono(now);
        self.verdicts = verdict(&self.watched, &self.facts, &self.observer, &self.verdicts, now);
        self.state = decide(&self.fence, &self.watched, &self.verdicts, &self.facts, &self.state, now);
    }

    fn ask(&mut self, world: &World, place: usize, when: u64) {
        let slot = &mut self.slots[place];
        let (took, outcome) = world.ask(self.me, slot.target, slot.probe, when, slot.fresh, &mut self.rng);
        slot.asked = when;
        slot.outcome = Some(outcome);
        slot.due = when + took;
        self.events.push(Reverse((slot.due, place)));
    }

    fn answered(&mut self, place: usize, when: u64) {
        let slot = &mut self.slots[place];
        let Some(outcome) = slot.outcome.take() else { return };
        let failed = matches!(outcome, Outcome::Failed(_));
        let took = std::time::Duration::from_millis(when - slot.asked);
        let (target, probe, fresh) = (slot.target, slot.probe, slot.fresh);
        self.facts.fold(&Sample { target, probe, at: Mono(slot.asked), took, fresh, outcome });
        let (after, fresh) = self.facts.next(target, probe);
        let after = after.as_millis() as u64;
        let slot = &mut self.slots[place];
        // A period counts from question to question, a repeat from the failure; a little jitter keeps nodes apart.
        slot.due = if after < 1_000 { when + after } else { (slot.asked + after + self.rng.below(40)).max(when + 20) };
        slot.fresh = fresh;
        if std::mem::take(&mut slot.again) && !failed {
            slot.due = when;
        }
        self.events.push(Reverse((slot.due, place)));
        if failed {
            for (target, probe) in self.facts.urgent(&self.watched) {
                let that = |slot: &Slot| slot.target == target && slot.probe == probe;
                match self.slots.iter().position(that) {
                    Some(place) if self.slots[place].outcome.is_none() => {
                        self.slots[place].due = when;
                        self.events.push(Reverse((when, place)));
                    }
                    Some(place) => self.slots[place].again = true,
                    None => {}
                }
            }
        }
    }
}
