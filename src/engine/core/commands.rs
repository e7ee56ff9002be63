//! What others ask for.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::super::command::{Command, Submitted};
use super::super::event::Event;
use super::super::failure::Failure;
use super::super::job::{Job, JobId, Origin, Task};
use super::super::outbox::After;
use super::super::phase::Phase;
use super::super::running::Asked;
use super::super::work::Works;
use super::{Engine, SNAPSHOT, Survey, timetable};
use crate::error::{Code, Error, Result};

impl<W: Works> Engine<W> {
    pub(super) fn command(&mut self, command: Command) {
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
                        let stores = Some(settings.stores.iter().map(|store| store.name.clone()).collect());
                        self.parts.settings = settings;
                        self.put(Event::Configured { files, stores }, now);
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

    pub(super) fn begin_drain(&mut self, grace: Duration) {
        let until = std::time::Instant::now() + grace;
        self.drain = Some(self.drain.map_or(until, |before| before.min(until)));
    }
}

/// `NotFound` for a name that no schedule has.
pub fn known_schedule(name: &str) -> Result<()> {
    if name == SNAPSHOT {
        return Ok(());
    }
    Err(Error::new(Code::NotFound, "find schedule", name)
        .because("no schedule has this name")
        .remedy(format!("name: {SNAPSHOT}")))
}
