//! Both errors on one scale: what should have been seen in time and was not, and what was fenced or called bad and should not
//! have been.

use super::super::fence::decide::Answer;
use super::super::model::TargetId;
use super::super::rules::Rules;
use super::super::verdict::{Cause, State};
use super::fault::{Fault, Kind, Schedule};
use super::node::{Node, ROUND};
use super::world::World;

#[derive(Debug, Default)]
pub struct Score {
    pub rounds: u64,
    pub schedules: u64,
    /// Faults whose naming, by one observer, was waited for.
    pub wanted: u64,
    pub missed: Vec<String>,
    /// Fences that were waited for.
    pub fences_wanted: u64,
    pub fences_missed: Vec<String>,
    pub wrong_fences: Vec<String>,
    /// Good targets that were called bad.
    pub wrong_names: Vec<String>,
    /// Milliseconds from fault to name, the worst: on the own node, elsewhere; to the fence.
    pub worst: [u64; 3],
}

impl Score {
    pub fn errors(&self) -> usize {
        self.missed.len() + self.fences_missed.len() + self.wrong_fences.len() + self.wrong_names.len()
    }

    pub fn add(&mut self, other: Score) {
        self.rounds += other.rounds;
        self.schedules += other.schedules;
        self.wanted += other.wanted;
        self.fences_wanted += other.fences_wanted;
        self.missed.extend(other.missed);
        self.fences_missed.extend(other.fences_missed);
        self.wrong_fences.extend(other.wrong_fences);
        self.wrong_names.extend(other.wrong_names);
        for (mine, theirs) in self.worst.iter_mut().zip(other.worst) {
            *mine = (*mine).max(theirs);
        }
    }
}

/// What one observer must say of one fault, in milliseconds after it began.
struct Want {
    fault: Fault,
    observer: usize,
    target: TargetId,
    causes: &'static [Cause],
    limit: u64,
    found: Option<u64>,
}

/// What an observer must say of itself, or of the whole cluster.
struct Say {
    fault: Fault,
    observer: usize,
    cause: Cause,
    limit: u64,
    found: bool,
}

fn says(schedule: &Schedule) -> Vec<Say> {
    let mut says = Vec::new();
    for fault in &schedule.faults {
        let own = |observer: usize| fault.nodes >> observer & 1 == 1;
        let (cause, limit, only_own) = match fault.kind {
            Kind::Starved => (Cause::OwnStarvation, 2_500, true),
            Kind::Isolated => (Cause::OwnIsolation, 12_000, true),
            Kind::ClockStep => (Cause::OwnClock, 2_500, true),
            Kind::OwnCertificate => (Cause::OwnCertificate, 2_500, true),
            Kind::NoSpace => (Cause::NoSpace, 5_000, false),
            Kind::ElectionStorm => (Cause::Election, 20_000, false),
            Kind::WholeDown => (Cause::NoQuorumAnywhere, 12_000, false),
            Kind::QuorumLost => (Cause::NoQuorumAnywhere, 12_000, false),
            Kind::AllCertificates => (Cause::ExpiredCertificate, 35_000, false),
            Kind::Defragmentation if fault.to - fault.from > 8_000 => (Cause::Defragmentation, 6_000, true),
            _ => continue,
        };
        for observer in (0..schedule.size).filter(|observer| !only_own || own(*observer)) {
            // Starvation and the others hide each other.
            let troubles = schedule
                .faults
                .iter()
                .filter(|other| matches!(other.kind, Kind::Starved | Kind::ClockStep | Kind::OwnCertificate));
            let hidden =
                troubles.filter(|other| other.nodes >> observer & 1 == 1).any(|other| other.from != fault.from);
            if !hidden {
                says.push(Say { fault: *fault, observer, cause, limit, found: false });
            }
        }
    }
    says
}

/// When a node must be out.
struct WantFence {
    fault: Fault,
    node: usize,
    limit: u64,
    found: Option<u64>,
    dropped: Option<u64>,
}

