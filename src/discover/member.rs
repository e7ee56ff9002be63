//! One program found on this host, etcd or the apiserver: how it is run, with which options.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::fact::{Fact, Source};
use super::files::Files;
use super::options::{Options, of_config_file};
use super::pod::Pod;
use super::unit::Unit;

/// What keeps it running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Run {
    /// A systemd unit.
    Unit { name: String },
    /// A file in kubelet's manifest folder.
    StaticPod { file: PathBuf },
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Run::Unit { name } => f.write_str(name),
            Run::StaticPod { file } => write!(f, "static pod {}", file.display()),
        }
    }
}

/// A program with its options.
#[derive(Debug, Clone)]
pub struct Member {
    pub run: Fact<Run>,
    pub options: Options,
    /// Environment files of its unit.
    pub environment_files: Vec<PathBuf>,
    /// Something starts it at boot: a static pod always, a unit when it is enabled.
    pub enabled: bool,
    pod: Option<Pod>,
}

impl Member {
    pub fn of_pod(files: &mut Files, pod: Pod) -> Member {
        let from = Source::file(&pod.file);
        let run = Fact::new(Run::StaticPod { file: pod.file.clone() }, from);
        let config =
            pod.options.get("config-file").and_then(|fact| Some((pod.on_host(Path::new(&fact.value))?, fact.clone())));
        let options = config.and_then(|(path, _)| config_file(files, &path)).unwrap_or_else(|| pod.options.clone());
        Member { run, options, environment_files: Vec::new(), enabled: true, pod: Some(pod) }
    }

    /// `variables`: whether it reads `ETCD_…` from its environment.
    pub fn of_unit(files: &mut Files, unit: Unit, variables: bool) -> Member {
        let run = Fact::new(Run::Unit { name: unit.name.clone() }, Source::file(&unit.file));
        let mut options = Options::default();
        options.add_flags(&unit.command, &Source::file(&unit.command_file));
        if variables {
            unit.environment.iter().for_each(|(name, f)| options.add_variable(name, &f.value, &f.from.file));
        }
        if let Some(replaced) = options.get("config-file").and_then(|f| config_file(files, Path::new(&f.value))) {
            options = replaced;
        }
        Member { run, options, environment_files: unit.environment_files, enabled: unit.enabled, pod: None }
    }

    /// Run inside of another program, which keeps etcd's configuration file.
    pub fn embedded(run: Fact<Run>, options: Options) -> Member {
        Member { run, options, environment_files: Vec::new(), enabled: true, pod: None }
    }

    /// A path among its options as the host has it; `None` for one that only the container has, or that is relative.
    pub fn path(&self, value: &str) -> Option<PathBuf> {
        let path = Path::new(value);
        let host = match &self.pod {
            Some(pod) => pod.on_host(path)?,
            None => path.into(),
        };
        host.is_absolute().then_some(host)
    }

    /// Where its data lies: `--data-dir`, whose default is relative to its working directory and so says nothing.
    pub fn data_dir(&self) -> Option<Fact<PathBuf>> {
        let fact = self.options.get("data-dir")?;
        self.path(&fact.value).map(|path| Fact::new(path, fact.from.clone()))
    }

    /// What clients are told to use, else what it listens on.
    pub fn client_urls(&self) -> Option<Fact<Vec<String>>> {
        let listen = self
            .options
            .list("listen-client-urls")
            .map(|fact| fact.map(|urls| urls.iter().map(|u| reachable(u)).collect()));
        self.options.list("advertise-client-urls").or(listen)
    }
}

/// An address that stands for all is reached on this host.
fn reachable(url: &str) -> String {
    url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
}

/// etcd with a configuration file ignores flags and variables (its documentation says so).
fn config_file(files: &mut Files, path: &Path) -> Option<Options> {
    let text = files.text(path)?;
    match of_config_file(&text, &Source::file(path)) {
        Ok(options) => Some(options),
        Err(why) => {
            files.unusable(path, why);
            None
        }
    }
}
