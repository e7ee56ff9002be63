//! What is on this node now, as far as it decides what is to be done.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use nix::unistd::User;

use super::{FRAGMENT, units};
use crate::config::Settings;
use crate::error::{Code, Error, Result};
use crate::host::user::Owner;

/// The user that the package makes.
const USER: &str = "refloat";
/// Where packages and administrators put units.
const UNITS: [&str; 4] =
    ["etc/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];
const WANTS: &str = "etc/systemd/system";
/// More than any of our own files.
const LIMIT: u64 = 1 << 20;

/// A directory that may have to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    pub there: bool,
    pub parent_there: bool,
    /// A mount point at or above it that nothing is mounted on now.
    pub unmounted: Option<PathBuf>,
}

/// Facts of the node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    pub fragment: Option<String>,
    /// What is in them, by unit.
    pub drop_ins: BTreeMap<&'static str, String>,
    /// Folders of all those that are missing.
    pub missing_folders: Vec<PathBuf>,
    /// Who is to own state and stores: the owner of the state directory, else the package's user.
    pub owner: Option<Owner>,
    pub state: Option<Place>,
    /// By the name of the store.
    pub stores: Vec<(String, Place)>,
    /// Of our units, those that are installed.
    pub installed: Vec<&'static str>,
    /// Those that are started at boot.
    pub enabled: Vec<&'static str>,
}

impl Node {
    /// Reads it all below `root`.
    pub fn look(root: &Path, settings: &Settings) -> Result<Node> {
        let mounts = Mounts::read(root);
        let place = |path: &Path| Place {
            path: path.into(),
            there: below(root, path).is_dir(),
            parent_there: path.parent().is_some_and(|parent| below(root, parent).is_dir()),
            unmounted: mounts.unmounted(path),
        };
        let folders = [FRAGMENT].into_iter().chain(units::ALL.map(|unit| unit.drop_in)).map(Path::new);
        let mut missing_folders: Vec<PathBuf> = Vec::new();
        for file in folders {
            // From the top: each level is made by itself.
            let mut levels: Vec<&Path> =
                file.ancestors().skip(1).take_while(|path| *path != Path::new("/etc")).collect();
            levels.reverse();
            for level in levels {
                if !below(root, level).is_dir() && !missing_folders.iter().any(|known| known == level) {
                    missing_folders.push(level.into());
                }
            }
        }
        let mut drop_ins = BTreeMap::new();
        for unit in units::ALL {
            if let Some(text) = text(root, unit.drop_in)? {
                drop_ins.insert(unit.name, text);
            }
        }
        let installed = |unit: &&units::Unit| UNITS.iter().any(|place| root.join(place).join(unit.name).exists());
        let enabled =
            |unit: &&units::Unit| root.join(WANTS).join(unit.wants).join(unit.name).symlink_metadata().is_ok();
        let names = |list: Vec<&units::Unit>| list.into_iter().map(|unit| unit.name).collect();
        Ok(Node {
            fragment: text(root, FRAGMENT)?,
            drop_ins,
            missing_folders,
            owner: owner(&below(root, &settings.paths.state))?,
            state: Some(place(&settings.paths.state)),
            stores: settings.stores.iter().map(|store| (store.name.clone(), place(&store.path))).collect(),
            installed: names(units::ALL.into_iter().filter(installed).collect()),
            enabled: names(units::ALL.into_iter().filter(enabled).collect()),
        })
    }
}

/// A path of the host below the root.
pub fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn owner(state: &Path) -> Result<Option<Owner>> {
    if let Some(owner) = Owner::of(state)? {
        return Ok(Some(owner));
    }
    let user = User::from_name(USER).map_err(|e| Error::io("look up user", USER, e.into()))?;
    Ok(user.map(|user| Owner { uid: user.uid.as_raw(), gid: user.gid.as_raw(), name: Some(user.name) }))
}

/// `None` when it is missing. What is no text of ours is replaced like any other.
fn text(root: &Path, path: &str) -> Result<Option<String>> {
    let failed = |e| Error::new(Code::Io, "read", path).because(e);
    let real = below(root, Path::new(path));
    match std::fs::symlink_metadata(&real) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
        Ok(meta) if !meta.is_file() => {
            return Err(Error::new(Code::CannotCreate, "write", path)
                .because("there is a link or a directory of that name: somebody does not want this file")
                .remedy("remove it if setup is to write it, or set what it would hold in another file"));
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&real).and_then(|file| file.take(LIMIT).read_to_end(&mut bytes)).map_err(failed)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// What is to be mounted, and what is.
struct Mounts {
    wanted: Vec<PathBuf>,
    mounted: Vec<PathBuf>,
}

impl Mounts {
    /// Without these files nothing is known, and nothing is refused.
    fn read(root: &Path) -> Mounts {
        let column = |file: &str, at: usize| -> Vec<PathBuf> {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            let fields = lines.filter_map(|line| line.split_whitespace().nth(at));
            fields.map(|field| PathBuf::from(field.replace("\\040", " "))).filter(|path| path.is_absolute()).collect()
        };
        Mounts { wanted: column("etc/fstab", 1), mounted: column("proc/self/mountinfo", 4) }
    }

    fn unmounted(&self, path: &Path) -> Option<PathBuf> {
        let above = self.wanted.iter().filter(|at| path.starts_with(at) && at.parent().is_some());
        above.max_by_key(|at| at.components().count()).filter(|at| !self.mounted.contains(at)).cloned()
    }
}
