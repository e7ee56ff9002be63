//! The rules of the fence one by one; the corpus (`sim`) tries them together.

use std::time::Duration;

use super::super::facts::Facts;
use super::super::model::{Failure, Kind, Layout, Mono, Outcome, Probe, Reading, Sample, Target, TargetId, Watched};
use super::super::rules::Rules;
use super::super::verdict::{Cause, State, Verdict, Verdicts};
use super::decide::{Answer, FenceRules, FenceState, FenceTarget, Hand, Mode, decide};
use super::proof::most;

/// Members `0..size`, apiservers after them; node `me` decides.
struct Case {
    watched: Watched,
    facts: Facts,
    verdicts: Verdicts,
    fence: FenceRules,
    now: Mono,
}

impl Case {
    fn new(size: u16, me: u16, layout: Layout) -> Case {
        let mut targets = Vec::new();
        for (kind, port) in [(Kind::Member, 2379), (Kind::Apiserver, 6443)] {
            for node in 0..size {
                let url = format!("https://10.0.0.{node}:{port}");
                targets.push(Target { kind, name: format!("cp{node}"), url, own: node == me, learner: false });
            }
        }
        let watched = Watched { node: format!("cp{me}"), targets, layout };
        let mut verdicts = Verdicts::default();
        for place in 0..size * 2 {
            verdicts.by_target.insert(TargetId(place), verdict(State::Good, None, None));
        }
        let facts = Facts::new(Rules::default(), &watched);
        let fence = FenceRules { mode: Mode::Balancer, ..FenceRules::default() };
        Case { watched, facts, verdicts, fence, now: Mono(100_000) }
    }

    fn sample(&mut self, target: TargetId, probe: Probe, asked: u64, good: bool) {
        let (took, outcome) =
            if good { (5, Outcome::Good(Reading::Nothing)) } else { (1_000, Outcome::Failed(Failure::Silent)) };
        let took = Duration::from_millis(took);
        self.facts.fold(&Sample { target, probe, at: Mono(asked), took, fresh: false, outcome });
    }

    /// That target is bad by that probe: three failures, the last ended at 100 s.
    fn bad(mut self, target: u16, probe: Probe, cause: Cause) -> Case {
        let id = TargetId(target);
        [95_000, 96_500, 98_000, 99_000].into_iter().for_each(|asked| self.sample(id, probe, asked, false));
        self.verdicts.by_target.insert(id, verdict(State::Bad, Some(cause), Some((id, probe))));
        self
    }

    /// These answered that probe beside the last failure.
    fn proven(mut self, targets: &[u16], probe: Probe) -> Case {
        targets.iter().for_each(|target| self.sample(TargetId(*target), probe, 99_100, true));
        self
    }

    fn fence(mut self, change: impl FnOnce(&mut FenceRules)) -> Case {
        change(&mut self.fence);
        self
    }

    fn decide(&self, before: &FenceState) -> FenceState {
        decide(&self.fence, &self.watched, &self.verdicts, &self.facts, before, self.now)
    }

    fn first(&self) -> FenceState {
        self.decide(&FenceState::default())
    }
}

fn verdict(state: State, cause: Option<Cause>, by: Option<(TargetId, Probe)>) -> Verdict {
    Verdict { state, cause, reasons: vec!["seen".to_owned()], advice: None, since: Mono(96_000), by }
}

fn down(state: &FenceState) -> bool {
    matches!(state.answer, Answer::Down { .. })
}

/// The own apiserver of three, bad by its reads, the others proven.
fn dead_path() -> Case {
    Case::new(3, 0, Layout::Local).bad(3, Probe::A2, Cause::HungProcess).proven(&[4, 5], Probe::A2)
}

#[test]
fn a_proven_difference_fences() {
    let state = dead_path().first();
    assert!(down(&state), "{state:?}");
    assert_eq!(state.fenced.map(|fenced| (fenced.target, fenced.cause)), Some(("cp0".to_owned(), Cause::HungProcess)));
}

