//! `refloat health daemon` under test, with the configuration of a [`Refloat`].

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::{Process, bound_to_us};
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
        let Some(program) = option_env!("CARGO_BIN_EXE_refloat") else {
            panic!("only integration tests know where the program is");
        };
        let log = refloat.dir().join("health.log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("open the log");
        let mut command = bound_to_us(program);
        command.arg("--config").arg(refloat.config_file()).args(["health", "daemon"]);
        command.env_remove("NOTIFY_SOCKET").env_remove("JOURNAL_STREAM");
        command.stdin(std::process::Stdio::null()).stdout(file.try_clone().expect("share the log")).stderr(file);
        let health = HealthProcess { refloat, process: Process::start(command), log };
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
    let found = targets(health).find(|target| target["kind"] == "etcd" && target["name"] == name);
    found.unwrap_or_else(|| panic!("no member {name} in {health}"))
}
