//! Static pods: every file of kubelet's manifest folder is one, whatever it is called.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::fact::Source;
use super::files::Files;
use super::options::{Options, yaml};

/// Where kubeadm and its relatives put them.
pub const MANIFESTS: &str = "/etc/kubernetes/manifests";
/// `staticPodPath` of kubelet, by kubeadm and by kubespray.
const KUBELET: [&str; 2] = ["/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubelet-config.yaml"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Manifest {
    kind: String,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    containers: Vec<Container>,
    volumes: Vec<Volume>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    command: Vec<String>,
    args: Vec<String>,
    env: Vec<Variable>,
    volume_mounts: Vec<VolumeMount>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VolumeMount {
    name: String,
    mount_path: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Volume {
    name: String,
    host_path: Option<HostPath>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HostPath {
    path: PathBuf,
}

/// A container that runs a program of ours.
#[derive(Debug, Clone)]
pub struct Pod {
    pub file: PathBuf,
    pub program: String,
    pub options: Options,
    /// Path in the container, path on the host.
    mounts: Vec<(PathBuf, PathBuf)>,
}

impl Pod {
    /// A path of the container as the host has it; `None` if the host does not have it.
    pub fn on_host(&self, path: &Path) -> Option<PathBuf> {
        let within = |(inside, outside): &(PathBuf, PathBuf)| {
            let rest = path.strip_prefix(inside).ok()?;
            // Joined with nothing a path would end with a slash.
            let host = if rest.as_os_str().is_empty() { outside.clone() } else { outside.join(rest) };
            Some((inside.components().count(), host))
        };
        self.mounts.iter().filter_map(within).max_by_key(|(depth, _)| *depth).map(|(_, host)| host)
    }
}

/// Folders of manifests: the usual one, and the one that kubelet's configuration names.
pub fn folders(files: &mut Files) -> Vec<PathBuf> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Kubelet {
        static_pod_path: Option<PathBuf>,
    }
    let mut found = vec![PathBuf::from(MANIFESTS)];
    for path in KUBELET.map(Path::new) {
        let Some(text) = files.text(path) else { continue };
        match yaml::<Kubelet>(&text) {
            Ok(Kubelet { static_pod_path: Some(folder) }) if !found.contains(&folder) && folder.is_absolute() => {
                found.push(folder);
            }
            Ok(_) => {}
            Err(why) => files.unusable(path, why),
        }
    }
    found
}

/// The containers in a folder of manifests that run one of these programs. kubelet takes every file that is not
/// hidden, so a copy kept there as a backup is a second pod.
pub fn running(files: &mut Files, folder: &Path, programs: &[&str]) -> Vec<Pod> {
    let mut found = Vec::new();
    for name in files.names(folder) {
        let path = folder.join(&name);
        if files.is_dir(&path) {
            continue;
        }
        let Some(text) = files.text(&path) else { continue };
        if !programs.iter().any(|program| text.contains(program)) {
            continue;
        }
        match yaml::<Manifest>(&text) {
            Ok(manifest) if manifest.kind == "Pod" => found.extend(pods(&path, manifest.spec, programs)),
            Ok(_) => {}
            Err(why) => files.unusable(&path, why),
        }
    }
    found
}

fn pods(file: &Path, spec: Spec, programs: &[&str]) -> Vec<Pod> {
    let host = |mount: &VolumeMount| {
        let volume = spec.volumes.iter().find(|volume| volume.name == mount.name)?;
        Some((mount.mount_path.clone(), volume.host_path.as_ref()?.path.clone()))
    };
    let pod = |container: &Container| {
        let line: Vec<String> = container.command.iter().chain(&container.args).cloned().collect();
        let at = line.iter().position(|word| programs.contains(&word.rsplit('/').next().unwrap_or(word)))?;
        let from = Source::file(file);
        let mut options = Options::default();
        options.add_flags(&line[at + 1..], &from);
        for Variable { name, value } in container.env.iter().filter(|v| !v.value.is_empty()) {
            options.add_variable(name, value, file);
        }
        let program = line[at].rsplit('/').next().unwrap_or_default().to_string();
        let mounts = container.volume_mounts.iter().filter_map(host).collect();
        Some(Pod { file: file.into(), program, options, mounts })
    };
    spec.containers.iter().filter_map(pod).collect()
}
