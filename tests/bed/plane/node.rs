//! One machine of a control plane: its member, its apiserver, what else was started on it, its disks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::gate::haproxy_library;
use super::net::Namespace;
use super::pki::KubePki;
use super::{API_PORT, CLIENT_PORT, METRICS_PORT};
use crate::bed::disk::FreezableDisk;
use crate::bed::liar::Liar;
use crate::bed::line::{Line, product};
use crate::bed::pki::Pair;
use crate::bed::process::Process;
use crate::bed::run::Run;
use crate::bed::target::Target;

/// Where a liar stands before the member, for clients on the same machine.
pub(super) const LIAR_URL: &str = "http://127.0.0.1:2378";

const MEMBER: &str = "etcd";
const APISERVER: &str = "kube-apiserver";

/// What is given to a node.
pub(super) struct Plan {
    pub name: String,
    pub namespace: Arc<Namespace>,
    pub address: String,
    /// For logs, and for files of its own.
    pub dir: PathBuf,
    pub data: FreezableDisk,
    pub wal: Option<FreezableDisk>,
}

/// Called `cp1`, `cp2`, …
pub struct PlaneNode {
    plan: Plan,
    /// What a start of it adds to its program.
    member: Mutex<Vec<String>>,
    apiserver: Mutex<Vec<String>>,
    running: Mutex<Vec<Service>>,
    pki: Mutex<Option<Files>>,
    liar: Mutex<Option<Arc<Liar>>>,
}

/// One running program.
struct Service {
    name: String,
    process: Arc<Process>,
}

/// Certificates for questions.
#[derive(Clone)]
struct Files {
    ca: PathBuf,
    admin: Pair,
    etcd: crate::bed::pki::Pki,
    kubeconfig: String,
}

impl PlaneNode {
    pub(super) fn new(plan: Plan) -> Self {
        let (member, apiserver, running, pki, liar) = Default::default();
        PlaneNode { plan, member, apiserver, running, pki, liar }
    }

    pub fn name(&self) -> &str {
        &self.plan.name
    }

    pub fn address(&self) -> &str {
        &self.plan.address
    }

    pub fn namespace(&self) -> &Arc<Namespace> {
        &self.plan.namespace
    }

    pub fn client_url(&self) -> String {
        format!("https://{}:{CLIENT_PORT}", self.plan.address)
    }

    pub fn api_url(&self) -> String {
        format!("https://{}:{API_PORT}", self.plan.address)
    }

    /// Where this member can be found, for a [`crate::bed::Refloat`] that is [inside](crate::bed::Refloat::inside).
    pub fn target(&self) -> Target {
        Target { endpoints: vec![self.client_url()], pki: Some(self.files().etcd), ..Target::default() }
    }

    pub fn data_dir(&self) -> PathBuf {
        self.plan.data.path().join("data")
    }

    pub fn data_disk(&self) -> &FreezableDisk {
        &self.plan.data
    }

    #[track_caller]
    pub fn wal_disk(&self) -> &FreezableDisk {
        self.plan.wal.as_ref().expect("own_wal_disk was asked for")
    }

