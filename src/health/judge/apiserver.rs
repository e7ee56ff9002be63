//! What is the matter with an apiserver: first whether its reads reach etcd, then whether it writes, then its cache. What its
//! own checks say explains, and judges nothing.

use std::time::Duration;

use super::super::model::{Failure, Kind, Layout, ListRate, Probe, Target, TargetId};
use super::super::verdict::{Cause, State};
use super::super::window::{Run, Standing};
use super::cluster::{Cluster, reached_others};
use super::member::{handshake, restarting, unknown};
use super::{Judged, Judgements, View, member_behind, words};

/// Gauges older than this say nothing.
const GAUGE_AGE: Duration = Duration::from_secs(120);
/// LISTs of one resource that reach etcd, and objects that it reads for them, from which they are a load.
const LISTS: f64 = 5.0;
const OBJECTS: f64 = 20_000.0;

/// What makes the apiserver before it useless.
const PATH: [Cause; 6] = [
    Cause::HungProcess,
    Cause::Stopped,
    Cause::FrozenDisk,
    Cause::StalledWal,
    Cause::NoQuorumHere,
    Cause::LargePacketsLost,
];
/// What is nobody's fault and ends by itself, or is everybody's.
const SHARED: [Cause; 5] =
    [Cause::Election, Cause::NoQuorumAnywhere, Cause::Defragmentation, Cause::NoSpace, Cause::OwnIsolation];

pub(super) fn judge(view: &View, cluster: &Cluster, members: &Judgements, id: TargetId, target: &Target) -> Judged {
    if let Some(run) = view.failing(id, Probe::A2) {
        return reads(view, cluster, members, id, target, run);
    }
    if let Some(judged) = behind(view, members, id) {
        return judged;
    }
    // The handshake of its checks is a fact, not its opinion.
    for probe in [Probe::E1, Probe::A1, Probe::A3, Probe::A4, Probe::A5] {
        if let Some(run) = view.failing(id, probe).filter(|run| run.failure.is_handshake()) {
            return handshake(id, probe, run);
        }
    }
    // These rest on reads: they must have been answered since.
    let alone = |run: &&Run| view.good_after(id, Probe::A2, run);
    for probe in [Probe::A3, Probe::A5] {
        if let Some(run) = view.failing(id, probe).filter(alone) {
            return writes(view, cluster, members, id, probe, run);
        }
    }
    if let Some(run) = view.failing(id, Probe::A4).filter(alone) {
        let text = match &run.failure {
            Failure::Stale { written, seen } => {
                format!(
                    "its cache shows version {seen} of a Lease, {written} was written {} ago",
                    words::lasts(view.lasts(run))
                )
            }
            _ => format!(
                "reads from its cache have failed for {}, reads from etcd are answered",
                words::lasts(view.lasts(run))
            ),
        };
        return Judged::bad(Cause::StaleCache, (id, Probe::A4), text);
    }
    let checks = view.facts.past(id).and_then(|past| past.checks.as_ref());
    let not_ready = checks.filter(|(_, ready, live, _)| !ready || !live);
    if let (Some((.., failing)), false) = (not_ready, view.rules.guards.checks_alone) {
        return Judged::bad(Cause::AnswersErrors, (id, Probe::A1), format!("not ready: {}", failing.join(", ")));
    }
    if view.standing(id, Probe::A2) != Standing::Good {
        return unknown(view, id, &[Probe::A2]);
    }
    let mut judged = slow(view, members, id).unwrap_or_else(Judged::good);
    if let Some((_, ready, _, failing)) = not_ready {
        let path = if *ready { "/livez" } else { "/readyz" };
        judged.reasons.push(format!("{path} fails ({}), but reads from etcd are answered", failing.join(", ")));
    }
    judged
}

