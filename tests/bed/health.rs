//! `refloat health daemon` under test, with the configuration of a [`Refloat`].

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::Process;
use super::refloat::Refloat;
use super::run::until;

/// Longer than anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Killed when dropped.
pub struct HealthProcess<'r> {
    refloat: &'r Refloat,
    process: Process,
    log: PathBuf,
}

impl<'r> HealthProcess<'r> {
    /// Starts it and waits until everything was judged once.
    #[track_caller]
    pub fn start(refloat: &'r Refloat) -> Self {
        let log = refloat.dir().join("health.log");
        let health = HealthProcess { refloat, process: refloat.spawn(&["health", "daemon"], &log), log };
        let judged = |h: &Value| targets(h).all(|target| target["state"] != "unknown");
        health.when("everything is judged", judged);
        health
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The document, whatever it says.
    pub fn now(&self) -> Option<Value> {
        let output = self.refloat.command(&["-o", "json", "health"]).run();
        matches!(output.code, Some(0 | 1 | 3)).then(|| serde_json::from_str(&output.stdout).expect("a document"))
    }

    /// The document, as soon as it is so, and how long that took.
    #[track_caller]
    pub fn when(&self, what: &str, is: impl Fn(&Value) -> bool) -> (Value, Duration) {
        let begun = Instant::now();
        match until(begun + PATIENCE, || self.now().filter(|health| is(health))) {
            Some(health) => (health, begun.elapsed()),
            None => panic!("not seen: {what}\n{}\n{}", self.refloat.run(&["health"]), self.log()),
        }
    }

    /// SIGTERM, and the end of it.
    #[track_caller]
    pub fn stop(self) {
        let status = self.process.terminate(PATIENCE);
        assert!(status.success(), "{status}\n{}", self.log());
    }
}

/// All of them, the node itself among them.
pub fn targets(health: &Value) -> impl Iterator<Item = &Value> {
    health["targets"].as_array().expect("targets").iter()
}

/// The member of this name.
#[track_caller]
pub fn member<'h>(health: &'h Value, name: &str) -> &'h Value {
    target(health, "etcd", name)
}

#[track_caller]
pub fn target<'h>(health: &'h Value, kind: &str, name: &str) -> &'h Value {
    let found = targets(health).find(|target| target["kind"] == kind && target["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name} in {health}"))
}