#[test]
fn only_what_the_mode_allows_is_done() {
    let advise = dead_path().fence(|fence| fence.mode = Mode::Advise).first();
    assert!(
        !down(&advise) && advise.would.as_deref().is_some_and(|would| would.starts_with("fence cp0")),
        "{advise:?}"
    );
    let off = dead_path().fence(|fence| fence.mode = Mode::Off).first();
    assert!(!down(&off) && off.would.is_none());
}

#[test]
fn the_hand_wins() {
    let hold = |until| Some(Hand::Hold { reason: "disk swap".to_owned(), until });
    let healthy = || Case::new(3, 0, Layout::Local);
    for mode in [Mode::Off, Mode::Advise, Mode::Balancer] {
        let state = healthy().fence(|fence| (fence.mode, fence.hand) = (mode, hold(None))).first();
        assert!(down(&state) && state.by_hand, "{mode:?}: {state:?}");
        let state =
            dead_path().fence(|fence| (fence.mode, fence.hand) = (mode, Some(Hand::Release { until: None }))).first();
        assert!(!down(&state) && state.by_hand, "{mode:?}: {state:?}");
    }
    let over = healthy().fence(|fence| fence.hand = hold(Some(Mono(99_999)))).first();
    assert!(!down(&over), "its time is over");
}

#[test]
fn causes_that_never_fence() {
    for cause in Cause::ALL {
        let case = Case::new(3, 0, Layout::Local).bad(3, Probe::A2, cause).proven(&[4, 5], Probe::A2);
        let fences = [
            Cause::HungProcess,
            Cause::FrozenDisk,
            Cause::StalledWal,
            Cause::NoQuorumHere,
            Cause::LargePacketsLost,
            Cause::ExpiredCertificate,
            Cause::StaleCache,
            Cause::EtcdBehindIt,
        ];
        // E1 has to prove a certificate only where that is how it failed.
        assert_eq!(down(&case.first()), fences.contains(&cause), "{cause}: {:?}", case.first().why);
    }
}

#[test]
fn what_may_be_restarting_has_half_a_minute() {
    for cause in [Cause::Stopped, Cause::AnswersErrors, Cause::WritesRefused] {
        let mut case = Case::new(3, 0, Layout::Local).bad(3, Probe::A2, cause).proven(&[4, 5], Probe::A2);
        assert!(!down(&case.first()), "{cause}");
        if let Some(verdict) = case.verdicts.by_target.get_mut(&TargetId(3)) {
            verdict.since = Mono(70_000);
        }
        assert!(down(&case.first()), "{cause}: {:?}", case.first().why);
    }
}

#[test]
fn a_blind_observer_fences_nobody() {
    for cause in [Cause::OwnStarvation, Cause::OwnIsolation, Cause::OwnClock, Cause::OwnCertificate, Cause::NotYetKnown]
    {
        let mut case = dead_path();
        case.verdicts.blind = Some((cause, "itself".to_owned()));
        assert!(!down(&case.first()), "{cause}");
    }
}

#[test]
fn without_a_fresh_proof_nothing_is_fenced() {
    let bad = || Case::new(3, 0, Layout::Local).bad(3, Probe::A2, Cause::HungProcess);
    assert!(!down(&bad().first()), "nobody was asked");
    let mut old = bad();
    [4, 5].into_iter().for_each(|target| old.sample(TargetId(target), Probe::A2, 94_000, true));
    assert!(!down(&old.first()), "answered before it failed here");
    let mut late = bad();
    [4, 5].into_iter().for_each(|target| late.sample(TargetId(target), Probe::A2, 99_999, true));
    assert!(!down(&late.first()), "not failed here again since");
}

#[test]
fn the_last_good_one_stays() {
    let mut alone = dead_path();
    for other in [4, 5] {
        alone.verdicts.by_target.insert(TargetId(other), verdict(State::Bad, Some(Cause::Stopped), None));
    }
    assert!(!down(&alone.first()));
    let single = Case::new(1, 0, Layout::Local).bad(1, Probe::A2, Cause::HungProcess);
    assert!(!down(&single.first()), "one of one");
    // Two of two: the other is good, so it may.
    let two = Case::new(2, 0, Layout::Local).bad(2, Probe::A2, Cause::HungProcess).proven(&[3], Probe::A2);
    assert!(down(&two.first()), "{:?}", two.first().why);
}

