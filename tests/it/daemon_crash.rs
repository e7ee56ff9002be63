//! kill -9 of the daemon at each step of a job and at each append of the ledger (promises 7 and 11): the next start loses no
//! job, runs none twice at once, and its status tells the truth.

use std::time::Duration;

use serde_json::Value;

use crate::bed::{Cluster, Daemon, Fill, Line, Refloat, until};
use crate::crash::{sound, swept};
use crate::taking::{listed, text};

const POINTS: &[&str] = &[
    "take::streamed",
    "take::verified",
    "take::data",
    "take::before_manifest",
    "take::manifest",
    "ledger::writing",
    "ledger::written",
    "ledger::synced",
];

fn over(job: &Value) -> bool {
    ["succeeded", "failed", "canceled"].iter().any(|word| job["state"] == *word)
}

/// Starts it with the point set, lets it die there, starts it again and waits until all is over.
fn killed_and_started_again(cluster: &Cluster, point: &str, nth: usize) -> bool {
    let refloat = Refloat::new(cluster.node(0)).config("[snapshot]\nschedule = \"0 0 1 1 *\"\n");
    let case = format!("{point} {nth}");
    let action = if nth == 0 { format!("{point}=return") } else { format!("{point}={nth}*off->return") };
    let dying = Daemon::launch(&refloat, &[("FAILPOINTS", &action)]);
    let ended = || {
        let idle = || {
            let output = refloat.command(&["-o", "json", "status"]).run();
            output.success().then(|| output.json()).filter(|s| {
                let jobs = s["jobs"].as_array().cloned().unwrap_or_default();
                s["stores"][0]["snapshots"] == 1 && jobs.len() == 2 && jobs.iter().all(over)
            })
        };
        dying.process().ended().map(|_| true).or_else(|| idle().map(|_| false))
    };
    let died = until(std::time::Instant::now() + Duration::from_secs(60), ended);
    let died = died.unwrap_or_else(|| panic!("{case}: neither killed nor idle\n{}", dying.log()));
    if !died {
        return false;
    }
    drop(dying);
    // What it knew, by whoever looks now: nothing runs.
    let down = refloat.command(&["-o", "json", "status"]).run();
    assert_eq!(down.code, Some(69), "{case}: {down}");
    let before: Value = serde_json::from_str(&down.stdout).expect("a document");
    let before = before["jobs"].as_array().expect("jobs").clone();
    assert!(!before.iter().any(|job| job["state"] == "running"), "{case}: {before:?}");
    let known: Vec<String> = before.iter().map(|job| text(job, "id").to_owned()).collect();

    let daemon = Daemon::start(&refloat);
    let status = daemon.status_when(&format!("{case}: all is over"), |s| {
        let jobs = s["jobs"].as_array().cloned().unwrap_or_default();
        s["stores"][0]["snapshots"].as_u64() >= Some(1) && !jobs.is_empty() && jobs.iter().all(over)
    });
    let jobs = status["jobs"].as_array().expect("jobs");
    for id in known {
        assert!(jobs.iter().any(|job| job["id"] == *id), "{case}: job {id} is lost: {status}");
    }
    let snapshots: Vec<&Value> = jobs.iter().filter(|job| job["kind"] == "snapshot").collect();
    assert_eq!(snapshots.len(), 1, "{case}: one slot, one job: {status}");
    assert_eq!(snapshots[0]["state"], "succeeded", "{case}: {status}");
    let decided = status["schedules"][0]["last"].as_array().expect("decisions");
    assert_eq!(decided.iter().filter(|d| d["verdict"] == "run").count(), 1, "{case}: {status}");
    assert_eq!(status["ledger"]["state"], "good", "{case}: {status}");
    // A snapshot that was published before the kill is the job's result: it is not taken again.
    let count = listed(&refloat, &[]).len();
    assert_eq!(count, 1, "{case}: {status}");
    daemon.stop();
    assert_eq!(sound(&refloat, &case), 1);
    swept(&refloat, &case);
    true
}

#[test]
fn killed_at_each_step_it_goes_on() {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).small(300);
    let mut killed = 0;
    for point in POINTS {
        // Each append is another moment: the slot, the intent, the steps, the end.
        let times = if point.starts_with("ledger") { 10 } else { 1 };
        for nth in 0..times {
            if !killed_and_started_again(&cluster, point, nth) {
                assert!(nth > 0, "{point} was never passed");
                break;
            }
            killed += 1;
        }
    }
    assert!(killed > 15, "only {killed} kills");
}
