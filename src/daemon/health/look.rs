//! Looking: asks what is due, takes answers in, judges. One thread, no disk; how long anything takes is somebody else's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::{Id, JoinHandle, JoinSet};

use super::desk;
use crate::config::Settings;
use crate::error::Result;
use crate::etcd::Access;
use crate::health::facts::Facts;
use crate::health::fence::decide::{FenceRules, FenceState, decide};
use crate::health::model::{Kind, Mono, Observer, Outcome, Probe, Reading, Sample, TargetId, Watched};
use crate::health::probes::local::{self, Local, Node};
use crate::health::probes::{self, Means, Probes};
use crate::health::rules::Rules;
use crate::health::schedule::{Ask, Schedule};
use crate::health::verdict::{State, Verdict, Verdicts, verdict};
use crate::health::watch::{self, Surroundings};
use crate::host::log;
use crate::kube::probe::Identity;
use crate::status::health::{Health, Seen, health};

/// How long the members are asked for each other before what is configured has to do.
const LEARN: Duration = Duration::from_secs(2);
/// They are asked again so often, and sooner while nobody has answered.
const AGAIN: Duration = Duration::from_secs(300);
const SOON: Duration = Duration::from_secs(10);

/// What is read from disk, at start and on a reload.
#[derive(Debug)]
pub struct Read {
    pub settings: Arc<Settings>,
    etcd: Access,
    kubernetes: std::result::Result<Identity, String>,
    notes: Vec<String>,
}

impl Read {
    /// Reads certificates and keys. What cannot be read is a note, and what needs it is *unknown*.
    pub fn now(settings: Arc<Settings>) -> Read {
        let mut notes = Vec::new();
        let mut noted = |error: crate::error::Error| {
            let line = error.line();
            notes.push(line.clone());
            line
        };
        let health = &settings.health;
        let etcd = crate::snapshot::preflight::access(&settings.etcd).unwrap_or_else(|error| {
            noted(error);
            Access::plain(health.timeout)
        });
        let wanted = !health.apiservers.is_empty() || health.balancer.is_some();
        let kubernetes = match wanted {
            true => Identity::load(&health.kubeconfig).map_err(&mut noted),
            false => Err("no apiserver is configured".into()),
        };
        if !health.enabled {
            notes.push("health is switched off ([health] enabled)".into());
        }
        Read { etcd: etcd.with_timeout(health.timeout), settings, kubernetes, notes }
    }
}

/// A verdict that is another one than before.
#[derive(Debug, Clone)]
pub struct Change {
    pub kind: Kind,
    pub name: String,
    pub before: State,
    pub verdict: Verdict,
}

/// Everything that is known now, and what is being asked.
pub struct Look {
    read: Read,
    locked: Option<String>,
    started: Mono,
    rules: Rules,
    around: Surroundings,
    watched: Watched,
    schedule: Schedule,
    probes: Probes,
    facts: Facts,
    local: Local,
    observer: Observer,
    verdicts: Verdicts,
    fence_rules: FenceRules,
    fence: FenceState,
    running: JoinSet<Vec<Sample>>,
    asked: HashMap<Id, (Ask, Mono)>,
    learning: Option<JoinHandle<Surroundings>>,
    learned: Mono,
}

impl Look {
    /// Asks the members for each other, at most for two seconds. `locked`: why memory is not locked. `started`: of this
    /// process; an observer that is younger than some seconds acts on nothing.
    pub async fn begin(read: Read, locked: Option<String>, started: Mono) -> Look {
        let around = watch::learn(&read.settings, &read.etcd, LEARN).await;
        let health = &read.settings.health;
        let rules = Rules { interval: health.interval, deadline: health.timeout, ..Rules::default() };
        let watched = Watched::default();
        let now = local::now();
        let mut look = Look {
            schedule: Schedule::new(&watched, &rules, false, now),
            probes: Probes::none(),
            facts: Facts::new(rules, &watched),
            local: Local::new(Node::default(), started),
            observer: Observer::default(),
            verdicts: Verdicts::default(),
            fence_rules: desk::rules(&read.settings.fence),
            fence: FenceState::default(),
            running: JoinSet::new(),
            asked: HashMap::new(),
            learning: None,
            learned: now,
            around,
            watched,
            rules,
            locked,
            started,
            read,
        };
        look.rebuild(now);
        look
    }

