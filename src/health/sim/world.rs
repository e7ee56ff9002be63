//! A cluster as its observers see it: what each question gets as an answer, and when. The patterns are those measured on real
//! members (docs/health.md).

use std::time::Duration;

use super::super::model::{
    DataDir, Failure, Kind as Sort, Layout, Mono, Observer, Outcome, Probe, Process, Reading, Status, Target, TargetId,
    Watched,
};
use super::fault::{Fault, Kind, Schedule};
use super::rng::Rng;

const TICK: u64 = 100;

/// Who leads, by tenths of a second.
#[derive(Debug, Clone, Copy, Default)]
struct Lead {
    leader: Option<usize>,
    term: u64,
}

#[derive(Debug)]
pub struct World {
    pub schedule: Schedule,
    leads: Vec<Lead>,
}

/// A question: who asks what, when, on what kind of connection, and for how long.
#[derive(Debug, Clone, Copy)]
struct Ask {
    me: usize,
    probe: Probe,
    at: u64,
    fresh: bool,
    deadline: u64,
}

/// What a member is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Runs,
    Hangs,
    Frozen,
    WalStalls { load: bool },
    Defragments,
    Stopped,
    Starts,
}

impl World {
    pub fn new(schedule: Schedule) -> World {
        let mut world = World { schedule, leads: Vec::new() };
        world.elect();
        world
    }

    /// Node `me`'s targets: members first, then apiservers, then the balancer.
    pub fn watched(&self, me: usize) -> Watched {
        let size = self.schedule.size;
        let mut targets = Vec::new();
        for (kind, port) in [(Sort::Member, 2379), (Sort::Apiserver, 6443)] {
            for node in 0..size {
                let (name, url) = (format!("cp{node}"), format!("https://10.0.0.{node}:{port}"));
                targets.push(Target { kind, name, url, own: node == me, learner: false });
            }
        }
        if self.schedule.balancer {
            let url = "https://10.0.0.100:6443".to_owned();
            targets.push(Target { kind: Sort::Balancer, name: "balancer".to_owned(), url, own: false, learner: false });
        }
        let layout = if self.schedule.local { Layout::Local } else { Layout::All };
        Watched { node: format!("cp{me}"), targets, layout }
    }

    fn has(&self, node: usize, at: u64, wanted: impl Fn(Kind) -> bool) -> Option<&Fault> {
        self.schedule.faults.iter().find(|fault| wanted(fault.kind) && fault.on(node, at))
    }

    fn is(&self, node: usize, at: u64, kind: Kind) -> bool {
        self.has(node, at, |its| its == kind).is_some()
    }

    fn does(&self, node: usize, at: u64) -> Does {
        for fault in self.schedule.faults.iter().filter(|fault| fault.nodes >> node & 1 == 1) {
            let now = (fault.from..fault.to).contains(&at);
            // After a stop it listens before it answers.
            let starts = (fault.to..fault.to + 1_500).contains(&at);
            match fault.kind {
                Kind::HungMember | Kind::Flapping if now => return Does::Hangs,
                Kind::FrozenDisk if now => return Does::Frozen,
                Kind::StalledWal { load } if now => return Does::WalStalls { load },
                Kind::Defragmentation if now => return Does::Defragments,
                Kind::Boot if now => return Does::Starts,
                Kind::WholeDown | Kind::RollingRestart | Kind::StoppedMember if now => return Does::Stopped,
                Kind::WholeDown | Kind::RollingRestart | Kind::StoppedMember if starts => return Does::Starts,
                _ => {}
            }
        }
        Does::Runs
    }

    fn isolated(&self, node: usize, at: u64) -> bool {
        self.is(node, at, Kind::Isolated)
    }

    /// On the minority's side of a partition.
    fn cut(&self, node: usize, at: u64) -> bool {
        self.isolated(node, at) || self.is(node, at, Kind::Minority)
    }

    fn votes(&self, node: usize, at: u64) -> bool {
        matches!(self.does(node, at), Does::Runs | Does::Defragments) && !self.cut(node, at)
    }

