//! Certificates of a control plane: etcd's as everywhere in the bed, and those of the API.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::CLIENT_PORT;
use super::client::Identity;
use super::net::Namespace;
use super::node::PlaneNode;
use crate::bed::line::Line;
use crate::bed::pki::{Maker, Pair, Pki};
use crate::bed::run::Run;

pub(super) struct KubePki {
    pub etcd: Pki,
    /// The authority of the API.
    pub ca: Pair,
    pub apiserver: Pair,
    pub admin: Pair,
    /// Signs tokens of service accounts.
    pub accounts: Pair,
    dir: PathBuf,
}

impl KubePki {
    /// For servers with these addresses. Two directories are made in `dir`.
    #[track_caller]
    pub fn make(dir: &Path, addresses: &[String]) -> Self {
        let (etcd, kube) = (dir.join("etcd-pki"), dir.join("pki"));
        for made in [&etcd, &kube] {
            std::fs::create_dir(made).expect("make a directory");
        }
        let names: String = addresses.iter().map(|address| format!(",IP:{address}")).collect();
        let make = Maker { dir: &kube };
        let ca = make.authority("ca");
        let usage = format!(
            "serverAuth\nsubjectAltName=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,\
             IP:127.0.0.1,IP:10.96.0.1{names}"
        );
        let year = ["-days", "365"];
        let accounts = Pair { cert: kube.join("sa.pub"), key: kube.join("sa.key") };
        make.openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "sa.key"]);
        make.openssl(&["pkey", "-in", "sa.key", "-pubout", "-out", "sa.pub"]);
        KubePki {
            etcd: Pki::make_for(&etcd, &names),
            apiserver: make.certificate("apiserver", "/CN=kube-apiserver", &ca, &usage, &year),
            admin: make.certificate("admin", "/O=system:masters/CN=kubernetes-admin", &ca, "clientAuth", &year),
            ca,
            accounts,
            dir: kube,
        }
    }

    /// The certificate that an identity shows; made when it is first asked for.
    #[track_caller]
    pub fn identity(&self, identity: &Identity) -> Pair {
        let (name, subject) = match identity {
            Identity::Admin => return self.admin.clone(),
            Identity::Kubelet(node) => (format!("kubelet-{node}"), format!("/O=system:nodes/CN=system:node:{node}")),
            Identity::User(user) => (format!("user-{user}"), format!("/CN={user}")),
        };
        let made = Pair { cert: self.dir.join(format!("{name}.crt")), key: self.dir.join(format!("{name}.key")) };
        if made.cert.exists() {
            return made;
        }
        let make = Maker { dir: &self.dir };
        make.certificate(&name, &subject, &self.ca, "clientAuth", &["-days", "365"])
    }

    #[track_caller]
    pub fn client_config(&self, identity: &Identity) -> Arc<ClientConfig> {
        let pair = self.identity(identity);
        let mut roots = RootCertStore::empty();
        roots.add(certificate(&self.ca.cert)).expect("an authority");
        let key = PrivateKeyDer::from_pem_file(&pair.key).expect("read a key of the bed");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions of TLS").with_root_certificates(roots);
        Arc::new(config.with_client_auth_cert(vec![certificate(&pair.cert)], key).expect("a pair of the bed"))
    }

    /// A configuration for Kubernetes' own programs, with the certificate of an administrator.
    #[track_caller]
    pub fn kubeconfig(&self, server: &str) -> String {
        let (ca, pair) = (self.ca.cert.display(), &self.admin);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: bed\ncontexts:\n- name: bed\n  context: {{cluster: bed, user: bed}}\n\
             clusters:\n- name: bed\n  cluster: {{server: \"{server}\", certificate-authority: \"{ca}\"}}\nusers:\n- name: bed\n  \
             user: {{client-certificate: \"{}\", client-key: \"{}\"}}\n",
            pair.cert.display(),
            pair.key.display()
        )
    }

    /// What HAProxy needs to be a client of a member, on a line `server`.
    #[track_caller]
    pub fn as_etcd_client(&self, node: &PlaneNode) -> String {
        let (pair, file) = (&self.etcd.client, self.dir.join("etcd-client.pem"));
        let read = |path: &Path| std::fs::read_to_string(path).expect("read a PEM file of the bed");
        std::fs::write(&file, read(&pair.cert) + &read(&pair.key)).expect("write a PEM file");
        let (address, ca, file) = (node.address(), self.etcd.ca.display(), file.display());
        format!("{address}:{CLIENT_PORT} ssl verify required ca-file {ca} crt {file} alpn h2")
    }

    /// etcdctl with everything that it needs to get in.
    pub fn etcdctl(&self, from: &Namespace, endpoints: &str) -> Run {
        let pair = &self.etcd.client;
        let mut run = from.run(Line::V36.etcdctl_program()).args(["--endpoints", endpoints]);
        for (flag, file) in [("--cacert", &self.etcd.ca), ("--cert", &pair.cert), ("--key", &pair.key)] {
            run = run.args([flag.as_ref(), file.as_os_str()]);
        }
        run
    }
}

#[track_caller]
fn certificate(file: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file).unwrap_or_else(|e| panic!("read {}: {e}", file.display()))
}
