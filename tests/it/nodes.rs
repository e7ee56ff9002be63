//! File trees of nodes as different tools leave them, with certificates that were made a moment ago.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use refloat::discover::{Found, discover};
use tempfile::TempDir;

use crate::bed::{Output, Pki, Run};

/// A node's files below a directory of its own.
pub struct Node {
    dir: TempDir,
}

fn pki() -> &'static Pki {
    static PKI: OnceLock<(TempDir, Pki)> = OnceLock::new();
    let made = PKI.get_or_init(|| {
        let dir = tempfile::tempdir().expect("make a directory");
        let pki = Pki::make(dir.path());
        (dir, pki)
    });
    &made.1
}

impl Node {
    /// A copy of `tests/data/discover/NAME`, with the certificates of that layout.
    #[track_caller]
    pub fn new(name: &str) -> Node {
        let dir = tempfile::tempdir().expect("make a directory");
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/discover").join(name);
        copy(&from, dir.path());
        let node = Node { dir };
        let (etcd, spray) = ("etc/kubernetes/pki/etcd", "etc/ssl/etcd/ssl");
        match name {
            "kubeadm" | "two-layouts" => {
                node.authority(&format!("{etcd}/ca.crt"));
                node.pair(&format!("{etcd}/server"), ".crt", ".key", "server");
                node.pair(&format!("{etcd}/peer"), ".crt", ".key", "server");
                node.pair(&format!("{etcd}/healthcheck-client"), ".crt", ".key", "client");
                node.pair("etc/kubernetes/pki/apiserver-etcd-client", ".crt", ".key", "client");
            }
            "kubespray" | "kubekey" => {
                node.authority(&format!("{spray}/ca.pem"));
                for prefix in ["admin", "member", "node"] {
                    node.pair(&format!("{spray}/{prefix}-node1"), ".pem", "-key.pem", "server");
                }
            }
            "rke2" | "k3s" => {
                let base = if name == "rke2" { "var/lib/rancher/rke2" } else { "srv/k3s" };
                let tls = format!("{base}/server/tls/etcd");
                for ca in ["server-ca", "peer-ca"] {
                    node.authority(&format!("{tls}/{ca}.crt"));
                }
                for pair in ["server-client", "peer-server-client"] {
                    node.pair(&format!("{tls}/{pair}"), ".crt", ".key", "server");
                }
                node.pair(&format!("{tls}/client"), ".crt", ".key", "client");
            }
            "plain-flags" => {
                node.authority("etc/etcd/pki/ca.pem");
                node.pair("etc/etcd/pki/server", ".pem", "-key.pem", "server");
            }
            "external" => {
                node.authority("etc/kubernetes/pki/etcd-ca.crt");
                node.pair("etc/kubernetes/pki/apiserver-etcd-client", ".crt", ".key", "client");
            }
            _ => {}
        }
        node
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// A path of the node, without its first slash, as this host has it.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    #[track_caller]
    pub fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("make a directory");
        fs::write(path, text).expect("write a file");
    }

    #[track_caller]
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.at(path)).expect("remove a file");
    }

    #[track_caller]
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.at(path)).expect("read the file");
        assert!(text.contains(from), "{from} in {path}: {text}");
        self.write(path, &text.replace(from, to));
    }

    #[track_caller]
    fn authority(&self, path: &str) {
        self.write(path, &fs::read_to_string(&pki().ca).expect("read the authority"));
    }

    /// `client`, `server` (for both ends), `soon` or `expired`.
    #[track_caller]
    pub fn pair(&self, stem: &str, cert: &str, key: &str, kind: &str) {
        let pair = match kind {
            "client" => &pki().client,
            "server" => &pki().server,
            "soon" => &pki().soon,
            "expired" => &pki().expired,
            other => panic!("no certificate {other}"),
        };
        self.write(&format!("{stem}{cert}"), &fs::read_to_string(&pair.cert).expect("read the certificate"));
        self.write(&format!("{stem}{key}"), &fs::read_to_string(&pair.key).expect("read the key"));
    }

    /// The program on this node.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        let Some(program) = option_env!("CARGO_BIN_EXE_refloat") else {
            panic!("only integration tests know where the program is");
        };
        Run::new(program).args(args).args(["--root".as_ref(), self.root().as_os_str()]).run()
    }

    /// The same by somebody who is not root; the program is copied to where that user may start it.
    #[track_caller]
    pub fn run_as(&self, uid: u32, args: &[&str]) -> Output {
        let program = self.at("refloat");
        let Some(built) = option_env!("CARGO_BIN_EXE_refloat") else {
            panic!("only integration tests know where the program is");
        };
        fs::copy(built, &program).expect("copy the program");
        let ids = [format!("--reuid={uid}"), format!("--regid={uid}"), "--clear-groups".into(), "--".into()];
        let run = Run::new("setpriv").args(&ids).args([program.as_os_str()]).args(args);
        run.args(["--root".as_ref(), self.root().as_os_str()]).run()
    }

    #[track_caller]
    pub fn found(&self) -> Found {
        discover(self.root(), jiff::Timestamp::now()).expect("something to be found")
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display())) {
        let entry = entry.expect("list the fixture");
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("look at the fixture");
        if kind.is_symlink() {
            symlink(fs::read_link(&path).expect("read a link"), target).expect("make a link");
        } else if kind.is_dir() {
            fs::create_dir_all(&target).expect("make a directory");
            copy(&path, &target);
        } else {
            fs::copy(&path, target).expect("copy a file");
        }
    }
}