/// Reads that must reach etcd fail.
fn reads(view: &View, cluster: &Cluster, members: &Judgements, id: TargetId, target: &Target, run: &Run) -> Judged {
    let by = (id, Probe::A2);
    let lasts = words::lasts(view.lasts(run));
    match &run.failure {
        Failure::Refused => {
            return Judged::bad(Cause::Stopped, by, format!("its port has refused connections for {lasts}"));
        }
        // On the own node nothing lies between: it accepts no more.
        Failure::Unreachable if target.own => {}
        Failure::Unreachable if reached_others(view, id, run) => {
            return Judged::bad(Cause::Unreachable, by, format!("its host has not answered for {lasts}"));
        }
        Failure::Unreachable => {
            let text =
                format!("not reached for {lasts}, and nothing else was since: the network here may be the cause");
            return Judged::new(State::Unknown, Cause::OwnIsolation, Some(by), text);
        }
        Failure::Expired | Failure::Tls(_) => return handshake(id, Probe::A2, run),
        _ => {}
    }
    let how = match &run.failure {
        Failure::Server(text) | Failure::NoLeader(text) => format!("reads from etcd have failed for {lasts}: {text}"),
        _ => format!("reads from etcd have not been answered for {lasts}"),
    };
    if let Some(ago) = restarting(view, view.facts.past(id)) {
        return Judged::bad(Cause::Stopped, by, format!("{how}; it was stopped {} ago", words::lasts(ago)));
    }
    if let Some(judged) = excused(view, cluster, members, id, by, run, &how) {
        return judged;
    }
    let member = member_behind(view.watched, id);
    if let Some(restarted) = member.and_then(|member| restarting(view, view.facts.past(member))) {
        let text = format!("etcd behind it was stopped {} ago", words::lasts(restarted));
        return Judged::bad(Cause::Stopped, by, how).and(text);
    }
    let bad: Vec<&str> = match (view.watched.layout, member) {
        (Layout::Local, Some(member)) => bad(view, members, &[member]),
        (Layout::Local, None) => Vec::new(),
        (Layout::All | Layout::Unknown, _) => bad(view, members, &view.voters().collect::<Vec<_>>()),
    };
    if !bad.is_empty() {
        let text = format!("bad behind it: {}", bad.join(", "));
        return Judged::bad(Cause::EtcdBehindIt, by, how).and(text);
    }
    // It answered after these reads failed, and they failed again: so it is not that.
    let asked = |member: TargetId| view.facts.window(member, Probe::E3).outlasted_by(run);
    let etcd = match member {
        Some(member) => asked(member),
        None => view.voters().any(asked),
    };
    if !etcd {
        let text = "whether etcd behind it answers is not known yet";
        return Judged::bad(Cause::NotYetKnown, by, how).and(text);
    }
    // Its checks, or a handshake, were answered after the reads began to fail: the process lives.
    let checks = view.facts.past(id).and_then(|past| past.checks.as_ref()).filter(|(at, ..)| *at >= run.first.ended);
    if let Some((.., failing)) = checks {
        let etcd = failing.iter().any(|name| name.starts_with("etcd"));
        if matches!(run.failure, Failure::Silent) || etcd {
            let text = match failing.is_empty() {
                true => "its own checks pass".to_owned(),
                false => format!("its own checks fail: {}", failing.join(", ")),
            };
            return Judged::bad(Cause::EtcdBehindIt, by, how)
                .and(text)
                .and("the members look good: its way to etcd fails");
        }
    }
    match &run.failure {
        Failure::Server(_) | Failure::NoLeader(_) | Failure::Reset => Judged::bad(Cause::AnswersErrors, by, how),
        _ => Judged::bad(Cause::HungProcess, by, how).and("its port accepts connections, and etcd behind it is good"),
    }
}

/// A member of the node is bad in a way that its apiserver cannot survive, and the apiserver has not shown the contrary.
fn behind(view: &View, members: &Judgements, id: TargetId) -> Option<Judged> {
    let member = member_behind(view.watched, id)?;
    let judged = members.get(&member).filter(|judged| judged.is_bad_by(&PATH))?;
    let (_, probe) = judged.by?;
    let run = view.facts.window(member, probe).run()?;
    // A log that stands still leaves reads alone, so there a write has to prove it.
    let proof = match judged.cause {
        Some(Cause::StalledWal | Cause::LargePacketsLost) => Probe::A3,
        _ => Probe::A2,
    };
    if view.facts.window(id, proof).good_since(run.first.ended).is_some() {
        return None;
    }
    let cause = if judged.cause == Some(Cause::Stopped) { Cause::Stopped } else { Cause::EtcdBehindIt };
    let word = judged.cause.map_or("bad", Cause::word);
    let text = format!("the member behind it, {}, is bad: {word}", view.name(member));
    let mut mine = Judged::bad(cause, (member, probe), text);
    mine.reasons.extend(judged.reasons.iter().cloned());
    Some(mine)
}

/// Reads go, a write does not.
fn writes(view: &View, cluster: &Cluster, members: &Judgements, id: TargetId, probe: Probe, run: &Run) -> Judged {
    let by = (id, probe);
    let size = if probe == Probe::A5 { "a large write has" } else { "writes have" };
    let said = format!("{size} failed for {}, reads are answered", words::lasts(view.lasts(run)));
    if let Some(judged) = excused(view, cluster, members, id, by, run, &said) {
        return judged;
    }
    match &run.failure {
        Failure::NoSpace => Judged::bad(Cause::NoSpace, by, said),
        Failure::Expired | Failure::Tls(_) => handshake(id, probe, run),
        Failure::Server(text) => Judged::bad(Cause::WritesRefused, by, format!("{said}: {text}")),
        _ if probe == Probe::A5 => {
            Judged::bad(Cause::LargePacketsLost, by, said).and("small writes are answered: packets are lost by size")
        }
        _ => Judged::bad(Cause::WritesRefused, by, said),
    }
}

