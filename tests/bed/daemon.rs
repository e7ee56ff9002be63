//! `refloat daemon` under test, with the configuration of a [`Refloat`].

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::{Process, bound_to_us};
use super::refloat::Refloat;
use super::run::until;

/// Longer than anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Killed when dropped.
pub struct Daemon<'r> {
    refloat: &'r Refloat,
    process: Process,
    log: PathBuf,
}

impl<'r> Daemon<'r> {
    /// Starts it and waits until it answers on its socket.
    #[track_caller]
    pub fn start(refloat: &'r Refloat) -> Self {
        let daemon = Daemon::launch(refloat, &[]);
        let answers = || refloat.run(&["status"]).success().then_some(());
        if until(Instant::now() + PATIENCE, answers).is_none() {
            panic!("the daemon does not answer:\n{}", daemon.log());
        }
        daemon
    }

    /// Starts it with more environment, and does not wait.
    #[track_caller]
    pub fn launch(refloat: &'r Refloat, env: &[(&str, &str)]) -> Self {
        let Some(program) = option_env!("CARGO_BIN_EXE_refloat") else {
            panic!("only integration tests know where the program is");
        };
        let log = refloat.dir().join("daemon.log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("open the log");
        let mut command = bound_to_us(program);
        command.arg("--config").arg(refloat.config_file()).arg("daemon");
        command.env_remove("NOTIFY_SOCKET").env_remove("JOURNAL_STREAM").envs(env.iter().copied());
        command.stdin(std::process::Stdio::null()).stdout(file.try_clone().expect("share the log")).stderr(file);
        Daemon { refloat, process: Process::start(command), log }
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn socket(&self) -> PathBuf {
        self.refloat.dir().join("run/control.sock")
    }

    /// The status, as soon as it is so.
    #[track_caller]
    pub fn status_when(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.wait(what, || {
            let output = self.refloat.command(&["-o", "json", "status"]).run();
            output.success().then(|| output.json()).filter(|status| is(status))
        })
    }

    /// Job `id`, as soon as it is so.
    #[track_caller]
    pub fn job_when(&self, id: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.wait(what, || {
            let output = self.refloat.command(&["-o", "json", "jobs", "show", id]).run();
            output.success().then(|| output.json()["job"].clone()).filter(|job| is(job))
        })
    }

    #[track_caller]
    pub fn wait<T>(&self, what: &str, found: impl Fn() -> Option<T>) -> T {
        match until(Instant::now() + PATIENCE, found) {
            Some(found) => found,
            None => panic!("not seen: {what}\n{}\n{}", self.refloat.run(&["status"]), self.log()),
        }
    }

    /// All jobs, newest first among those that are over.
    #[track_caller]
    pub fn jobs(&self) -> Vec<Value> {
        self.refloat.json(&["jobs", "list"])["jobs"].as_array().expect("jobs").clone()
    }

    /// SIGTERM, and the end of it.
    #[track_caller]
    pub fn stop(self) {
        let status = self.process.terminate(PATIENCE);
        assert!(status.success(), "{status}\n{}", self.log());
    }
}
