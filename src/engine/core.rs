//! The loop: one thing at a time, nothing that blocks, one look at the clock a turn.
//!
//! Commands, reports of jobs and answers of the ledger come in as messages; after each, everything that is due is
//! decided again by the pure deciders, and the result is published. The watchdog is fed here and nowhere else, so that
//! systemd sees when this loop stands still.

mod commands;
mod reports;

pub use commands::known_schedule;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;

use super::clock::{Clock, DOUBT, STEP, Watch};
use super::command::{Command, Handle, Turn};
use super::deadline;
use super::event::{Event, Verdict};
use super::job::{Job, JobId, Origin, Task};
use super::outbox::{After, Answer, Ledger, Outbox, Pending};
use super::phase::Phase;
use super::queue::{self, LedgerState, Situation, Wait};
use super::record::Record;
use super::running::{Asked, Jobs};
use super::schedule::{Act, Due, Facts, Timetable, shift_of};
use super::settle;
use super::work::{Report, Works};
use crate::config::Settings;
use crate::crash;
use crate::error::{Code, Error};

/// The one schedule there is: prune follows each of its successes.
pub const SNAPSHOT: &str = "snapshot";
/// The loop turns at least so often: to see the clock step, and to feed the watchdog.
pub const TICK: Duration = Duration::from_secs(10);
/// The tag of a snapshot whose intent could not be recorded.
pub const LEDGER_FULL: &str = "ledger-full";
/// Commands that wait.
const QUEUE: usize = 64;

/// Is told each event once it is known, with what is known then.
pub type Listener = Box<dyn Fn(&Event, &Record) + Send>;

/// What an engine is made of.
pub struct Parts<W> {
    pub settings: Arc<Settings>,
    pub works: Arc<W>,
    pub clock: Arc<dyn Clock>,
    /// At least so often the loop turns although nothing happens; [`TICK`], where the watchdog wants no more.
    pub tick: Duration,
    /// Called once a turn.
    pub heartbeat: Box<dyn Fn() + Send + Sync>,
    pub journal: Listener,
}

/// What the ledger held.
pub struct Found {
    pub ledger: Box<dyn Ledger>,
    pub record: Record,
    /// What is recorded first: that the daemon runs, and what was wrong with the ledger.
    pub first: Vec<Event>,
}

pub struct Engine<W> {
    parts: Parts<W>,
    timetable: Timetable,
    record: Arc<Record>,
    outbox: Outbox,
    jobs: Jobs,
    /// Their intents are under way.
    starting: Vec<JobId>,
    waits: BTreeMap<JobId, Wait>,
    watch: Watch,
    next: Option<Timestamp>,
    /// When the cursor's slot was, as time since boot: what no step of the wall clock changes.
    slot_at: Option<SignedDuration>,
    db_bytes: Option<u64>,
    survey: Survey,
    drain: Option<std::time::Instant>,
    /// The last word was said.
    stopped: bool,
    commands: mpsc::Receiver<Command>,
    reports: (UnboundedSender<Report>, UnboundedReceiver<Report>),
    turns: watch::Sender<Arc<Turn>>,
}

/// Reading the stores: one at a time, again when somebody wanted it meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Survey {
    /// Nothing is known yet, and it is under way: nothing begins before.
    First,
    Under {
        again: bool,
    },
    Done,
}

/// The channels of an engine that does not run yet, so that others can begin to wait for it.
pub struct Channels {
    commands: mpsc::Receiver<Command>,
    turns: watch::Sender<Arc<Turn>>,
}

/// Before the ledger was read.
pub fn channels(now: Timestamp) -> (Handle, Channels) {
    let (sender, commands) = mpsc::channel(QUEUE);
    let (turns, receiver) = watch::channel(Arc::new(Turn {
        at: now,
        record: Arc::default(),
        live: BTreeMap::new(),
        waits: BTreeMap::new(),
        stuck: Vec::new(),
        ledger: LedgerState::Silent { since: now },
        next: BTreeMap::new(),
        draining: false,
        ready: false,
    }));
    (Handle { commands: sender, turns: receiver }, Channels { commands, turns })
}

