//! From facts to verdicts: members first, then the apiservers before them, then what concerns all. Each judgement names the
//! fact that it rests on, because a fence has to show that the others answer the same question.

mod apiserver;
mod cluster;
mod member;
mod own;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use super::facts::Facts;
use super::model::{Kind, Layout, Mono, Observer, Probe, TargetId, Watched};
use super::rules::Rules;
use super::verdict::{Cause, State, Verdict, Verdicts};
use super::window::{Run, Standing};

pub use own::blind;

/// Everything that is known at one moment.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub rules: &'a Rules,
    pub watched: &'a Watched,
    pub facts: &'a Facts,
    pub observer: &'a Observer,
    pub now: Mono,
}

impl<'a> View<'a> {
    fn standing(&self, id: TargetId, probe: Probe) -> Standing {
        self.facts.standing(id, probe, self.now)
    }

    fn failing(&self, id: TargetId, probe: Probe) -> Option<&'a Run> {
        self.facts.failing(id, probe, self.now)
    }

    /// Not failed, and answered a question that was asked after that run of failures had begun.
    fn good_after(&self, id: TargetId, probe: Probe, run: &Run) -> bool {
        let window = self.facts.window(id, probe);
        !window.failed() && window.good().is_some_and(|good| good.asked >= run.first.asked)
    }

    fn name(&self, id: TargetId) -> &'a str {
        self.watched.target(id).map_or("?", |target| target.name.as_str())
    }

    fn voters(&self) -> impl Iterator<Item = TargetId> + use<'a> {
        self.watched.of(Kind::Member).filter(|(_, target)| !target.learner).map(|(id, _)| id)
    }

    /// Since when a run of failures goes on.
    fn lasts(&self, run: &Run) -> Duration {
        self.now.since(run.first.asked)
    }
}

/// A judgement before it is known since when.
#[derive(Debug, Clone, Default)]
pub(super) struct Judged {
    state: Option<State>,
    cause: Option<Cause>,
    by: Option<(TargetId, Probe)>,
    reasons: Vec<String>,
    advice: Option<String>,
}

impl Judged {
    fn new(state: State, cause: Cause, by: Option<(TargetId, Probe)>, reason: impl Into<String>) -> Judged {
        Judged { state: Some(state), cause: Some(cause), by, reasons: vec![reason.into()], advice: None }
    }

    fn bad(cause: Cause, by: (TargetId, Probe), reason: impl Into<String>) -> Judged {
        Judged::new(State::Bad, cause, Some(by), reason)
    }

    fn good() -> Judged {
        Judged { state: Some(State::Good), ..Judged::default() }
    }

    fn and(mut self, reason: impl Into<String>) -> Judged {
        self.reasons.push(reason.into());
        self
    }

    fn is(&self, state: State) -> bool {
        self.state == Some(state)
    }

    fn is_bad_by(&self, causes: &[Cause]) -> bool {
        self.is(State::Bad) && self.cause.is_some_and(|cause| causes.contains(&cause))
    }
}

pub(super) type Judgements = BTreeMap<TargetId, Judged>;

/// Verdicts on every target.
pub fn all(view: &View, before: &Verdicts) -> Verdicts {
    let cluster = cluster::Cluster::of(view);
    let mut judged = Judgements::new();
    for (id, target) in view.watched.of(Kind::Member) {
        let mut member = member::judge(view, &cluster, id, target);
        mending(view, before, id, &mut member);
        judged.insert(id, member);
    }
    let mut apiservers = Judgements::new();
    for (id, target) in view.watched.of(Kind::Apiserver) {
        let mut apiserver = apiserver::judge(view, &cluster, &judged, id, target);
        mending(view, before, id, &mut apiserver);
        apiservers.insert(id, apiserver);
    }
    judged.append(&mut apiservers);
    for (id, _) in view.watched.of(Kind::Balancer) {
        judged.insert(id, apiserver::balancer(view, id));
    }
    let blind = blind(view);
    if let Some((cause, why)) = &blind {
        for (id, judgement) in &mut judged {
            own::doubt(view, *cause, why, *id, judgement);
        }
    }
    let shared = cluster::shared(view, &cluster, &judged);
    let verdicts = judged.into_iter().map(|(id, judgement)| (id, finish(view, before, id, judgement)));
    Verdicts { at: view.now, by_target: verdicts.collect(), cluster: shared, blind }
}

/// What was said before of the same failures stays. The fact that judged it answers again, not yet often enough: until then it stays what it was, unless something new is wrong.
fn mending(view: &View, before: &Verdicts, id: TargetId, judged: &mut Judged) {
    let Some(was) = before.by_target.get(&id).filter(|was| was.state == State::Bad) else { return };
    let Some(by) = was.by else { return };
    let window = view.facts.window(by.0, by.1);
    // The same failures go on: what was once shown is not forgotten for one answer that came late elsewhere.
    let weak = |cause: Option<Cause>| matches!(cause, Some(Cause::NotYetKnown | Cause::Election));
    if judged.by == Some(by)
        && judged.is(State::Bad)
        && weak(judged.cause)
        && !weak(was.cause)
        && window.run().is_some()
    {
        judged.cause = was.cause;
    }
    let Some(good) = window.good().filter(|_| window.failed() && window.run().is_none()) else { return };
    let newer = |(target, probe): (TargetId, Probe)| {
        view.facts.window(target, probe).run().is_some_and(|run| run.first.asked > good.asked)
    };
    if !judged.is(State::Bad) || !judged.by.is_some_and(newer) {
        let ago = view.now.since(good.ended);
        let reason = format!("it answered {} {} ago, and must go on to", by.1, words::lasts(ago));
        *judged = Judged { state: Some(State::Bad), cause: was.cause, by: was.by, reasons: vec![reason], advice: None };
    }
}

fn finish(view: &View, before: &Verdicts, id: TargetId, judged: Judged) -> Verdict {
    let state = judged.state.unwrap_or(State::Unknown);
    let since =
        before.by_target.get(&id).filter(|verdict| verdict.state == state).map_or(view.now, |verdict| verdict.since);
    let advice = judged.advice.or_else(|| judged.cause.map(|cause| words::advice(cause).to_owned()));
    Verdict { state, cause: judged.cause, reasons: judged.reasons, advice, since, by: judged.by }
}

/// The member that an apiserver asks, where each asks one: the one of its node.
pub fn member_behind(watched: &Watched, apiserver: TargetId) -> Option<TargetId> {
    if watched.layout != Layout::Local {
        return None;
    }
    let target = watched.target(apiserver)?;
    let members = || watched.of(Kind::Member);
    let found = if target.own {
        watched.own(Kind::Member)
    } else {
        members()
            .find(|(_, member)| host(&member.url) == host(&target.url))
            .or_else(|| members().find(|(_, member)| member.name == target.name))
    };
    found.map(|(id, _)| id)
}

/// The host of an URL, without brackets and port.
pub(super) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or(inner),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    }
}
