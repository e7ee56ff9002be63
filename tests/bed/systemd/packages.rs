//! The packages under test, which `./dev package quick` makes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// This tree as packages, from a build without failpoints.
#[derive(Debug)]
pub struct Packages {
    pub deb: PathBuf,
    /// The same tree under a lower version: what an upgrade starts from.
    pub previous_deb: PathBuf,
    pub rpm: PathBuf,
}

impl Packages {
    /// Panics where there are none, or older ones than what they are made of.
    #[track_caller]
    pub fn find() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let dir =
            std::env::var_os("REFLOAT_PACKAGES").map_or_else(|| root.join("target/packages/quick"), PathBuf::from);
        let one = |name: &str| {
            let path = dir.join(name);
            assert!(path.is_file(), "no {}: run ./dev package quick", path.display());
            path
        };
        let packages =
            Packages { deb: one("refloat.deb"), previous_deb: one("refloat-previous.deb"), rpm: one("refloat.rpm") };
        let made = modified(&packages.deb);
        for part in ["src", "systemd", "packaging", "config", "Cargo.toml"] {
            if let Some(newer) = newest(&root.join(part)).filter(|(time, _)| *time > made) {
                panic!("packages are older than {}: run ./dev package quick", newer.1.display());
            }
        }
        packages
    }
}

fn modified(path: &Path) -> SystemTime {
    let metadata = path.metadata().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    metadata.modified().expect("a file system with times")
}

/// The last changed file below a path.
fn newest(path: &Path) -> Option<(SystemTime, PathBuf)> {
    if !path.is_dir() {
        return Some((modified(path), path.to_owned()));
    }
    let entries = std::fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    entries.filter_map(|entry| newest(&entry.expect("a directory entry").path())).max()
}
