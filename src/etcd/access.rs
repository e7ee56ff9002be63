//! How to reach etcd: certificates, key, user and password, read and checked before the first call.
//!
//! The transport says only "transport error" for a bad certificate file, so everything that can be wrong with
//! the files is found here, with the name of the file and of the configuration key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::error::{Code, Error, Result};

/// More than any certificate bundle, key or password needs.
const LIMIT: u64 = 1 << 20;

/// Paths as the configuration names them; which of them are needed is decided by [`Access::load`].
#[derive(Debug, Clone, Default)]
pub struct AccessFiles {
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub username: Option<String>,
    pub password_file: Option<PathBuf>,
    /// Limit for each call; zero means the default of 5 s.
    pub timeout: Duration,
}

/// Checked credentials. `Debug` shows no secret.
#[derive(Clone)]
pub struct Access {
    pub(super) ca_pem: Option<Vec<u8>>,
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) user: Option<(String, String)>,
    pub(super) tls: Option<Arc<Tls>>,
    timeout: Duration,
    warnings: Vec<String>,
}

/// The same trust and identity for connections of our own.
pub(super) struct Tls {
    pub(super) config: Arc<ClientConfig>,
    pub(super) roots: Arc<RootCertStore>,
    pub(super) own_chain: Vec<CertificateDer<'static>>,
}

impl Access {
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

    /// Without certificates and password; `timeout` limits each call.
    pub fn plain(timeout: Duration) -> Access {
        Access { ca_pem: None, identity: None, user: None, tls: None, timeout, warnings: Vec::new() }
    }

    /// Reads and checks all files; a fault is `Code::Config` and names the file and the configuration key.
    pub fn load(files: &AccessFiles) -> Result<Access> {
        let timeout = if files.timeout.is_zero() { Self::DEFAULT_TIMEOUT } else { files.timeout };
        let mut access = Access::plain(timeout);
        if let Some(path) = &files.ca_file {
            access.ca_pem = Some(read("ca_file", path)?);
        }
        access.identity = match (&files.cert_file, &files.key_file) {
            (Some(cert), Some(key)) => Some((read("cert_file", cert)?, read("key_file", key)?)),
            (None, None) => None,
            (Some(cert), None) => return Err(half("cert_file", cert, "key_file")),
            (None, Some(key)) => return Err(half("key_file", key, "cert_file")),
        };
        access.tls = tls(files, &access)?.map(Arc::new);
        access.user = match (&files.username, &files.password_file) {
            (None, None) => None,
            (Some(name), Some(path)) => {
                let password = password(path, &mut access.warnings)?;
                Some((name.clone(), password))
            }
            (Some(name), None) => return Err(half("username", Path::new(name), "password_file")),
            (None, Some(path)) => return Err(half("password_file", path, "username")),
        };
        Ok(access)
    }

    /// Limit for each call.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The same credentials with another limit for each call.
    pub fn with_timeout(mut self, timeout: Duration) -> Access {
        self.timeout = timeout;
        self
    }

    /// What a person should mend although it works, such as a password that everybody can read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("ca", &self.ca_pem.is_some())
            .field("client_certificate", &self.identity.is_some())
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Makes aws-lc-rs the process's provider of cryptography. Calling it again, or after somebody else, is harmless.
pub fn install_crypto_provider() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

fn refused(what: &str, key: &str, path: &Path) -> Error {
    Error::new(Code::Config, what, format!("{} ([etcd] {key})", path.display()))
}

fn half(key: &str, value: &Path, missing: &str) -> Error {
    refused("use", key, value).because(format!("{missing} is not set")).remedy(format!("set {missing} too, or neither"))
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>> {
    let fail = |e: std::io::Error| refused("read", key, path).because(e);
    let size = std::fs::metadata(path).map_err(fail)?;
    if !size.is_file() {
        return Err(refused("read", key, path).because("not a regular file"));
    }
    if size.len() > LIMIT {
        return Err(refused("read", key, path).because(format!("{} bytes are too many for this file", size.len())));
    }
    std::fs::read(path).map_err(fail)
}

fn certificates(key: &str, path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let list: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|e| refused("parse", key, path).because(e.to_string()))?;
    if list.is_empty() {
        return Err(refused("use", key, path)
            .because("it holds no certificate")
            .remedy("give a PEM file with BEGIN CERTIFICATE"));
    }
    Ok(list)
}

fn tls(files: &AccessFiles, access: &Access) -> Result<Option<Tls>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut identity = None;
    if let (Some(cert_path), Some(key_path), Some((cert, key))) = (&files.cert_file, &files.key_file, &access.identity)
    {
        let chain = certificates("cert_file", cert_path, cert)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            refused("use", "key_file", key_path)
                .because("it holds no private key")
                .remedy("give an unencrypted PEM file with BEGIN PRIVATE KEY")
        })?;
        rustls::sign::CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider).map_err(|e| match e {
            rustls::Error::InconsistentKeys(_) => refused("use", "key_file", key_path)
                .because(format!("the key does not belong to the certificate in {}", cert_path.display())),
            other => refused("use", "key_file", key_path).because(other),
        })?;
        identity = Some((chain, key));
    }
    let (Some(path), Some(pem)) = (&files.ca_file, &access.ca_pem) else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for cert in certificates("ca_file", path, pem)? {
        roots.add(cert).map_err(|e| refused("use", "ca_file", path).because(e))?;
    }
    let roots = Arc::new(roots);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| refused("use", "ca_file", path).because(e))?
        .with_root_certificates(roots.clone());
    let (mut config, own_chain) = match identity {
        Some((chain, key)) => {
            let config = builder
                .with_client_auth_cert(chain.clone(), key)
                .map_err(|e| Error::new(Code::Config, "use", "[etcd] cert_file and key_file").because(e))?;
            (config, chain)
        }
        None => (builder.with_no_client_auth(), Vec::new()),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Some(Tls { config: Arc::new(config), roots, own_chain }))
}

fn password(path: &Path, warnings: &mut Vec<String>) -> Result<String> {
    use std::os::unix::fs::PermissionsExt;
    let bytes = read("password_file", path)?;
    let text =
        String::from_utf8(bytes).map_err(|_| refused("use", "password_file", path).because("it is not UTF-8"))?;
    let password = text.strip_suffix('\n').map_or(text.as_str(), |t| t.strip_suffix('\r').unwrap_or(t));
    if password.is_empty() {
        return Err(refused("use", "password_file", path).because("it is empty"));
    }
    let mode =
        std::fs::metadata(path).map_err(|e| refused("read", "password_file", path).because(e))?.permissions().mode();
    if mode & 0o004 != 0 {
        warnings.push(format!("everybody on this host can read the password in {}: chmod o-r it", path.display()));
    }
    Ok(password.to_string())
}