/// The slots of the snapshot schedule, as configured.
pub fn timetable(settings: &Settings, now: Timestamp) -> Timetable {
    let snapshot = &settings.snapshot;
    let mut timetable = Timetable {
        schedule: snapshot.schedule.clone(),
        timezone: snapshot.timezone.clone(),
        window: snapshot.window,
        shift: Duration::ZERO,
    };
    timetable.shift = snapshot.shift.unwrap_or_else(|| shift_of(&settings.node, timetable.period(now)));
    timetable
}

impl<W: Works> Engine<W> {
    pub fn new(parts: Parts<W>, found: Found, channels: Channels) -> Engine<W> {
        let now = parts.clock.now();
        let mut engine = Engine {
            timetable: timetable(&parts.settings, now),
            record: Arc::new(found.record),
            outbox: Outbox::new(found.ledger),
            jobs: Jobs::default(),
            starting: Vec::new(),
            waits: BTreeMap::new(),
            watch: Watch::default(),
            next: None,
            slot_at: None,
            db_bytes: None,
            survey: Survey::First,
            drain: None,
            stopped: false,
            commands: channels.commands,
            reports: mpsc::unbounded_channel(),
            turns: channels.turns,
            parts,
        };
        found.first.into_iter().for_each(|event| engine.put(event, now));
        for event in settle::found_open(&engine.record) {
            engine.put(event, now);
        }
        engine.begin_survey();
        engine
    }

