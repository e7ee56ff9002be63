//! From a bare node to a running daemon, the way the documents say it: install the package, `refloat setup`.

use crate::bed::{self, Layout, NodeEtcd, Packages, SystemdNode};
use crate::node_daemon::{snapshots, status};

/// How full the disk of this machine is must not decide a test; otherwise what the defaults say.
const STORE: &str = "[[store]]\nname = \"local\"\nurl = \"file:///var/lib/refloat/store\"\nmin_free = \"16MiB\"\n";

#[test]
fn two_commands_lead_from_a_package_to_verified_snapshots() {
    if bed::skip_unless_root("boots a systemd node") {
        return;
    }
    let packages = Packages::find();
    for layout in [Layout::Kubeadm, Layout::Plain] {
        let node = SystemdNode::boot("cp1");
        let etcd = NodeEtcd::start(&node, layout);
        etcd.ctl(&node, &["put", "/registry/a", "b"]).ok();
        node.install(&packages.deb);
        node.write("/etc/refloat/refloat.toml", "0644", STORE);

        let planned = node.run(&["refloat", "setup", "--dry-run"]);
        assert_eq!(planned.code, Some(2), "{layout:?}: {planned}");
        assert_eq!(node.run(&["systemctl", "is-enabled", "refloat"]).stdout.trim(), "disabled", "{layout:?}");
        let done = node.run(&["refloat", "setup"]);
        assert!(done.success(), "{layout:?}: {done}\n{}", node.journal("refloat"));
        let again = node.run(&["refloat", "setup", "--dry-run"]);
        assert_eq!(again.code, Some(0), "{layout:?}: {again}");

        for unit in ["refloat.service", "refloat-certs.path"] {
            assert_eq!(node.run(&["systemctl", "is-enabled", unit]).stdout.trim(), "enabled", "{layout:?}: {unit}");
        }
        let unit = "/lib/systemd/system/refloat.service";
        let verified = node.run(&["systemd-analyze", "verify", "--man=no", unit]);
        assert!(verified.success() && verified.stderr.is_empty(), "{layout:?}: {verified}");
        node.run(&["systemd-analyze", "security", "--no-pager", "--threshold=15", "refloat.service"]).ok();

        node.run(&["refloat", "snapshot", "take"]).ok();
        node.wait("refloat", "the snapshot in the sentence", || {
            node.property("refloat", "StatusText").contains("last verified snapshot").then_some(())
        });
        // The first one comes by itself, at once; the one by hand is that one, or a second.
        assert!(matches!(snapshots(&node).len(), 1 | 2), "{layout:?}: {:?}", snapshots(&node));
        let troubles = status(&node)["troubles"].to_string();
        assert_eq!(troubles, "[]", "{layout:?}");
        let journal = node.journal("refloat");
        assert!(!journal.contains("WARN") && !journal.contains("ERROR"), "{layout:?}: {journal}");

        let said = node.run(&["dpkg", "--purge", "refloat"]).ok();
        assert!(said.contains("refloat: backups stay in /var/lib/refloat/store"), "{layout:?}: {said}");
        let left = node.run(&["find", "/etc", "/run/systemd", "-name", "*refloat*"]).ok();
        assert_eq!(left, "", "{layout:?}: left behind");
    }
}
