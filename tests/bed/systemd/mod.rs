//! Nodes with systemd: a small Debian 12, booted in systemd-nspawn, in which packages are installed and units run.
//!
//! In: what a test wants in the node. Out: programs run in it, with time-outs. Each node has a tree (an overlay over
//! one base tree that `prepare` makes), a network, process ids and control groups of its own, so any number may run at
//! once. Nothing outlives the test process, also when that is killed. All of it needs root: ask
//! [`skip_unless_root`](super::skip_unless_root) first.
//!
//! - [`machine`]: one run of a node, from boot to reboot or power off
//! - [`etcd`]: etcd in the node, laid out as kubeadm does or as a plain unit
//! - [`packages`]: where the packages are that `./dev` made

mod etcd;
mod machine;
mod packages;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::run::{Output, Run, until};
use machine::Machine;

pub use etcd::{ADDRESS, Layout, NodeEtcd};
pub use packages::Packages;

/// The id of the test process follows.
const TREE_PREFIX: &str = "refloat-node-";
/// For what a node is expected to come to by itself.
const PATIENCE: Duration = Duration::from_secs(180);

/// A booted node. Everything in it runs as root unless something else is asked for.
pub struct SystemdNode {
    host: String,
    // Dropped in this order: the tree is removed after the last process in it is gone.
    machine: Option<Machine>,
    tree: TempDir,
    options: Vec<String>,
}

impl SystemdNode {
    /// A node of this name, booted.
    #[track_caller]
    pub fn boot(host: &str) -> Self {
        let tree = tempfile::Builder::new()
            .prefix(&format!("{TREE_PREFIX}{}-", std::process::id()))
            .tempdir()
            .expect("make a temporary directory");
        for dir in ["up/etc", "work", "root"] {
            std::fs::create_dir_all(tree.path().join(dir)).expect("make a directory");
        }
        // What must differ between nodes; a name that debootstrap left would win over the one that nspawn gives.
        let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid").expect("a random id").replace('-', "");
        let hosts = format!("127.0.0.1 localhost\n{} {host}\n", etcd::ADDRESS);
        for (file, text) in [("machine-id", &id), ("hostname", &format!("{host}\n")), ("hosts", &hosts)] {
            std::fs::write(tree.path().join("up/etc").join(file), text).expect("write into the tree");
        }
        let mut options = vec![format!("--bind-ro={}:/opt/etcd", etcd::programs().display())];
        // The build with failpoints, for tests that need one; they put it in the place of the installed program.
        if let Some(program) = option_env!("CARGO_BIN_EXE_refloat") {
            options.push(format!("--bind-ro={program}:{}", Self::FAILPOINTS));
        }
        let mut node = SystemdNode { host: host.to_owned(), machine: None, tree, options };
        node.start();
        node
    }

    /// Where the program built with failpoints is in each node.
    pub const FAILPOINTS: &str = "/opt/refloat-failpoints";

    #[track_caller]
    fn start(&mut self) {
        self.machine = Some(Machine::boot(self.tree.path(), base(), &self.host, &self.options));
    }

    fn machine(&self) -> &Machine {
        self.machine.as_ref().expect("a node that was booted runs")
    }

    /// A program in the node, for input or another time-out.
    pub fn command(&self, args: &[&str]) -> Run {
        self.machine().command(args)
    }

    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).run()
    }

    /// The address of the node's D-Bus, for a client on this machine.
    pub fn bus(&self) -> String {
        format!("unix:path=/proc/{}/root/run/dbus/system_bus_socket", self.machine().leader())
    }

    /// A program of this machine in the node's network.
    pub fn in_network(&self, program: &Path) -> Run {
        self.machine().in_network(program)
    }

    /// Writes a file in the node, with the directories above it.
    #[track_caller]
    pub fn write(&self, path: &str, mode: &str, content: impl Into<Vec<u8>>) {
        self.command(&["install", "-D", "-m", mode, "/dev/stdin", path]).input(content).run().ok();
    }

    /// Brings a file of this machine into the node.
    #[track_caller]
    pub fn copy_in(&self, from: &Path, path: &str, mode: &str) {
        let content = std::fs::read(from).unwrap_or_else(|e| panic!("read {}: {e}", from.display()));
        self.write(path, mode, content);
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        self.run(&["cat", path]).ok()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.run(&["test", "-e", path]).success()
    }

    /// Installs, or upgrades to, a package, and gives what dpkg said.
    #[track_caller]
    pub fn install(&self, deb: &Path) -> String {
        self.copy_in(deb, "/var/tmp/package.deb", "0644");
        let said = self.command(&["dpkg", "--install", "/var/tmp/package.deb"]).timeout(PATIENCE * 2).run();
        said.ok()
    }

    /// A property of a unit, such as `ActiveState`.
    #[track_caller]
    pub fn property(&self, unit: &str, name: &str) -> String {
        self.run(&["systemctl", "show", "--value", "--property", name, unit]).ok().trim().to_owned()
    }

    /// What a unit wrote to the journal since the boot, the texts of the catalogue included.
    #[track_caller]
    pub fn journal(&self, unit: &str) -> String {
        self.run(&["journalctl", "--no-pager", "--boot", "--catalog", "--output=short-precise", "--unit", unit]).ok()
    }

    /// Asks until there is an answer; shows the state and the journal of the unit that it is about otherwise.
    #[track_caller]
    pub fn wait<T>(&self, unit: &str, what: &str, ask: impl FnMut() -> Option<T>) -> T {
        match until(Instant::now() + PATIENCE, ask) {
            Some(answer) => answer,
            None => {
                let status = self.run(&["systemctl", "status", "--no-pager", unit]).stdout;
                panic!("{} never saw: {what}\n{status}\n{}", self.host, self.journal(unit));
            }
        }
    }

    /// Orderly, with all units stopped; the tree stays, all else is new: processes, network, /run, boot id.
    #[track_caller]
    pub fn reboot(&mut self) {
        self.run(&["systemctl", "reboot"]);
        let rebooted = self.machine.take().expect("a node that was booted runs").wait_end();
        assert!(rebooted, "{} went down, but not to reboot", self.host);
        self.start();
    }

    /// Every process in it is killed at once, no unit is stopped; then it boots again.
    #[track_caller]
    pub fn power_cycle(&mut self) {
        self.machine = None;
        self.start();
    }
}

impl Drop for SystemdNode {
    fn drop(&mut self) {
        if std::thread::panicking() && self.machine.is_some() {
            let said = self.run(&["journalctl", "--no-pager", "--boot", "--lines=200", "--output=short-precise"]);
            eprintln!("the end of the journal of {}:\n{}", self.host, said.stdout);
        }
    }
}

/// The tree that all nodes share, read only.
#[track_caller]
fn base() -> &'static Path {
    static BASE: OnceLock<PathBuf> = OnceLock::new();
    let base = BASE.get_or_init(|| {
        let prepare = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bed/systemd/prepare");
        Run::new(prepare).args(["--where"]).run().ok().trim().into()
    });
    assert!(base.is_dir(), "the tree of systemd nodes is not prepared, {} is missing: run ./dev bed", base.display());
    base
}
