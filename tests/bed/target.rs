//! How to reach members: URLs, certificates, user; and the executor for what is asynchronous.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};
use tokio::runtime::Runtime;

use super::line::Line;
use super::pki::Pki;
use super::run::Run;

/// Everything that a client needs.
#[derive(Debug, Clone, Default)]
pub struct Target {
    pub endpoints: Vec<String>,
    pub pki: Option<Pki>,
    pub user: Option<(String, String)>,
}

impl From<&str> for Target {
    fn from(url: &str) -> Self {
        Target { endpoints: vec![url.to_owned()], ..Target::default() }
    }
}

impl From<String> for Target {
    fn from(url: String) -> Self {
        Target::from(url.as_str())
    }
}

impl From<&Target> for Target {
    fn from(target: &Target) -> Self {
        target.clone()
    }
}

impl Target {
    /// A client that outlives the call: its connection is served by the bed's own executor, so use it within
    /// [`block_on`].
    pub async fn connect(&self) -> Client {
        let mut options = ConnectOptions::new().with_connect_timeout(Duration::from_secs(10));
        if let Some((name, password)) = &self.user {
            options = options.with_user(name, password);
        }
        if let Some(pki) = &self.pki {
            let read = |path| std::fs::read(path).expect("read a PEM file of the bed");
            let tls = TlsOptions::new()
                .ca_certificate(Certificate::from_pem(read(&pki.ca)))
                .identity(Identity::from_pem(read(&pki.client.cert), read(&pki.client.key)));
            options = options.with_tls(tls);
        }
        match Client::connect(&self.endpoints, Some(options)).await {
            Ok(client) => client,
            Err(e) => panic!("cannot connect to {:?}: {e}", self.endpoints),
        }
    }

    /// etcdctl of a line with everything that it needs to get in; more arguments and [`Run::run`] follow.
    pub fn etcdctl(&self, line: Line) -> Run {
        let mut run = line.ctl(line.etcdctl_program());
        run = run.args(["--endpoints", &self.endpoints.join(","), "--dial-timeout=10s", "--command-timeout=60s"]);
        if let Some(pki) = &self.pki {
            for (flag, file) in [("--cacert", &pki.ca), ("--cert", &pki.client.cert), ("--key", &pki.client.key)] {
                run = run.args([flag.as_ref(), file.as_os_str()]);
            }
        }
        if let Some((name, password)) = &self.user {
            run = run.args(["--user", &format!("{name}:{password}")]);
        }
        run
    }
}

/// The executor of the bed: proxies and clients live on it, whatever executor the test has.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let built =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("bed").enable_all().build();
        built.expect("start an executor")
    })
}

/// Waits for a future, also from within another executor.
pub fn block_on<F>(future: F) -> F::Output
where
    F: Future + Send,
    F::Output: Send,
{
    let run = || runtime().block_on(future);
    match std::thread::scope(|s| s.spawn(run).join()) {
        Ok(output) => output,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
