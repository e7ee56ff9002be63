//! Whether this node's path is taken out: a value with everything that led to it (design §11). It can only take away what is
//! proven worse than the rest; all else answers *up*.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::facts::Facts;
use super::super::model::{Kind, Layout, Mono, TargetId, Watched};
use super::super::rules::Rules;
use super::super::verdict::{Cause, State, Verdict, Verdicts};
use super::proof::Case;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Off,
    /// Decides, and answers *up* all the same.
    #[default]
    Advise,
    Balancer,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FenceTarget {
    /// The apiserver where each asks its own member, the member where all ask all.
    #[default]
    Auto,
    Apiserver,
    Etcd,
}

/// What a person said; wins over everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "hand")]
pub enum Hand {
    /// Down until released.
    Hold { reason: String, until: Option<Mono> },
    /// Up, whatever is seen, until then.
    Release { until: Option<Mono> },
}

impl Hand {
    fn holds(&self, now: Mono) -> bool {
        let (Hand::Hold { until, .. } | Hand::Release { until }) = self;
        until.is_none_or(|until| now < until)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FenceRules {
    pub mode: Mode,
    pub target: FenceTarget,
    pub hand: Option<Hand>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    #[default]
    Up,
    Down {
        reason: String,
    },
}

/// The path that is out, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fenced {
    pub target: String,
    pub kind: Kind,
    pub cause: Cause,
    pub reason: String,
    pub since: Mono,
    /// When the evidence for it was last complete.
    pub shown: Mono,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceState {
    pub answer: Answer,
    /// Decided by the rules, whether the mode lets it act or not.
    pub fenced: Option<Fenced>,
    /// What it would do, were it allowed to.
    pub would: Option<String>,
    /// Rules that spoke, with their facts, in order.
    pub why: Vec<String>,
    /// A person holds or released it.
    pub by_hand: bool,
    /// Fences before this one that are not forgotten.
    pub repeats: u32,
    /// When the last fence ended.
    pub ended: Option<Mono>,
    /// Since when the fenced path has been good again.
    pub good_since: Option<Mono>,
}

impl FenceState {
    /// Whether something changed that is worth an event: not the figures alone.
    pub fn differs(&self, before: &FenceState) -> bool {
        let down = |state: &FenceState| matches!(state.answer, Answer::Down { .. });
        let cause = |state: &FenceState| state.fenced.as_ref().map(|fenced| (fenced.target.clone(), fenced.cause));
        down(self) != down(before) || cause(self) != cause(before) || self.by_hand != before.by_hand
    }
}

/// What the rules say of the own path at this moment.
enum Wish {
    /// All evidence is there.
    Fence,
    /// Bad, and what began a fence still holds, though not freshly proven.
    Keep,
    /// Nothing is known; a fence outlives this for a short while.
    Unknown,
    Good,
    /// A rule forbids it.
    Never,
}

/// Decides for this node at `now`. `before` is the last decision, or what a previous process left.
pub fn decide(
    fence: &FenceRules,
    watched: &Watched,
    verdicts: &Verdicts,
    facts: &Facts,
    before: &FenceState,
    now: Mono,
) -> FenceState {
    let rules = facts.rules();
    let mut state = FenceState {
        repeats: before.repeats,
        ended: before.ended,
        good_since: before.good_since,
        fenced: before.fenced.clone(),
        ..FenceState::default()
    };
    if state.ended.is_some_and(|ended| now.since(ended) >= rules.forget) {
        state.repeats = 0;
    }
    if fence.mode == Mode::Off {
        (state.fenced, state.good_since) = (None, None);
        state.why.push("fencing is off".to_owned());
    } else {
        match own(fence, watched) {
            Ok((id, kind)) => step(&mut state, &Scene { rules, watched, verdicts, facts, id, kind, now }),
            Err(why) => {
                state.why.push(why);
                end(&mut state, now);
            }
        }
    }
    answer(&mut state, fence, now);
    state
}

/// What would be fenced.
fn own(fence: &FenceRules, watched: &Watched) -> Result<(TargetId, Kind), String> {
    let kind = match (fence.target, watched.layout) {
        (FenceTarget::Apiserver, _) | (FenceTarget::Auto, Layout::Local) => Kind::Apiserver,
        (FenceTarget::Etcd, _) | (FenceTarget::Auto, Layout::All) => Kind::Member,
        (FenceTarget::Auto, Layout::Unknown) => {
            return Err("which members the apiservers ask is not known: set [fence] target".to_owned());
        }
    };
    match watched.own(kind) {
        Some((id, target)) if !target.learner => Ok((id, kind)),
        Some(_) => Err("the own member is a learner: nobody reads from it".to_owned()),
        None => Err("there is nothing of that kind on this node".to_owned()),
    }
}

/// The path in question, and all that is known.
struct Scene<'a> {
    rules: &'a Rules,
    watched: &'a Watched,
    verdicts: &'a Verdicts,
    facts: &'a Facts,
    id: TargetId,
    kind: Kind,
    now: Mono,
}

fn step(state: &mut FenceState, scene: &Scene) {
    let Scene { rules, watched, verdicts, id, kind, now, .. } = *scene;
    let name = watched.target(id).map_or("?", |target| target.name.as_str());
    let verdict = verdicts.by_target.get(&id);
    let fenced = state.fenced.is_some();
    let wish = wish(&mut state.why, scene, fenced);
    if !matches!(wish, Wish::Good) {
        state.good_since = None;
    }
    match (wish, &mut state.fenced) {
        (Wish::Fence, None) => {
            let Some((cause, verdict)) = verdict.and_then(|verdict| Some((verdict.cause?, verdict))) else { return };
            let reason = verdict.reasons.first().cloned().unwrap_or_default();
            state.fenced = Some(Fenced { target: name.to_owned(), kind, cause, reason, since: now, shown: now });
        }
        (Wish::Fence | Wish::Keep, Some(fenced)) => {
            fenced.shown = now;
            if let Some(cause) = verdict.and_then(|verdict| verdict.cause) {
                fenced.cause = cause;
            }
        }
        (Wish::Unknown, Some(fenced)) if now.since(fenced.shown) < rules.keep => {
            state.why.push(format!("fenced until the evidence is {} s old", rules.keep.as_secs()));
        }
        (Wish::Good, Some(_)) => {
            let since = *state.good_since.get_or_insert(now);
            let steady = if rules.guards.hysteresis { steady(rules, state.repeats) } else { Duration::ZERO };
            if now.since(since) >= steady {
                state.why.push(format!("good again for {} s", now.since(since).as_secs()));
                end(state, now);
            } else {
                let text =
                    format!("good again for {} s, fenced until {} s", now.since(since).as_secs(), steady.as_secs());
                state.why.push(text);
            }
        }
        (Wish::Unknown | Wish::Never, Some(_)) => end(state, now),
        (Wish::Keep | Wish::Unknown | Wish::Never | Wish::Good, None) => {}
    }
}

/// How long the path must be good before a fence ends: longer with each repeat.
fn steady(rules: &Rules, repeats: u32) -> Duration {
    rules.steady.saturating_mul(2_u32.saturating_pow(repeats)).min(rules.steady_max)
}

fn end(state: &mut FenceState, now: Mono) {
    if state.fenced.take().is_some() {
        state.repeats = state.repeats.saturating_add(1);
        state.ended = Some(now);
    }
    state.good_since = None;
}

fn wish(why: &mut Vec<String>, scene: &Scene, fenced: bool) -> Wish {
    let Scene { rules, watched, verdicts, facts, id, kind, now } = *scene;
    if let Some((cause, text)) = &verdicts.blind {
        why.push(format!("this observer judges nobody ({cause}): {text}"));
        return Wish::Unknown;
    }
    let Some(verdict) = verdicts.by_target.get(&id) else {
        why.push("there is no verdict on it".to_owned());
        return Wish::Unknown;
    };
    match verdict.state {
        State::Good | State::Slow => return Wish::Good,
        State::Unknown => {
            why.push("its state is not known".to_owned());
            return Wish::Unknown;
        }
        State::Bad => {}
    }
    if let Some(forbidden) = forbidden(rules, verdict, fenced, now) {
        why.push(forbidden);
        return Wish::Never;
    }
    let Some(by) = verdict.by else {
        why.push("no single fact judged it".to_owned());
        return Wish::Unknown;
    };
    let Some(run) = facts.window(by.0, by.1).run() else {
        why.push("it answers again, not yet often enough".to_owned());
        return if fenced && others_serve(watched, verdicts, id, kind) { Wish::Keep } else { Wish::Never };
    };
    let case = Case { rules, watched, facts, verdicts, by, run };
    let shown = match kind {
        // Once proven it lasts as long as the others are good: one lost answer of theirs ends nothing.
        _ if fenced && !others_serve(watched, verdicts, id, kind) => Err("no longer enough others are good".to_owned()),
        Kind::Member if fenced => Ok("the other good members are still a quorum".to_owned()),
        _ if fenced => case.rank(id, false),
        Kind::Member => case.other_members(id),
        _ => case.rank(id, true).and_then(|rank| Ok(format!("{}; {rank}", case.other_apiserver(id)?))),
    };
    match shown {
        Ok(text) => {
            why.push(text);
            Wish::Fence
        }
        Err(text) => {
            why.push(text);
            Wish::Never
        }
    }
}

/// Causes that never lead to a fence, and those that must last.
fn forbidden(rules: &Rules, verdict: &Verdict, fenced: bool, now: Mono) -> Option<String> {
    let cause = verdict.cause?;
    let guards = rules.guards;
    let hasty = guards.restart && !fenced && now.since(verdict.since) < rules.restart;
    match cause {
        Cause::NoSpace if guards.nospace => Some("NOSPACE is everybody's, and reads go on: never fenced".to_owned()),
        Cause::Defragmentation if guards.defragmentation => {
            Some("a defragmentation ends by itself: never fenced".to_owned())
        }
        Cause::Election if guards.election => Some("an election ends by itself: never fenced".to_owned()),
        Cause::Stopped if hasty => {
            Some(format!("it may be restarting: fenced only after {} s", rules.restart.as_secs()))
        }
        Cause::WritesRefused | Cause::AnswersErrors if hasty => {
            Some(format!("{cause}: fenced only after {} s", rules.restart.as_secs()))
        }
        Cause::NoQuorumAnywhere | Cause::Corrupt => Some(format!("{cause} is everybody's: never fenced")),
        Cause::Unreachable | Cause::TlsFailed => Some(format!("{cause}: may lie in the way from here, never fenced")),
        Cause::OwnIsolation | Cause::OwnStarvation | Cause::OwnClock | Cause::OwnCertificate | Cause::NotYetKnown => {
            Some(format!("{cause} is this observer's trouble: never fenced"))
        }
        Cause::ListOverload | Cause::SlowStorage | Cause::SlowMember => Some(format!("{cause}: slow is not bad")),
        _ => None,
    }
}

fn others_serve(watched: &Watched, verdicts: &Verdicts, own: TargetId, kind: Kind) -> bool {
    let serves = |id: TargetId| matches!(verdicts.state(id), State::Good | State::Slow);
    let good = watched.of(kind).filter(|(id, target)| *id != own && !target.learner && serves(*id)).count();
    match kind {
        Kind::Member => good > watched.of(kind).filter(|(_, target)| !target.learner).count() / 2,
        _ => good > 0,
    }
}

/// The hand wins over all; then the mode says whether the decision is acted on.
fn answer(state: &mut FenceState, fence: &FenceRules, now: Mono) {
    let hand = fence.hand.as_ref().filter(|hand| hand.holds(now));
    let decided = state.fenced.as_ref().map(|fenced| format!("{} {}: {}", fenced.target, fenced.cause, fenced.reason));
    if let Some(hand) = hand {
        state.by_hand = true;
        match hand {
            Hand::Hold { reason, .. } => {
                state.why.insert(0, format!("held by hand: {reason}"));
                state.answer = Answer::Down { reason: format!("held by hand: {reason}") };
            }
            Hand::Release { .. } => {
                state.why.insert(0, "released by hand".to_owned());
                state.would = decided.map(|reason| format!("fence {reason}"));
            }
        }
        return;
    }
    match (decided, fence.mode) {
        (Some(reason), Mode::Balancer) => state.answer = Answer::Down { reason },
        (Some(reason), _) => state.would = Some(format!("fence {reason}")),
        (None, _) => {}
    }
}
