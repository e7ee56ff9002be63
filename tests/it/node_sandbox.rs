//! The sandbox of refloat.service lets through what a snapshot needs, and nothing else: the real program as user
//! refloat, with the unit's own settings and another command line.

use crate::bed::{self, Layout, NodeEtcd, Packages, SystemdNode};

pub const STORE: &str = "/var/lib/refloat/store";

/// The credentials of a kubeadm node, and leave to write into the second store.
pub const SETUP: &str = "\
[Service]
LoadCredential=etcd.ca:/etc/kubernetes/pki/etcd/ca.crt
LoadCredential=etcd.cert:/etc/kubernetes/pki/etcd/healthcheck-client.crt
LoadCredential=etcd.key:/etc/kubernetes/pki/etcd/healthcheck-client.key
ReadWritePaths=-/srv/backups
";

pub const CONFIG: &str = "\
[etcd]
endpoints = [\"https://10.77.0.1:2379\"]
ca_file = \"credential:etcd.ca\"
cert_file = \"credential:etcd.cert\"
key_file = \"credential:etcd.key\"
[[store]]
name = \"local\"
url = \"file:///var/lib/refloat/store\"
min_free = \"16MiB\"
[[store]]
name = \"second\"
url = \"file:///srv/backups\"
min_free = \"16MiB\"
";

/// Commands in the place of the daemon, one after the other, to their end.
fn commands(node: &SystemdNode, commands: &[&str]) {
    let mut text = "[Service]\nType=oneshot\nWatchdogSec=0\nRestart=no\nExecStart=\n".to_owned();
    for command in commands {
        text.push_str(&format!("ExecStart=/usr/bin/refloat {command}\n"));
    }
    node.write("/etc/systemd/system/refloat.service.d/90-test.conf", "0644", text);
    node.run(&["systemctl", "daemon-reload"]).ok();
}

/// A node whose one member was saved once, into two stores.
#[track_caller]
pub fn taken(packages: &Packages) -> (SystemdNode, NodeEtcd) {
    let node = SystemdNode::boot("cp1");
    node.install(&packages.deb);
    let etcd = NodeEtcd::start(&node, Layout::Kubeadm);
    etcd.ctl(&node, &["put", "/registry/a", "b"]).ok();
    node.run(&["install", "-d", "-o", "refloat", "-m", "0700", "/srv/backups"]).ok();
    node.write("/etc/systemd/system/refloat.service.d/10-setup.conf", "0644", SETUP);
    node.write("/etc/refloat/conf.d/10-discovered.toml", "0644", CONFIG);
    let verbs = ["store init local", "store init second", "snapshot take", "snapshot verify --all", "prune --yes"];
    commands(&node, &verbs);
    let started = node.run(&["systemctl", "start", "refloat"]);
    assert!(started.success(), "{started}\n{}", node.journal("refloat"));
    (node, etcd)
}

#[test]
fn the_real_work_is_done_inside_it() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let (node, _etcd) = taken(&Packages::find());
    let journal = node.journal("refloat");
    assert!(!journal.contains("WARN") && !journal.contains("ERROR"), "{journal}");
    let owners = node.run(&["stat", "-c", "%U %a %n", "/var/lib/refloat", STORE, "/srv/backups", "/run/refloat"]).ok();
    let expected = "refloat 700 /var/lib/refloat\nrefloat 700 /var/lib/refloat/store\nrefloat 700 /srv/backups\nrefloat 755 /run/refloat\n";
    assert_eq!(owners, expected);
    // /proc/sys is hidden from it: the boot is known all the same, and clock steps are noticed.
    let boot = node.read("/proc/sys/kernel/random/boot_id");
    assert!(node.read("/var/lib/refloat/stores.json").contains(boot.trim()));
    // No name is left of what is made without one and linked in at its end.
    let names = node.run(&["find", STORE, "-name", ".refloat-tmp-*"]).ok();
    assert_eq!(names, "");
}

#[test]
fn what_it_does_not_need_is_out_of_reach() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let node = SystemdNode::boot("cp1");
    node.install(&Packages::find().deb);
    NodeEtcd::start(&node, Layout::Kubeadm);
    node.run(&["install", "-d", "-o", "refloat", "-m", "0700", "/srv/backups"]).ok();
    // Without the drop-in of `refloat setup`: no certificates, and no second store.
    node.write("/etc/refloat/conf.d/10-discovered.toml", "0644", CONFIG);
    commands(&node, &["snapshot take"]);
    let failed = node.run(&["systemctl", "start", "refloat"]);
    let journal = node.journal("refloat");
    assert!(!failed.success() && journal.contains("was not there when the service started"), "{journal}");
    assert_eq!(node.property("refloat", "ExecMainStatus"), "78");

    let config = CONFIG.replace("credential:", "/etc/kubernetes/pki/etcd/");
    let config =
        config.replace("etcd.ca", "ca.crt").replace("etcd.cert", "server.crt").replace("etcd.key", "server.key");
    node.write("/etc/refloat/conf.d/10-discovered.toml", "0644", config);
    commands(&node, &["store init second"]);
    node.run(&["systemctl", "start", "refloat"]);
    let journal = node.journal("refloat");
    assert!(journal.contains("Read-only file system"), "{journal}");

    // A key of root's stays root's, also for a program that asks for it by name.
    commands(&node, &["store init local", "--store local snapshot take"]);
    node.run(&["systemctl", "start", "refloat"]);
    let journal = node.journal("refloat");
    assert!(journal.contains("Permission denied"), "{journal}");
    assert_eq!(node.run(&["find", STORE, "-name", "*.db.zst"]).ok(), "");
}

#[test]
fn renewed_certificates_restart_what_runs_and_start_nothing() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let node = SystemdNode::boot("cp1");
    node.install(&Packages::find().deb);
    NodeEtcd::start(&node, Layout::Kubeadm);
    let stand_in = "[Service]\nType=exec\nWatchdogSec=0\nExecStart=\nExecStart=/bin/sleep infinity\n";
    node.write("/etc/systemd/system/refloat.service.d/90-test.conf", "0644", stand_in);
    node.run(&["systemctl", "daemon-reload"]).ok();
    node.run(&["systemctl", "start", "refloat.service", "refloat-certs.path"]).ok();
    let pid = node.property("refloat", "MainPID");
    let renew = || {
        let key = node.read("/etc/kubernetes/pki/etcd/healthcheck-client.key");
        node.write("/etc/kubernetes/pki/etcd/healthcheck-client.key", "0600", key);
    };
    renew();
    node.wait("refloat-certs.service", "the daemon restarted", || {
        let (now, state) = (node.property("refloat", "MainPID"), node.property("refloat", "ActiveState"));
        (now != pid && now != "0" && state == "active").then_some(())
    });

    node.run(&["systemctl", "stop", "refloat.service"]).ok();
    let before = node.property("refloat-certs.service", "ExecMainExitTimestampMonotonic");
    renew();
    node.wait("refloat-certs.service", "the second renewal was noticed", || {
        let ended = node.property("refloat-certs.service", "ExecMainExitTimestampMonotonic");
        let over = node.property("refloat-certs.service", "ActiveState") == "inactive";
        (ended != before && ended != "0" && over).then_some(())
    });
    assert_eq!(node.property("refloat-certs.service", "Result"), "success");
    assert_eq!(node.property("refloat", "ActiveState"), "inactive");
}
