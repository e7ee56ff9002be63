//! Whether this observer may judge anybody. What it sees while it is starved, cut off, of a wrong clock or without a
//! certificate tells of itself.

use super::super::facts::starved;
use super::super::model::{Failure, Kind, Probe, TargetId};
use super::super::verdict::{Cause, State};
use super::{Judged, View};

/// Why it may judge nobody now.
pub fn blind(view: &View) -> Option<(Cause, String)> {
    let (rules, observer) = (view.rules, view.observer);
    let guards = rules.guards;
    if let (true, Some(why)) = (guards.starved, starved(rules, observer)) {
        return Some((Cause::OwnStarvation, why));
    }
    if let Some(step) = observer.clock_step.filter(|step| guards.clock && step.abs() >= rules.clock_step) {
        return Some((Cause::OwnClock, format!("the clock here moved by {step} s within the last minute")));
    }
    if guards.certificate && observer.certificate_expired {
        return Some((Cause::OwnCertificate, "the client certificate of this observer is over".to_owned()));
    }
    if let (true, Some(why)) = (guards.isolated, isolated(view)) {
        return Some((Cause::OwnIsolation, why));
    }
    let runs = view.now.since(observer.started);
    (guards.started && runs < rules.settle).then(|| {
        (
            Cause::NotYetKnown,
            format!("started {} s ago; nobody is judged before {} s", runs.as_secs(), rules.settle.as_secs()),
        )
    })
}

/// Every other node is out of reach, and no balancer bears witness.
fn isolated(view: &View) -> Option<String> {
    let mut cut = 0;
    for (place, target) in view.watched.targets.iter().enumerate() {
        let Ok(place) = u16::try_from(place) else { break };
        let id = TargetId(place);
        let probe = match target.kind {
            _ if target.own => continue,
            Kind::Member => Probe::E2,
            Kind::Apiserver => Probe::A2,
            Kind::Balancer => Probe::V1,
        };
        match view.failing(id, probe) {
            Some(run) if run.failure == Failure::Unreachable => cut += usize::from(target.kind != Kind::Balancer),
            // An answer of whatever kind came over the network.
            Some(_) => return None,
            None if target.kind == Kind::Balancer && view.facts.window(id, probe).good().is_none() => {}
            None => return None,
        }
    }
    (cut > 0).then(|| format!("none of {cut} targets on other nodes can be reached, and no balancer bears witness"))
}

/// What becomes of a judgement while the observer is blind.
pub(super) fn doubt(view: &View, blind: Cause, why: &str, id: TargetId, judged: &mut Judged) {
    let own = view.watched.target(id).is_some_and(|target| target.own);
    let forgiven = match blind {
        Cause::OwnStarvation | Cause::OwnCertificate => !judged.is(State::Good),
        // A hung process on this node is seen without a network.
        Cause::OwnIsolation if own => {
            if judged.is_bad_by(&[Cause::NoQuorumAnywhere, Cause::NoQuorumHere, Cause::Election]) {
                judged.cause = Some(blind);
                judged.reasons.insert(0, why.to_owned());
            }
            false
        }
        Cause::OwnIsolation => true,
        // Named all the same: only acts wait.
        _ => false,
    };
    if forgiven {
        let mut reasons = vec![why.to_owned()];
        reasons.append(&mut judged.reasons);
        *judged = Judged { state: Some(State::Unknown), cause: Some(blind), by: judged.by, reasons, advice: None };
    }
}
