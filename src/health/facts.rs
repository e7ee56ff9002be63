//! All that is known of all targets: samples go in, standings and histories come out. Pure, cheap, of fixed size.

use std::time::Duration;

use super::judge::member_behind;
use super::model::{
    Failure, Gauges, Kind, Mono, Observer, Outcome, Planned, Probe, Process, Sample, TargetId, Watched,
};
use super::past::{Levels, Past, Terms};
use super::rules::Rules;
use super::window::{Repeat, Run, Standing, Window};

/// A new failure is asked again each interval for so many times.
const SETTLING: u32 = 6;

/// What no sample touched.
static NOTHING: std::sync::LazyLock<Window> = std::sync::LazyLock::new(Window::default);

#[derive(Debug, Clone)]
pub struct Facts {
    rules: Rules,
    own: Vec<bool>,
    /// By target, then [`Probe::index`].
    windows: Vec<Window>,
    pasts: Vec<Past>,
    pub terms: Terms,
    levels: Levels,
    process: Option<Process>,
    starved: bool,
    certificate_expired: bool,
}

impl Facts {
    /// Nothing known. A changed [`Watched`] needs new facts.
    pub fn new(rules: Rules, watched: &Watched) -> Facts {
        let targets = watched.targets.len();
        Facts {
            rules,
            own: watched.targets.iter().map(|target| target.own).collect(),
            windows: vec![Window::default(); targets * Probe::ALL.len()],
            pasts: vec![Past::default(); targets],
            terms: Terms::default(),
            levels: Levels::default(),
            process: None,
            starved: false,
            certificate_expired: false,
        }
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Takes one answer in, in the order in which answers come. One of a target that is not watched is left out.
    pub fn fold(&mut self, sample: &Sample) {
        let target = usize::from(sample.target.0);
        let place = target * Probe::ALL.len() + sample.probe.index();
        let Some(own) = self.own.get(target) else { return };
        let Some(window) = self.windows.get_mut(place) else { return };
        let failed = matches!(sample.outcome, Outcome::Failed(_));
        if failed && self.starved && self.rules.guards.starved {
            return;
        }
        let repeat = Repeat {
            fails: self.rules.fails,
            goods: self.rules.goods_needed(sample.probe, *own),
            slow: self.rules.slow,
            late_after: self.rules.deadline(sample.probe) + self.rules.late,
        };
        if let (Outcome::Unknown(_), false) = (&sample.outcome, self.rules.guards.unknown_is_unknown) {
            let outcome = Outcome::Failed(Failure::Server(String::new()));
            window.fold(&repeat, &Sample { outcome, ..sample.clone() });
            return;
        }
        let was_failed = window.failed();
        window.fold(&repeat, sample);
        if was_failed && !window.failed() {
            self.mended(target, sample);
        }
        let Some(past) = self.pasts.get_mut(target) else { return };
        match &sample.outcome {
            Outcome::Good(reading) => {
                if let Some(term) = past.read(sample.at, reading, self.rules.apply_lag) {
                    self.terms.read(sample.at.plus(sample.took), term);
                }
            }
            Outcome::Failed(Failure::Refused) => past.refused = Some(sample.at),
            Outcome::Failed(_) | Outcome::Unknown(_) => {}
        }
    }

    /// What rests on this question failed with it: that is over too, unless it fails once more.
    fn mended(&mut self, target: usize, sample: &Sample) {
        let resting: &[Probe] = match sample.probe {
            Probe::E2 => &[Probe::E1, Probe::E3, Probe::E4, Probe::E5],
            Probe::E3 => &[Probe::E4, Probe::E5],
            Probe::A2 => &[Probe::E1, Probe::A3, Probe::A4, Probe::A5],
            _ => return,
        };
        for probe in resting {
            if let Some(window) = self.windows.get_mut(target * Probe::ALL.len() + probe.index()) {
                window.doubt_before(sample.at, self.rules.fails);
            }
        }
    }

    /// Takes the own condition in, each second: failures that fell into own starvation are forgotten.
    pub fn observe(&mut self, observer: &Observer) {
        let starved = starved(&self.rules, observer).is_some();
        if starved && !self.starved && self.rules.guards.starved {
            // It is noticed up to a second late, and failures need a deadline.
            let began = observer.lateness + self.rules.deadline + Duration::from_secs(2);
            let then = Mono(observer.at.0.saturating_sub(u64::try_from(began.as_millis()).unwrap_or(u64::MAX)));
            for window in &mut self.windows {
                window.forgive(then);
            }
        }
        self.starved = starved;
        if self.certificate_expired && !observer.certificate_expired {
            self.windows.iter_mut().for_each(|window| window.forgive(Mono(0)));
        }
        self.certificate_expired = observer.certificate_expired;
        self.process = observer.process;
        if let Some(free) = observer.data_dir.as_ref().and_then(|dir| dir.free) {
            self.levels.read(observer.at, free);
        }
    }

    /// What metrics tell of a target.
    pub fn gauges(&mut self, target: TargetId, gauges: Gauges) {
        if let Some(past) = self.pasts.get_mut(usize::from(target.0)) {
            past.gauges = Some(gauges);
        }
    }

    /// Somebody announced, or ended (`None`), work on a member that makes it silent.
    pub fn planned(&mut self, target: TargetId, planned: Option<Planned>) {
        if let Some(past) = self.pasts.get_mut(usize::from(target.0)) {
            past.planned = planned;
        }
    }

    pub fn window(&self, target: TargetId, probe: Probe) -> &Window {
        self.windows.get(usize::from(target.0) * Probe::ALL.len() + probe.index()).unwrap_or(&NOTHING)
    }

    pub fn past(&self, target: TargetId) -> Option<&Past> {
        self.pasts.get(usize::from(target.0))
    }

    pub fn standing(&self, target: TargetId, probe: Probe, now: Mono) -> Standing {
        let own = self.own.get(usize::from(target.0)).copied().unwrap_or_default();
        self.window(target, probe).standing(now, self.rules.stale_after(probe, own))
    }

    /// The failures that stand against it, where that fact is failed now.
    pub fn failing(&self, target: TargetId, probe: Probe, now: Mono) -> Option<&Run> {
        let failed = self.standing(target, probe, now) == Standing::Failed;
        self.window(target, probe).run().filter(|_| failed)
    }

    pub fn process(&self) -> Option<Process> {
        self.process
    }

    /// By how many bytes the own member's file system lost free space since then (at most ten seconds).
    pub fn disk_fell(&self, then: Mono, now: Mono) -> u64 {
        self.levels.fell(then, now)
    }

    /// When the question is asked next, counted from the last answer or the end of waiting, and whether on a fresh connection:
    /// the repeat of a first failure, then its period, shorter while it stands failed so that its end is seen.
    pub fn next(&self, target: TargetId, probe: Probe) -> (Duration, bool) {
        let own = self.own.get(usize::from(target.0)).copied().unwrap_or_default();
        let period = self.rules.period(probe, own);
        let window = self.window(target, probe);
        match window.run() {
            Some(run) if run.count == 1 && !window.failed() => (self.rules.repeat, true),
            // Until what is elsewhere has been compared with it.
            Some(run) if run.count < SETTLING || (own && period <= self.rules.interval * 5) => {
                (period.min(self.rules.interval), true)
            }
            run if run.is_some() || window.failed() || window.answered().is_none() => {
                (period.min(self.rules.interval * 5), run.is_some())
            }
            _ => (period, false),
        }
    }

    /// What should be asked at once, before its period: a failure is judged by what others answer *after* it. Once for each
    /// run of failures, on the own node for each of its first failures, so bounded. To be called after each failure; [`Facts::next`] has the repeat itself.
    pub fn urgent(&self, watched: &Watched) -> Vec<(TargetId, Probe)> {
        let mut wanted = Vec::new();
        for (id, target) in (0..=u16::MAX).map(TargetId).zip(&watched.targets) {
            for probe in Probe::ALL {
                let Some(run) = self.window(id, probe).run() else { continue };
                // The second look sees a leader lost meanwhile.
                let status = self.window(id, Probe::E6).asked();
                if matches!(probe, Probe::E3 | Probe::E4)
                    && run.count == 2
                    && status.is_none_or(|at| at < run.last.ended)
                {
                    wanted.push((id, Probe::E6));
                }
                // A new failure here is compared with the others each time.
                let since = if target.own && run.count < SETTLING { run.last.ended } else { run.first.ended };
                let mut want = |target: TargetId, probe: Probe| {
                    let window = self.window(target, probe);
                    // What fails is repeated anyway, in its own time.
                    let open = window.run().is_none() && window.asked().is_none_or(|at| at < since);
                    if open && !wanted.contains(&(target, probe)) {
                        wanted.push((target, probe));
                    }
                };
                match (probe, target.kind) {
                    (Probe::E2, _) => [Probe::E1, Probe::E6].into_iter().for_each(|probe| want(id, probe)),
                    (Probe::E3 | Probe::E4, _) if target.own => {
                        [Probe::E2, Probe::E4, Probe::E5, Probe::E6].into_iter().for_each(|probe| want(id, probe));
                    }
                    (Probe::E3 | Probe::E4, _) => {
                        [Probe::E2, Probe::E6].into_iter().for_each(|probe| want(id, probe));
                        // Does consensus work at all? The own member is nearest.
                        let own = watched.own(Kind::Member).filter(|(_, mine)| !mine.learner);
                        if let Some((mine, _)) = own {
                            want(mine, probe);
                        }
                        if own.is_none_or(|(mine, _)| self.window(mine, probe).run().is_some()) {
                            let voters =
                                watched.of(Kind::Member).filter(|(other, theirs)| *other != id && !theirs.learner);
                            voters.for_each(|(other, _)| want(other, probe));
                        }
                    }
                    (Probe::E5, _) => [Probe::E2, Probe::E3, Probe::E4].into_iter().for_each(|probe| want(id, probe)),
                    (Probe::A2, _) => {
                        want(id, Probe::A1);
                        let behind = member_behind(watched, id).or_else(|| Some(watched.own(Kind::Member)?.0));
                        if let Some(member) = behind {
                            [Probe::E2, Probe::E3].into_iter().for_each(|probe| want(member, probe));
                        }
                    }
                    (Probe::A3 | Probe::A4 | Probe::A5, _) => want(id, Probe::A2),
                    _ => {}
                }
                // A certificate proves itself in a handshake alone.
                let probe = if run.failure.is_handshake() { Probe::E1 } else { probe };
                let explains = matches!(probe, Probe::A1 | Probe::E6 | Probe::V1);
                // Own trouble: are the others better? A remote one that is out of reach: is anybody in reach?
                let unreachable = run.failure == Failure::Unreachable;
                if explains || !(target.own || unreachable) {
                    continue;
                }
                for (other, theirs) in watched.of(Kind::Apiserver).filter(|(other, _)| *other != id) {
                    if !theirs.own || target.kind == Kind::Member {
                        want(other, Probe::A2);
                    }
                    if target.own && target.kind == Kind::Apiserver {
                        want(other, probe);
                    }
                }
                for (other, theirs) in watched.of(Kind::Member).filter(|(other, _)| *other != id) {
                    match probe {
                        _ if unreachable || theirs.learner => want(other, Probe::E2),
                        Probe::E1 | Probe::E2 | Probe::E3 | Probe::E4 | Probe::E5 => want(other, probe),
                        _ => [Probe::E2, Probe::E3].into_iter().for_each(|probe| want(other, probe)),
                    }
                }
                if target.own {
                    watched.of(Kind::Balancer).for_each(|(other, _)| want(other, Probe::V1));
                }
            }
        }
        wanted
    }
}

/// Why the observer is too starved to judge.
pub fn starved(rules: &Rules, observer: &Observer) -> Option<String> {
    let share = |share: Option<f64>| share.filter(|share| *share >= rules.starved_pressure).map(|share| share * 100.0);
    if observer.lateness >= rules.starved_lateness {
        return Some(format!("own timers were up to {} ms late", observer.lateness.as_millis()));
    }
    if let Some(share) = share(observer.cpu_pressure) {
        return Some(format!("tasks here waited {share:.0} % of the time for the processor"));
    }
    share(observer.memory_pressure).map(|share| format!("tasks here waited {share:.0} % of the time for memory"))
}
