//! `refloat setup` against a real apiserver and the signer of a real controller manager: the identity that it makes, what
//! that may do, and what it may not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::bed::plane::{Client, Identity, PATIENCE};
use crate::bed::{ControlPlane, Output, skip_unless_root};
use crate::nodes::Node;

const OURS: &str = "etc/refloat/kubeconfig";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/refloat-cp1";

struct Cluster {
    plane: ControlPlane,
    tree: Node,
}

impl Cluster {
    #[track_caller]
    fn start() -> Cluster {
        let plane = ControlPlane::builder(1).start();
        let cluster = Cluster { plane, tree: Node::new("kubeadm") };
        cluster.tree.write("etc/refloat/refloat.toml", "node = 'cp1'\n");
        cluster.start_signer();
        cluster
    }

    fn start_signer(&self) {
        let pki = self.plane.dir().join("pki");
        let file = |flag: &str, name: &str| format!("--cluster-signing-{flag}-file={}", pki.join(name).display());
        let (cert, key) = (file("cert", "ca.crt"), file("key", "ca.key"));
        self.plane.node(0).start_controllers("certificatesigningrequest-signing-controller", &[&cert, &key]);
    }

    fn admin(&self) -> PathBuf {
        self.plane.dir().join(format!("{}-kube-controller-manager.kubeconfig", self.plane.node(0).name()))
    }

    fn setup(&self, more: &[&str]) -> Output {
        let run = self.plane.node(0).command(env!("CARGO_BIN_EXE_refloat"));
        let run = run.args(["-o", "json", "setup", "--root"]).args([self.tree.root()]);
        run.args(["--kubeconfig"]).args([self.admin()]).args(more).run()
    }

    /// What our certificate gets of the apiserver, as curl sees it: a status.
    fn ask(&self, method: &str, path: &str, body: Option<&str>) -> String {
        let text = fs::read_to_string(self.tree.at(OURS)).expect("our kubeconfig");
        let config: Value = serde_json::from_str(&text).expect("JSON");
        let file = |name: &str, value: &Value| {
            let bytes: ByteString = serde_json::from_value(value.clone()).expect("base64");
            let path = self.plane.dir().join(name);
            fs::write(&path, bytes.0).expect("write a file");
            path
        };
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        let ca = file("ours-ca", &cluster["certificate-authority-data"]);
        let cert = file("ours-cert", &user["client-certificate-data"]);
        let key = file("ours-key", &user["client-key-data"]);
        let url = format!("{}{path}", cluster["server"].as_str().expect("a server"));
        let mut run =
            self.plane.node(0).command("curl").args(["--silent", "--max-time", "60", "--output", "/dev/null"]);
        run = run.args(["--write-out", "%{http_code}", "--request", method, &url]);
        for (flag, path) in [("--cacert", ca), ("--cert", cert), ("--key", key)] {
            run = run.args([flag.as_ref(), path.as_os_str()]);
        }
        if let Some(body) = body {
            run = run.args(["--header", "Content-Type: application/merge-patch+json", "--data", body]);
        }
        run.run().ok()
    }

    fn as_admin(&self) -> Client {
        self.plane.client(0, Identity::Admin)
    }
}

/// Steps in the cluster of a document of setup.
fn steps(document: &Value) -> Vec<String> {
    let changes = document["changes"].as_array().expect("changes").iter();
    let of_cluster = changes.filter(|change| change["change"] == "kubernetes");
    of_cluster.map(|change| change["step"].as_str().expect("a step").to_owned()).collect()
}

#[test]
fn setup_makes_an_identity_that_may_do_its_work_and_nothing_else() {
    if skip_unless_root("makes network namespaces") {
        return;
    }
    let cluster = Cluster::start();
    let planned = cluster.setup(&["--dry-run"]);
    assert_eq!(planned.code, Some(2), "{planned}");
    let wanted = steps(&planned.document());
    assert_eq!(wanted.len(), 8, "{wanted:?}");
    assert!(wanted[6].contains("get a client certificate for user refloat") && wanted[6].ends_with("there is none"));
    assert!(!cluster.tree.at(OURS).exists());
    let lease = |cluster: &Cluster| cluster.as_admin().get(LEASE, PATIENCE).expect("an answer").status;
    assert_eq!(lease(&cluster), 404, "a dry run changes nothing");

    let done = cluster.setup(&[]);
    assert_eq!((steps(&done.document()), &done.document()["error"]), (wanted, &Value::Null), "{done}");
    let mode = fs::metadata(cluster.tree.at(OURS)).expect("our kubeconfig").permissions().mode() & 0o7777;
    assert!(mode == 0o640 || mode == 0o600, "{mode:o}");
    let server = format!("\"server\": \"{}\"", cluster.plane.node(0).api_url());
    assert!(fs::read_to_string(cluster.tree.at(OURS)).expect("it").contains(&server), "{server}");
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let left = cluster.as_admin().get(requests, PATIENCE).expect("an answer").json();
    assert_eq!(left["items"], json!([]), "the request is gone");

    let node_leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let renewed = r#"{"spec":{"holderIdentity":"cp1"}}"#;
    for (method, path, body, status) in [
        ("GET", LEASE, None, "200"),
        ("PATCH", LEASE, Some(renewed), "200"),
        ("GET", "/livez", None, "200"),
        ("GET", "/readyz", None, "200"),
        ("GET", "/metrics", None, "200"),
        ("GET", node_leases, None, "200"),
        ("DELETE", LEASE, None, "403"),
        ("GET", &LEASE.replace("cp1", "cp2"), None, "403"),
        ("GET", "/api/v1/namespaces/kube-system/secrets", None, "403"),
        ("GET", "/api/v1/pods", None, "403"),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", None, "403"),
        ("GET", requests, None, "403"),
    ] {
        assert_eq!(cluster.ask(method, path, body), status, "{method} {path}");
    }

    // Run again it changes nothing, and what somebody changed is brought back.
    let key = fs::read(cluster.tree.at(OURS)).expect("our kubeconfig");
    let again = cluster.setup(&[]);
    assert_eq!(steps(&again.document()), [""; 0], "{again}");
    let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/refloat-cp1";
    let emptied = cluster.as_admin().patch(role, &json!({ "rules": [] }), PATIENCE).expect("an answer");
    assert_eq!(emptied.status, 200);
    assert_eq!(cluster.ask("GET", LEASE, None), "403");
    let mended = cluster.setup(&[]);
    assert_eq!(steps(&mended.document()), ["apply Role kube-system/refloat-cp1"], "{mended}");
    assert_eq!(cluster.ask("GET", LEASE, None), "200");
    assert_eq!(fs::read(cluster.tree.at(OURS)).expect("our kubeconfig"), key, "the certificate is kept");

    // Nobody signs: told within its time, and the rest is done.
    cluster.plane.node(0).kill("kube-controller-manager");
    fs::remove_file(cluster.tree.at(OURS)).expect("remove it");
    let unsigned = cluster.setup(&[]);
    assert_eq!(unsigned.code, Some(69), "{unsigned}");
    let error = unsigned.document()["error"]["error"].clone();
    assert!(unsigned.stdout.contains("nobody signed it within 30 seconds"), "{error}: {unsigned}");
    assert!(!cluster.tree.at(OURS).exists());
}
