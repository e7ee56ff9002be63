//! Jobs that run, each on a thread of its own: an executor that hangs in a system call then holds nobody else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::job::{JobId, Task};
use super::lane::Lane;
use super::queue::Holder;
use super::work::{Live, Report, Works};
use crate::config::Settings;
use crate::error::{Code, Error};

/// A job that was asked to stop is given up after so long.
pub const STOPS_WITHIN: Duration = Duration::from_millis(4500);

/// Why a job was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    ByHand,
    Deadline,
    Drain,
}

pub struct Running {
    pub task: Task,
    pub live: Arc<Live>,
    cancel: CancellationToken,
    deadline: Instant,
    pub asked: Option<(Asked, Instant)>,
}

/// All that run, and the calls that were given up.
#[derive(Default)]
pub struct Jobs {
    pub running: BTreeMap<JobId, Running>,
    /// Their lanes stay taken.
    pub stuck: BTreeMap<JobId, (Task, Timestamp)>,
}

impl Jobs {
    pub fn start<W: Works>(
        &mut self,
        id: JobId,
        task: Task,
        allowed: Duration,
        works: &Arc<W>,
        settings: &Arc<Settings>,
        reports: &UnboundedSender<Report>,
    ) {
        let live = Arc::new(Live::new(id, reports.clone()));
        let cancel = CancellationToken::new();
        let deadline = Instant::now() + allowed;
        let running = Running { task: task.clone(), live: live.clone(), cancel: cancel.clone(), deadline, asked: None };
        self.running.insert(id, running);
        let (works, settings, sender) = (works.clone(), settings.clone(), reports.clone());
        let spawned = std::thread::Builder::new().name(format!("job-{id}")).spawn(move || {
            let done = works.run(&settings, &task, live, &cancel);
            let _ = sender.send(Report::Done { job: id, done });
        });
        if let Err(e) = spawned {
            let error = Error::new(Code::Internal, "start a thread", "").because(e);
            let _ = reports.send(Report::Done { job: id, done: Err(error.into()) });
        }
    }

    pub fn ask(&mut self, id: JobId, why: Asked) {
        if let Some(running) = self.running.get_mut(&id)
            && running.asked.is_none()
        {
            running.asked = Some((why, Instant::now()));
            running.cancel.cancel();
        }
    }

    /// Those whose time is over.
    pub fn overdue(&self) -> Vec<JobId> {
        let now = Instant::now();
        self.running.iter().filter(|(_, r)| r.asked.is_none() && now >= r.deadline).map(|(id, _)| *id).collect()
    }

    /// Those that did not stop when asked: they are over, their lanes are not free.
    pub fn give_up(&mut self, now: Timestamp) -> Vec<(JobId, Asked)> {
        let late = |r: &Running| r.asked.filter(|(_, at)| at.elapsed() >= STOPS_WITHIN).map(|(why, _)| why);
        let given_up: Vec<(JobId, Asked)> = self.running.iter().filter_map(|(id, r)| Some((*id, late(r)?))).collect();
        for (id, _) in &given_up {
            if let Some(running) = self.running.remove(id) {
                self.stuck.insert(*id, (running.task, now));
            }
        }
        given_up
    }

    /// Which lanes are taken, by whom.
    pub fn busy(&self) -> BTreeMap<Lane, Holder> {
        let stuck = self.stuck.iter().map(|(id, (task, since))| (task, Holder::Stuck(*id, *since)));
        let running = self.running.iter().map(|(id, running)| (&running.task, Holder::Job(*id)));
        stuck
            .chain(running)
            .flat_map(|(task, holder)| task.lanes().into_iter().map(move |lane| (lane, holder)))
            .collect()
    }

    /// When the next limit is reached.
    pub fn wake(&self) -> Option<Duration> {
        let now = Instant::now();
        let limit = |r: &Running| r.asked.map_or(r.deadline, |(_, at)| at + STOPS_WITHIN);
        self.running.values().map(|r| limit(r).saturating_duration_since(now)).min()
    }
}