/// The trouble is all members', or ends by itself.
fn excused(
    view: &View,
    cluster: &Cluster,
    members: &Judgements,
    id: TargetId,
    by: (TargetId, Probe),
    run: &Run,
    how: &str,
) -> Option<Judged> {
    let of = |cause: Cause| members.values().any(|judged| judged.is_bad_by(&[cause]));
    if by.1 != Probe::A2 && of(Cause::NoSpace) {
        return Some(Judged::bad(Cause::NoSpace, by, how).and("etcd refuses writes for lack of space"));
    }
    if let Some(judged) = member_behind(view.watched, id).and_then(|member| members.get(&member))
        && let Some(cause) = judged.cause.filter(|_| judged.is_bad_by(&SHARED))
    {
        return Some(Judged::bad(cause, by, how).and(format!("etcd behind it: {cause}")));
    }
    if of(Cause::NoQuorumAnywhere) {
        return Some(Judged::bad(Cause::NoQuorumAnywhere, by, how).and("etcd has no quorum"));
    }
    // Its own member is bad in a way that no election explains.
    if member_behind(view.watched, id)
        .and_then(|member| members.get(&member))
        .is_some_and(|judged| judged.is_bad_by(&PATH))
    {
        return None;
    }
    let short = view.lasts(run) < view.rules.storm_patience;
    // Each asks all members: an election or a defragmentation of any of them is felt here.
    let all = view.watched.layout != Layout::Local;
    if short && (cluster.storm || (all && of(Cause::Election))) {
        let text = format!("{} leader changes within {} s", cluster.changes, view.rules.storm_span.as_secs());
        return Some(Judged::bad(Cause::Election, by, how).and(text));
    }
    (all && of(Cause::Defragmentation))
        .then(|| Judged::bad(Cause::Defragmentation, by, how).and("a member is being defragmented"))
}

fn bad<'a>(view: &View<'a>, members: &Judgements, of: &[TargetId]) -> Vec<&'a str> {
    of.iter()
        .filter(|id| members.get(id).is_some_and(|judged| judged.is(State::Bad)))
        .map(|id| view.name(*id))
        .collect()
}

fn slow(view: &View, members: &Judgements, id: TargetId) -> Option<Judged> {
    let (probe, median) =
        [Probe::A2, Probe::A3].into_iter().find_map(|probe| Some((probe, view.facts.window(id, probe).slow()?)))?;
    let text = format!("half of its answers to {probe} took {} ms or more", median.as_millis());
    let by = Some((id, probe));
    if let Some(pressure) = list_pressure(view) {
        return Some(Judged::new(State::Slow, Cause::ListOverload, by, text).and(pressure));
    }
    let member = member_behind(view.watched, id).and_then(|member| members.get(&member));
    if let Some(cause) = member.filter(|judged| judged.is(State::Slow)).and_then(|judged| judged.cause) {
        return Some(Judged::new(State::Slow, cause, by, text).and("the member behind it is slow"));
    }
    Some(Judged { state: Some(State::Slow), by, reasons: vec![text], ..Judged::default() })
}

/// The heaviest LISTs that reach etcd, in words.
pub(super) fn list_pressure(view: &View) -> Option<String> {
    let pasts = view.watched.of(Kind::Apiserver).filter_map(|(id, _)| view.facts.past(id)?.gauges.as_ref());
    let fresh = pasts.filter(|gauges| view.now.since(gauges.at) <= GAUGE_AGE);
    let heavy = |rate: &&ListRate| rate.per_second >= LISTS || rate.objects_per_second >= OBJECTS;
    let worst = fresh.flat_map(|gauges| &gauges.lists).filter(heavy);
    let worst = worst.max_by(|a, b| a.objects_per_second.total_cmp(&b.objects_per_second))?;
    let client = worst.client.as_deref().unwrap_or("unknown");
    Some(format!(
        "LISTs of {} reach etcd {:.1} times a second ({:.0} objects a second), client {client}",
        worst.resource, worst.per_second, worst.objects_per_second
    ))
}

/// What clients see through the balancer.
pub(super) fn balancer(view: &View, id: TargetId) -> Judged {
    let Some(run) = view.failing(id, Probe::V1) else {
        if view.standing(id, Probe::V1) == Standing::Unknown {
            return unknown(view, id, &[Probe::V1]);
        }
        return Judged::good();
    };
    let by = (id, Probe::V1);
    let text = format!("reads through it have failed for {}", words::lasts(view.lasts(run)));
    match &run.failure {
        Failure::Refused => Judged::bad(Cause::Stopped, by, text),
        Failure::Unreachable if reached_others(view, id, run) => Judged::bad(Cause::Unreachable, by, text),
        Failure::Unreachable => Judged::new(State::Unknown, Cause::OwnIsolation, Some(by), text),
        Failure::Expired | Failure::Tls(_) => handshake(id, Probe::V1, run),
        Failure::Server(why) => Judged::bad(Cause::AnswersErrors, by, format!("{text}: {why}")),
        _ => Judged::bad(Cause::EtcdBehindIt, by, text),
    }
}
