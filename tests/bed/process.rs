//! Child processes that cannot outlive the tests, and signals that reach only them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::run::until;

/// Longer than any time-out that a test waits for; after it a forgotten member runs on.
const THAW_AFTER: Duration = Duration::from_secs(120);

/// A command that the kernel kills when the thread that spawned it ends: see [`spawn`].
pub fn bound_to_us(program: impl AsRef<OsStr>) -> Command {
    // setpriv becomes the program, so the process id is the program's.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Spawns from one thread that lives as long as this process. The parent death signal belongs to the thread
/// that made the child, and threads of tests and of executors end earlier than what they started.
#[track_caller]
pub fn spawn(command: Command) -> Child {
    type Job = (Command, mpsc::Sender<io::Result<Child>>);
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, todo) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("spawner".into())
            .spawn(move || {
                for (mut command, answer) in todo {
                    // Nobody left to take the child: dropping it is all there is to do.
                    let _ = answer.send(command.spawn());
                }
            })
            .expect("start a thread");
        jobs
    });
    let shown = format!("{command:?}");
    let (answer, child) = mpsc::channel();
    spawner.send((command, answer)).expect("the spawner runs");
    child.recv().expect("the spawner answers").unwrap_or_else(|e| panic!("cannot start {shown}: {e}"))
}

/// A process that runs until it is told to end; killed when dropped.
pub struct Process {
    child: Arc<Mutex<Child>>,
    pid: Pid,
    /// Dropping the sender ends the timer of a freeze.
    thaw: Mutex<Option<mpsc::Sender<()>>>,
}

impl Process {
    #[track_caller]
    pub fn start(command: Command) -> Self {
        let child = spawn(command);
        let pid = Pid::from_raw(child.id().try_into().expect("a process id"));
        Process { child: Arc::new(Mutex::new(child)), pid, thaw: Mutex::new(None) }
    }

    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// None while it runs.
    pub fn ended(&self) -> Option<ExitStatus> {
        lock(&self.child).try_wait().expect("wait for a child")
    }

    /// SIGSTOP: sockets stay open, nothing answers. A timer takes it back should the test forget to.
    pub fn freeze(&self) {
        let (cancel, canceled) = mpsc::channel::<()>();
        let (child, pid) = (Arc::clone(&self.child), self.pid);
        std::thread::spawn(move || {
            if canceled.recv_timeout(THAW_AFTER) == Err(mpsc::RecvTimeoutError::Timeout) {
                signal(&child, pid, Signal::SIGCONT);
            }
        });
        *lock(&self.thaw) = Some(cancel);
        signal(&self.child, self.pid, Signal::SIGSTOP);
        // The signal is sent at once and obeyed a moment later, thread by thread: until then it may still answer.
        let deadline = Instant::now() + Duration::from_secs(10);
        until(deadline, || is_stopped(self.pid).then_some(())).expect("every thread stands still");
    }

    pub fn thaw(&self) {
        signal(&self.child, self.pid, Signal::SIGCONT);
        *lock(&self.thaw) = None;
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&self) {
        *lock(&self.thaw) = None;
        let mut child = lock(&self.child);
        // An error means that it has ended already.
        let _ = child.kill();
        child.wait().expect("wait for a child");
    }

    /// SIGTERM, and waits until it is gone; panics when it does not end in `timeout`.
    #[track_caller]
    pub fn terminate(&self, timeout: Duration) -> ExitStatus {
        signal(&self.child, self.pid, Signal::SIGTERM);
        match until(Instant::now() + timeout, || self.ended()) {
            Some(status) => status,
            None => panic!("process {} did not end within {timeout:?} of SIGTERM", self.pid),
        }
    }

    /// Whether this very process listens on the TCP port: a socket of its own in state LISTEN.
    pub fn listens_on(&self, port: u16) -> bool {
        let sockets = listeners(port);
        !sockets.is_empty() && open_sockets(self.pid()).is_some_and(|own| !own.is_disjoint(&sockets))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves a child handle as good as it was.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends only while the child has not been waited for: until then its id cannot belong to another process.
fn signal(child: &Mutex<Child>, pid: Pid, signal: Signal) {
    let mut child = lock(child);
    if child.try_wait().expect("wait for a child").is_none() {
        kill(pid, signal).expect("signal an own child");
    }
}

/// Whether no thread of a process runs any more; one that has ended never will.
fn is_stopped(pid: Pid) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state stands behind the name, which is in brackets and may hold anything.
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
    })
}

/// Inodes of the sockets that listen on a port of any IPv4 address.
fn listeners(port: u16) -> HashSet<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let wanted = format!(":{port:04X}");
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|f| f.len() > 9 && f[1].ends_with(&wanted) && f[3] == "0A")
        .map(|f| format!("socket:[{}]", f[9]))
        .collect()
}

fn open_sockets(pid: u32) -> Option<HashSet<String>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let links = entries.filter_map(|e| std::fs::read_link(e.ok()?.path()).ok());
    Some(links.filter_map(|l: PathBuf| l.to_str().map(str::to_owned)).collect())
}
