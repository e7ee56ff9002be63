//! The program under test, with a configuration, state and store of its own.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::process::{Process, bound_to_us};
use super::run::{Output, Run};
use super::target::Target;

/// refloat as a user has it who configured one cluster and one store.
pub struct Refloat {
    dir: TempDir,
    member: Option<String>,
    target: Target,
    more: String,
    /// Words before the program: the way into a namespace.
    entry: Vec<String>,
}

/// The line of the configuration that keeps the free space of this machine out of the tests.
pub const MIN_FREE: &str = "min_free = \"16MiB\"";

impl Refloat {
    /// For a `&Cluster` (then say which member is the own one), a `&Node` or a URL, with the certificates and the
    /// user that belong to it.
    #[track_caller]
    pub fn new(target: impl Into<Target>) -> Self {
        let dir = tempfile::Builder::new().prefix("refloat-test-").tempdir().expect("make a temporary directory");
        for name in ["store", "state", "run"] {
            std::fs::create_dir(dir.path().join(name)).expect("make a directory");
        }
        let refloat = Refloat { dir, member: None, target: target.into(), more: String::new(), entry: Vec::new() };
        refloat.configure();
        refloat
    }

    /// `[etcd] member`: a name, an id or a client URL.
    #[track_caller]
    pub fn member(mut self, member: &str) -> Self {
        self.member = Some(member.to_owned());
        self.configure();
        self
    }

    /// In the network, and under the host name, of a machine of a [`super::ControlPlane`].
    pub fn inside(mut self, machine: &super::Namespace) -> Self {
        self.entry = machine.entry().to_vec();
        self
    }

    /// More TOML at the end of the configuration: whole sections.
    #[track_caller]
    pub fn config(mut self, more: &str) -> Self {
        self.more.push_str(more);
        self.configure();
        self
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn config_file(&self) -> PathBuf {
        self.dir.path().join("refloat.toml")
    }

    /// The program, and the words before it where it runs in another network.
    fn program(&self) -> Vec<String> {
        let Some(program) = option_env!("CARGO_BIN_EXE_refloat") else {
            panic!("only integration tests know where the program is");
        };
        let config = self.config_file().display().to_string();
        self.entry.iter().cloned().chain([program.to_owned(), "--config".into(), config]).collect()
    }

    /// A run with this configuration, for more arguments, environment or another time-out.
    pub fn command(&self, args: &[&str]) -> Run {
        let words = self.program();
        Run::new(&words[0]).args(&words[1..]).args(args)
    }

    /// The same for a process that goes on until it is dropped, such as a daemon; what it says is added to `log`.
    #[track_caller]
    pub fn spawn(&self, args: &[&str], log: &Path) -> Process {
        let said = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("open the log");
        let words = self.program();
        let mut command = bound_to_us(&words[0]);
        command.args(&words[1..]).args(args).env_remove("NOTIFY_SOCKET").env_remove("JOURNAL_STREAM");
        command.stdin(std::process::Stdio::null()).stdout(said.try_clone().expect("share the log")).stderr(said);
        Process::start(command)
    }

    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).run()
    }

    /// Runs with `-o json`, demands success and reads what it printed.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> serde_json::Value {
        self.command(&["-o", "json"]).args(args).run().json()
    }

    #[track_caller]
    fn configure(&self) {
        let text = self.text().expect("writing to a string");
        std::fs::write(self.config_file(), text).expect("write the configuration");
    }

    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        writeln!(text, "node = \"test\"\n\n[paths]")?;
        writeln!(text, "state = {:?}\nruntime = {:?}\n\n[etcd]", self.state(), self.dir.path().join("run"))?;
        writeln!(text, "endpoints = {:?}", self.target.endpoints)?;
        if let Some(member) = &self.member {
            writeln!(text, "member = {member:?}")?;
        }
        if let Some(pki) = &self.target.pki {
            let (client, ca) = (&pki.client, &pki.ca);
            writeln!(text, "ca_file = {ca:?}\ncert_file = {:?}\nkey_file = {:?}", client.cert, client.key)?;
        }
        if let Some((name, password)) = &self.target.user {
            let file = self.dir.path().join("password");
            std::fs::write(&file, password).expect("write the password file");
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&file, private).expect("protect the password file");
            writeln!(text, "username = {name:?}\npassword_file = {file:?}")?;
        }
        writeln!(text, "\n[[store]]\nname = \"local\"\nurl = \"file://{}\"", self.store().display())?;
        // How full the disk of this machine is must not decide a test.
        writeln!(text, "{MIN_FREE}\n")?;
        text.push_str(&self.more);
        Ok(text)
    }
}
