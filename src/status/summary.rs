//! One sentence for people: `systemctl status` shows it, and the first line of `refloat status`.

use jiff::Timestamp;

use super::document::Status;
use crate::engine::command::Turn;
use crate::engine::phase::Phase;

/// What is wrong first, then what is done, then how much would be lost, then what comes next.
pub(super) fn summary(status: &Status, turn: &Turn) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !turn.ready {
        parts.push("reading the ledger and the stores".into());
    }
    if status.draining {
        parts.push("ending".into());
    }
    match status.ledger.state.as_str() {
        "good" => {}
        state if turn.ready => parts.push(format!("the ledger is {state}")),
        _ => {}
    }
    parts.extend(wrong(status));
    let running = status.jobs.iter().filter(|job| matches!(job.state, Phase::Running | Phase::Canceling));
    for job in running {
        let step = job.step.as_deref().map(|step| format!(" ({step})")).unwrap_or_default();
        let canceling = if job.state == Phase::Canceling { "canceling " } else { "" };
        parts.push(format!("{canceling}{}{step}", job.what));
    }
    let queued = status.jobs.iter().filter(|job| job.state == Phase::Queued).count();
    if queued > 0 {
        parts.push(format!("{queued} queued"));
    }
    parts.push(match status.recovery_point.seconds {
        Some(seconds) => format!("last verified snapshot {} old", ago(seconds)),
        None => "no verified snapshot".into(),
    });
    let paused = status.schedules.iter().find(|s| s.paused);
    parts.push(match (paused, status.next_run) {
        (Some(schedule), _) => match schedule.paused_until {
            Some(until) => format!("paused until {}", clock(until)),
            None => "paused".into(),
        },
        (None, Some(next)) => format!("next {}", clock(next)),
        (None, None) => "no next run".into(),
    });
    parts.join("; ")
}

/// The failure of the last snapshot that ended, stores that cannot be read, and troubles.
fn wrong(status: &Status) -> Vec<String> {
    let mut wrong: Vec<String> = status
        .troubles
        .iter()
        .filter(|t| t.about != "systemd")
        .map(|t| format!("{}: {}", t.about, t.error.line()))
        .collect();
    let failed = status.stores.iter().filter(|store| store.state == "failed");
    wrong.extend(failed.map(|store| format!("store {} cannot be read", store.name)));
    let last = status.jobs.iter().filter(|job| job.kind == "snapshot" && job.state.is_over()).max_by_key(|job| job.id);
    if let Some(job) = last.filter(|job| job.state == Phase::Failed) {
        wrong.push(format!("the last snapshot failed ({})", job.code.as_deref().unwrap_or("unknown")));
    }
    if wrong.len() > 2 {
        let more = wrong.len() - 2;
        wrong.truncate(2);
        wrong.push(format!("{more} troubles more"));
    }
    wrong
}

/// Minutes are enough: the sentence is not sent again each second.
fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M UTC").to_string()
}

/// An age in the largest unit that tells enough.
pub fn ago(seconds: i64) -> String {
    match seconds {
        ..60 => "less than a minute".into(),
        60..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