    /// Runs until it is drained.
    pub async fn run(mut self) {
        loop {
            (self.parts.heartbeat)();
            crash::point!("engine::turn");
            let now = self.parts.clock.now();
            self.turn(now);
            self.publish(now);
            if self.is_drained(now) {
                return;
            }
            let wake = self.wake(now);
            let clock = self.parts.clock.clone();
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command),
                    // Nobody can ask any more: that is the end of the daemon too.
                    None => self.begin_drain(Duration::ZERO),
                },
                Some(report) = self.reports.1.recv() => self.report(report),
                answer = self.outbox.answer(|| clock.now()) => self.answer(answer),
                () = tokio::time::sleep(wake) => {}
            }
            // What came meanwhile belongs to the same turn.
            while let Ok(report) = self.reports.1.try_recv() {
                self.report(report);
            }
            while let Ok(command) = self.commands.try_recv() {
                self.command(command);
            }
        }
    }

    /// Everything that is due.
    fn turn(&mut self, now: Timestamp) {
        self.look_at_the_clock(now);
        self.limits(now);
        if self.survey != Survey::First && self.drain.is_none() {
            self.slots(now);
        }
        // Those whose intent is under way have their lanes already.
        let mut busy = self.jobs.busy();
        for id in &self.starting {
            let lanes = self.record.jobs.get(id).map(|known| known.job.task.lanes()).unwrap_or_default();
            busy.extend(lanes.into_iter().map(|lane| (lane, queue::Holder::Job(*id))));
        }
        let situation = Situation {
            busy: &busy,
            ledger: self.outbox.state(now),
            starting: &self.starting,
            settling: self.survey == Survey::First,
            draining: self.drain.is_some(),
            clock: self.record.clock.map(|step| {
                let until = step.at.checked_add(SignedDuration::from_secs(DOUBT)).unwrap_or(Timestamp::MAX);
                (step.seconds, until)
            }),
        };
        let plan = queue::decide(&self.record, &situation);
        self.waits = plan.wait;
        for id in plan.start {
            let deadline_at = now + SignedDuration::try_from(self.allowed(id)).unwrap_or_default();
            self.starting.push(id);
            self.waits.insert(id, Wait::Starting);
            // Not applied before it is durable: until then the job is queued.
            self.outbox.push(Event::Began { job: id, deadline_at }, now, After::Start(id));
        }
        if self.outbox.is_rotation_due(now) {
            self.outbox.rotate(&Event::Checkpoint { record: Box::new((*self.record).clone()) }, now);
        }
        self.outbox.flush(now);
    }

    /// Records an event, and knows it from now on.
    fn put(&mut self, event: Event, now: Timestamp) {
        self.put_then(event, now, After::Nothing);
    }

    fn put_then(&mut self, event: Event, now: Timestamp, after: After) {
        self.apply(&event, now);
        self.outbox.push(event, now, after);
    }

    fn apply(&mut self, event: &Event, now: Timestamp) {
        Arc::make_mut(&mut self.record).apply(event, now);
        (self.parts.journal)(event, &self.record);
    }

    fn look_at_the_clock(&mut self, now: Timestamp) {
        let step = self.watch.look(now, self.parts.clock.since_boot());
        match (step, self.record.clock) {
            (0, None) => {}
            (0, Some(doubt)) => {
                if now.duration_since(doubt.at).as_secs() >= DOUBT {
                    let why = "a day has passed since the wall clock stepped".to_string();
                    self.put(Event::ClockTrusted { why }, now);
                }
            }
            (step, doubt) => {
                let whole = doubt.map_or(0, |doubt| doubt.seconds).saturating_add(step);
                if whole.unsigned_abs() > STEP.unsigned_abs() {
                    self.put(Event::ClockStepped { seconds: whole }, now);
                } else {
                    self.put(Event::ClockTrusted { why: "the wall clock stepped back to where it was".into() }, now);
                }
            }
        }
    }

    /// Deadlines, and jobs that do not stop.
    fn limits(&mut self, now: Timestamp) {
        for id in self.jobs.overdue() {
            self.jobs.ask(id, Asked::Deadline);
        }
        if self.drain.is_some_and(|until| std::time::Instant::now() >= until) {
            let all: Vec<JobId> = self.jobs.running.keys().copied().collect();
            all.into_iter().for_each(|id| self.jobs.ask(id, Asked::Drain));
        }
        for (id, why) in self.jobs.give_up(now) {
            let hangs =
                "a call of it does not come back: it was given up, and its lane stays taken until the call returns";
            let error = Error::new(Code::Canceled, "stop job", id.to_string()).because(hangs);
            let end = self.ended(id, Some(why), Err(error.into()), hangs);
            self.put(Event::Ended { job: id, end }, now);
        }
    }

    /// The slots of the schedule.
    fn slots(&mut self, now: Timestamp) {
        let busy = self.record.open().find(|known| matches!(known.job.task, Task::Snapshot { .. })).map(|k| k.job.id);
        let own = self.record.stores.values().filter_map(|surveyed| match &surveyed.seen {
            super::event::Survey::Good { own, .. } => own.as_ref().map(|(_, at)| *at),
            super::event::Survey::Failed { .. } => None,
        });
        let boot = self.parts.clock.since_boot().and_then(|boot| SignedDuration::try_from(boot).ok());
        let since_slot = boot.zip(self.slot_at).and_then(|(boot, at)| boot.checked_sub(at));
        let facts = Facts { now, newest: own.max(), busy, since_slot };
        let cursor = self.record.schedules.get(SNAPSHOT);
        let queue = |engine: &Self, slot, attempt| Job {
            id: engine.record.next_id(),
            task: Task::Snapshot { member: None, tags: Vec::new(), stores: Vec::new() },
            origin: Origin::Schedule { name: SNAPSHOT.into(), slot, attempt },
            created_at: now,
        };
        match self.timetable.decide(cursor, facts) {
            Due::Wait(next) => self.next = next,
            Due::Slot { slot, act, missed } => {
                let verdict = match act {
                    Act::Run => Verdict::Run { job: queue(self, slot, 1) },
                    Act::Skip(why) => Verdict::Skipped { why },
                    Act::Begin => Verdict::Begin,
                    Act::Follow => Verdict::Follow,
                };
                self.slot_at = boot.and_then(|boot| boot.checked_sub(now.duration_since(slot)));
                self.put(Event::Slot { schedule: SNAPSHOT.into(), slot, verdict, missed }, now);
                let cursor = self.record.schedules.get(SNAPSHOT);
                self.next = self.timetable.next(cursor, now, 1).first().map(|(_, at)| *at);
            }
            Due::Again { slot, attempt } => {
                let job = queue(self, slot, attempt);
                self.put(Event::Queued { job }, now);
            }
        }
    }

    fn allowed(&self, id: JobId) -> Duration {
        let (ceiling, rate) = (self.parts.settings.snapshot.max_duration, self.parts.settings.snapshot.rate);
        self.record.jobs.get(&id).map_or(ceiling, |known| {
            deadline::allowed(&known.job.task, self.record.last_snapshot.as_ref(), self.db_bytes, rate, ceiling)
        })
    }

    fn answer(&mut self, answer: Answer) {
        let now = self.parts.clock.now();
        match answer {
            Answer::Durable(batch) => batch.into_iter().for_each(|pending| self.durable(pending, now)),
            Answer::Failed(batch, error) => {
                tracing::warn!("the ledger failed: {}", error.line());
                let mut kept = Vec::new();
                for pending in batch {
                    match pending.after {
                        After::Start(id) => {
                            let needs = self.record.jobs.get(&id).is_some_and(|known| known.job.task.needs_intent());
                            if needs {
                                self.starting.retain(|starting| *starting != id);
                            } else {
                                self.start(id, &pending.event, false, now);
                                kept.push(Pending { after: After::Nothing, ..pending });
                            }
                        }
                        After::Tell(_) | After::Nothing => kept.push(pending),
                    }
                }
                self.outbox.put_back(kept);
            }
            Answer::Rotated(Ok(())) => {}
            Answer::Rotated(Err(error)) => tracing::warn!("the ledger could not begin a new file: {}", error.line()),
        }
    }

    fn durable(&mut self, pending: Pending, now: Timestamp) {
        match pending.after {
            After::Nothing => {}
            After::Tell(reply) => drop(reply.send(())),
            After::Start(id) => self.start(id, &pending.event, true, now),
        }
    }

    /// `recorded`: its intent is on the disk.
    fn start(&mut self, id: JobId, began: &Event, recorded: bool, now: Timestamp) {
        self.starting.retain(|starting| *starting != id);
        // It may have been canceled while its intent was written.
        if self.record.phase(id) != Some(Phase::Queued) || self.drain.is_some() {
            return;
        }
        self.apply(began, now);
        let Some(known) = self.record.jobs.get(&id) else { return };
        let (mut task, allowed) = (known.job.task.clone(), self.allowed(id));
        if let (false, Task::Snapshot { tags, .. }) = (recorded, &mut task) {
            tags.push(LEDGER_FULL.into());
        }
        self.jobs.start(id, task, allowed, &self.parts.works, &self.parts.settings, &self.reports.0);
    }

    /// Nothing runs, and the last word is on the disk, unless the disk does not take it.
    fn is_drained(&mut self, now: Timestamp) -> bool {
        if self.drain.is_none() || !self.jobs.running.is_empty() {
            return false;
        }
        if !self.stopped {
            self.stopped = true;
            self.put(Event::Stopped, now);
            self.outbox.flush(now);
        }
        self.outbox.is_empty() || self.outbox.state(now) != LedgerState::Good
    }

    fn wake(&self, now: Timestamp) -> Duration {
        // No slot is decided while it drains: one that is due must not keep the loop turning.
        let next = self.next.filter(|_| self.drain.is_none() && self.survey != Survey::First);
        let next = next.map(|next| Duration::try_from(next.duration_since(now)).unwrap_or(Duration::ZERO));
        let drain = self.drain.map(|until| until.saturating_duration_since(std::time::Instant::now()));
        let drain = drain.filter(|left| !left.is_zero());
        let least = [next, drain, self.jobs.wake(), self.outbox.wake()].into_iter().flatten().min();
        least.unwrap_or(self.parts.tick).min(self.parts.tick)
    }

    fn publish(&self, now: Timestamp) {
        let next = if self.survey == Survey::First { None } else { self.next };
        self.turns.send_replace(Arc::new(Turn {
            at: now,
            record: self.record.clone(),
            live: self.jobs.running.iter().map(|(id, running)| (*id, running.live.clone())).collect(),
            waits: self.waits.clone(),
            stuck: self.stuck(),
            ledger: self.outbox.state(now),
            next: BTreeMap::from([(SNAPSHOT.into(), next)]),
            draining: self.drain.is_some(),
            ready: self.survey != Survey::First,
        }));
    }

    fn stuck(&self) -> Vec<(super::lane::Lane, JobId, Timestamp)> {
        let each = self
            .jobs
            .stuck
            .iter()
            .flat_map(|(id, (task, since))| task.lanes().into_iter().map(move |lane| (lane, *id, *since)));
        each.collect()
    }
}
