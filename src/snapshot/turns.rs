//! Long removals in turns of a few seconds, so that writers, who need the store as well, get in between.
//!
//! In: one turn, which looks at the store anew and goes on from there. Out: what all of them did, also when a later one
//! fails.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::catalog::prune::Report;
use crate::error::Result;

/// Writers wait ten seconds for a sweep; so long and no longer they are kept out at a time.
pub const TURN: Duration = Duration::from_secs(5);
/// Between two turns, so that writers, who look each 50 ms, get in.
const GAP: Duration = Duration::from_millis(150);

/// Takes turns until one ends by itself, is refused something, or does nothing. A turn gets what the first one saw
/// (`None` in the first) and the number of snapshots that went before.
///
/// An error only from the first turn; a later one's is in the report, beside what was done.
pub fn in_turns<T>(
    cancel: &CancellationToken,
    mut turn: impl FnMut(Option<&T>, u64) -> Result<(T, Report)>,
) -> Result<(T, Report)> {
    let (first, mut whole) = turn(None, 0)?;
    let mut last = (whole.stopped, whole.refused.is_empty(), whole.worked());
    while last == (true, true, true) && !cancel.is_cancelled() {
        std::thread::sleep(GAP);
        match turn(Some(&first), whole.removed.len() as u64) {
            Ok((_, report)) => {
                last = (report.stopped, report.refused.is_empty(), report.worked());
                whole.append(report);
            }
            Err(error) => {
                whole.failed = Some(error);
                break;
            }
        }
    }
    Ok((first, whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Code, Error};

    fn report(name: &str, stopped: bool) -> Report {
        Report { cleaned: vec![name.into()], freed: 1, stopped, ..Report::default() }
    }

    fn run(turns: Vec<Result<Report>>) -> (Result<Report>, usize) {
        let (mut turns, mut taken) = (turns.into_iter(), 0);
        let done = in_turns(&CancellationToken::new(), |first: Option<&usize>, _| {
            assert_eq!(first.copied(), (taken > 0).then_some(0), "what the first one saw");
            taken += 1;
            turns.next().expect("no more turns").map(|report| (taken - 1, report))
        });
        (done.map(|(_, report)| report), taken)
    }

    #[test]
    fn until_one_ends_by_itself() {
        let (done, taken) = run(vec![Ok(report("a", true)), Ok(report("b", true)), Ok(report("c", false))]);
        let done = done.unwrap();
        assert_eq!(
            (taken, done.cleaned, done.freed, done.stopped),
            (3, ["a", "b", "c"].map(String::from).into(), 3, false)
        );
        let idle = Report { stopped: true, ..Report::default() };
        assert_eq!(run(vec![Ok(report("a", true)), Ok(idle)]).1, 2, "nothing comes of it");
    }

    #[test]
    fn what_was_done_is_told_although_a_later_turn_fails() {
        let failure = || Error::new(Code::LockHeld, "prune store", "local");
        let (done, _) = run(vec![Ok(report("a", true)), Err(failure())]);
        let done = done.unwrap();
        assert_eq!((done.cleaned, done.freed), (vec!["a".to_string()], 1));
        assert_eq!(done.failed.map(|e| e.code()), Some(Code::LockHeld));
        assert_eq!(run(vec![Err(failure())]).0.unwrap_err().code(), Code::LockHeld);
    }
}