    /// Plays the elections of the whole schedule once.
    fn elect(&mut self) {
        let mut rng = Rng::new(self.schedule.seed ^ 0x1EAD);
        let size = self.schedule.size;
        let mut lead = Lead { leader: Some(rng.below(size as u64) as usize), term: 2 };
        let mut elected_at = 0;
        let mut upset = 0;
        let mut leads = Vec::with_capacity((self.schedule.length / TICK) as usize + 1);
        let storm = self.schedule.faults.iter().find(|fault| fault.kind == Kind::ElectionStorm).copied();
        for tick in 0..=self.schedule.length / TICK {
            let at = tick * TICK;
            let voters = (0..size).filter(|node| self.votes(*node, at)).count();
            if lead.leader.is_some_and(|leader| !self.votes(leader, at)) || voters <= size / 2 {
                if lead.leader.is_some() {
                    elected_at = at + rng.between(1_000, 2_400);
                }
                lead.leader = None;
                if voters <= size / 2 {
                    elected_at = at + rng.between(1_000, 2_000);
                }
            }
            if let Some(storm) = storm.filter(|storm| (storm.from..storm.to).contains(&at) && at >= upset) {
                upset = at.max(storm.from) + 5_000;
                lead.leader = None;
                elected_at = at + rng.between(300, 2_800);
            }
            if lead.leader.is_none() && voters > size / 2 && at >= elected_at {
                let able: Vec<usize> = (0..size).filter(|node| self.votes(*node, at)).collect();
                lead = Lead { leader: Some(*rng.pick(&able)), term: lead.term + 1 };
            }
            leads.push(lead);
        }
        self.leads = leads;
    }

    fn lead(&self, at: u64) -> Lead {
        let place = (at / TICK) as usize;
        self.leads.get(place).or(self.leads.last()).copied().unwrap_or_default()
    }

    fn consensus(&self, node: usize, at: u64) -> bool {
        self.lead(at).leader.is_some() && !self.cut(node, at)
    }

    /// Whether the member answers that question at that moment.
    fn member_answers(&self, node: usize, probe: Probe, at: u64) -> bool {
        let does = self.does(node, at);
        let local = matches!(does, Does::Runs | Does::WalStalls { .. });
        let stuck = || self.is(node, at, Kind::LargeLossPeer { stuck: true });
        let loss = || stuck() || self.is(node, at, Kind::LargeLossPeer { stuck: false });
        match probe {
            Probe::E1 => !matches!(does, Does::Hangs | Does::Starts | Does::Stopped),
            Probe::E2 | Probe::E6 => local,
            Probe::E3 => local && does != Does::WalStalls { load: true } && self.consensus(node, at) && !stuck(),
            Probe::E4 => does == Does::Runs && self.consensus(node, at) && !stuck(),
            _ => does == Does::Runs && self.consensus(node, at) && !loss(),
        }
    }

    fn apiserver_answers(&self, node: usize, member: usize, probe: Probe, at: u64) -> bool {
        let stuck = || self.is(node, at, Kind::LargeLossApiserver { stuck: true });
        let loss = || stuck() || self.is(node, at, Kind::LargeLossApiserver { stuck: false });
        let through = |probe| self.member_answers(member, probe, at);
        if self.is(node, at, Kind::HungApiserver) || self.is(node, at, Kind::LastApiserver) {
            return false;
        }
        match probe {
            Probe::A2 | Probe::V1 => through(Probe::E3) && !stuck(),
            Probe::A3 => through(Probe::E4) && !stuck(),
            Probe::A5 => through(Probe::E5) && !loss(),
            _ => true,
        }
    }

    fn reaches(&self, from: usize, to: usize, at: u64) -> bool {
        from == to || !(self.isolated(from, at) || self.isolated(to, at))
    }

    /// How long it took, and what came.
    pub fn ask(
        &self,
        me: usize,
        target: TargetId,
        probe: Probe,
        at: u64,
        fresh: bool,
        rng: &mut Rng,
    ) -> (u64, Outcome) {
        let size = self.schedule.size;
        let place = usize::from(target.0);
        let deadline = if probe == Probe::A1 { 5_000 } else { 1_000 };
        let fresh = fresh || probe == Probe::E1;
        let ask = Ask { me, probe, at, fresh, deadline };
        let (took, outcome) = if place < size {
            self.member(place, ask, rng)
        } else if place < size * 2 {
            self.apiserver(place - size, ask, rng)
        } else {
            self.through_balancer(me, at, deadline, rng)
        };
        if let Some(fault) = self.has(me, at, |kind| kind == Kind::Starved) {
            // Not felt from its first moment on.
            let late = rng.between(300, 1_500).min(at - fault.from);
            let took = took + late;
            let outcome = if took > deadline { Outcome::Failed(Failure::Silent) } else { outcome };
            return (if rng.permille(300) { took.min(deadline) } else { took }, outcome);
        }
        // One answer in a thousand is lost on its way; its repeat is not.
        if !fresh && rng.permille(1) {
            return (deadline, Outcome::Failed(Failure::Silent));
        }
        (took, outcome)
    }

    fn latency(&self, node: usize, probe: Probe, at: u64, rng: &mut Rng) -> u64 {
        let jitter = if rng.permille(10) { rng.between(20, 150) } else { 0 };
        let slow = matches!(probe, Probe::E3 | Probe::E4 | Probe::E5 | Probe::A2 | Probe::A3 | Probe::A5)
            && self.is(node, at, Kind::SlowDisk);
        rng.between(1, 9) + jitter + if slow { rng.between(300, 600) } else { 0 }
    }

