//! A bus of our own, and a systemd on it that does what a test says.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use zbus::connection::Builder;
use zbus::{Connection, OwnedObjectPath, Variant, fdo, interface};

use super::bus::{self, Links};

const DAEMON: &str = "/usr/bin/dbus-daemon";
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A `dbus-daemon`; it goes when this is dropped.
pub struct Bus {
    dir: tempfile::TempDir,
    daemon: Child,
}

impl Bus {
    /// `None`, noted as skipped, where there is no `dbus-daemon`.
    pub fn start() -> Option<Bus> {
        if !std::path::Path::new(DAEMON).exists() {
            let test = std::thread::current().name().unwrap_or("unnamed test").to_owned();
            eprintln!("skipped {test}: needs {DAEMON}");
            if let Some(notes) = std::env::var_os("REFLOAT_SKIPS") {
                let mut file = std::fs::File::options().create(true).append(true).open(notes).unwrap();
                writeln!(file, "{test}: needs {DAEMON}").unwrap();
            }
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let daemon = launch(&dir);
        Some(Bus { dir, daemon })
    }

    pub fn address(&self) -> String {
        address(&self.dir)
    }

    pub fn stop(&mut self) {
        let _ = self.daemon.kill();
        self.daemon.wait().unwrap();
    }

    /// At the same address.
    pub fn restart(&mut self) {
        self.stop();
        let _ = std::fs::remove_file(self.dir.path().join("bus"));
        self.daemon = launch(&self.dir);
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.stop();
    }
}

fn address(dir: &tempfile::TempDir) -> String {
    format!("unix:path={}", dir.path().join("bus").display())
}

fn launch(dir: &tempfile::TempDir) -> Child {
    // Without any service that it could start by itself.
    let config = dir.path().join("bus.conf");
    let text = format!(
        r#"<busconfig><type>session</type><listen>{}</listen><auth>EXTERNAL</auth><policy context="default">
        <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"#,
        address(dir)
    );
    std::fs::write(&config, text).unwrap();
    let mut daemon = Command::new(DAEMON)
        .args(["--nofork", "--nopidfile", "--print-address", "--config-file"])
        .arg(&config)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It listens once it has said where.
    let mut line = String::new();
    BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with(&address(dir)), "{line:?}");
    daemon
}

/// What the fake holds of one unit.
#[derive(Debug, Clone)]
pub struct Fake {
    pub load: &'static str,
    pub active: &'static str,
    pub sub: &'static str,
    pub pid: u32,
    pub restarts: u32,
    pub changed: u64,
    pub result: &'static str,
}

impl Fake {
    pub const RUNNING: Fake = Fake {
        load: "loaded",
        active: "active",
        sub: "running",
        pid: 4711,
        restarts: 0,
        changed: 1_700_000_000_000_000,
        result: "success",
    };
}

#[derive(Debug, Default)]
pub struct State {
    units: BTreeMap<String, Fake>,
    /// What `JobRemoved` says of jobs; none is sent where it is missing.
    pub job_result: Option<&'static str>,
    /// Calls of `Manager`, with their arguments.
    pub calls: Vec<String>,
    subscribed: bool,
}

/// A systemd on a bus.
pub struct Systemd {
    pub connection: Connection,
    pub state: Arc<Mutex<State>>,
}

impl Systemd {
    pub async fn start(bus: &Bus, units: &[(&str, Fake)]) -> Systemd {
        let state = Arc::new(Mutex::new(State { job_result: Some("done"), ..State::default() }));
        let manager = Manager(Arc::clone(&state));
        let address = bus.address();
        let mut builder = Builder::address(address.as_str()).serve_at(bus::PATH, manager);
        for (name, fake) in units {
            state.lock().unwrap().units.insert((*name).into(), fake.clone());
            let unit = Unit { name: (*name).into(), state: Arc::clone(&state) };
            let service = Service { name: (*name).into(), state: Arc::clone(&state) };
            builder = builder.serve_at(bus::unit_path(name), unit).serve_at(bus::unit_path(name), service);
        }
        let connection = builder.name(bus::SERVICE).build().await.unwrap();
        Systemd { connection, state }
    }

