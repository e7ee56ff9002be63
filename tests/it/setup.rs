//! From the file tree of a node to configuration, drop-ins and directories: what is written, once, and what never is.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use insta::assert_snapshot;
use refloat::config::{Surroundings, load};
use serde_json::Value;

use crate::bed::{Cluster, Line, skip_unless_root};
use crate::nodes::Node;

const FRAGMENT: &str = "etc/refloat/conf.d/10-discovered.toml";
const SERVICE: &str = "etc/systemd/system/refloat.service.d/10-setup.conf";
const HEALTH: &str = "etc/systemd/system/refloat-health.service.d/10-setup.conf";
const CERTS: &str = "etc/systemd/system/refloat-certs.path.d/10-setup.conf";

const UNITS: [&str; 5] = [
    "refloat.service",
    "refloat-health.service",
    "refloat-certs.path",
    "refloat-answer.socket",
    "refloat-answer-http.socket",
];

/// With the units that the package brings, and a state directory of its user.
fn installed(tree: &str) -> Node {
    let node = Node::new(tree);
    for unit in UNITS {
        node.write(&format!("usr/lib/systemd/system/{unit}"), "[Unit]\n");
    }
    let state = node.at("var/lib/refloat");
    fs::create_dir_all(&state).expect("make the state directory");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).expect("set its mode");
    std::os::unix::fs::chown(&state, Some(65534), Some(65534)).expect("give it away");
    node
}

#[track_caller]
fn setup(node: &Node) -> Value {
    node.run(&["-o", "json", "setup"]).json()
}

/// The dry run's document and exit code.
#[track_caller]
fn dry(node: &Node) -> (Value, Option<i32>) {
    let output = node.run(&["-o", "json", "setup", "--dry-run"]);
    (output.document(), output.code)
}

#[track_caller]
fn text(node: &Node, path: &str) -> String {
    fs::read_to_string(node.at(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Every file and directory with its bytes, mode and owner.
fn picture(node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![node.root().to_path_buf()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path).expect("look");
        let content = if meta.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
        found.push(format!("{} {:o} {} {} {content:?}", path.display(), meta.mode(), meta.uid(), meta.ino()));
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).expect("list").map(|entry| entry.expect("list").path()));
        }
    }
    found.sort();
    found
}

#[track_caller]
fn said<'a>(document: &'a Value, list: &str, part: &str) -> &'a Value {
    let entries = document[list].as_array().unwrap_or_else(|| panic!("{list} in {document}"));
    entries.iter().find(|one| one.to_string().contains(part)).unwrap_or_else(|| panic!("{part} in {document}"))
}

#[test]
fn every_layout_becomes_configuration_that_is_valid_and_the_same_again() {
    if skip_unless_root("setup writes as root") {
        return;
    }
    let mut all = String::new();
    for tree in
        ["kubeadm", "kubespray", "kubekey", "rke2", "k3s", "plain-flags", "plain-environment", "plain-yaml", "external"]
    {
        let node = installed(tree);
        let before = picture(&node);
        let (planned, code) = dry(&node);
        assert_eq!(code, Some(2), "{tree}: {planned}");
        assert_eq!(picture(&node), before, "{tree}: a dry run writes nothing");
        let done = setup(&node);
        assert_eq!(done["changes"], planned["changes"], "{tree}");
        all.push_str(&format!("==== {tree}\n"));
        for path in [FRAGMENT, SERVICE, HEALTH, CERTS] {
            match fs::read_to_string(node.at(path)) {
                Ok(text) => all.push_str(&format!("---- /{path}\n{text}")),
                Err(_) => all.push_str(&format!("---- /{path} is not written\n")),
            }
        }
        let mode = fs::metadata(node.at(FRAGMENT)).expect("the fragment").mode() & 0o7777;
        assert_eq!(mode, 0o644, "{tree}");
        let around = Surroundings { root: node.root().into(), host_name: "cp1".into(), credentials: None };
        let loaded = load(&around, None).unwrap_or_else(|e| panic!("{tree}: {}", e.line()));
        assert_eq!(loaded.files, [node.at(FRAGMENT)], "{tree}");
        let store = fs::metadata(node.at("var/lib/refloat/store")).expect("the store's directory");
        assert_eq!((store.mode() & 0o7777, store.uid()), (0o700, 65534), "{tree}");

        // systemd is not asked for another root; what it would have done shows that the units are now enabled.
        for unit in UNITS {
            let target = if unit.ends_with(".socket") { "sockets" } else { "multi-user" };
            node.write(&format!("etc/systemd/system/{target}.target.wants/{unit}"), "");
        }
        let after = picture(&node);
        let again = setup(&node);
        assert_eq!(again["changes"], serde_json::json!([]), "{tree}");
        assert_eq!(dry(&node).1, Some(0), "{tree}");
        assert_eq!(picture(&node), after, "{tree}: the second run writes nothing");
    }
    assert_snapshot!(all);
}

