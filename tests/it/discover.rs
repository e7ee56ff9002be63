//! What is found in the file trees of every layout, and where it says that it comes from.

use refloat::discover::{Fact, Found, Layout, Look, discover};
use refloat::error::Code;

use crate::nodes::Node;

fn value<T: ToString>(fact: &Option<Fact<T>>) -> String {
    fact.as_ref().map(|fact| fact.value.to_string()).unwrap_or_default()
}

fn path(fact: &Option<Fact<std::path::PathBuf>>) -> String {
    fact.as_ref().map(|fact| fact.value.display().to_string()).unwrap_or_default()
}

fn endpoints(found: &Found) -> Vec<&str> {
    found.endpoints.iter().map(|fact| fact.value.as_str()).collect()
}

/// Certificate, key and authority, joined.
fn client(found: &Found) -> String {
    found
        .client
        .as_ref()
        .map_or(String::new(), |c| format!("{} {} {}", c.cert.path.display(), c.key.display(), c.ca.path.display()))
}

#[track_caller]
fn warned(found: &Found, part: &str) {
    assert!(found.warnings.iter().any(|warning| warning.contains(part)), "{part}: {:?}", found.warnings);
}

struct Expected {
    tree: &'static str,
    layout: Layout,
    run: &'static str,
    name: &'static str,
    endpoints: &'static [&'static str],
    data_dir: &'static str,
    client: &'static str,
    from: &'static str,
}

#[test]
fn every_layout_is_found_with_its_evidence() {
    let kubeadm = "/etc/kubernetes/manifests/etcd.yaml";
    for one in [
        Expected {
            tree: "kubeadm",
            layout: Layout::Kubeadm,
            run: "static pod /etc/kubernetes/manifests/etcd.yaml",
            name: "cp1",
            endpoints: &["https://10.0.0.1:2379"],
            data_dir: "/var/lib/etcd",
            client: "/etc/kubernetes/pki/etcd/healthcheck-client.crt /etc/kubernetes/pki/etcd/healthcheck-client.key /etc/kubernetes/pki/etcd/ca.crt",
            from: kubeadm,
        },
        Expected {
            tree: "kubespray",
            layout: Layout::Kubespray,
            run: "etcd.service",
            name: "etcd1",
            endpoints: &["https://10.1.0.11:2379", "https://10.1.0.12:2379", "https://10.1.0.13:2379"],
            data_dir: "/var/lib/etcd",
            client: "/etc/ssl/etcd/ssl/node-node1.pem /etc/ssl/etcd/ssl/node-node1-key.pem /etc/ssl/etcd/ssl/ca.pem",
            from: "/etc/etcd.env",
        },
        Expected {
            tree: "kubekey",
            layout: Layout::Kubekey,
            run: "etcd.service",
            name: "etcd-node1",
            endpoints: &["https://172.16.0.2:2379"],
            data_dir: "/var/lib/etcd",
            client: "/etc/ssl/etcd/ssl/node-node1.pem /etc/ssl/etcd/ssl/node-node1-key.pem /etc/ssl/etcd/ssl/ca.pem",
            from: "/etc/etcd.env",
        },
        Expected {
            tree: "rke2",
            layout: Layout::Rke2,
            run: "static pod /var/lib/rancher/rke2/agent/pod-manifests/etcd.yaml",
            name: "rke-server-1-8a5b1d4f",
            endpoints: &["https://10.2.0.5:2379"],
            data_dir: "/var/lib/rancher/rke2/server/db/etcd",
            client: "/var/lib/rancher/rke2/server/tls/etcd/client.crt /var/lib/rancher/rke2/server/tls/etcd/client.key /var/lib/rancher/rke2/server/tls/etcd/server-ca.crt",
            from: "/var/lib/rancher/rke2/server/db/etcd/config",
        },
        Expected {
            tree: "k3s",
            layout: Layout::K3s,
            run: "k3s.service",
            name: "node7-1c0ffee1",
            endpoints: &["https://10.3.0.7:2379"],
            data_dir: "/srv/k3s/server/db/etcd",
            client: "/srv/k3s/server/tls/etcd/client.crt /srv/k3s/server/tls/etcd/client.key /srv/k3s/server/tls/etcd/server-ca.crt",
            from: "/srv/k3s/server/db/etcd/config",
        },
        Expected {
            tree: "plain-flags",
            layout: Layout::Plain,
            run: "etcd.service",
            name: "m1",
            endpoints: &["https://etcd1.example.org:2379"],
            data_dir: "/data/etcd dir",
            client: "/etc/etcd/pki/server.pem /etc/etcd/pki/server-key.pem /etc/etcd/pki/ca.pem",
            from: "/etc/systemd/system/etcd.service.d/10-cluster.conf",
        },
        Expected {
            tree: "plain-environment",
            layout: Layout::Plain,
            run: "etcd.service",
            name: "db1",
            endpoints: &["http://127.0.0.1:2379"],
            data_dir: "/var/lib/etcd/default",
            client: "",
            from: "/lib/systemd/system/etcd.service",
        },
        Expected {
            tree: "plain-yaml",
            layout: Layout::Plain,
            run: "my-etcd@.service",
            name: "yaml-1",
            endpoints: &["http://10.4.0.1:2379"],
            data_dir: "/var/lib/etcd-yaml",
            client: "",
            from: "/etc/etcd/etcd.yaml",
        },
    ] {
        let found = Node::new(one.tree).found();
        let tree = one.tree;
        let member = found.member.as_ref().unwrap_or_else(|| panic!("{tree}: a member"));
        assert_eq!((found.layout, member.run.value.to_string().as_str()), (one.layout, one.run), "{tree}");
        assert_eq!(value(&member.name), one.name, "{tree}");
        assert_eq!(path(&member.data_dir), one.data_dir, "{tree}");
        assert_eq!(endpoints(&found), one.endpoints, "{tree}");
        assert_eq!(client(&found), one.client, "{tree}");
        let from = member.name.as_ref().map(|fact| fact.from.file.display().to_string());
        assert_eq!(from.as_deref(), Some(one.from), "{tree}");
        if let Some(client) = &found.client {
            let facts = client.cert.facts.as_ref().unwrap_or_else(|| panic!("{tree}: a certificate that can be read"));
            assert!(facts.client && facts.not_after > jiff::Timestamp::now(), "{tree}: {facts:?}");
        }
    }
}

