//! The second half of `./dev demo`: a node that boots systemd, with etcd as kubeadm would have it, on which the package is
//! installed and set up, as an administrator would do it.

use std::path::Path;

#[path = "mod.rs"]
mod bed;

use bed::{Layout, NodeEtcd, Packages, SystemdNode};

/// How full the disk of this machine is must not decide the demo; once a minute, so that nobody waits for half an hour.
const CONFIG: &str = "\
[snapshot]
schedule = \"* * * * *\"
shift = \"0s\"

[[store]]
name = \"local\"
url = \"file:///var/lib/refloat/store\"
min_free = \"16MiB\"
";

fn say(text: &str) {
    println!("\n== {text}");
}

/// Runs it on the node and shows it, as it was typed.
fn show(node: &SystemdNode, args: &[&str]) -> String {
    println!("$ {}", args.join(" "));
    let output = node.run(args);
    print!("{}{}", output.stdout, output.stderr);
    output.stdout
}

fn main() {
    let deb = Packages::find().deb;
    say("a node boots systemd, with etcd and certificates where kubeadm has them");
    let node = SystemdNode::boot("cp1");
    let etcd = NodeEtcd::start(&node, Layout::Kubeadm);
    etcd.ctl(&node, &["put", "/registry/configmaps/default/demo", "value"]).ok();

    say("the package is installed; that starts nothing");
    println!("$ dpkg --install {}", deb.file_name().map(Path::new).unwrap_or(&deb).display());
    node.install(&deb);
    node.write("/etc/refloat/conf.d/05-demo.toml", "0644", CONFIG);
    show(&node, &["systemctl", "is-enabled", "refloat"]);

    say("what runs here, and from which file that is known");
    show(&node, &["refloat", "discover"]);

    say("one command makes configuration, credentials and a running service of it");
    show(&node, &["refloat", "setup"]);

    say("a scheduled snapshot comes by itself");
    node.wait("refloat", "a scheduled snapshot in the sentence", || {
        node.property("refloat", "StatusText").contains("last verified snapshot").then_some(())
    });
    show(&node, &["systemctl", "status", "--no-pager", "--lines=0", "refloat"]);
    show(&node, &["refloat", "snapshot", "list"]);
    show(&node, &["refloat", "status"]);

    say("etcd dies: the daemon says so, and goes on when it is back");
    node.run(&["systemctl", "stop", etcd.unit()]).ok();
    let failed = node.run(&["refloat", "snapshot", "take"]);
    print!("$ refloat snapshot take\n{}", failed.stderr);
    assert_eq!(failed.code, Some(69), "{failed}");
    node.run(&["systemctl", "start", etcd.unit()]).ok();
    show(&node, &["refloat", "snapshot", "take"]);

    say("the journal is a runbook");
    let journal = show(&node, &["journalctl", "-u", "refloat", "-x", "--no-pager", "-p", "notice"]);
    assert!(journal.contains("See all of it: refloat jobs show ID"), "no text of the catalogue");

    say("the sandbox: how exposed the service is, from 0 to 10");
    let security = node.run(&["systemd-analyze", "security", "--no-pager", "refloat.service"]);
    println!("{}", security.stdout.lines().last().unwrap_or_default());
}