#[test]
fn explicit_configuration_wins_and_is_named() {
    if skip_unless_root("setup writes as root") {
        return;
    }
    let node = installed("kubeadm");
    node.write(
        "etc/refloat/refloat.toml",
        "[etcd]\n\nendpoints = ['https://10.9.9.9:2379']\nkey_file = '/my/key'\ncert_file = '/my/cert'\n",
    );
    node.write("etc/refloat/conf.d/90-own.toml", "etcd.data_dir = '/mine'\n");
    let done = setup(&node);
    assert_eq!(
        said(&done, "kept", "etcd.endpoints")["set_in"],
        format!("{}:3", node.at("etc/refloat/refloat.toml").display())
    );
    said(&done, "kept", "etcd.cert_file");
    said(&done, "kept", "etcd.data_dir");
    let written = text(&node, FRAGMENT);
    for key in ["endpoints", "cert_file", "key_file", "data_dir"] {
        assert!(!written.contains(&format!("{key} =")), "{key}: {written}");
    }
    assert!(written.contains("member = \"cp1\"") && written.contains("ca_file = \"credential:etcd.ca\""), "{written}");
    let drop_in = text(&node, SERVICE);
    assert!(drop_in.contains("LoadCredential=etcd.ca:") && !drop_in.contains("etcd.key"), "{drop_in}");
    // A broken file of ours is replaced, a broken one of theirs is an error, and nothing is written.
    node.write(FRAGMENT, "etcd = broken [");
    setup(&node);
    assert_eq!(text(&node, FRAGMENT), written);
    node.write("etc/refloat/refloat.toml", "[etcd]\nno_such_key = 1\n");
    let before = picture(&node);
    let output = node.run(&["setup"]);
    assert_eq!(output.code, Some(78), "{output}");
    assert_eq!(picture(&node), before);
}

#[test]
fn another_certificate_is_taken_over_by_the_next_run() {
    if skip_unless_root("setup writes as root") {
        return;
    }
    let node = installed("kubeadm");
    setup(&node);
    node.remove("etc/kubernetes/pki/etcd/healthcheck-client.crt");
    let (planned, code) = dry(&node);
    assert_eq!(code, Some(2));
    let change = said(&planned, "changes", "10-setup.conf");
    assert!(change["before"].as_str().is_some_and(|text| text.contains("healthcheck-client")), "{change}");
    assert!(change["after"].as_str().is_some_and(|text| text.contains("apiserver-etcd-client")), "{change}");
    said(&planned, "changes", "systemctl restart refloat.service");
    said(&planned, "changes", "systemctl daemon-reload");
    let shown = node.run(&["setup", "--dry-run"]).stdout;
    assert!(
        shown.contains("  - LoadCredential=etcd.cert:/etc/kubernetes/pki/etcd/healthcheck-client.crt\n"),
        "{shown}"
    );
    assert!(shown.contains("  + LoadCredential=etcd.cert:/etc/kubernetes/pki/apiserver-etcd-client.crt\n"), "{shown}");
    setup(&node);
    assert!(text(&node, CERTS).contains("PathChanged=/etc/kubernetes/pki/apiserver-etcd-client.key\n"));
    // Nothing to hand over any more: our file says so, and no old credential stays.
    node.write("etc/refloat/refloat.toml", "[etcd]\nca_file = '/a'\ncert_file = '/b'\nkey_file = '/c'\n");
    setup(&node);
    assert!(!text(&node, SERVICE).contains("LoadCredential"));
}

