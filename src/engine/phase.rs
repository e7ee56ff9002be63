//! In which phase a job is, and what may happen to it there: total, drawn in docs/jobs.md, and held against that
//! drawing by a test.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It waits, for a reason that is always known.
    Queued,
    Running,
    /// Asked to stop; it ends within five seconds.
    Canceling,
    Succeeded,
    Failed,
    Canceled,
    /// The process ended before the job did. What became of it is settled before anything else begins.
    Interrupted,
}

/// What can happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Move {
    /// Its intent is durable: the work begins.
    Begin,
    /// Somebody wants it to stop.
    Cancel,
    Succeed,
    Fail,
    /// The work has stopped because it was asked to.
    Stop,
    /// The process ends, or had ended, while it ran.
    Interrupt,
    /// It is to run again.
    Requeue,
}

/// A move that the phase does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a job that is {} cannot {}", .0.word(), .1.word())]
pub struct Illegal(pub Phase, pub Move);

impl Phase {
    pub const ALL: [Phase; 7] = [
        Phase::Queued,
        Phase::Running,
        Phase::Canceling,
        Phase::Succeeded,
        Phase::Failed,
        Phase::Canceled,
        Phase::Interrupted,
    ];

    /// The phase after a move.
    pub fn on(self, happens: Move) -> Result<Phase, Illegal> {
        use Move::*;
        use Phase::*;
        match (self, happens) {
            (Queued, Begin) => Ok(Running),
            // Not started: nothing has to stop.
            (Queued, Cancel) => Ok(Canceled),
            // Found impossible before it began, such as a store that is no longer configured.
            (Queued, Fail) => Ok(Failed),
            (Running, Cancel) => Ok(Canceling),
            (Running, Succeed) => Ok(Succeeded),
            (Running, Fail) => Ok(Failed),
            (Running, Interrupt) => Ok(Interrupted),
            // It was asked too late.
            (Canceling, Succeed) => Ok(Succeeded),
            (Canceling, Stop) => Ok(Canceled),
            (Canceling, Fail) => Ok(Failed),
            // Nobody wants it any more.
            (Canceling, Interrupt) => Ok(Canceled),
            (Interrupted, Requeue) => Ok(Queued),
            // Its result was there after all.
            (Interrupted, Succeed) => Ok(Succeeded),
            (Interrupted, Fail) => Ok(Failed),
            (Interrupted, Cancel) => Ok(Canceled),
            (phase, happens) => Err(Illegal(phase, happens)),
        }
    }

    /// No move leads out of it.
    pub fn is_over(self) -> bool {
        matches!(self, Phase::Succeeded | Phase::Failed | Phase::Canceled)
    }

    pub fn word(self) -> &'static str {
        match self {
            Phase::Queued => "queued",
            Phase::Running => "running",
            Phase::Canceling => "canceling",
            Phase::Succeeded => "succeeded",
            Phase::Failed => "failed",
            Phase::Canceled => "canceled",
            Phase::Interrupted => "interrupted",
        }
    }
}

impl Move {
    pub const ALL: [Move; 7] =
        [Move::Begin, Move::Cancel, Move::Succeed, Move::Fail, Move::Stop, Move::Interrupt, Move::Requeue];

    pub fn word(self) -> &'static str {
        match self {
            Move::Begin => "begin",
            Move::Cancel => "cancel",
            Move::Succeed => "succeed",
            Move::Fail => "fail",
            Move::Stop => "stop",
            Move::Interrupt => "interrupt",
            Move::Requeue => "requeue",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// The table in docs/jobs.md: a row a phase, a column a move, the next phase or `–`.
    fn documented() -> HashMap<(String, String), Option<String>> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/jobs.md");
        let text = std::fs::read_to_string(path).unwrap();
        let mut rows = text.lines().filter(|line| line.starts_with('|')).map(|line| {
            line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_string()).collect::<Vec<_>>()
        });
        let head = rows.find(|row| row[0] == "phase").expect("the table of phases");
        let mut table = HashMap::new();
        for row in rows.by_ref().skip(1).take(Phase::ALL.len()) {
            for (name, next) in head.iter().zip(&row).skip(1) {
                let next = (next != "–").then(|| next.clone());
                table.insert((row[0].clone(), name.clone()), next);
            }
        }
        table
    }

    #[test]
    fn every_pair_is_as_documented() {
        let table = documented();
        assert_eq!(table.len(), Phase::ALL.len() * Move::ALL.len());
        for phase in Phase::ALL {
            for happens in Move::ALL {
                let next = phase.on(happens).ok().map(|next| next.word().to_string());
                let key = (phase.word().to_string(), happens.word().to_string());
                assert_eq!(table[&key], next, "{key:?}");
            }
        }
    }

    #[test]
    fn the_drawing_has_the_same_arrows() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/jobs.md");
        let text = std::fs::read_to_string(path).unwrap();
        let mut drawn: Vec<String> = text
            .lines()
            .map(str::trim)
            .filter(|line| line.contains("-->") && line.contains(':'))
            .map(String::from)
            .collect();
        let mut wanted: Vec<String> = Vec::new();
        for phase in Phase::ALL {
            for happens in Move::ALL {
                if let Ok(next) = phase.on(happens) {
                    wanted.push(format!("{} --> {}: {}", phase.word(), next.word(), happens.word()));
                }
            }
        }
        drawn.sort();
        wanted.sort();
        assert_eq!(drawn, wanted);
    }

    #[test]
    fn what_is_over_stays_over_and_everything_else_can_end() {
        for phase in Phase::ALL {
            let moves = Move::ALL.iter().filter_map(|m| phase.on(*m).ok());
            assert_eq!(moves.count() == 0, phase.is_over(), "{phase:?}");
            // From everywhere a cancel leads to an end, by itself or once the work has stopped.
            if !phase.is_over() {
                let asked = phase.on(Move::Cancel).unwrap_or(phase);
                assert!(asked.is_over() || asked.on(Move::Stop).is_ok_and(Phase::is_over), "{phase:?}");
            }
        }
    }
}