#[test]
fn details_that_decide_later() {
    let found = Node::new("kubeadm").found();
    let (member, api) = (found.member.as_ref().expect("a member"), found.apiserver.as_ref().expect("an apiserver"));
    assert!(api.local_only, "one apiserver, one member");
    assert_eq!(value(&member.file_system), "xfs");
    assert_eq!(member.initial_cluster.as_ref().expect("peers").value.len(), 3);
    assert_eq!(found.warnings, [""; 0]);

    let found = Node::new("kubespray").found();
    let api = found.apiserver.as_ref().expect("an apiserver");
    assert!(!api.local_only && api.events.is_some());
    warned(&found, "a second etcd is used: /events#https://10.1.0.11:2383;https://10.1.0.12:2383");

    let found = Node::new("k3s").found();
    warned(&found, "lies on a network file system (nfs4 at /srv)");

    let found = Node::new("plain-flags").found();
    assert_eq!(path(&found.member.expect("a member").wal_dir), "/wal/etcd");
    // The flag wins over the variable, and both are told.
    let found = Node::new("plain-environment").found();
    warned(
        &found,
        "wal-dir is \"/var/lib/etcd/wal\" by /lib/systemd/system/etcd.service --wal-dir and \"/somewhere/else\" by /etc/default/etcd ETCD_WAL_DIR",
    );
}

#[test]
fn of_two_layouts_the_one_that_the_apiserver_uses() {
    let node = Node::new("two-layouts");
    let found = node.found();
    assert_eq!(found.layout, Layout::Kubeadm);
    assert_eq!(found.others.len(), 1);
    assert_eq!(
        (found.others[0].layout, found.others[0].run.value.to_string().as_str()),
        (Layout::Plain, "etcd.service")
    );
    warned(
        &found,
        "etcd.service runs etcd too: the apiserver uses static pod /etc/kubernetes/manifests/etcd.yaml, not this one",
    );
    // A broken manifest is named and hides nothing.
    warned(&found, "/etc/kubernetes/manifests/broken.yaml: it is not the YAML that it should be");

    // Without an apiserver the data tells, then what is started.
    node.remove("etc/kubernetes/manifests/kube-apiserver.yaml");
    warned(&node.found(), "its data directory holds no member, that of static pod");
    std::fs::remove_dir_all(node.at("var/lib/etcd/member")).expect("remove the data");
    warned(&node.found(), "nothing starts it at boot");
    std::fs::create_dir_all(node.at("var/lib/etcd-old/member")).expect("make data");
    let found = node.found();
    assert_eq!((found.layout, found.others[0].layout), (Layout::Plain, Layout::Kubeadm));

    // A copy of a manifest beside it is a second pod.
    let node = Node::new("kubeadm");
    let manifest = std::fs::read_to_string(node.at("etc/kubernetes/manifests/etcd.yaml")).expect("read the manifest");
    node.write("etc/kubernetes/manifests/etcd.yaml.bak", &manifest);
    warned(&node.found(), "static pod /etc/kubernetes/manifests/etcd.yaml.bak runs etcd too");
}

#[test]
fn only_an_apiserver_is_an_external_etcd() {
    let found = Node::new("external").found();
    assert!(found.layout == Layout::External && found.member.is_none());
    assert_eq!(endpoints(&found), ["https://10.5.0.1:2379", "https://10.5.0.2:2379", "https://10.5.0.3:2379"]);
    let api = found.apiserver.as_ref().expect("an apiserver");
    assert_eq!((api.local_only, value(&api.prefix).as_str()), (false, "/other"));
    assert!(client(&found).starts_with("/etc/kubernetes/pki/apiserver-etcd-client.crt "), "{}", client(&found));
}