    /// When it is first answered within the deadline.
    fn wait(at: u64, latency: u64, deadline: u64, answers: impl Fn(u64) -> bool) -> Option<u64> {
        let mut when = at + latency;
        while when < at + deadline {
            if answers(when) {
                return Some(when - at);
            }
            when += TICK / 2;
        }
        None
    }

    fn certificate_trouble(&self, me: usize, at: u64) -> bool {
        self.schedule
            .faults
            .iter()
            .any(|fault| fault.kind == Kind::AllCertificates && (fault.from..fault.to).contains(&at))
            || self.is(me, at, Kind::OwnCertificate)
            || (self.schedule.seed & 1 == 1 && self.is(me, at, Kind::ClockStep))
    }

    fn member(&self, node: usize, ask: Ask, rng: &mut Rng) -> (u64, Outcome) {
        let Ask { me, probe, at, fresh, deadline } = ask;
        let failed = |took, failure| (took, Outcome::Failed(failure));
        if !self.reaches(me, node, at) {
            return failed(deadline, if fresh { Failure::Unreachable } else { Failure::Silent });
        }
        if self.does(node, at) == Does::Stopped {
            return failed(1, if fresh { Failure::Refused } else { Failure::Reset });
        }
        if fresh && self.does(node, at) != Does::Hangs && self.certificate_trouble(me, at) {
            return failed(3, Failure::Expired);
        }
        let latency = self.latency(node, probe, at, rng);
        let Some(took) = World::wait(at, latency, deadline, |when| self.member_answers(node, probe, when)) else {
            let said = self.cut(node, at) && self.does(node, at) == Does::Runs && self.schedule.seed & 2 == 2;
            return failed(deadline, if said { Failure::NoLeader("no leader".to_owned()) } else { Failure::Silent });
        };
        let full = self.is(node, at, Kind::NoSpace) || self.is(node, at, Kind::NoSpaceOne);
        if probe == Probe::E5 && full {
            return failed(took, Failure::NoSpace);
        }
        (took, Outcome::Good(self.reading(node, probe, at + took)))
    }

    fn reading(&self, node: usize, probe: Probe, at: u64) -> Reading {
        let frozen = self.has(node, at, |kind| {
            matches!(
                kind,
                Kind::StalledWal { .. } | Kind::Minority | Kind::Isolated | Kind::LargeLossPeer { stuck: true }
            )
        });
        // What it knew when it fell behind.
        let knows = frozen.map_or(at, |fault| fault.from - TICK);
        let (revision, lead) = ((knows / 50) as i64, self.lead(knows));
        match probe {
            Probe::E1 => Reading::Certificate { not_after: 4_000_000_000 },
            Probe::E4 => {
                let alarmed = self.is(node, at, Kind::NoSpace);
                let alarms = if alarmed { vec![("nospace".to_owned(), 1)] } else { Vec::new() };
                Reading::Alarms { revision, term: lead.term, alarms }
            }
            Probe::E6 => {
                let lost = self.cut(node, at) && frozen.is_some_and(|fault| at >= fault.from + 1_500);
                let leader = if lost { None } else { lead.leader };
                Reading::Status(Status {
                    cluster_id: 7,
                    member_id: node as u64 + 1,
                    leader: leader.map_or(0, |leader| leader as u64 + 1),
                    term: lead.term,
                    revision,
                    index: revision as u64 + 10,
                    applied: revision as u64 + 10,
                    db_size: 1 << 30,
                    db_in_use: 500 << 20,
                    quota: Some(8 << 30),
                    ..Status::default()
                })
            }
            _ => Reading::Header { revision, term: lead.term },
        }
    }