    /// New targets: nothing is known of them, and what was asked of the old ones is not waited for.
    fn rebuild(&mut self, now: Mono) {
        let settings = self.read.settings.clone();
        self.watched = match settings.health.enabled {
            true => watch::watched(&settings, &self.around),
            false => Watched { node: settings.node.clone(), ..Watched::default() },
        };
        let addresses = self.around.fixed();
        let kubernetes = self.read.kubernetes.as_ref().map_err(String::clone);
        let means = Means { etcd: &self.read.etcd, kubernetes, addresses: &addresses };
        self.probes = Probes::new(&self.watched, &means);
        self.schedule = Schedule::new(&self.watched, &self.rules, settings.health.write_probe, now);
        self.facts = Facts::new(self.rules, &self.watched);
        self.verdicts = Verdicts::default();
        self.running.abort_all();
        self.running = JoinSet::new();
        self.asked.clear();
        let node = Node {
            data_dir: settings.etcd.data_dir.clone(),
            member: self.watched.own(Kind::Member).map(|(_, target)| target.url.clone()),
            locked: self.locked.clone(),
            certificate_ends: self.read.etcd.own_certificate_ends().map(Timestamp::as_second),
        };
        self.local = Local::new(node, self.started);
        self.observer = self.local.look(now, Timestamp::now().as_millisecond());
        self.learned = now;
    }

    /// Waits for the next thing to do, at most until `until`, and does it. What changed by it; nothing for most steps.
    /// Safe to drop while it waits.
    pub async fn step(&mut self, until: Mono) -> Vec<Change> {
        let now = local::now();
        self.learn_again(now);
        for ask in self.schedule.due(now) {
            let probes = self.probes.clone();
            let task = self.running.spawn(async move { probes.run(ask, now).await });
            self.asked.insert(task.id(), (ask, now));
        }
        let due = self.schedule.next().map_or(until, |next| next.min(until));
        tokio::select! {
            Some(done) = self.running.join_next_with_id() => {
                let (id, samples) = match done {
                    Ok((id, samples)) => (id, Some(samples)),
                    Err(error) => (error.id(), None),
                };
                self.take(id, samples)
            }
            around = async { self.learning.as_mut().map_or_else(|| Err(()), Ok)?.await.map_err(drop) },
                if self.learning.is_some() =>
            {
                self.learning = None;
                self.learned(around.unwrap_or_default());
                Vec::new()
            }
            () = tokio::time::sleep(due.since(now)) => {
                self.local.fired(due, local::now());
                Vec::new()
            }
        }
    }

    fn take(&mut self, id: Id, samples: Option<Vec<Sample>>) -> Vec<Change> {
        let Some((ask, at)) = self.asked.remove(&id) else { return Vec::new() };
        let now = local::now();
        let samples = samples.unwrap_or_else(|| vec![probes::lost(ask.target, ask.probe, at)]);
        let failed = probes::failed(&samples);
        for sample in &samples {
            self.facts.fold(sample);
            self.notice(sample, now);
        }
        let next = |probe| self.facts.next(ask.target, probe);
        // A cache that does not catch up is seen with the next write.
        let next = match ask.probe {
            Probe::A3 if failed => next(Probe::A3).min(next(Probe::A4)),
            probe => next(probe),
        };
        self.schedule.done(ask.target, ask.probe, next, now);
        if failed {
            for (target, probe) in self.facts.urgent(&self.watched) {
                self.schedule.hurry(target, probe, now);
            }
        }
        // Good news of a good target are no news.
        let good = self.verdicts.state(ask.target) == State::Good && !failed;
        if good { Vec::new() } else { self.judge(now) }
    }

    /// A learner that was promoted, or a voter that became one.
    fn notice(&mut self, sample: &Sample, now: Mono) {
        let Outcome::Good(Reading::Status(status)) = &sample.outcome else { return };
        let other = self.watched.target(sample.target).is_some_and(|target| target.learner != status.learner);
        if other && now.since(self.learned) > SOON {
            self.learned = Mono(now.0.saturating_sub(u64::try_from(AGAIN.as_millis()).unwrap_or(u64::MAX)));
        }
    }