#[test]
fn hostile_names_stay_values() {
    if skip_unless_root("setup writes as root") {
        return;
    }
    let node = installed("plain-flags");
    let unit = "etc/systemd/system/etcd.service.d/10-cluster.conf";
    node.edit(unit, "--name m1", "--name 'x\"\\y]'");
    node.edit(unit, "/etc/etcd/pki/", "/etc/etcd/p%%i\\\"k/");
    fs::rename(node.at("etc/etcd/pki"), node.at("etc/etcd/p%i\"k")).expect("rename the folder");
    node.write(
        "etc/refloat/refloat.toml",
        "[[store]]\nname = \"a\"\nurl = \"file:///mnt/my%20disk/100%25%22x\"\n[[store]]\nname = \"b\"\nurl = \"file:///var/lib/refloat/b\"\n",
    );
    setup(&node);
    let drop_in = text(&node, SERVICE);
    assert!(drop_in.contains("LoadCredential=etcd.key:/etc/etcd/p%%i\"k/server-key.pem\n"), "{drop_in}");
    assert!(drop_in.contains("ReadWritePaths=\"-/mnt/my disk/100%%\\\"x\"\n"), "{drop_in}");
    assert!(!drop_in.contains("/var/lib/refloat/b"), "{drop_in}");
    let around = Surroundings { root: node.root().into(), host_name: "cp1".into(), credentials: None };
    let etcd = load(&around, None).expect("a valid configuration").settings.etcd;
    assert_eq!(etcd.member.as_deref(), Some("x\"\\y]"));
    // What no unit file can hold ends with an error, before anything is written.
    let node = installed("kubeadm");
    node.edit("etc/kubernetes/manifests/etcd.yaml", "- --name=cp1", "- \"--name=a\\n[paths]\\nstate = 'x'\"");
    setup(&node);
    let around = Surroundings { root: node.root().into(), ..around };
    let settings = load(&around, None).expect("a valid configuration").settings;
    assert_eq!(settings.etcd.member.as_deref(), Some("a\n[paths]\nstate = 'x'"));
    assert_eq!(settings.paths.state, std::path::Path::new("/var/lib/refloat"));
}

#[test]
fn stores_are_made_where_their_disk_is() {
    if skip_unless_root("setup writes as root") {
        return;
    }
    let node = installed("kubeadm");
    let store = |name: &str, path: &str| format!("[[store]]\nname = \"{name}\"\nurl = \"file://{path}\"\n");
    let all = [("a", "/backup/a"), ("b", "/none/at/all"), ("c", "/mnt/usb/c"), ("d", "/mnt/disk/d")];
    node.write("etc/refloat/refloat.toml", &all.map(|(name, path)| store(name, path)).concat());
    node.write(
        "etc/fstab",
        "# <file system> <mount point>\n/dev/sdb1 /mnt/usb ext4 nofail 0 2\n/dev/sdc1 /mnt/disk ext4 nofail 0 2\n",
    );
    let mounts = text(&node, "proc/self/mountinfo");
    node.write("proc/self/mountinfo", &format!("{mounts}50 22 8:33 / /mnt/disk rw shared:30 - ext4 /dev/sdc1 rw\n"));
    for path in ["backup", "mnt/usb", "mnt/disk"] {
        fs::create_dir_all(node.at(path)).expect("make a directory");
    }
    let done = setup(&node);
    for (path, there) in [("backup/a", true), ("none/at/all", false), ("mnt/usb/c", false), ("mnt/disk/d", true)] {
        assert_eq!(node.at(path).is_dir(), there, "{path}");
    }
    said(&done, "warnings", "store b at /none/at/all is missing and not made: /none/at is missing as well");
    said(&done, "warnings", "/mnt/usb is a mount point in /etc/fstab, and nothing is mounted there");
    for (_, path) in all {
        assert!(text(&node, SERVICE).contains(&format!("ReadWritePaths=-{path}\n")), "{path}");
    }
    assert_eq!(fs::metadata(node.at("backup/a")).expect("the store").uid(), 65534);
}

