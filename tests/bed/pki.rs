//! Certificates, made by openssl within a second: the right ones, and the wrong ones that tests present.

use std::path::{Path, PathBuf};

use super::run::Run;

/// A certificate and its key, PEM files.
#[derive(Debug, Clone)]
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// What a cluster with TLS and a badly configured client have.
#[derive(Debug, Clone)]
pub struct Pki {
    /// The authority that members and clients trust.
    pub ca: PathBuf,
    /// For 127.0.0.1, ::1, localhost and what else was asked for; also what members show to each other.
    pub server: Pair,
    pub client: Pair,
    /// One that ends in five days.
    pub soon: Pair,
    /// A client certificate of the right authority that ended in 2020.
    pub expired: Pair,
    /// A client certificate of another authority.
    pub foreign: Pair,
    /// That other authority; it did not sign `server`.
    pub foreign_ca: PathBuf,
}

impl Pki {
    /// Makes all of them in a directory that exists.
    #[track_caller]
    pub fn make(dir: &Path) -> Self {
        Pki::make_for(dir, "")
    }

    /// The same, with more names for the server: each as openssl has it, after a comma, such as `,IP:10.0.0.1`.
    #[track_caller]
    pub fn make_for(dir: &Path, more_names: &str) -> Self {
        let make = Maker { dir };
        let ca = make.authority("ca");
        let foreign_ca = make.authority("foreign-ca");
        let server_for = format!("serverAuth,clientAuth\nsubjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1{more_names}");
        Pki {
            server: make.certificate("server", "/CN=bed server", &ca, &server_for, &["-days", "365"]),
            client: make.certificate("client", "/CN=bed client", &ca, "clientAuth", &["-days", "365"]),
            soon: make.certificate("soon", "/CN=bed soon", &ca, "clientAuth", &["-days", "5"]),
            expired: make.certificate("expired", "/CN=bed expired", &ca, "clientAuth", &[]),
            foreign: make.certificate("foreign", "/CN=bed foreign", &foreign_ca, "clientAuth", &["-days", "365"]),
            ca: ca.cert,
            foreign_ca: foreign_ca.cert,
        }
    }
}

/// Makes authorities and what they sign, in a directory that exists.
pub(super) struct Maker<'a> {
    pub dir: &'a Path,
}

impl Maker<'_> {
    fn pair(&self, name: &str) -> Pair {
        Pair { cert: self.dir.join(format!("{name}.crt")), key: self.dir.join(format!("{name}.key")) }
    }

    #[track_caller]
    pub fn openssl(&self, args: &[&str]) {
        Run::new("openssl").dir(self.dir).args(args).run().ok();
    }

    fn request<'a>(&self, subject: &'a str, key: &'a str) -> Vec<&'a str> {
        vec!["-new", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", subject, "-keyout", key]
    }

    #[track_caller]
    pub fn authority(&self, name: &str) -> Pair {
        let (key, cert, subject) = (format!("{name}.key"), format!("{name}.crt"), format!("/CN=bed {name}"));
        let mut args = vec!["req", "-x509", "-days", "365", "-out", &cert];
        args.extend(self.request(&subject, &key));
        args.extend(["-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"]);
        self.openssl(&args);
        self.pair(name)
    }

    /// `usage` continues the line `extendedKeyUsage=`; without `validity` the certificate has ended.
    #[track_caller]
    pub fn certificate(&self, name: &str, subject: &str, ca: &Pair, usage: &str, validity: &[&str]) -> Pair {
        let file = |ending: &str| format!("{name}.{ending}");
        let (key, csr, ext, cert) = (file("key"), file("csr"), file("ext"), file("crt"));
        let mut args = vec!["req", "-out", &csr];
        args.extend(self.request(subject, &key));
        self.openssl(&args);

        let extensions = format!(
            "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature,keyEncipherment\nextendedKeyUsage={usage}\n"
        );
        std::fs::write(self.dir.join(&ext), extensions).expect("write the extensions");

        let (ca_cert, ca_key) = (ca.cert.display().to_string(), ca.key.display().to_string());
        if validity.is_empty() {
            // Only `openssl ca` of this version sets dates in the past; it wants a small database.
            let config = "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n";
            for (file, content) in [("ca.cnf", config), ("index.txt", ""), ("serial", "1000")] {
                std::fs::write(self.dir.join(file), content).expect("write the database of openssl ca");
            }
            self.openssl(&[
                "ca",
                "-batch",
                "-notext",
                "-config",
                "ca.cnf",
                "-startdate",
                "20200101000000Z",
                "-enddate",
                "20200201000000Z",
                "-cert",
                &ca_cert,
                "-keyfile",
                &ca_key,
                "-extfile",
                &ext,
                "-in",
                &csr,
                "-out",
                &cert,
            ]);
        } else {
            let mut args = vec!["x509", "-req", "-CAcreateserial", "-CA", &ca_cert, "-CAkey", &ca_key];
            args.extend(["-extfile", &ext, "-in", &csr, "-out", &cert]);
            args.extend(validity);
            self.openssl(&args);
        }
        self.pair(name)
    }
}
