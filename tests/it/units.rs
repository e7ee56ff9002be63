//! The units as systemd-analyze of this machine reads them.

use std::path::Path;

use crate::bed::Run;

fn unit(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Settings of a section: each line's key and value.
fn settings(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('=')).collect()
}

#[test]
fn services_are_closed_to_what_they_do_not_need() {
    // Design: at most 1.5 for what runs unprivileged, 2.5 for root; in tenths.
    for (name, most) in [
        ("refloat.service", "15"),
        ("refloat-health.service", "16"),
        ("refloat-answer.service", "15"),
        ("refloat-certs.service", "25"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd").join(name);
        let threshold = format!("--threshold={most}");
        let args = [
            "security".as_ref(),
            "--offline=true".as_ref(),
            "--no-pager".as_ref(),
            threshold.as_ref(),
            path.as_os_str(),
        ];
        Run::new("systemd-analyze").args(args).run().ok();
        let text = unit(name);
        let has = |setting: (&str, &str)| settings(&text).contains(&setting);
        // What the score does not weigh: mounts of its own; and users as they are, for the rights on the socket.
        assert!(has(("PrivateMounts", "yes")) && has(("PrivateUsers", "no")), "{name}");
    }
}

#[test]
fn the_daemon_never_needs_etcd() {
    let text = unit("refloat.service");
    for (key, value) in settings(&text) {
        let needs = ["Requires", "Requisite", "BindsTo", "PartOf", "Upholds"].contains(&key);
        assert!(!needs, "{key}={value}: refloat must run when etcd is dead");
    }
    let after = settings(&text).into_iter().find(|(key, _)| *key == "After").map(|(_, value)| value);
    assert!(after.is_some_and(|units| units.contains("etcd.service") && units.contains("kubelet.service")));
}

#[test]
fn every_unit_with_an_install_section_is_in_the_preset() {
    let preset = unit("50-refloat.preset");
    let entries = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd").read_dir().unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // The folder holds one socket, which is named here.
    let names = names.map(|n| if n == "answer-http" { "answer-http/refloat-answer-http.socket".into() } else { n });
    let installable: Vec<String> = names.filter(|n| n != "sysusers.d" && unit(n).contains("\n[Install]\n")).collect();
    assert!(installable.len() >= 2, "{installable:?}");
    for name in installable {
        let name = name.rsplit('/').next().unwrap_or_default();
        assert!(preset.contains(&format!("disable {name}\n")), "{name} would start by itself on some systems");
    }
}

#[test]
fn the_catalogue_explains_each_message_once() {
    let catalogue = unit("refloat.catalog");
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("usr/lib/systemd/catalog");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::create_dir_all(dir.path().join("var/lib/systemd/catalog")).unwrap();
    std::fs::write(place.join("refloat.catalog"), &catalogue).unwrap();
    let root = format!("--root={}", dir.path().display());
    Run::new("journalctl").args(["--update-catalog", &root]).run().ok();
    let listed = Run::new("journalctl").args(["--list-catalog", &root]).run().ok();
    let ids: Vec<&str> = catalogue.lines().filter_map(|line| line.strip_prefix("-- ")).collect();
    let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert!(!ids.is_empty() && ids.len() == unique.len() && listed.lines().count() == ids.len(), "{ids:?} {listed}");
    for entry in catalogue.split("\n-- ").skip(1) {
        for header in ["\nSubject: ", "\nDefined-By: refloat\n", "\nDocumentation: man:refloat(8)\n"] {
            assert!(entry.contains(header), "no {header:?} in {entry}");
        }
        // What happened, and after an empty line what it means and what to do.
        assert!(entry.trim_end().matches("\n\n").count() >= 2, "{entry}");
    }
}