    /// Changes a unit, and sends the two signals that systemd sends.
    pub async fn change(&self, name: &str, change: impl FnOnce(&mut Fake)) {
        change(self.state.lock().unwrap().units.get_mut(name).unwrap());
        for interface in ["Unit", "Service"] {
            let none: HashMap<&str, Variant<'_>> = HashMap::new();
            let body = (format!("{}.{interface}", bus::SERVICE), none, ["ActiveState"].as_slice());
            let properties = "org.freedesktop.DBus.Properties";
            let sent =
                self.connection.emit_signal(None::<&str>, bus::unit_path(name), properties, "PropertiesChanged", &body);
            sent.await.unwrap();
        }
    }

    pub async fn reloading(&self, now: bool) {
        self.connection.emit_signal(None::<&str>, bus::PATH, bus::MANAGER, "Reloading", &(now,)).await.unwrap();
    }
}

struct Manager(Arc<Mutex<State>>);

impl Manager {
    /// Another job ends first, then ours, and only then the caller hears which one is ours.
    async fn job(&self, connection: &Connection, call: &str, name: &str, mode: &str) -> fdo::Result<OwnedObjectPath> {
        let path = |id: u32| OwnedObjectPath::try_from(format!("{}/job/{id}", bus::PATH)).unwrap();
        let result = {
            let mut state = self.0.lock().unwrap();
            state.calls.push(format!("{call} {name} {mode}"));
            if !state.units.contains_key(name) {
                return Err(fdo::Error::UnknownObject("no such unit".into()));
            }
            state.job_result
        };
        let others: Vec<_> = (1..200).map(|id| (id, "done")).collect();
        let ours = result.map(|result| (7000, result));
        for (id, result) in others.into_iter().chain(ours).chain([(7001, "canceled")]) {
            let body = (id, path(id), name, result);
            connection.emit_signal(None::<&str>, bus::PATH, bus::MANAGER, "JobRemoved", &body).await?;
        }
        Ok(path(7000))
    }
}

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    fn subscribe(&self) -> fdo::Result<()> {
        self.0.lock().unwrap().subscribed = true;
        Ok(())
    }

    async fn start_unit(
        &self,
        #[zbus(connection)] connection: &Connection,
        name: &str,
        mode: &str,
    ) -> fdo::Result<OwnedObjectPath> {
        self.job(connection, "start", name, mode).await
    }

    async fn stop_unit(
        &self,
        #[zbus(connection)] connection: &Connection,
        name: &str,
        mode: &str,
    ) -> fdo::Result<OwnedObjectPath> {
        self.job(connection, "stop", name, mode).await
    }

    async fn restart_unit(
        &self,
        #[zbus(connection)] connection: &Connection,
        name: &str,
        mode: &str,
    ) -> fdo::Result<OwnedObjectPath> {
        self.job(connection, "restart", name, mode).await
    }

    fn reload(&self) {
        self.0.lock().unwrap().calls.push("reload".into());
    }

    fn enable_unit_files(&self, names: Vec<String>, runtime: bool, force: bool) -> (bool, Links) {
        self.0.lock().unwrap().calls.push(format!("enable {} {runtime} {force}", names.join(" ")));
        let link = |name: &String| ("symlink".into(), format!("/etc/wants/{name}"), format!("/usr/lib/{name}"));
        (true, names.iter().map(link).collect())
    }
}

macro_rules! seen {
    ($self:ident, $field:ident) => {
        $self.state.lock().unwrap().units[&$self.name].$field
    };
}

struct Unit {
    name: String,
    state: Arc<Mutex<State>>,
}

#[interface(name = "org.freedesktop.systemd1.Unit")]
impl Unit {
    #[zbus(property)]
    fn load_state(&self) -> &str {
        seen!(self, load)
    }
    #[zbus(property)]
    fn active_state(&self) -> &str {
        seen!(self, active)
    }
    #[zbus(property)]
    fn sub_state(&self) -> &str {
        seen!(self, sub)
    }
    #[zbus(property)]
    fn state_change_timestamp(&self) -> u64 {
        seen!(self, changed)
    }
}

struct Service {
    name: String,
    state: Arc<Mutex<State>>,
}

#[interface(name = "org.freedesktop.systemd1.Service")]
impl Service {
    #[zbus(property, name = "MainPID")]
    fn main_pid(&self) -> u32 {
        seen!(self, pid)
    }
    #[zbus(property, name = "NRestarts")]
    fn restarts(&self) -> u32 {
        seen!(self, restarts)
    }
    #[zbus(property)]
    fn result(&self) -> &str {
        seen!(self, result)
    }
}
