//! The deb on a booted system: installed, removed, purged.

use crate::bed::{self, Packages, SystemdNode};
use crate::node_sandbox::{self, STORE};

#[test]
fn a_bare_install_starts_nothing_and_a_purge_leaves_nothing() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let packages = Packages::find();
    let node = SystemdNode::boot("cp1");
    let said = node.install(&packages.deb);
    assert!(!said.to_lowercase().contains("warn") && !said.to_lowercase().contains("fail"), "{said}");
    for unit in [
        "refloat.service",
        "refloat-health.service",
        "refloat-certs.path",
        "refloat-certs.service",
        "refloat-answer.socket",
        "refloat-answer-http.socket",
        "refloat-answer.service",
    ] {
        let enabled = node.run(&["systemctl", "is-enabled", unit]).stdout;
        assert!(["disabled", "static"].contains(&enabled.trim()), "{unit} is {enabled}");
        assert_eq!(node.property(unit, "ActiveState"), "inactive", "{unit}");
    }
    assert_eq!(node.run(&["systemctl", "is-enabled", "refloat"]).stdout.trim(), "disabled");
    let user = node.run(&["getent", "passwd", "refloat"]).ok();
    assert!(user.contains(":/var/lib/refloat:") && user.trim().ends_with("nologin"), "{user}");

    // All that systemd complains about is printed, whatever the exit code.
    let units = ["refloat.service", "refloat-certs.path", "refloat-certs.service", "refloat-health.service"]
        .map(|u| format!("/lib/systemd/system/{u}"));
    let verified = node.run(&["systemd-analyze", "verify", "--man=no", &units[0], &units[1], &units[2], &units[3]]);
    assert!(verified.success() && verified.stdout.is_empty() && verified.stderr.is_empty(), "{verified}");
    node.run(&["systemd-analyze", "security", "--no-pager", "--threshold=15", "refloat.service"]).ok();
    node.run(&["systemd-analyze", "security", "--no-pager", "--threshold=16", "refloat-health.service"]).ok();

    let ids = node.run(&["journalctl", "--list-catalog"]).ok();
    assert!(ids.contains("refloat: ") && node.run(&["dpkg", "--verify", "refloat"]).ok().is_empty(), "{ids}");
    for file in ["/usr/share/man/man8/refloat.8.gz", "/usr/share/bash-completion/completions/refloat"] {
        assert!(node.exists(file), "{file}");
    }
    node.run(&["refloat", "config", "check"]).ok();

    // The scripts may run twice, and a configuration that somebody changed stays until the purge.
    node.install(&packages.deb);
    node.write("/etc/refloat/refloat.toml", "0644", "node = \"mine\"\n");
    node.run(&["dpkg", "--remove", "refloat"]).ok();
    assert_eq!(node.read("/etc/refloat/refloat.toml"), "node = \"mine\"\n");
    assert!(!node.run(&["journalctl", "--list-catalog"]).ok().contains("refloat: "));
    node.install(&packages.deb);
    assert_eq!(node.run(&["refloat", "config", "check"]).ok().trim(), "valid: /etc/refloat/refloat.toml");
    let said = node.run(&["dpkg", "--purge", "refloat"]).ok();
    assert!(!said.contains("backups stay"), "{said}");
    let left = node.run(&[
        "find",
        "/etc",
        "/usr",
        "/var/lib/refloat",
        "/run/refloat",
        "/var/lib/systemd",
        "-name",
        "*refloat*",
    ]);
    assert_eq!(left.stdout, "", "left behind");
    node.run(&["dpkg", "--audit"]).ok();
}

#[test]
fn a_purge_leaves_backups_and_says_where() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let packages = Packages::find();
    let (node, _etcd) = node_sandbox::taken(&packages);
    let of = |place: &str| node.run(&["find", place, "-name", "*.db.zst"]).ok().lines().count();
    assert_eq!((of(STORE), of("/srv/backups")), (1, 1));
    node.write("/var/lib/refloat/something/else", "0600", "");

    let said = node.run(&["dpkg", "--purge", "refloat"]).ok();
    for place in [STORE, "/srv/backups"] {
        assert!(said.contains(&format!("refloat: backups stay in {place}")), "{place}: {said}");
        assert_eq!(of(place), 1, "{place}");
    }
    assert_eq!(node.run(&["ls", "-A", "/var/lib/refloat"]).ok(), "store\n");
    for gone in ["/etc/refloat", "/run/refloat", "/etc/systemd/system/refloat.service.d/10-setup.conf"] {
        assert!(!node.exists(gone), "{gone}");
    }
    // And the backups are there for whoever installs it again.
    node.install(&packages.deb);
    let listed = node.run(&["refloat", "-o", "json", "snapshot", "list"]).json();
    assert_eq!(listed["snapshots"].as_array().map(Vec::len), Some(1), "{listed}");
}