fn wants(schedule: &Schedule) -> Vec<Want> {
    let mut wants = Vec::new();
    let size = schedule.size;
    for fault in &schedule.faults {
        for node in (0..size).filter(|node| fault.nodes >> node & 1 == 1) {
            let member = TargetId(node as u16);
            let apiserver = TargetId((size + node) as u16);
            // Target, causes, limit on the own node, limit elsewhere.
            let mut list: Vec<(TargetId, &'static [Cause], u64, Option<u64>)> = Vec::new();
            match fault.kind {
                Kind::HungMember => list.push((member, &[Cause::HungProcess], 5_000, Some(8_000))),
                // From elsewhere it may be a defragmentation, for as long as that could take.
                Kind::FrozenDisk => {
                    list.push((member, &[Cause::FrozenDisk], 5_000, None));
                    list.push((member, &[Cause::FrozenDisk, Cause::Defragmentation], 5_000, Some(8_000)));
                }
                Kind::StalledWal { load: true } => list.push((member, &[Cause::StalledWal], 5_000, Some(8_000))),
                // A proposal of their own is due each 2 and 10 s.
                Kind::StalledWal { load: false } => list.push((member, &[Cause::StalledWal], 5_000, Some(13_000))),
                Kind::Minority => list.push((member, &[Cause::NoQuorumHere], 5_000, Some(8_000))),
                Kind::LargeLossPeer { .. } => list.push((member, &[Cause::LargePacketsLost], 33_000, None)),
                Kind::LargeLossApiserver { stuck: false } => {
                    list.push((apiserver, &[Cause::LargePacketsLost], 33_000, None));
                }
                Kind::LargeLossApiserver { stuck: true } if schedule.local => {
                    list.push((apiserver, &[Cause::EtcdBehindIt, Cause::HungProcess], 5_000, Some(8_000)));
                }
                Kind::StaleCache => list.push((apiserver, &[Cause::StaleCache], 8_000, Some(33_000))),
                Kind::HungApiserver => list.push((apiserver, &[Cause::HungProcess], 5_000, Some(8_000))),
                Kind::StoppedApiserver => list.push((apiserver, &[Cause::Stopped], 5_000, Some(8_000))),
                Kind::StoppedMember => list.push((member, &[Cause::Stopped], 5_000, Some(8_000))),
                Kind::ExpiredApiserver => list.push((apiserver, &[Cause::ExpiredCertificate], 33_000, Some(33_000))),
                _ => {}
            }
            if schedule.local && matches!(fault.kind, Kind::HungMember | Kind::FrozenDisk | Kind::Minority) {
                list.push((apiserver, &[Cause::EtcdBehindIt], 5_000, None));
            }
            for (target, causes, own, remote) in list {
                for observer in 0..size {
                    let limit = if observer == node { Some(own) } else { remote };
                    let Some(limit) = limit.filter(|_| !own_trouble(schedule, observer, fault)) else { continue };
                    wants.push(Want { fault: *fault, observer, target, causes, limit, found: None });
                }
            }
        }
    }
    // Without a quorum nobody can be told from the rest by what fails.
    wants.retain(|_| !schedule.kinds().any(|kind| matches!(kind, Kind::QuorumLost | Kind::LastApiserver)));
    wants
}

/// The observer is in trouble itself, or starts anew, while the fault lasts.
fn own_trouble(schedule: &Schedule, observer: usize, fault: &Fault) -> bool {
    schedule.faults.iter().any(|other| {
        let own = matches!(other.kind, Kind::Starved | Kind::Isolated | Kind::ClockStep | Kind::OwnCertificate);
        own && other.nodes >> observer & 1 == 1 && other.from < fault.to && fault.from < other.to + 90_000
    })
}

/// Which nodes may, and which must, be out.
fn fences(schedule: &Schedule) -> Vec<WantFence> {
    let mut wanted = Vec::new();
    if schedule.kinds().any(|kind| matches!(kind, Kind::QuorumLost | Kind::LastApiserver)) {
        return wanted;
    }
    let most = (schedule.size.saturating_sub(1) / 2).max(1);
    for fault in &schedule.faults {
        let limit = match fault.kind {
            // Where it led, the others have to elect first.
            Kind::HungMember | Kind::FrozenDisk | Kind::Minority => 6_500,
            Kind::StalledWal { .. } => 8_000,
            Kind::HungApiserver if schedule.local => 6_000,
            Kind::LargeLossPeer { .. } => 35_000,
            Kind::LargeLossApiserver { .. } | Kind::ExpiredApiserver if schedule.local => 35_000,
            Kind::StaleCache if schedule.local => 9_000,
            _ => continue,
        };
        for node in (0..schedule.size).filter(|node| fault.nodes >> node & 1 == 1) {
            if !own_trouble(schedule, node, fault) {
                wanted.push(WantFence { fault: *fault, node, limit, found: None, dropped: None });
            }
        }
    }
    // By rank only the first may.
    if schedule.local && wanted.len() > most {
        wanted.sort_by_key(|want| want.node);
        wanted.truncate(most);
    }
    wanted
}

/// Whether it is allowed that this node is out at that moment.
fn may_be_out(schedule: &Schedule, node: usize, at: u64) -> bool {
    let you = |kind: Kind| {
        matches!(
            kind,
            Kind::HungMember
                | Kind::FrozenDisk
                | Kind::StalledWal { .. }
                | Kind::Minority
                | Kind::LargeLossPeer { .. }
                | Kind::StaleCache
                | Kind::HungApiserver
                | Kind::StoppedApiserver
                | Kind::StoppedMember
                | Kind::LargeLossApiserver { .. }
                | Kind::ExpiredApiserver
                | Kind::Flapping
        )
    };
    let forbidden = schedule
        .faults
        .iter()
        .any(|fault| matches!(fault.kind, Kind::QuorumLost | Kind::LastApiserver) && at < fault.to);
    let blind = schedule.faults.iter().any(|fault| {
        let own = matches!(fault.kind, Kind::Starved | Kind::ClockStep | Kind::OwnCertificate | Kind::Isolated);
        // A fence that stood before outlives it for ten seconds.
        own && fault.nodes >> node & 1 == 1 && (fault.from + 12_000..fault.to).contains(&at)
    });
    let soon_restarted = |fault: &Fault| {
        // What may be restarting is left alone for half a minute.
        matches!(fault.kind, Kind::StoppedMember | Kind::StoppedApiserver) && at < fault.from + 30_000
    };
    !forbidden
        && !blind
        && schedule.faults.iter().any(|fault| {
            you(fault.kind)
                && fault.nodes >> node & 1 == 1
                && (fault.from..fault.to + if fault.kind == Kind::Flapping { 90_000 } else { 30_000 }).contains(&at)
                && !soon_restarted(fault)
        })
}

/// Whether anything is wrong, or was a while ago, that could make this target look bad.
fn touched(schedule: &Schedule, observer: usize, target: usize, at: u64) -> bool {
    let size = schedule.size;
    let node = target % size;
    let apiserver = (size..size * 2).contains(&target);
    schedule.faults.iter().any(|fault| {
        if !(fault.from..fault.to + 25_000).contains(&at) {
            return false;
        }
        let here = fault.nodes >> node & 1 == 1;
        match fault.kind {
            Kind::Starved | Kind::Isolated | Kind::ClockStep | Kind::OwnCertificate
                if fault.nodes >> observer & 1 == 1 =>
            {
                // Looked at each second.
                let unseen = fault.kind == Kind::OwnCertificate && at < fault.from + 1_500;
                fault.kind == Kind::Isolated || unseen || (fault.kind == Kind::ClockStep && schedule.seed & 1 == 1)
            }
            Kind::Starved | Kind::ClockStep | Kind::OwnCertificate | Kind::ObserverRestart => false,
            Kind::Throttled | Kind::Unauthorized | Kind::NotReady | Kind::SlowDisk | Kind::Quiet => false,
            Kind::HungApiserver
            | Kind::StoppedApiserver
            | Kind::StaleCache
            | Kind::ExpiredApiserver
            | Kind::LargeLossApiserver { .. }
            | Kind::Webhooks => here && apiserver,
            Kind::LastApiserver => apiserver,
            Kind::NoSpace | Kind::AllCertificates | Kind::ElectionStorm | Kind::WholeDown | Kind::QuorumLost => true,
            // Where all ask all, a bad member is felt everywhere; and what takes the leader is felt for a moment.
            _ => here || (apiserver && !schedule.local) || at < fault.from + 9_000,
        }
    })
}

/// Plays a schedule with all its observers.
pub fn play(schedule: Schedule, rules: &Rules) -> Score {
    let world = World::new(schedule);
    let schedule = &world.schedule;
    let mut score = Score { schedules: 1, ..Score::default() };
    let mut nodes: Vec<Node> = (0..schedule.size).map(|me| Node::new(&world, *rules, me)).collect();
    let mut wants = wants(schedule);
    let mut fences = fences(schedule);
    let mut says = says(schedule);
    let most = (schedule.size.saturating_sub(1) / 2).max(1);
    let (mut named, mut over) = (Vec::new(), 0);
    let mut at = ROUND;
    while at <= schedule.length {
        for node in &mut nodes {
            node.round(&world, at);
            score.rounds += 1;
        }
        for want in
            wants.iter_mut().filter(|want| want.found.is_none() && (want.fault.from..want.fault.to).contains(&at))
        {
            let verdict = nodes[want.observer].verdicts.by_target.get(&want.target);
            let named = verdict.is_some_and(|verdict| {
                verdict.state == State::Bad && verdict.cause.is_some_and(|cause| want.causes.contains(&cause))
            });
            if named {
                want.found = Some(at - want.fault.from);
            }
        }
        for say in says.iter_mut().filter(|say| (say.fault.from..say.fault.from + say.limit).contains(&at)) {
            let verdicts = &nodes[say.observer].verdicts;
            let blind = verdicts.blind.as_ref().is_some_and(|(cause, _)| *cause == say.cause);
            say.found |= blind || verdicts.cluster.iter().any(|(cause, _)| *cause == say.cause);
        }
        let out = |node: &Node| matches!(node.state.answer, Answer::Down { .. });
        for want in fences.iter_mut().filter(|want| (want.fault.from..want.fault.to).contains(&at)) {
            match (out(&nodes[want.node]), want.found) {
                (true, None) => want.found = Some(at - want.fault.from),
                (false, Some(_)) if want.dropped.is_none() => want.dropped = Some(at - want.fault.from),
                _ => {}
            }
        }
        for (place, node) in nodes.iter().enumerate() {
            if out(node) && !may_be_out(schedule, place, at) && !named.contains(&place) {
                named.push(place);
                let why = node.state.fenced.as_ref().map(|fenced| format!("{}: {}", fenced.cause, fenced.reason));
                let why = why.unwrap_or_default();
                score.wrong_fences.push(format!(
                    "{} node {place} out at {at}: {why}; {:?}",
                    tell(schedule),
                    node.state.why
                ));
            }
        }
        // Views differ for a moment; they must not for long.
        let count = nodes.iter().filter(|node| out(node)).count();
        over = if schedule.local && count > most { over + ROUND } else { 0 };
        if over == 10_000 {
            score.wrong_fences.push(format!("{}: {count} out at {at}, at most {most} may be", tell(schedule)));
        }
        if count == schedule.size {
            score.wrong_fences.push(format!("{}: all out at {at}", tell(schedule)));
        }
        wrong_names(&mut score, schedule, &nodes, at);
        at += ROUND;
    }
    // One fault that comes and goes is one fence.
    for (place, node) in nodes.iter().enumerate().filter(|(_, node)| node.state.repeats > 4) {
        score.wrong_fences.push(format!("{}: node {place} was fenced {} times", tell(schedule), node.state.repeats));
    }
    for say in says {
        score.wanted += 1;
        if !say.found {
            let (observer, cause, limit) = (say.observer, say.cause, say.limit);
            score.missed.push(format!("{} node {observer} never said {cause} within {limit}", tell(schedule)));
        }
    }
    for want in wants {
        score.wanted += 1;
        let own = usize::from(want.target.0) % schedule.size == want.observer;
        match want.found.filter(|found| *found <= want.limit) {
            Some(found) if want.limit <= if own { 5_000 } else { 8_000 } => {
                let worst = &mut score.worst[usize::from(!own)];
                *worst = (*worst).max(found);
            }
            Some(_) => {}
            None => score.missed.push(format!(
                "{} node {} about {:?}: {:?} after {:?}, wanted {:?} in {}",
                tell(schedule),
                want.observer,
                want.target,
                want.fault.kind,
                want.found,
                want.causes,
                want.limit
            )),
        }
    }
    for want in fences {
        score.fences_wanted += 1;
        if let Some(dropped) = want.dropped {
            let kind = want.fault.kind;
            score.fences_missed.push(format!(
                "{} node {}: {kind:?} dropped after {dropped}",
                tell(schedule),
                want.node
            ));
        }
        match want.found.filter(|found| *found <= want.limit) {
            Some(found) if want.limit <= 6_500 => score.worst[2] = score.worst[2].max(found),
            Some(_) => {}
            None => score.fences_missed.push(format!(
                "{} node {}: {:?} fenced after {:?}, wanted in {}",
                tell(schedule),
                want.node,
                want.fault.kind,
                want.found,
                want.limit
            )),
        }
    }
    score
}

fn wrong_names(score: &mut Score, schedule: &Schedule, nodes: &[Node], at: u64) {
    for (observer, node) in nodes.iter().enumerate() {
        for (id, verdict) in &node.verdicts.by_target {
            let target = usize::from(id.0);
            if verdict.state != State::Bad || verdict.since.0 != at || target >= schedule.size * 2 {
                continue;
            }
            if !touched(schedule, observer, target, at) {
                let said = verdict.reasons.join("; ");
                score.wrong_names.push(format!(
                    "{} node {observer} about {id:?} at {at}: {:?} {said}",
                    tell(schedule),
                    verdict.cause
                ));
            }
        }
    }
}

fn tell(schedule: &Schedule) -> String {
    let layout = if schedule.local { "local" } else { "all" };
    let faults: Vec<String> = schedule
        .faults
        .iter()
        .map(|fault| format!("{:?} on {:b} {}–{}", fault.kind, fault.nodes, fault.from, fault.to))
        .collect();
    format!("[seed {} {} {layout} {}]", schedule.seed, schedule.size, faults.join(", "))
}