#[test]
fn a_link_where_our_file_would_be_is_somebodys_will() {
    if skip_unless_root("setup writes as root") {
        return;
    }
    let node = installed("kubeadm");
    fs::create_dir_all(node.at("etc/refloat/conf.d")).expect("make a directory");
    std::os::unix::fs::symlink("/dev/null", node.at(FRAGMENT)).expect("mask it");
    let before = picture(&node);
    let output = node.run(&["setup"]);
    assert_eq!(output.code, Some(73), "{output}");
    assert_eq!(picture(&node), before);
}

#[test]
fn what_would_not_work_is_told_and_stops_nothing() {
    if skip_unless_root("setup writes as root") {
        return;
    }
    let node = installed("kubeadm");
    for pair in ["etcd/healthcheck-client", "apiserver-etcd-client", "etcd/server", "etcd/peer"] {
        node.pair(&format!("etc/kubernetes/pki/{pair}"), ".crt", ".key", "expired");
    }
    let done = setup(&node);
    assert_eq!(said(&done, "checks", "ended")["ok"], false, "{done}");
    assert_eq!(said(&done, "checks", "authority")["ok"], false, "{done}");
    assert!(node.at(FRAGMENT).exists());

    let node = installed("kubeadm");
    node.pair("etc/kubernetes/pki/etcd/healthcheck-client", ".crt", ".key", "soon");
    said(&setup(&node), "checks", "ends in 4 days");

    let node = installed("kubeadm");
    node.write("etc/kubernetes/pki/etcd/healthcheck-client.key", &text(&node, "etc/kubernetes/pki/etcd/peer.key"));
    assert_eq!(said(&setup(&node), "checks", "does not belong to the certificate")["ok"], false);

    // Without the package nothing is started, and that is said.
    let node = Node::new("kubeadm");
    let done = setup(&node);
    said(
        &done,
        "warnings",
        "refloat.service, refloat-health.service, refloat-certs.path, refloat-answer.socket, refloat-answer-http.socket: not installed",
    );
    assert!(!done["changes"].to_string().contains("systemctl"), "{done}");
}

#[test]
fn the_member_is_asked() {
    if skip_unless_root("setup writes as root") {
        return;
    }
    let cluster = Cluster::start(Line::V36);
    let node = installed("plain-environment");
    node.edit("etc/default/etcd", "http://127.0.0.1:2379", cluster.node(0).client_url());
    let check = setup(&node);
    let check = said(&check, "checks", "member at http://127.0.0.1:");
    assert!(check["ok"] == true && check["said"].as_str().is_some_and(|said| said.contains("etcd 3.6")), "{check}");
    cluster.node(0).freeze();
    node.write("etc/refloat/refloat.toml", "[etcd]\ntimeout = '500ms'\n");
    let check = setup(&node);
    assert_eq!(said(&check, "checks", "member at")["ok"], false);
}

#[test]
fn only_root_sets_up_and_everybody_may_look() {
    if skip_unless_root("root becomes somebody else") {
        return;
    }
    let node = installed("kubeadm");
    fs::set_permissions(node.root(), fs::Permissions::from_mode(0o755)).expect("let others in");
    let as_nobody = |args: &[&str]| node.run_as(65534, args);
    let output = as_nobody(&["setup"]);
    assert_eq!(output.code, Some(77), "{output}");
    assert!(output.stderr.contains("sudo refloat setup"), "{output}");
    fs::set_permissions(node.at("etc/kubernetes/pki/etcd/healthcheck-client.key"), fs::Permissions::from_mode(0o600))
        .expect("protect the key");
    for name in ["etcd/server", "etcd/peer", "apiserver-etcd-client"] {
        let key = node.at(&format!("etc/kubernetes/pki/{name}.key"));
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).expect("protect the key");
    }
    let output = as_nobody(&["setup", "--dry-run"]);
    assert_eq!(output.code, Some(2), "{output}");
    assert!(output.stdout.contains("Permission denied"), "{output}");
    assert!(output.stdout.contains("+ key_file = \"credential:etcd.key\""), "{output}");
}
