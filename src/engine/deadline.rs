//! Until when a job may run: by the size of the work, where that is known (law 6).

use std::time::Duration;

use super::job::Task;
use super::record::LastSnapshot;

/// So much longer than the last time at the same rate.
const FACTOR: f64 = 4.0;
const FLOOR: Duration = Duration::from_secs(120);

/// How long the work may take; `db_bytes` is what the member says now, where it was asked.
pub fn allowed(
    task: &Task,
    last: Option<&LastSnapshot>,
    db_bytes: Option<u64>,
    rate: Option<u64>,
    ceiling: Duration,
) -> Duration {
    let known = match (task, last) {
        (Task::Snapshot { .. }, Some(last)) if last.took > 0.0 && last.db_bytes > 0 => {
            let bytes = db_bytes.unwrap_or(last.db_bytes).max(last.db_bytes) as f64;
            let grown = bytes / last.db_bytes as f64;
            // The rate may be lower than it was the last time.
            let held_back = rate.map_or(0.0, |rate| bytes / rate as f64);
            Duration::try_from_secs_f64((last.took * grown).max(held_back) * FACTOR).ok()
        }
        // How much there is to read or to remove is not known before it is looked at.
        _ => None,
    };
    known.map_or(ceiling, |known| known.max(FLOOR).min(ceiling))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::job::JobId;
    use super::*;

    #[test]
    fn by_size_within_bounds() {
        let last =
            |db_bytes, took| LastSnapshot { job: JobId(1), at: Timestamp::UNIX_EPOCH, id: "x".into(), db_bytes, took };
        let snapshot = Task::Snapshot { member: None, tags: vec![], stores: vec![] };
        let ceiling = Duration::from_secs(7200);
        for (last, now, want) in [
            (None, None, 7200),
            (Some(last(1 << 30, 100.0)), None, 400),
            (Some(last(1 << 30, 100.0)), Some(2 << 30), 800),
            // It shrank: the same work may be needed all the same.
            (Some(last(1 << 30, 100.0)), Some(1 << 20), 400),
            (Some(last(1 << 30, 1.0)), None, 120),
            (Some(last(1 << 30, 1e9)), None, 7200),
            (Some(last(0, 0.0)), Some(5), 7200),
            (Some(last(1, f64::MAX)), Some(u64::MAX), 7200),
        ] {
            assert_eq!(allowed(&snapshot, last.as_ref(), now, None, ceiling).as_secs(), want, "{last:?} {now:?}");
        }
        // Held back more than the last time.
        let rate = Some(10 << 20);
        assert_eq!(allowed(&snapshot, Some(&last(4 << 30, 1.0)), None, rate, ceiling).as_secs(), 1638);
        assert_eq!(allowed(&Task::Prune { store: "a".into() }, Some(&last(1, 1.0)), None, None, ceiling), ceiling);
    }
}
