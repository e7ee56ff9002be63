//! What tests on systemd nodes stand on.

use crate::bed::{self, Layout, NodeEtcd, SystemdNode};

#[test]
fn two_nodes_are_two_machines_and_a_reboot_keeps_the_tree_alone() {
    if bed::skip_unless_root("boots systemd nodes") {
        return;
    }
    let mut one = SystemdNode::boot("cp1");
    let other = SystemdNode::boot("cp2");
    let plain = NodeEtcd::start(&one, Layout::Plain);
    let kubeadm = NodeEtcd::start(&other, Layout::Kubeadm);
    for file in ["/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/etc/hostname"] {
        assert_ne!(one.read(file), other.read(file), "{file}");
    }
    plain.ctl(&one, &["put", "where", "one"]).ok();
    kubeadm.ctl(&other, &["put", "where", "other"]).ok();
    let boot = one.read("/proc/sys/kernel/random/boot_id");
    one.write("/run/volatile", "0644", "");

    one.reboot();
    assert_ne!(one.read("/proc/sys/kernel/random/boot_id"), boot);
    assert!(!one.exists("/run/volatile"));
    one.wait(plain.unit(), "the member answers again", || {
        let said = plain.ctl(&one, &["get", "where", "--print-value-only"]);
        (said.stdout.trim() == "one").then_some(())
    });
    let said = kubeadm.ctl(&other, &["get", "where", "--print-value-only"]).ok();
    assert_eq!((said.trim(), other.property(kubeadm.unit(), "NRestarts").as_str()), ("other", "0"));
}
