//! A booted tree: systemd as the first process of a container, and the way into it.
//!
//! `unshare` → `systemd-nspawn` (first process of a PID namespace) → the node's systemd. Should this test process die,
//! `unshare` gets a SIGKILL by its parent death signal, passes it on, and with the PID namespace everything in it ends.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::bed::process::{Process, bound_to_us};
use crate::bed::run::{Run, until};

/// A boot takes two seconds; this is for a machine that is busy with other things.
const BOOT: Duration = Duration::from_secs(90);
/// From SIGKILL to the last process gone.
const GONE: Duration = Duration::from_secs(30);
/// What a program in the node sees: nothing of the environment of the tests.
const ENVIRONMENT: [&str; 7] = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "LANG=C.UTF-8",
    "TERM=dumb",
    "SYSTEMD_PAGER=",
    "SYSTEMD_COLORS=0",
    "DEBIAN_FRONTEND=noninteractive",
];
/// How systemd-nspawn ends when its machine reboots and it was told to keep the unit.
const REBOOT: i32 = 133;
/// Names of control groups begin with it, then comes the id of the process that made them.
const PREFIX: &str = "refloat-bed-";

/// One run of a node, from boot to power off or reboot.
pub(super) struct Machine {
    process: Process,
    name: String,
    /// The node's systemd, as this machine numbers it.
    leader: u32,
}

impl Machine {
    /// `dir` holds `up`, `work` and `root`. Returns once nothing starts any more; a unit that failed is a panic.
    #[track_caller]
    pub fn boot(dir: &Path, base: &Path, host: &str, options: &[String]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        sweep();
        let name = format!("{PREFIX}{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let console = std::fs::File::create(dir.join("console")).expect("make the console log");
        let mut command = bound_to_us("unshare");
        command.args(["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bed/systemd/boot.sh"));
        command.arg(&name).args([dir, base]).arg(host).args(options).stdin(Stdio::null());
        command.stdout(console.try_clone().expect("share the console log")).stderr(console);
        let mut machine = Machine { process: Process::start(command), name, leader: 0 };
        let console = || std::fs::read_to_string(dir.join("console")).unwrap_or_default();

        let deadline = Instant::now() + BOOT;
        let state = until(deadline, || {
            if let Some(end) = machine.process.ended() {
                panic!("node {host} did not boot: {end}\n{}", console());
            }
            machine.leader = leader(machine.process.pid())?;
            // Before its bus is there this fails, and so it does for a system that is degraded.
            let state = machine.command(&["systemctl", "is-system-running", "--wait"]).timeout(BOOT).run();
            matches!(state.stdout.trim(), "running" | "degraded").then_some(state.stdout)
        });
        match state.as_deref().map(str::trim) {
            Some("running") => machine,
            state => {
                let failed = machine.command(&["systemctl", "--failed", "--no-legend"]).run().stdout;
                panic!("node {host} is {state:?}: {failed}\n{}", console());
            }
        }
    }

    /// The node's systemd, as this machine numbers it.
    pub fn leader(&self) -> u32 {
        self.leader
    }

    /// A program in the node, as root.
    pub fn command(&self, args: &[&str]) -> Run {
        let leader = self.leader.to_string();
        Run::new("nsenter").args(["-t", &leader, "-a", "--", "env", "-i"]).args(ENVIRONMENT).args(args)
    }

    /// A program of this machine in the node's network.
    pub fn in_network(&self, program: &Path) -> Run {
        Run::new("nsenter").args(["-t", &self.leader.to_string(), "-n", "--"]).args([program])
    }

    /// Waits for the end that a `systemctl reboot` or `poweroff` in it leads to, and tells whether it was a reboot.
    #[track_caller]
    pub fn wait_end(self) -> bool {
        match until(Instant::now() + BOOT, || self.process.ended()) {
            Some(status) => status.code() == Some(REBOOT),
            None => panic!("node {} did not go down within {BOOT:?}", self.name),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.process.kill();
        // The kernel takes the groups back once the last process in them is gone, and its mounts with it.
        let gone = until(Instant::now() + GONE, || remove_groups(&self.name).then_some(()));
        if gone.is_none() {
            eprintln!("control groups of {} are still in use", self.name);
        }
    }
}

/// The node's first process: the child of systemd-nspawn that is number 1 where it lives.
fn leader(unshare: u32) -> Option<u32> {
    let manager = *children(unshare).first()?;
    children(manager).into_iter().find(|pid| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        numbers.split_whitespace().next_back() == Some("1")
    })
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

fn hierarchies() -> impl Iterator<Item = PathBuf> {
    ["systemd", "unified", ""].iter().map(|name| Path::new("/sys/fs/cgroup").join(name))
}

/// Whether nothing of them is left.
fn remove_groups(name: &str) -> bool {
    fn remove(group: &Path) -> bool {
        let Ok(entries) = std::fs::read_dir(group) else { return true };
        let inner: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|path| path.is_dir()).collect();
        inner.iter().all(|group| remove(group)) && std::fs::remove_dir(group).is_ok()
    }
    hierarchies().all(|hierarchy| remove(&hierarchy.join(name)))
}

/// Removes what test processes left that were killed: empty control groups, and trees of nodes.
fn sweep() {
    let killed = |name: &str, prefix: &str| {
        let pid = name.strip_prefix(prefix).and_then(|rest| rest.split('-').next());
        pid.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists())
    };
    for hierarchy in hierarchies() {
        for entry in std::fs::read_dir(hierarchy).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if killed(&name, PREFIX) {
                remove_groups(&name);
            }
        }
    }
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        if killed(&entry.file_name().to_string_lossy(), super::TREE_PREFIX) {
            // Another test process may be at it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
