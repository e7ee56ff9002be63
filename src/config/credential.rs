//! Where `credential:NAME` leads: into the service's own directory, or, for a command that somebody types, to the file
//! that the service gets it from.
//!
//! Only a path comes out. Whether the file is there is found by whoever reads it: the daemon must come up without, and
//! list and verify need none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Surroundings;

/// What stands before a credential's name.
pub const SCHEME: &str = "credential:";
/// Drop-ins of the service, lowest first: systemd's order.
const DROP_INS: [&str; 3] = ["usr/lib/systemd/system", "run/systemd/system", "etc/systemd/system"];
const SERVICE: &str = "refloat.service.d";
/// No drop-in is nearly as large.
const LARGEST: u64 = 1 << 20;

/// `credential:NAME` as it is when nothing tells which file is meant.
pub(super) fn resolve(name: &str, surroundings: &Surroundings) -> PathBuf {
    match &surroundings.credentials {
        Some(folder) => folder.join(name),
        None => source(&surroundings.root, name).unwrap_or_else(|| format!("{SCHEME}{name}").into()),
    }
}

/// The file of the last `LoadCredential=NAME:FILE`. A drop-in that cannot be read says nothing.
fn source(root: &Path, name: &str) -> Option<PathBuf> {
    let mut drop_ins: std::collections::BTreeMap<OsString, PathBuf> = std::collections::BTreeMap::new();
    for place in DROP_INS {
        let Ok(entries) = std::fs::read_dir(root.join(place).join(SERVICE)) else { continue };
        for entry in entries.flatten().filter(|e| e.path().extension().is_some_and(|e| e == "conf")) {
            drop_ins.insert(entry.file_name(), entry.path());
        }
    }
    let mut found = None;
    for path in drop_ins.values() {
        let regular = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
        let Some(text) = regular.then(|| std::fs::read_to_string(path).ok()).flatten() else { continue };
        for line in text.lines() {
            let Some(value) = line.trim().strip_prefix("LoadCredential=") else { continue };
            match value.trim().split_once(':') {
                Some((id, file)) if id == name && file.starts_with('/') => {
                    found = Some(PathBuf::from(file.replace("%%", "%")));
                }
                // An empty one takes back all before.
                None if value.trim().is_empty() => found = None,
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_tells_where_a_credential_comes_from() {
        let dir = tempfile::tempdir().unwrap();
        let around = |credentials: Option<&str>| Surroundings {
            root: dir.path().into(),
            host_name: "cp1".into(),
            credentials: credentials.map(PathBuf::from),
        };
        let resolved = |credentials: Option<&str>| resolve("etcd.ca", &around(credentials)).display().to_string();
        assert_eq!(resolved(Some("/run/credentials/x")), "/run/credentials/x/etcd.ca");
        assert_eq!(resolved(None), "credential:etcd.ca");
        for (file, text, expected) in [
            ("usr/lib/systemd/system/refloat.service.d/10-a.conf", "[Service]\nLoadCredential=etcd.ca:/lib", "/lib"),
            (
                "etc/systemd/system/refloat.service.d/10-a.conf",
                "LoadCredential=etcd.ca:/etc pki/100%%",
                "/etc pki/100%",
            ),
            ("etc/systemd/system/refloat.service.d/20-b.txt", "LoadCredential=etcd.ca:/no", "/etc pki/100%"),
            ("etc/systemd/system/refloat.service.d/20-b.conf", "LoadCredential=etcd.key:/no", "/etc pki/100%"),
            ("etc/systemd/system/refloat.service.d/30-c.conf", "LoadCredential=etcd.ca:relative", "/etc pki/100%"),
            ("etc/systemd/system/refloat.service.d/40-d.conf", "LoadCredential=\nLoadCredential=etcd.ca:/d", "/d"),
            ("etc/systemd/system/refloat.service.d/50-e.conf", "LoadCredential=", "credential:etcd.ca"),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            assert_eq!(resolved(None), expected, "{file}");
        }
    }
}
