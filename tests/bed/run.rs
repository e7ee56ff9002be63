//! Runs a program with a time-out and captured output: nothing in the bed may hang a test.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::process;

/// How long a tool may take unless the caller says otherwise; three times the slowest seen on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// What a program said and how it ended.
#[derive(Debug)]
pub struct Output {
    pub command: String,
    /// The exit code; None where a signal ended it, also our own after the time-out.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub timed_out: bool,
    pub took: Duration,
}

impl Output {
    /// Demands success and gives what was printed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.success(), "{self}");
        self.stdout
    }

    /// Demands failure and gives both streams as one text.
    #[track_caller]
    pub fn fails(self) -> String {
        assert!(!self.success() && !self.timed_out, "expected a failure: {self}");
        self.stdout + &self.stderr
    }

    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// What was printed as JSON, however it ended.
    #[track_caller]
    pub fn document(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("not JSON ({e}): {self}"))
    }

    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        let text = self.ok();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("not JSON ({e}): {text}"))
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = match self.code {
            _ if self.timed_out => "timed out".to_owned(),
            Some(code) => format!("exit code {code}"),
            None => "ended by a signal".to_owned(),
        };
        write!(f, "{}: {end} after {:?}\n{}{}", self.command, self.took, self.stdout, self.stderr)
    }
}

/// A program about to run.
pub struct Run {
    command: Command,
    input: Vec<u8>,
    timeout: Duration,
    meanwhile: Option<Box<dyn FnOnce(u32) + Send>>,
}

impl Run {
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Run { command: process::bound_to_us(program), input: Vec::new(), timeout: TIMEOUT, meanwhile: None }
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    pub fn dir(mut self, dir: impl AsRef<std::path::Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Bytes for the standard input, which is empty otherwise.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Does something else while the program runs; it is told the process id.
    pub fn meanwhile(mut self, act: impl FnOnce(u32) + Send + 'static) -> Self {
        self.meanwhile = Some(Box::new(act));
        self
    }

    #[track_caller]
    pub fn run(mut self) -> Output {
        let command = format!("{:?}", self.command);
        let started = Instant::now();
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process::spawn(self.command);
        let mut stdin = child.stdin.take().expect("piped");
        let stdout = drain(child.stdout.take().expect("piped"));
        let stderr = drain(child.stderr.take().expect("piped"));
        // A program that does not read its input ends this thread with a broken pipe, which is no fault.
        std::thread::spawn(move || stdin.write_all(&self.input));
        let pid = child.id();
        let other = self.meanwhile.take().map(|act| std::thread::spawn(move || act(pid)));
        let (code, timed_out) = wait(&mut child, started + self.timeout);
        if let Some(Err(panic)) = other.map(|thread| thread.join()) {
            std::panic::resume_unwind(panic);
        }
        let text = |t: std::thread::JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&t.join().expect("reader thread")).into_owned()
        };
        Output { command, code, stdout: text(stdout), stderr: text(stderr), timed_out, took: started.elapsed() }
    }
}

fn drain(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        // What was read before an error is still worth showing.
        let _ = from.read_to_end(&mut all);
        all
    })
}

fn wait(child: &mut Child, deadline: Instant) -> (Option<i32>, bool) {
    let mut timed_out = false;
    let ended = until(deadline, || child.try_wait().expect("wait for a child"));
    let status = ended.unwrap_or_else(|| {
        timed_out = true;
        child.kill().expect("kill a child");
        child.wait().expect("wait for a child")
    });
    (status.code(), timed_out)
}

/// Asks until there is an answer or the deadline passes, ever more slowly.
pub fn until<T>(deadline: Instant, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