#[test]
fn a_certificate_that_cannot_be_used_gives_way_or_is_named() {
    let health = "etc/kubernetes/pki/etcd/healthcheck-client";
    let api = "etc/kubernetes/pki/apiserver-etcd-client";
    let next = "/etc/kubernetes/pki/apiserver-etcd-client.crt";
    for (case, fault) in [("expired", "ended on 2020-02-01"), ("no key", "is missing"), ("no client", "")] {
        let node = Node::new("kubeadm");
        match case {
            "expired" => node.pair(health, ".crt", ".key", "expired"),
            "no key" => node.remove(&format!("{health}.key")),
            _ => node.remove(&format!("{health}.crt")),
        }
        let found = node.found();
        assert!(client(&found).starts_with(next), "{case}: {}", client(&found));
        assert_eq!(found.warnings, [""; 0], "{case}: the next one is good");
        // With no good one left the first is named with its fault.
        for name in [api, "etc/kubernetes/pki/etcd/server", "etc/kubernetes/pki/etcd/peer"] {
            node.remove(&format!("{name}.crt"));
        }
        let found = node.found();
        match fault {
            "" => {
                assert!(found.client.is_none());
                warned(&found, "no client certificate was found");
            }
            fault => warned(&found, fault),
        }
    }
    let key = format!("{health}.key");
    for (file, text, part) in [
        ("etc/kubernetes/pki/etcd/ca.crt", "junk", "ca.crt: it holds no certificate"),
        (key.as_str(), "-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "its private key is encrypted"),
    ] {
        let node = Node::new("kubeadm");
        node.write(file, text);
        warned(&node.found(), part);
    }
}

#[test]
fn nothing_found_lists_what_was_looked_at() {
    let node = Node::new("nothing");
    node.write("etc/kubernetes/kubelet-config.yaml", "a: [");
    let error = discover(node.root(), jiff::Timestamp::now()).expect_err("there is nothing");
    assert_eq!((error.code(), error.exit() as u8), (Code::NotFound, 66));
    let why = error.why().concat();
    for part in [
        "looked at 1 unit files",
        "/etc/kubernetes/manifests (missing)",
        "/etc/kubernetes/kubelet-config.yaml (it is not the YAML",
        "/var/lib/rancher/rke2/server/db/etcd/config (missing)",
        "/etc/systemd/system,",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert!(error.get_remedy().is_some_and(|remedy| remedy.contains("root")));
}

#[test]
fn hostile_files_are_named_and_never_followed_out() {
    let node = Node::new("kubeadm");
    node.write("etc/kubernetes/manifests/huge.yaml", &"etcd ".repeat(300_000));
    node.write("etc/kubernetes/manifests/deep.yaml", &format!("etcd: {}", "[".repeat(50_000)));
    nix::unistd::mkfifo(&node.at("etc/kubernetes/manifests/pipe"), nix::sys::stat::Mode::S_IRUSR).expect("make a FIFO");
    std::os::unix::fs::symlink("loop", node.at("etc/kubernetes/manifests/loop")).expect("make a link");
    std::fs::write(node.at("etc/kubernetes/manifests/binary"), [0xff; 9]).expect("write a file");
    let found = node.found();
    assert_eq!(found.layout, Layout::Kubeadm);
    for name in ["huge.yaml", "deep.yaml", "pipe", "loop", "binary"] {
        let path = std::path::Path::new("/etc/kubernetes/manifests").join(name);
        assert!(matches!(found.looked[&path], Look::Unusable(_)), "{name}: {:?}", found.looked[&path]);
    }
    // A name that would break lines and quotes comes through as it is.
    node.edit("etc/kubernetes/manifests/etcd.yaml", "- --name=cp1", "- \"--name=a\\nb\\\"c\"");
    assert_eq!(value(&node.found().member.expect("a member").name), "a\nb\"c");
}

#[test]
fn the_command_prints_facts_with_their_evidence() {
    let node = Node::new("kubeadm");
    let run = |args: &[&str]| node.run(&[args, &["discover"]].concat());
    let text = run(&[]).ok();
    assert!(text.starts_with("layout: kubeadm\n"), "{text}");
    assert!(text.contains("data_dir") && text.contains("/etc/kubernetes/manifests/etcd.yaml --data-dir"), "{text}");
    let document = run(&["-o", "json"]).json();
    assert_eq!((&document["schema"], &document["layout"]), (&1.into(), &"kubeadm".into()));
    let facts = document["facts"].as_array().expect("facts");
    let member = facts.iter().find(|fact| fact["name"] == "member").expect("the member");
    assert_eq!(member["value"], "cp1");
    assert_eq!(member["from"]["at"], "--name");
    assert!(document["certificates"][1]["not_after"].is_string(), "{document}");
    assert!(run(&["-o", "jsonl"]).ok().lines().count() == facts.len());
    let empty = Node::new("nothing");
    let output = empty.run(&["discover"]);
    assert_eq!(output.code, Some(66), "{output}");
}