    fn apiserver(&self, node: usize, ask: Ask, rng: &mut Rng) -> (u64, Outcome) {
        let Ask { me, probe, at, fresh, deadline } = ask;
        let failed = |took, failure| (took, Outcome::Failed(failure));
        if !self.reaches(me, node, at) {
            return failed(deadline, if fresh { Failure::Unreachable } else { Failure::Silent });
        }
        if self.is(node, at, Kind::StoppedApiserver) {
            return failed(1, if fresh { Failure::Refused } else { Failure::Reset });
        }
        let hung = self.is(node, at, Kind::HungApiserver) || self.is(node, at, Kind::LastApiserver);
        if probe == Probe::E1 && hung {
            return failed(deadline, Failure::Silent);
        }
        if fresh && !hung && (self.certificate_trouble(me, at) || self.is(node, at, Kind::ExpiredApiserver)) {
            return failed(3, Failure::Expired);
        }
        if matches!(probe, Probe::A2 | Probe::A3) && self.is(node, at, Kind::Throttled) && rng.permille(700) {
            return (2, Outcome::Unknown("HTTP 429".to_owned()));
        }
        let member = if self.schedule.local { node } else { rng.below(self.schedule.size as u64) as usize };
        let latency = self.latency(node, probe, at, rng);
        let Some(took) = World::wait(at, latency, deadline, |when| self.apiserver_answers(node, member, probe, when))
        else {
            return failed(deadline, Failure::Silent);
        };
        match probe {
            Probe::E1 => (took, Outcome::Good(Reading::Certificate { not_after: 4_000_000_000 })),
            Probe::A1 if self.is(node, at, Kind::Unauthorized) => (took, Outcome::Unknown("HTTP 401".to_owned())),
            Probe::A1 => self.checks(node, member, at, took),
            Probe::A3 | Probe::A5 if self.is(node, at, Kind::NoSpace) || self.is(member, at, Kind::NoSpaceOne) => {
                failed(took, Failure::NoSpace)
            }
            Probe::A3 | Probe::A5 if self.is(node, at, Kind::Webhooks) => {
                failed(took, Failure::Server("failed calling webhook".to_owned()))
            }
            Probe::A4 if self.is(node, at, Kind::StaleCache) => failed(took, Failure::Stale { written: at, seen: 1 }),
            Probe::A4 if !self.apiserver_answers(node, member, Probe::A3, at) => {
                (took, Outcome::Unknown("nothing was written that it could show".to_owned()))
            }
            _ => (took, Outcome::Good(Reading::Lease { revision: at / 50 })),
        }
    }

    fn checks(&self, node: usize, member: usize, at: u64, took: u64) -> (u64, Outcome) {
        let ready = self.apiserver_answers(node, member, Probe::A2, at) && !self.is(node, at, Kind::NotReady);
        let failing = if ready { Vec::new() } else { vec!["etcd-readiness".to_owned()] };
        let took = if ready { took } else { 4_000 };
        (took, Outcome::Good(Reading::Checks { ready, live: true, failing }))
    }

    fn through_balancer(&self, me: usize, at: u64, deadline: u64, rng: &mut Rng) -> (u64, Outcome) {
        if self.isolated(me, at) {
            return (deadline, Outcome::Failed(Failure::Unreachable));
        }
        let size = self.schedule.size;
        // It sends to whatever has an open port.
        let open: Vec<usize> =
            (0..size).filter(|node| !self.is(*node, at, Kind::StoppedApiserver) && !self.isolated(*node, at)).collect();
        if open.is_empty() {
            return (2, Outcome::Failed(Failure::Reset));
        }
        let node = *rng.pick(&open);
        self.apiserver(node, Ask { me: node, probe: Probe::A2, at, fresh: false, deadline }, rng)
    }

    /// The own condition as the node sees it at that moment.
    pub fn observer(&self, me: usize, at: u64, started: u64) -> Observer {
        let mut observer = Observer { at: Mono(at), started: Mono(started), ..Observer::default() };
        for fault in self.schedule.faults.iter().filter(|fault| fault.nodes >> me & 1 == 1) {
            let now = (fault.from..fault.to).contains(&at);
            let since = |after: u64| (fault.from + after..fault.to + after).contains(&at);
            match fault.kind {
                // The worst of ten seconds, seen up to a second late.
                Kind::Starved if (fault.from + 600..fault.to + 10_000).contains(&at) => {
                    observer.lateness = Duration::from_millis(900);
                }
                Kind::ClockStep if (fault.from..fault.to.max(fault.from + 60_000)).contains(&at) => {
                    observer.clock_step = Some(3_600);
                }
                Kind::OwnCertificate if now => observer.certificate_expired = true,
                _ if since(0) && matches!(fault.kind, Kind::FrozenDisk | Kind::StalledWal { .. }) => {
                    observer.process = Some(Process { stopped: false, blocked_since: Some(Mono(fault.from)) });
                }
                Kind::HungMember if now => observer.process = Some(Process { stopped: true, blocked_since: None }),
                _ => {}
            }
        }
        if observer.process.is_none() {
            observer.process = Some(Process::default());
        }
        let copied = self
            .has(me, at, |kind| kind == Kind::Defragmentation)
            .map_or(0, |fault| (at - fault.from) * (25 << 20) / 1_000);
        let free = (20_u64 << 30).saturating_sub(copied);
        observer.data_dir =
            Some(DataDir { file_system: Some("ext4".to_owned()), free: Some(free), ..DataDir::default() });
        observer
    }
}
