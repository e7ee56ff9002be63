//! Configuration in three steps: *fragments* (files as found) → *input* (merged, unvalidated, each value with the
//! file and line it came from) → [`Settings`] (validated, with defaults). Only settings leave the module.
//!
//! In: the files below a root, the host's name, the credentials directory. Out: [`Loaded`], or one error that names
//! file, line and the nearest known key or the allowed range. Serves promise 5 (refuse before harm).

mod credential;
mod decode;
mod fragment;
mod input;
mod merge;
mod nearest;
mod schedule;
mod settings;
mod show;
mod units;
mod validate;
mod window;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::error::Result;

pub use credential::SCHEME as CREDENTIAL;
pub use merge::Origin;
pub use settings::{
    Agreement, ClientCert, EtcdLayout, EtcdSettings, FenceMode, FenceSettings, FenceTarget, HealthSettings, Login,
    MaintainSettings, MinFree, PathSettings, RetentionSettings, Schedule, Scope, Settings, SnapshotSettings,
    StoreSettings,
};
pub use show::Shown;
pub use units::{UnitError, format_duration, format_size, parse_duration, parse_size, rounded_size};
pub use window::Window;

/// What the configuration depends on besides its files: an argument, so that tests can replace it.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The root of the file system.
    pub root: PathBuf,
    /// As the kernel has it, perhaps with a domain.
    pub host_name: String,
    /// Where `credential:NAME` points. Without it, to the file that the service's unit names, if there is one.
    pub credentials: Option<PathBuf>,
}

impl Surroundings {
    /// This process on this host.
    pub fn of_this_process() -> Self {
        Surroundings {
            root: "/".into(),
            // An unreadable name is handled like an unusable one: the error asks for the key `node`.
            host_name: nix::unistd::gethostname().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
            credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
        }
    }
}

/// The settings, and what is needed to explain them.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub settings: Settings,
    /// The files that were read, in order.
    pub files: Vec<PathBuf>,
    input: merge::Table,
}

impl Loaded {
    /// Each key with its value in force and where it was set.
    pub fn shown(&self) -> Vec<Shown> {
        show::shown(&self.settings, &self.input)
    }
}

/// Reads and validates the configuration; `only` is the file of `--config`, read alone. Every error is
/// [`Code::Config`](crate::error::Code::Config).
pub fn load(surroundings: &Surroundings, only: Option<&Path>) -> Result<Loaded> {
    let fragments = fragment::read_all(&surroundings.root, only)?;
    let input = merge::merge(&fragments)?;
    let settings = validate::settings(&input, surroundings)?;
    Ok(Loaded { settings, files: fragments.into_iter().map(|fragment| fragment.path).collect(), input })
}

/// The configuration as it will be once `fragment` holds `text`, whatever it holds now; of `text` no key may stand in
/// another file.
pub fn load_with(surroundings: &Surroundings, fragment: &Path, text: &str) -> Result<Loaded> {
    let mut fragments = fragment::read_besides(&surroundings.root, fragment)?;
    fragments.push(fragment::Fragment { path: fragment.into(), text: text.into() });
    let input = merge::merge(&fragments)?;
    let settings = validate::settings(&input, surroundings)?;
    Ok(Loaded { settings, files: fragments.into_iter().map(|fragment| fragment.path).collect(), input })
}

/// What other files than `fragment` set: where `key`, such as `etcd.member`, was written. Validates nothing.
pub struct Besides(merge::Table);

impl Besides {
    pub fn read(surroundings: &Surroundings, fragment: &Path) -> Result<Besides> {
        merge::merge(&fragment::read_besides(&surroundings.root, fragment)?).map(Besides)
    }

    pub fn origin(&self, key: &str) -> Option<&Origin> {
        merge::lookup(&self.0, key).map(|item| &item.origin)
    }
}
