//! What threads report: steps, ends, what the stores hold.

use jiff::Timestamp;

use super::super::clock::STEP;
use super::super::event::{End, Event, Outcome};
use super::super::failure::Failure;
use super::super::job::{Job, JobId, Origin, Task};
use super::super::phase::Phase;
use super::super::running::Asked;
use super::super::settle;
use super::super::work::{Report, Works};
use super::{Engine, Survey};
use crate::error::{Code, Error};

impl<W: Works> Engine<W> {
    pub(super) fn report(&mut self, report: Report) {
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
    pub(super) fn ended(
        &self,
        id: JobId,
        asked: Option<Asked>,
        done: std::result::Result<Outcome, crate::engine::work::Undone>,
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
            let same = |known: &&crate::engine::record::Known| known.phase == Phase::Queued && known.job.task == task;
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

    pub(super) fn begin_survey(&mut self) {
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

    fn surveyed(&mut self, stores: Vec<(String, crate::engine::event::Survey)>, jump: Option<i64>, now: Timestamp) {
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
}