#[test]
fn rank_by_name() {
    assert_eq!([1, 2, 3, 4, 5, 7].map(most), [1, 1, 1, 1, 2, 3]);
    // Node 1 of three: cp0 ranks before it.
    let own = |cp0: State| {
        let mut case = Case::new(3, 1, Layout::Local).bad(4, Probe::A2, Cause::HungProcess).proven(&[5], Probe::A2);
        if cp0 == State::Good {
            case = case.proven(&[3], Probe::A2);
        }
        case.verdicts.by_target.insert(TargetId(3), verdict(cp0, None, None));
        case.first()
    };
    assert!(down(&own(State::Good)));
    assert!(!down(&own(State::Bad)), "cp0 is the one that may");
    assert!(!down(&own(State::Unknown)), "cp0 may turn out bad");
}

#[test]
fn members_by_quorum() {
    let own = |size: u16, good: &[u16]| {
        let mut case = Case::new(size, 0, Layout::All).bad(0, Probe::E3, Cause::NoQuorumHere).proven(good, Probe::E3);
        for other in (1..size).filter(|other| !good.contains(other)) {
            case.verdicts.by_target.insert(TargetId(other), verdict(State::Bad, Some(Cause::HungProcess), None));
        }
        down(&case.first())
    };
    for (size, good, want) in [
        (1, &[][..], false),
        (2, &[1][..], false),
        (3, &[1, 2][..], true),
        (3, &[1][..], false),
        (5, &[1, 2, 3][..], true),
        (5, &[1, 2][..], false),
    ] {
        assert_eq!(own(size, good), want, "{} good of {size}", good.len());
    }
}

#[test]
fn an_unknown_layout_fences_nothing_by_itself() {
    let case = |target| {
        let case = Case::new(3, 0, Layout::Unknown).bad(3, Probe::A2, Cause::HungProcess).proven(&[4, 5], Probe::A2);
        case.fence(|fence| fence.target = target).first()
    };
    assert!(!down(&case(FenceTarget::Auto)));
    assert!(down(&case(FenceTarget::Apiserver)), "the operator said what");
}

#[test]
fn a_fence_ends_after_steady_good_answers_and_later_each_time() {
    let mut case = dead_path();
    let mut state = case.first();
    for (repeat, waits) in [(1, 5_u64), (2, 10), (3, 20)] {
        case.verdicts.by_target.insert(TargetId(3), verdict(State::Good, None, None));
        state = case.decide(&state);
        assert!(down(&state), "the first good answer ends nothing");
        case.now = case.now.plus(Duration::from_secs(waits - 1));
        state = case.decide(&state);
        assert!(down(&state), "fence {repeat}");
        case.now = case.now.plus(Duration::from_secs(1));
        state = case.decide(&state);
        assert!(!down(&state) && state.repeats == repeat, "fence {repeat}: {state:?}");
        let by = Some((TargetId(3), Probe::A2));
        case.verdicts.by_target.insert(TargetId(3), verdict(State::Bad, Some(Cause::HungProcess), by));
        state = case.decide(&state);
        assert!(down(&state));
    }
}

#[test]
fn a_fence_outlives_its_evidence_by_ten_seconds() {
    let mut case = dead_path();
    let state = case.first();
    // As a new process finds it: nothing known, and what the file says.
    case.verdicts.blind = Some((Cause::NotYetKnown, "just started".to_owned()));
    case.now = Mono(109_000);
    assert!(down(&case.decide(&state)));
    case.now = Mono(110_000);
    assert!(!down(&case.decide(&state)));
}

#[test]
fn a_fence_ends_at_once_when_nobody_else_is_good() {
    let mut case = dead_path();
    let state = case.first();
    for other in [4, 5] {
        case.verdicts.by_target.insert(TargetId(other), verdict(State::Bad, Some(Cause::NoQuorumAnywhere), None));
    }
    assert!(!down(&case.decide(&state)));
}

#[test]
fn an_event_is_a_change_and_not_a_figure() {
    let case = dead_path();
    let (before, first) = (FenceState::default(), case.first());
    assert!(first.differs(&before));
    let mut again = case.decide(&first);
    again.why.push("other figures".to_owned());
    assert!(!again.differs(&first));
}