    fn learn_again(&mut self, now: Mono) {
        let pause = if self.around.members.is_empty() { SOON } else { AGAIN };
        if self.learning.is_some() || now.since(self.learned) < pause || !self.read.settings.health.enabled {
            return;
        }
        self.learned = now;
        let (settings, access) = (self.read.settings.clone(), self.read.etcd.clone());
        self.learning = Some(tokio::spawn(async move { watch::learn(&settings, &access, LEARN).await }));
    }

    /// Whoever does not answer is still a member: only another list is another one.
    fn learned(&mut self, around: Surroundings) {
        let list = |around: &Surroundings| {
            let mut list: Vec<_> = around.members.iter().map(|m| (m.id, m.name.clone(), m.learner)).collect();
            list.sort();
            list
        };
        if !around.members.is_empty() && list(&around) != list(&self.around) {
            tracing::info!("the members of etcd are others than before: {}", names(&around));
            self.around = around;
            self.rebuild(local::now());
        }
    }

    /// Each second: looks at this node.
    pub fn observe(&mut self) {
        let now = local::now();
        self.observer = self.local.look(now, Timestamp::now().as_millisecond());
        self.facts.observe(&self.observer);
    }

    /// What the facts mean now, and what that would take out of service.
    pub fn judge(&mut self, now: Mono) -> Vec<Change> {
        let verdicts = verdict(&self.watched, &self.facts, &self.observer, &self.verdicts, now);
        let before = std::mem::replace(&mut self.verdicts, verdicts);
        self.fence = decide(&self.fence_rules, &self.watched, &self.verdicts, &self.facts, &self.fence, now);
        let changed = |id: &TargetId, verdict: &Verdict| {
            let was = before.by_target.get(id);
            was.map(|was| (was.state, was.cause)) != Some((verdict.state, verdict.cause))
        };
        let changes = self.verdicts.by_target.iter().filter(|(id, verdict)| changed(id, verdict));
        changes
            .filter_map(|(id, verdict)| {
                let target = self.watched.target(*id)?;
                let (kind, name) = (target.kind, target.name.clone());
                Some(Change { kind, name, before: before.state(*id), verdict: verdict.clone() })
            })
            .collect()
    }

    pub fn document(&self, pid: Option<u32>) -> Health {
        let mut notes = self.read.notes.clone();
        if log::dropped() > 0 {
            notes.push(format!("{} log lines were lost: nobody took them", log::dropped()));
        }
        let now = local::now();
        health(&Seen {
            watched: &self.watched,
            facts: &self.facts,
            observer: &self.observer,
            verdicts: &self.verdicts,
            rules: &self.fence_rules,
            fence: &self.fence,
            notes: &notes,
            pid,
            now,
            wall: Timestamp::now(),
        })
    }

    pub fn settings(&self) -> &Settings {
        &self.read.settings
    }

    /// Asks all of it at once.
    pub fn hurry(&mut self) {
        self.schedule.hurry_all(local::now());
    }

    /// Whether everything was answered, and no single failure waits for its repeat.
    pub fn is_settled(&self) -> bool {
        self.asked.is_empty() && self.schedule.is_settled()
    }

    /// What was decided before it began still counts.
    pub fn after(mut self, before: FenceState) -> Look {
        self.fence = before;
        self
    }

    pub fn fence(&self) -> &FenceState {
        &self.fence
    }

    /// The rules as they are now: a person may have said something.
    pub fn set_fence_rules(&mut self, rules: FenceRules) {
        self.fence_rules = rules;
    }
}

fn names(around: &Surroundings) -> String {
    around.members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Reads everything anew, for a reload: on a thread, because a disk may hang.
pub async fn read_again(settings: Settings) -> Result<Read> {
    let reading = tokio::task::spawn_blocking(move || Read::now(Arc::new(settings)));
    reading.await.map_err(|e| crate::error::Error::new(crate::error::Code::Internal, "read credentials", "").because(e))
}
