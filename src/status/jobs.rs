//! A job as a document.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::command::Turn;
use crate::engine::event::{End, Outcome};
use crate::engine::failure::Failure;
use crate::engine::job::{JobId, Origin, Task};
use crate::engine::phase::Phase;
use crate::engine::record::Known;
use crate::engine::work::Far;

/// Design §15, and what the command line needs besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    pub kind: String,
    pub state: Phase,
    /// Why it waits, or why it ended as it did; `None` while it runs and where it succeeded.
    pub reason: Option<String>,
    pub step: Option<String>,
    pub progress: Option<Far>,
    pub lanes: Vec<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub deadline_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// What came of it, in words.
    pub outcome: Option<String>,
    /// Of the error.
    pub code: Option<String>,
    /// What is to be done, in words.
    pub what: String,
    pub task: Task,
    /// Who wanted it, in words.
    pub origin: String,
    /// How many others asked for the same and wait for it too.
    #[serde(default)]
    pub joined: usize,
    pub warnings: Vec<String>,
    pub error: Option<Failure>,
    pub result: Option<Outcome>,
}

/// All that are not over, oldest first, then those that are, newest first.
pub fn jobs(turn: &Turn) -> Vec<Job> {
    let all = turn.record.jobs.values();
    let open = all.clone().filter(|known| !known.phase.is_over());
    let over = all.rev().filter(|known| known.phase.is_over());
    open.chain(over).map(|known| document(known, turn)).collect()
}

pub fn job(turn: &Turn, id: JobId) -> Option<Job> {
    turn.record.jobs.get(&id).map(|known| document(known, turn))
}

/// Each of those that wanted it, with how often.
fn origins(known: &Known) -> String {
    let mut all = vec![(known.job.origin.to_string(), 1)];
    for more in known.joined.iter().map(Origin::to_string) {
        match all.iter_mut().find(|(origin, _)| *origin == more) {
            Some((_, times)) => *times += 1,
            None => all.push((more, 1)),
        }
    }
    let said = all.into_iter().map(|(origin, times)| if times > 1 { format!("{origin} x{times}") } else { origin });
    said.collect::<Vec<_>>().join("; ")
}

fn document(known: &Known, turn: &Turn) -> Job {
    let id = known.job.id;
    let stuck = turn.stuck.iter().find(|(_, job, _)| *job == id);
    let reason = match (&known.end, known.phase) {
        (_, Phase::Queued) => Some(match turn.waits.get(&id) {
            Some(wait) => wait.to_string(),
            None => "the daemon has not looked at it yet".into(),
        }),
        (Some(End::Failed { failure, .. }), _) => Some(failure.line()),
        (Some(End::Canceled { note }), _) => Some(note.clone()),
        (Some(End::Interrupted { why }), _) => Some(why.clone()),
        _ => known.again.as_ref().map(|why| format!("again: {why}")),
    };
    let reason = match (reason, stuck) {
        (Some(reason), Some((lane, _, since))) => {
            Some(format!("{reason}; lane {lane} is taken by its call since {since:.0}"))
        }
        (reason, _) => reason,
    };
    let origin = origins(known);
    Job {
        id,
        kind: known.job.task.kind().into(),
        state: known.phase,
        reason,
        step: known.step.clone(),
        progress: turn.live.get(&id).and_then(|live| live.far()),
        lanes: known.job.task.lanes().iter().map(ToString::to_string).collect(),
        created_at: known.job.created_at,
        started_at: known.started_at,
        deadline_at: known.deadline_at,
        ended_at: known.ended_at,
        outcome: known.outcome().map(crate::engine::journal::outcome),
        code: known.failure().map(|failure| failure.code.clone()),
        what: known.job.task.to_string(),
        task: known.job.task.clone(),
        origin,
        joined: known.joined.len(),
        warnings: known.warnings.clone(),
        error: known.failure().cloned(),
        result: known.outcome().cloned(),
    }
}
