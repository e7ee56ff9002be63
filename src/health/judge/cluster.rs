//! What concerns all members at once: whether anybody has a quorum, elections, alarms, certificates.

use std::time::Duration;

use super::super::model::{Failure, Kind, Probe, TargetId};
use super::super::verdict::{Cause, State};
use super::super::window::{Run, Standing};
use super::{Judgements, View};

/// An alarm that was listed longer ago than this is asked again first.
const ALARM_AGE: Duration = Duration::from_secs(40);

/// A member in this state votes no more.
const LOST: [Cause; 5] =
    [Cause::HungProcess, Cause::Stopped, Cause::Unreachable, Cause::FrozenDisk, Cause::NoQuorumAnywhere];

#[derive(Debug)]
pub(super) struct Cluster {
    pub voters: usize,
    pub quorum: usize,
    /// Voters with a good linearizable read, none failed since.
    pub reading: usize,
    pub alarms: Vec<(String, u64)>,
    /// The term grew so often within the span of a storm.
    pub changes: usize,
    pub storm: bool,
}

impl Cluster {
    pub fn of(view: &View) -> Cluster {
        let voters = view.voters().count();
        let reading = view.voters().filter(|id| {
            view.standing(*id, Probe::E3) == Standing::Good && view.facts.window(*id, Probe::E3).run().is_none()
        });
        let lists = view.watched.of(Kind::Member).filter_map(|(id, _)| view.facts.past(id)?.alarms.as_ref());
        // The newest list is the truth: an alarm that was disarmed since is gone.
        let newest = lists.filter(|(at, _)| view.now.since(*at) <= ALARM_AGE).max_by_key(|(at, _)| *at);
        let changes = view.facts.terms.changes(view.now, view.rules.storm_span);
        Cluster {
            voters,
            quorum: voters / 2 + 1,
            reading: reading.count(),
            alarms: newest.map(|(_, list)| list.clone()).unwrap_or_default(),
            changes,
            storm: changes >= view.rules.storm_changes && view.rules.guards.election,
        }
    }

    pub fn alarm(&self, name: &str) -> bool {
        self.alarms.iter().any(|(alarm, _)| alarm == name)
    }
}

/// What the others say to the question that fails here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// One answered after the failure was known, and it failed here again after that.
    Answers,
    /// None does.
    Fails,
    /// Not asked again yet.
    NotAsked,
}

pub(super) fn elsewhere(view: &View, id: TargetId, probe: Probe, run: &Run) -> Elsewhere {
    let mut asked_all = true;
    for other in view.voters().filter(|other| *other != id) {
        let window = view.facts.window(other, probe);
        if window.outlasted_by(run) {
            return Elsewhere::Answers;
        }
        asked_all &= window.run().is_some() || window.good().is_none();
    }
    // Through the balancer something with a quorum answers.
    let witness =
        view.watched.of(Kind::Balancer).any(|(balancer, _)| view.facts.window(balancer, Probe::V1).outlasted_by(run));
    match (witness, asked_all) {
        (true, _) => Elsewhere::Answers,
        (false, true) => Elsewhere::Fails,
        (false, false) => Elsewhere::NotAsked,
    }
}

/// Shared fate, in words.
pub(super) fn shared(view: &View, cluster: &Cluster, judged: &Judgements) -> Vec<(Cause, String)> {
    let mut shared = Vec::new();
    let count = |cause: Cause| judged.values().filter(|judgement| judgement.cause == Some(cause)).count();
    if cluster.alarm("nospace") || count(Cause::NoSpace) > 0 {
        shared.push((Cause::NoSpace, format!("alarm NOSPACE: {}", holders(cluster, "nospace"))));
    }
    if cluster.alarm("corrupt") {
        shared.push((Cause::Corrupt, format!("alarm CORRUPT: {}", holders(cluster, "corrupt"))));
    }
    let lost = view.voters().filter(|id| judged.get(id).is_some_and(|judgement| judgement.is_bad_by(&LOST))).count();
    if count(Cause::NoQuorumAnywhere) > 0 || (cluster.voters > 0 && lost > cluster.voters - cluster.quorum) {
        let text = format!("{} of {} members answer a linearizable read", cluster.reading, cluster.voters);
        shared.push((Cause::NoQuorumAnywhere, text));
    }
    if count(Cause::Election) > 0 || cluster.storm {
        let span = view.rules.storm_span.as_secs();
        shared.push((Cause::Election, format!("{} leader changes within {span} s", cluster.changes)));
    }
    let defragmenting = named(view, judged, Cause::Defragmentation);
    if !defragmenting.is_empty() {
        shared.push((Cause::Defragmentation, format!("under way at {}", defragmenting.join(", "))));
    }
    if count(Cause::ExpiredCertificate) > 0 {
        let text = format!("certificates of {} are over", named(view, judged, Cause::ExpiredCertificate).join(", "));
        shared.push((Cause::ExpiredCertificate, text));
    }
    if let Some(text) = super::apiserver::list_pressure(view) {
        shared.push((Cause::ListOverload, text));
    }
    shared
}

fn holders(cluster: &Cluster, alarm: &str) -> String {
    let ids: Vec<String> =
        cluster.alarms.iter().filter(|(name, _)| name == alarm).map(|(_, id)| format!("member {id:x}")).collect();
    if ids.is_empty() { "writes are refused".to_owned() } else { ids.join(", ") }
}

fn named<'a>(view: &View<'a>, judged: &Judgements, cause: Cause) -> Vec<&'a str> {
    let with = judged.iter().filter(|(_, judgement)| judgement.cause == Some(cause) && !judgement.is(State::Good));
    with.map(|(id, _)| view.name(*id)).collect()
}

/// Nothing is known that excuses it: it is out of reach, and something else on another host is not.
pub(super) fn reached_others(view: &View, id: TargetId, run: &Run) -> bool {
    let hosts = |id: TargetId| view.watched.target(id).map(|target| super::host(&target.url));
    let mut others = view.watched.targets.iter().enumerate().filter_map(|(place, target)| {
        let other = TargetId(u16::try_from(place).ok()?);
        (!target.own && other != id && hosts(other) != hosts(id)).then_some(other)
    });
    others.any(|other| {
        Probe::ALL.iter().any(|probe| {
            let window = view.facts.window(other, *probe);
            let heard = window.good().filter(|good| good.asked >= run.first.asked).is_some();
            let refused = window.run().is_some_and(|run| run.failure != Failure::Unreachable);
            heard || (refused && window.answered().is_some_and(|at| at >= run.first.ended))
        })
    })
}
