//! Setup run again, the daemon stopped, root at work without it: all on one configuration and its credentials.

use crate::bed::{self, Layout, NodeEtcd, Packages, SystemdNode};

#[test]
fn a_node_is_set_up_once_and_backed_up_with_and_without_the_daemon() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let node = SystemdNode::boot("cp1");
    node.install(&Packages::find().deb);
    NodeEtcd::start(&node, Layout::Kubeadm);
    // How full the disk of this machine is must not decide a test.
    let store = "[[store]]\nname = \"local\"\nurl = \"file:///var/lib/refloat/store\"\nmin_free = \"16MiB\"\n";
    node.write("/etc/refloat/conf.d/20-test.toml", "0644", store);
    let planned = node.run(&["refloat", "setup", "--dry-run"]);
    assert_eq!(planned.code, Some(2), "{planned}");
    assert!(planned.stdout.contains("would run systemctl enable refloat.service"), "{planned}");
    assert!(!node.exists("/etc/refloat/conf.d/10-discovered.toml"));

    let done = node.run(&["refloat", "-o", "json", "setup"]).json();
    assert_eq!((&done["to_do"], &done["error"]), (&serde_json::json!([]), &serde_json::Value::Null), "{done}");
    let checks = done["checks"].as_array().expect("checks");
    assert!(checks.len() >= 3 && checks.iter().all(|check| check["ok"] == true), "{done}");
    for unit in ["refloat.service", "refloat-certs.path"] {
        assert_eq!(node.property(unit, "ActiveState"), "active", "{}", node.journal("refloat"));
        assert_eq!(node.run(&["systemctl", "is-enabled", unit]).stdout.trim(), "enabled");
    }
    let take = || node.run(&["refloat", "-o", "json", "snapshot", "take"]).json();
    let taken = take();
    assert_eq!(taken["snapshot"]["state"], "verified", "{taken}");
    assert!(taken["job"].is_string(), "by the daemon: {taken}");

    let again = node.run(&["refloat", "setup"]);
    assert!(again.success() && again.stdout.contains("nothing to do\n"), "{again}");
    assert_eq!(node.run(&["refloat", "setup", "--dry-run"]).code, Some(0));

    // Without the daemon root takes the same credentials from where the unit has them, and writes as its user.
    node.run(&["systemctl", "stop", "refloat"]).ok();
    let taken = take();
    assert!(taken["job"].is_null() && taken["snapshot"]["state"] == "verified", "{taken}");
    assert_eq!(node.run(&["find", "/var/lib/refloat", "-not", "-user", "refloat"]).ok(), "");

    // What is enabled and does not run is started, and nothing else is done.
    let done = node.run(&["refloat", "-o", "json", "setup"]).json();
    let changes = serde_json::json!([{ "change": "units", "command": "systemctl restart refloat.service" }]);
    assert_eq!(done["changes"], changes);
    assert_eq!(node.property("refloat", "ActiveState"), "active");
}
