//! The loop: one thing at a time, nothing that blocks, one look at the clock a turn.
//!
//! Commands, reports of jobs and answers of the ledger come in as messages; after each, everything that is due is
//! decided again by the pure deciders, and the result is published. The watchdog is fed here and nowhere else, so that
//! systemd sees when this loop stands still.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{oneshot, watch};

use super::clock::{Clock, DOUBT, STEP, Watch};
use super::command::{Command, Handle, Submitted, Turn};
use super::deadline;
use super::event::{End, Event, Outcome, Verdict};
use super::failure::Failure;
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
use crate::error::{Code, Error, Result};

/// The one schedule there is: prune follows each of its successes.
pub const SNAPSHOT: &str = "snapshot";
/// The loop turns at least so often: to see the clock step, and to feed the watchdog.
const TICK: Duration = Duration::from_secs(10);
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
        let ledger = self.outbox.state(now);
        let situation = Situation {
            busy: &self.jobs.busy(),
            ledger,
            starting: &self.starting,
            settling: self.survey == Survey::First,
            draining: self.drain.is_some(),
            clock: self.record.clock.map(|step| {
                let until = step.at.checked_add(SignedDuration::from_secs(DOUBT)).unwrap_or(Timestamp::MAX);
                (step.seconds, until)
            }),
        };
        // Those whose intent is under way have their lanes already.
        let mut busy = situation.busy.clone();
        for id in &self.starting {
            let lanes = self.record.jobs.get(id).map(|known| known.job.task.lanes()).unwrap_or_default();
            busy.extend(lanes.into_iter().map(|lane| (lane, queue::Holder::Job(*id))));
        }
        let plan = queue::decide(&self.record, &Situation { busy: &busy, ..situation });
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
        let ceiling = self.parts.settings.snapshot.max_duration;
        self.record.jobs.get(&id).map_or(ceiling, |known| {
            deadline::allowed(&known.job.task, self.record.last_snapshot.as_ref(), self.db_bytes, ceiling)
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

    fn report(&mut self, report: Report) {
        let now = self.parts.clock.now();
        match report {
            Report::Step { job, step } => self.if_running(job, Event::Step { job, step }, now),
            Report::Warned { job, text } => self.if_running(job, Event::Warned { job, text }, now),
            Report::Done { job, done } => {
                if self.jobs.stuck.remove(&job).is_none()
                    && let Some(running) = self.jobs.running.remove(&job)
                {
                    let asked = running.asked.map(|(why, _)| why);
                    let end = self.ended(job, asked, done, "it stopped where it was");
                    let follow = self.follows(job, &end, now);
                    self.put(Event::Ended { job, end }, now);
                    follow.into_iter().for_each(|event| self.put(event, now));
                }
                self.begin_survey();
            }
            Report::Surveyed { stores, jump } => self.surveyed(stores, jump, now),
        }
    }

    /// A job that was given up may still talk.
    fn if_running(&mut self, job: JobId, event: Event, now: Timestamp) {
        if self.jobs.running.contains_key(&job) {
            self.put(event, now);
        }
    }

    /// What the end of the work means, by what it was asked.
    fn ended(
        &self,
        id: JobId,
        asked: Option<Asked>,
        done: std::result::Result<Outcome, super::work::Undone>,
        note: &str,
    ) -> End {
        match (done, asked) {
            (Ok(result), _) => End::Succeeded { result },
            (Err(undone), Some(asked)) if undone.error.code() == Code::Canceled => match asked {
                Asked::ByHand => End::Canceled { note: note.into() },
                Asked::Drain => End::Interrupted { why: format!("the daemon ended: {note}") },
                Asked::Deadline => {
                    let on = self.record.jobs.get(&id).map(|k| k.job.task.to_string()).unwrap_or_default();
                    let error = Error::new(Code::DeadlineExceeded, "finish", on)
                        .because(format!("it took longer than its deadline allows; {note}"))
                        .remedy("see which step it hung in; [snapshot] max_duration is the longest deadline");
                    End::Failed { failure: Failure::from(&error), result: None }
                }
            },
            (Err(undone), _) => End::Failed { failure: Failure::from(&undone.error), result: undone.outcome },
        }
    }

    /// A prune of each store that has the new snapshot.
    fn follows(&self, job: JobId, end: &End, now: Timestamp) -> Vec<Event> {
        let End::Succeeded { result: Outcome::Snapshot(made) } = end else {
            return Vec::new();
        };
        let holds = |name: &&str| made.stores.iter().any(|store| store.name == **name && store.failure.is_none());
        let names = self.parts.settings.stores.iter().map(|store| store.name.as_str()).filter(holds);
        let mut id = self.record.next_id().0;
        let mut events = Vec::new();
        for name in names {
            let task = Task::Prune { store: name.into() };
            let same = |known: &&super::record::Known| known.phase == Phase::Queued && known.job.task == task;
            match self.record.open().find(same) {
                Some(known) => {
                    let (into, origin) = (known.job.id, Origin::After { job });
                    events.push(Event::Coalesced { into, task, origin });
                }
                None => {
                    events.push(Event::Queued {
                        job: Job { id: JobId(id), task, origin: Origin::After { job }, created_at: now },
                    });
                    id += 1;
                }
            }
        }
        events
    }

    fn begin_survey(&mut self) {
        if let Survey::Under { again } = &mut self.survey {
            *again = true;
            return;
        }
        let first = self.survey == Survey::First;
        if !first {
            self.survey = Survey::Under { again: false };
        }
        let (works, settings, sender) = (self.parts.works.clone(), self.parts.settings.clone(), self.reports.0.clone());
        let now = self.parts.clock.now();
        let spawned = std::thread::Builder::new().name("survey".into()).spawn(move || {
            let stores = works.survey(&settings);
            let jump = if first { works.clock_jump(&settings, now).ok().flatten() } else { None };
            let _ = sender.send(Report::Surveyed { stores, jump });
        });
        if spawned.is_err() {
            let _ = self.reports.0.send(Report::Surveyed { stores: Vec::new(), jump: None });
        }
    }

    fn surveyed(&mut self, stores: Vec<(String, super::event::Survey)>, jump: Option<i64>, now: Timestamp) {
        for (store, seen) in stores {
            self.put(Event::Surveyed { store, seen }, now);
        }
        if let Some(seconds) = jump.filter(|seconds| seconds.abs() > STEP && self.record.clock.is_none()) {
            self.put(Event::ClockStepped { seconds }, now);
        }
        let again = self.survey == Survey::Under { again: true };
        if self.survey == Survey::First {
            for event in settle::settle(&self.record) {
                self.put(event, now);
            }
        }
        self.survey = Survey::Done;
        if again {
            self.begin_survey();
        }
    }

    fn command(&mut self, command: Command) {
        let now = self.parts.clock.now();
        match command {
            // Whoever asked was told that nobody answers, and may ask again: it must not be done twice.
            command if command.is_given_up() => {}
            Command::Submit { task, origin, reply } => {
                let answer = self.submit(task, origin, now);
                let _ = reply.send(answer);
            }
            Command::Cancel { job, uid, reply } => {
                let answer = self.cancel(job, uid, now);
                let _ = reply.send(answer);
            }
            Command::Pause { schedule, until, uid, reply } => {
                let answer = known_schedule(&schedule);
                if answer.is_ok() {
                    self.put(Event::Paused { schedule, until, uid }, now);
                }
                let _ = reply.send(answer);
            }
            Command::Resume { schedule, uid, reply } => {
                let answer = known_schedule(&schedule);
                if answer.is_ok() {
                    self.put(Event::Resumed { schedule, uid }, now);
                }
                let _ = reply.send(answer);
            }
            Command::Reload { settings, reply } => {
                match settings {
                    Ok((settings, files)) => {
                        self.timetable = timetable(&settings, now);
                        self.parts.settings = settings;
                        self.put(Event::Configured { files }, now);
                        if self.survey != Survey::First {
                            self.begin_survey();
                        }
                    }
                    Err(failure) => self.put(Event::ConfigRefused { failure }, now),
                }
                let _ = reply.send(());
            }
            Command::Trouble { about, failure } => self.trouble(about, failure, now),
            Command::Size { db_bytes } => self.db_bytes = Some(db_bytes),
            Command::Drain { grace } => self.begin_drain(grace),
        }
    }

    /// Told once, not at each look.
    fn trouble(&mut self, about: String, failure: Option<Failure>, now: Timestamp) {
        let known = self.record.troubles.get(&about);
        match (known, failure) {
            (None, None) => {}
            (Some(known), Some(failure)) if known.failure.code == failure.code => {}
            (_, Some(failure)) => self.put(Event::Troubled { about, failure }, now),
            (Some(_), None) => self.put(Event::Cleared { about }, now),
        }
    }

    fn submit(&mut self, task: Task, origin: Origin, now: Timestamp) -> Result<Submitted> {
        if self.drain.is_some() {
            return Err(Error::new(Code::Interrupted, "queue", task.to_string()).because("the daemon is ending"));
        }
        let (told, durable) = oneshot::channel();
        let queued = self.record.open().filter(|k| k.phase == Phase::Queued && !self.starting.contains(&k.job.id));
        let joined = queued.filter_map(|k| Some((k.job.id, k.job.task.joined(&task)?))).next();
        // One that has not begun to stream will have a later revision than this request.
        let early = |id: &JobId| {
            let step = self.record.jobs.get(id).and_then(|k| k.step.as_deref());
            matches!(step, None | Some("preflight"))
        };
        let running = self.record.open().filter(|k| k.phase == Phase::Running || self.starting.contains(&k.job.id));
        // One that was told to stop answers nobody any more.
        let goes_on = |id: &JobId| self.jobs.running.get(id).is_none_or(|running| running.asked.is_none());
        let covered = running
            .filter(|k| goes_on(&k.job.id))
            .filter(|k| matches!(k.job.task, Task::Snapshot { .. }) && early(&k.job.id) && k.job.task.covers(&task))
            .map(|k| (k.job.id, k.job.task.clone()))
            .next();
        match joined.or(covered) {
            Some((into, task)) => {
                self.put_then(Event::Coalesced { into, task, origin }, now, After::Tell(told));
                Ok(Submitted { job: into, coalesced: true, durable })
            }
            None => {
                let id = self.record.next_id();
                let job = Job { id, task, origin, created_at: now };
                self.put_then(Event::Queued { job }, now, After::Tell(told));
                Ok(Submitted { job: id, coalesced: false, durable })
            }
        }
    }

    fn cancel(&mut self, job: JobId, uid: u32, now: Timestamp) -> Result<()> {
        let Some(known) = self.record.jobs.get(&job) else {
            return Err(Error::new(Code::NotFound, "cancel job", job.to_string())
                .because("no job has this number")
                .remedy("see `refloat jobs list`"));
        };
        let id = job.to_string();
        match known.phase {
            phase if phase.is_over() => Err(Error::new(Code::NotFound, "cancel job", id).because(format!(
                "it has {} already",
                if phase == Phase::Canceled { "been canceled" } else { phase.word() }
            ))),
            // Asked before.
            Phase::Canceling => Ok(()),
            _ => {
                self.put(Event::CancelAsked { job, uid }, now);
                self.jobs.ask(job, Asked::ByHand);
                Ok(())
            }
        }
    }

    fn begin_drain(&mut self, grace: Duration) {
        let until = std::time::Instant::now() + grace;
        self.drain = Some(self.drain.map_or(until, |before| before.min(until)));
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
        least.unwrap_or(TICK).min(TICK)
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

fn known_schedule(name: &str) -> Result<()> {
    if name == SNAPSHOT {
        return Ok(());
    }
    Err(Error::new(Code::NotFound, "find schedule", name)
        .because("no schedule has this name")
        .remedy(format!("name: {SNAPSHOT}")))
}
