//! Options of etcd and of the apiserver, from flags, `ETCD_` variables or a configuration file, by the name of the flag.
//!
//! etcd's own order: a configuration file replaces everything else, a flag wins over a variable. What is set twice with
//! different values is kept, so that it can be shown.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::fact::{Fact, Source};

/// Values by flag (`data-dir`), the one in force first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    values: BTreeMap<String, Vec<Fact<String>>>,
}

impl Options {
    /// A value below those that are there already.
    pub fn add(&mut self, flag: &str, value: &str, from: Source) {
        self.values.entry(flag.into()).or_default().push(Fact::new(value.into(), from));
    }

    /// `--flag=value`, `--flag value` and `-flag`, as Go's flags are. The last one of several counts; what is no flag is
    /// passed over.
    pub fn add_flags(&mut self, words: &[String], from: &Source) {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|f| !f.is_empty())
            else {
                continue;
            };
            match flag.split_once('=') {
                Some((flag, value)) => found.push((flag.into(), value.into())),
                None => {
                    let value = words.next_if(|next| !next.starts_with('-')).cloned();
                    found.push((flag.into(), value.unwrap_or_else(|| "true".into())));
                }
            }
        }
        for (flag, value) in found.into_iter().rev() {
            self.add(&flag, &value, Source::at(&from.file, format!("--{flag}")));
        }
    }

    /// `ETCD_DATA_DIR` is `--data-dir`.
    pub fn add_variable(&mut self, name: &str, value: &str, file: &Path) {
        if let Some(rest) = name.strip_prefix("ETCD_") {
            let flag = rest.to_ascii_lowercase().replace('_', "-");
            self.add(&flag, value, Source::at(file, name));
        }
    }

    pub fn get(&self, flag: &str) -> Option<&Fact<String>> {
        self.values.get(flag)?.first()
    }

    /// The parts of a list with commas.
    pub fn list(&self, flag: &str) -> Option<Fact<Vec<String>>> {
        let parts =
            |text: &String| text.split(',').map(str::trim).filter(|p| !p.is_empty()).map(String::from).collect();
        self.get(flag).map(|fact| fact.map(parts)).filter(|fact: &Fact<Vec<String>>| !fact.value.is_empty())
    }

    /// What is set more than once, and not to the same: the value in force and the others.
    pub fn conflicts(&self) -> impl Iterator<Item = (&str, &Fact<String>, &Fact<String>)> {
        self.values.iter().filter_map(|(flag, facts)| {
            let first = facts.first()?;
            facts.iter().find(|other| other.value != first.value).map(|other| (flag.as_str(), first, other))
        })
    }
}

/// `--config-file` of etcd, as far as it is needed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct ConfigFile {
    name: Option<String>,
    data_dir: Option<String>,
    wal_dir: Option<String>,
    listen_client_urls: Option<String>,
    advertise_client_urls: Option<String>,
    listen_peer_urls: Option<String>,
    initial_advertise_peer_urls: Option<String>,
    initial_cluster: Option<String>,
    client_transport_security: Security,
    peer_transport_security: Security,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Security {
    cert_file: Option<String>,
    key_file: Option<String>,
    trusted_ca_file: Option<String>,
    /// The name before etcd 3.0.
    ca_file: Option<String>,
}

/// The options of a configuration file; the reason when it cannot be read.
pub fn of_config_file(text: &str, from: &Source) -> Result<Options, String> {
    let file: ConfigFile = yaml(text)?;
    let mut options = Options::default();
    let mut add = |flag: &str, key: &str, value: Option<String>| {
        if let Some(value) = value {
            options.add(flag, &value, Source::at(&from.file, key));
        }
    };
    add("name", "name", file.name);
    add("data-dir", "data-dir", file.data_dir);
    add("wal-dir", "wal-dir", file.wal_dir);
    add("listen-client-urls", "listen-client-urls", file.listen_client_urls);
    add("advertise-client-urls", "advertise-client-urls", file.advertise_client_urls);
    add("listen-peer-urls", "listen-peer-urls", file.listen_peer_urls);
    add("initial-advertise-peer-urls", "initial-advertise-peer-urls", file.initial_advertise_peer_urls);
    add("initial-cluster", "initial-cluster", file.initial_cluster);
    for (within, prefix, security) in [
        ("client-transport-security", "", file.client_transport_security),
        ("peer-transport-security", "peer-", file.peer_transport_security),
    ] {
        let ca = security.trusted_ca_file.or(security.ca_file);
        for (key, value) in
            [("cert-file", security.cert_file), ("key-file", security.key_file), ("trusted-ca-file", ca)]
        {
            add(&format!("{prefix}{key}"), &format!("{within}.{key}"), value);
        }
    }
    Ok(options)
}

/// YAML into a narrow struct; unknown keys are passed over. The reason is one line.
pub fn yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|e| {
        let said = e.to_string();
        format!("it is not the YAML that it should be: {}", said.lines().next().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn flags_in_both_forms_and_the_last_one_counts() {
        let mut options = Options::default();
        let line = "etcd --name=a --data-dir /d -wal-dir /w --client-cert-auth --name b --initial-cluster= --x=y=z";
        options.add_flags(&words(line), &Source::file(Path::new("/u")));
        for (flag, value) in [
            ("name", "b"),
            ("data-dir", "/d"),
            ("wal-dir", "/w"),
            ("client-cert-auth", "true"),
            ("initial-cluster", ""),
            ("x", "y=z"),
        ] {
            assert_eq!(options.get(flag).map(|f| f.value.as_str()), Some(value), "{flag}");
        }
        assert_eq!(options.get("data-dir").unwrap().from.to_string(), "/u --data-dir");
        assert_eq!(options.list("initial-cluster"), None);
        assert_eq!(
            options.conflicts().map(|(flag, _, other)| (flag, other.value.as_str())).collect::<Vec<_>>(),
            [("name", "a")]
        );
    }

    #[test]
    fn a_configuration_file_is_read_by_the_names_of_flags() {
        let text = "name: m1\ndata-dir: /d\nunknown: [1, {a: b}]\nquota-backend-bytes: 8589934592\n\
                    listen-client-urls: https://10.0.0.1:2379,https://127.0.0.1:2379\n\
                    client-transport-security:\n  cert-file: /c\n  client-cert-auth: true\n  trusted-ca-file: /ca\n\
                    peer-transport-security:\n  key-file: /k\n";
        let options = of_config_file(text, &Source::file(Path::new("/y"))).unwrap();
        assert_eq!(options.list("listen-client-urls").unwrap().value.len(), 2);
        assert_eq!(options.get("cert-file").unwrap().from.at, "client-transport-security.cert-file");
        assert_eq!(options.get("trusted-ca-file").unwrap().value, "/ca");
        assert_eq!(options.get("peer-key-file").unwrap().value, "/k");
        for broken in ["name: [", "- a\n- b", "name: {a: b}", "name: a\nname: b\n  c"] {
            assert!(of_config_file(broken, &Source::file(Path::new("/y"))).is_err(), "{broken}");
        }
        // A number is a name as well.
        assert_eq!(of_config_file("name: 1", &Source::file(Path::new("/y"))).unwrap().get("name").unwrap().value, "1");
    }

    #[test]
    fn aliases_do_not_blow_up() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..12 {
            let inner = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{inner}]\n"));
        }
        // Refused or passed over, but at once.
        let _ = of_config_file(&text, &Source::file(Path::new("/y")));
        let deep = format!("name: {}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(of_config_file(&deep, &Source::file(Path::new("/y"))).is_err());
    }
}