    /// A program that ends by itself, on this machine.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Run {
        self.plan.namespace.run(program)
    }

    /// A program that goes on, until the plane is dropped or [`PlaneNode::kill`] names it.
    #[track_caller]
    pub fn start(&self, name: &str, program: &Path, args: &[String]) {
        self.start_with(name, program, args, &[]);
    }

    #[track_caller]
    fn start_with(&self, name: &str, program: &Path, args: &[String], env: &[(&str, String)]) {
        let log = self.plan.dir.join(format!("{}-{name}.log", self.plan.name));
        let process = Arc::new(self.plan.namespace.spawn(program, args, env, &log));
        let mut running = lock(&self.running);
        assert!(running.iter().all(|s| s.name != name), "{name} runs already on {}", self.plan.name);
        running.push(Service { name: name.to_owned(), process });
    }

    pub fn log(&self, name: &str) -> String {
        let log = self.plan.dir.join(format!("{}-{name}.log", self.plan.name));
        std::fs::read(log).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
    }

    #[track_caller]
    pub fn process(&self, name: &str) -> Arc<Process> {
        let running = lock(&self.running);
        let service = running.iter().find(|s| s.name == name);
        Arc::clone(&service.unwrap_or_else(|| panic!("{name} does not run on {}", self.plan.name)).process)
    }

    #[track_caller]
    pub fn member_process(&self) -> Arc<Process> {
        self.process(MEMBER)
    }

    #[track_caller]
    pub fn apiserver_process(&self) -> Arc<Process> {
        self.process(APISERVER)
    }

    /// SIGKILL.
    #[track_caller]
    pub fn kill(&self, name: &str) {
        self.process(name).kill();
        lock(&self.running).retain(|s| s.name != name);
    }

    #[track_caller]
    pub fn kill_member(&self) {
        self.kill(MEMBER);
    }

    #[track_caller]
    pub fn kill_apiserver(&self) {
        self.kill(APISERVER);
    }

    #[track_caller]
    pub fn start_member(&self) {
        let args = lock(&self.member).clone();
        self.start(MEMBER, &Line::V36.etcd_program(), &args);
    }

    #[track_caller]
    pub fn start_apiserver(&self) {
        let args = lock(&self.apiserver).clone();
        self.start(APISERVER, &product(&format!("kubernetes-1.36.3/{APISERVER}")), &args);
    }

    /// kube-controller-manager with these controllers, which asks the apiserver of this node and does not wait for a
    /// lease.
    #[track_caller]
    pub fn start_controllers(&self, controllers: &str, more: &[&str]) {
        let name = "kube-controller-manager";
        let mut args = self.kubernetes_client(name);
        args.extend([format!("--controllers={controllers}"), "--leader-elect=false".into()]);
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        self.start(name, &product(&format!("kubernetes-1.36.3/{name}")), &args);
    }

    #[track_caller]
    pub fn start_scheduler(&self) {
        let name = "kube-scheduler";
        let mut args = self.kubernetes_client(name);
        args.push("--leader-elect=false".into());
        self.start(name, &product(&format!("kubernetes-1.36.3/{name}")), &args);
    }

    /// A file with the administrator's access to the apiserver of this node, for `name`.
    #[track_caller]
    pub fn kubeconfig(&self, name: &str) -> PathBuf {
        let file = self.plan.dir.join(format!("{}-{name}.kubeconfig", self.plan.name));
        let config = lock(&self.pki).as_ref().map(|f| f.kubeconfig.clone()).expect("a plane that was started");
        std::fs::write(&file, config).expect("write a kubeconfig");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("protect it");
        file
    }

    /// What both take.
    #[track_caller]
    fn kubernetes_client(&self, name: &str) -> Vec<String> {
        let file = self.kubeconfig(name);
        ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
            .map(|flag| format!("--{flag}={}", file.display()))
            .into_iter()
            .chain(["--bind-address=127.0.0.1".into()])
            .collect()
    }

    /// What its programs are started with, and the certificates for questions to them.
    #[track_caller]
    pub(super) fn configure(&self, pki: &KubePki, member: Vec<String>, apiserver: Vec<String>) {
        *lock(&self.member) = member;
        *lock(&self.apiserver) = apiserver;
        let kubeconfig = pki.kubeconfig(&self.api_url());
        let (ca, admin) = (pki.ca.cert.clone(), pki.admin.clone());
        *lock(&self.pki) = Some(Files { ca, admin, etcd: pki.etcd.clone(), kubeconfig });
    }

    /// A liar before the member, which it reaches by this socket.
    #[track_caller]
    pub(super) fn stand_between(&self, member: &Path) {
        let socket = self.plan.dir.join(format!("{}-liar.sock", self.plan.name));
        *lock(&self.liar) = Some(Arc::new(Liar::between(&socket, member)));
        let address = LIAR_URL.trim_start_matches("http://");
        let config = format!(
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n\
             listen liar\n  bind {address}\n  server s unix@{}\n",
            socket.display()
        );
        let file = self.plan.dir.join(format!("{}-liar.cfg", self.plan.name));
        std::fs::write(&file, config).expect("write a configuration of HAProxy");
        let args = ["-db".to_owned(), "-f".into(), file.display().to_string()];
        self.start_with("haproxy", &product("haproxy-2.6/haproxy"), &args, &[haproxy_library()]);
    }

    #[track_caller]
    pub(super) fn liar(&self) -> Arc<Liar> {
        lock(&self.liar).clone().unwrap_or_else(|| panic!("nobody stands before the member of {}", self.plan.name))
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// etcdctl on this machine against its member alone.
    #[track_caller]
    pub fn etcdctl(&self, args: &[&str]) -> Run {
        let pki = self.files().etcd;
        let mut run = self.command(Line::V36.etcdctl_program()).args(["--endpoints", &self.client_url()]);
        let pair = &pki.client;
        for (flag, file) in [("--cacert", &pki.ca), ("--cert", &pair.cert), ("--key", &pair.key)] {
            run = run.args([flag.as_ref(), file.as_os_str()]);
        }
        run.args(args)
    }

    /// Whether the member serves a linearizable read, by its own word.
    pub fn member_health(&self) -> bool {
        self.metrics("/health").is_some_and(|answer| answer.contains(r#""health":"true""#))
    }

    pub fn leads(&self) -> bool {
        self.metric("etcd_server_is_leader") == Some(1.0)
    }

    /// The value of a metric of the member without labels; None also where it does not answer.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.metrics("/metrics")?;
        metrics.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// The body of a GET from the member's metrics port, however it ended; None without an answer in two seconds.
    pub fn metrics(&self, path: &str) -> Option<String> {
        self.get(&format!("http://127.0.0.1:{METRICS_PORT}{path}"), Duration::from_secs(2)).ok().map(|(_, body)| body)
    }

    /// What the apiserver says on `/readyz`, asked on this machine: Err with what failed otherwise.
    pub fn readyz(&self) -> Result<(), String> {
        match self.get(&format!("https://127.0.0.1:{API_PORT}/readyz"), Duration::from_secs(12)) {
            Ok((200, _)) => Ok(()),
            Ok((status, body)) => Err(format!("{status}: {body}")),
            Err(why) => Err(why),
        }
    }

    /// curl on this machine, as an administrator: status and body, or what curl said.
    pub fn get(&self, url: &str, limit: Duration) -> Result<(u16, String), String> {
        let Files { ca, admin, .. } = self.files();
        let seconds = format!("{:.3}", limit.as_secs_f64());
        let run = self.command("curl").args(["-sS", "-m", &seconds, "-w", "\n%{http_code}", url]);
        let run = run.args(["--cacert".as_ref(), ca.as_os_str(), "--cert".as_ref(), admin.cert.as_os_str()]);
        let output = run.args(["--key".as_ref(), admin.key.as_os_str()]).run();
        if !output.success() {
            return Err(output.stderr);
        }
        let (body, status) = output.stdout.rsplit_once('\n').unwrap_or_default();
        Ok((status.parse().map_err(|e| format!("{status}: {e}"))?, body.to_owned()))
    }

    fn files(&self) -> Files {
        lock(&self.pki).clone().expect("a plane that was started")
    }

    pub(super) fn thaw_disks(&self) {
        self.plan.data.thaw();
        if let Some(wal) = &self.plan.wal {
            wal.thaw();
        }
    }

    pub(super) fn kill_all(&self) {
        for service in lock(&self.running).drain(..) {
            service.process.kill();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves what is kept here as good as it was.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
