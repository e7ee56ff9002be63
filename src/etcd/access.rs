//! How to reach etcd: certificates, key, user and password, read and checked before the first call.
//!
//! The transport says only "transport error" for a bad certificate file, so everything that can be wrong with
//! the files is found here, with the name of the file and of the configuration key. A credential of the service that
//! systemd did not find is its fall-back, a lone `-`: that is a missing file, never a key that cannot be parsed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::expiry::Expiry;
use crate::error::{Code, Error, Result};
use crate::format::x509;

/// More than any certificate bundle, key or password needs.
const LIMIT: u64 = 1 << 20;
/// How the configuration names a file that systemd hands over, where it is not known which file that is.
const CREDENTIAL: &str = "credential:";

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
    expires: Vec<Expiry>,
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
        let (warnings, expires) = (Vec::new(), Vec::new());
        Access { ca_pem: None, identity: None, user: None, tls: None, timeout, warnings, expires }
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
        access.expires = expires(files, &access);
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

    /// When the client certificate ends; `None` without one.
    pub fn own_certificate_ends(&self) -> Option<Timestamp> {
        let own = self.tls.as_ref()?.own_chain.first()?;
        x509::certificate(own).ok().map(|facts| facts.not_after)
    }

    /// How long the authority and the client certificate count.
    pub fn expires(&self) -> &[Expiry] {
        &self.expires
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

/// A credential that is not there is the commonest fault of a fresh node: it gets words of its own.
fn missing(key: &str, path: &Path, why: &str) -> Error {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = name.strip_prefix(CREDENTIAL).unwrap_or(&name).to_string();
    let missing = Error::new(Code::Config, "credential file is missing:", &*name).because(why.to_string());
    refused("read", key, path).because(missing).remedy(format!(
        "check the file that LoadCredential={name}: of refloat.service names (`systemctl cat refloat.service`), then restart \
         the service; `sudo refloat setup` finds the files of etcd"
    ))
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>> {
    if path.as_os_str().as_encoded_bytes().starts_with(CREDENTIAL.as_bytes()) {
        return Err(missing(key, path, "no unit hands it over, and $CREDENTIALS_DIRECTORY is not set"));
    }
    let fail = |e: std::io::Error| {
        refused("read", key, path)
            .because(e)
            .remedy(format!("correct [etcd] {key}, or let refloat's user read the file"))
    };
    let size = std::fs::metadata(path).map_err(fail)?;
    if !size.is_file() {
        return Err(refused("read", key, path).because("not a regular file").remedy(format!("correct [etcd] {key}")));
    }
    if size.len() > LIMIT {
        return Err(refused("read", key, path)
            .because(format!("{} bytes are too many for this file", size.len()))
            .remedy(format!("correct [etcd] {key}")));
    }
    let bytes = std::fs::read(path).map_err(fail)?;
    match bytes.as_slice() {
        b"-" | b"-\n" => Err(missing(key, path, "its file was not there when the service started")),
        _ => Ok(bytes),
    }
}

/// Of a bundle of authorities the one that ends last: the others may be there from before a renewal. Of the client's
/// chain the first, its own. What TLS takes and this cannot read is not judged.
fn expires(files: &AccessFiles, access: &Access) -> Vec<Expiry> {
    let expiry = |what: &str, path: &Path, facts: x509::Facts| Expiry {
        what: format!("{what} {}", path.display()),
        not_before: facts.not_before,
        not_after: facts.not_after,
    };
    let of = |pem: &[u8]| x509::certificates(pem).unwrap_or_default();
    let authority = files.ca_file.as_deref().zip(access.ca_pem.as_deref()).and_then(|(path, pem)| {
        of(pem)
            .into_iter()
            .max_by_key(|facts| facts.not_after)
            .map(|facts| expiry("certificate authority", path, facts))
    });
    let client =
        files.cert_file.as_deref().zip(access.identity.as_ref()).and_then(|(path, (pem, _))| {
            of(pem).into_iter().next().map(|facts| expiry("client certificate", path, facts))
        });
    authority.into_iter().chain(client).collect()
}

fn certificates(key: &str, path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let list: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|e| {
        refused("parse", key, path).because(e.to_string()).remedy("give a PEM file with BEGIN CERTIFICATE")
    })?;
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
                .because(format!("the key does not belong to the certificate in {}", cert_path.display()))
                .remedy("give the key that was made with this certificate"),
            other => {
                refused("use", "key_file", key_path).because(other).remedy("give a PEM key of RSA, ECDSA or Ed25519")
            }
        })?;
        identity = Some((chain, key));
    }
    let (Some(path), Some(pem)) = (&files.ca_file, &access.ca_pem) else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for cert in certificates("ca_file", path, pem)? {
        roots.add(cert).map_err(|e| {
            refused("use", "ca_file", path).because(e).remedy("give the certificate of the authority (CA) of etcd")
        })?;
    }
    let roots = Arc::new(roots);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| refused("use", "ca_file", path).because(e))?
        .with_root_certificates(roots.clone());
    let (mut config, own_chain) = match identity {
        Some((chain, key)) => {
            let config = builder.with_client_auth_cert(chain.clone(), key).map_err(|e| {
                Error::new(Code::Config, "use", "[etcd] cert_file and key_file")
                    .because(e)
                    .remedy("give a client certificate and its key")
            })?;
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
    let text = String::from_utf8(bytes).map_err(|_| {
        refused("use", "password_file", path).because("it is not UTF-8").remedy("write the password as text")
    })?;
    let password = text.strip_suffix('\n').map_or(text.as_str(), |t| t.strip_suffix('\r').unwrap_or(t));
    if password.is_empty() {
        return Err(refused("use", "password_file", path).because("it is empty").remedy("write the password into it"));
    }
    let mode =
        std::fs::metadata(path).map_err(|e| refused("read", "password_file", path).because(e))?.permissions().mode();
    if mode & 0o004 != 0 {
        warnings.push(format!("everybody on this host can read the password in {}: chmod o-r it", path.display()));
    }
    Ok(password.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(dir: &Path, name: &str, content: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, content).expect("write a file");
        path
    }

    #[test]
    fn faults_name_the_file_and_the_key() {
        let dir = tempfile::tempdir().expect("make a directory");
        let d = dir.path();
        let text = file(d, "text", "no PEM at all\n");
        let broken = file(d, "broken", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n");
        let junk = file(d, "junk", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        let empty = file(d, "empty", "\n");
        let huge = file(d, "huge", "");
        std::fs::File::options().write(true).open(&huge).and_then(|f| f.set_len(LIMIT + 1)).expect("grow a file");
        let none = AccessFiles::default;
        let (ca, cert, key) = ("ca_file", "cert_file", "key_file");
        for (files, name, cause) in [
            (AccessFiles { ca_file: Some(d.join("absent")), ..none() }, ca, "No such file"),
            (AccessFiles { ca_file: Some(d.into()), ..none() }, ca, "not a regular file"),
            (AccessFiles { ca_file: Some(huge), ..none() }, ca, "too many"),
            (AccessFiles { ca_file: Some(text.clone()), ..none() }, ca, "no certificate"),
            (AccessFiles { ca_file: Some(broken), ..none() }, ca, ""),
            (AccessFiles { ca_file: Some(junk), ..none() }, ca, ""),
            (AccessFiles { cert_file: Some(text.clone()), ..none() }, cert, "key_file is not set"),
            (AccessFiles { key_file: Some(text.clone()), ..none() }, key, "cert_file is not set"),
            (AccessFiles { cert_file: Some(text.clone()), key_file: Some(text.clone()), ..none() }, cert, "no cert"),
            (AccessFiles { username: Some("root".into()), ..none() }, "username", "password_file is not set"),
            (AccessFiles { password_file: Some(text), ..none() }, "password_file", "username is not set"),
            (
                AccessFiles { username: Some("root".into()), password_file: Some(empty), ..none() },
                "password_file",
                "empty",
            ),
        ] {
            let error = Access::load(&files).expect_err(name);
            assert_eq!(error.code(), Code::Config, "{files:?}");
            assert!(error.on().ends_with(&format!("([etcd] {name})")), "{error}");
            assert!(error.why().join(": ").contains(cause), "{error}: {:?}", error.why());
            assert!(error.get_remedy().is_some(), "{error}");
        }
    }

    #[test]
    fn a_missing_credential_is_named_and_never_an_empty_key() {
        let dir = tempfile::tempdir().expect("make a directory");
        for content in ["-", "-\n"] {
            let path = file(dir.path(), "etcd.key", content);
            let both = |path: &PathBuf| AccessFiles {
                cert_file: Some(path.clone()),
                key_file: Some(path.clone()),
                ..AccessFiles::default()
            };
            let password = AccessFiles {
                username: Some("root".into()),
                password_file: Some(path.clone()),
                ..AccessFiles::default()
            };
            let unknown = AccessFiles { ca_file: Some("credential:etcd.key".into()), ..AccessFiles::default() };
            for files in [both(&path), password, unknown] {
                let error = Access::load(&files).expect_err("a fall-back is no credential");
                assert_eq!(error.code(), Code::Config);
                assert_eq!(error.why()[0], "credential file is missing: etcd.key");
                assert!(error.get_remedy().is_some_and(|r| r.contains("LoadCredential=etcd.key:")), "{error:?}");
            }
        }
    }

    #[test]
    fn a_password_loses_its_line_end_and_is_never_shown() {
        let dir = tempfile::tempdir().expect("make a directory");
        for (content, password) in
            [("s3cret\n", "s3cret"), ("s3cret\r\n", "s3cret"), (" s3 ", " s3 "), ("s\n\n", "s\n")]
        {
            let path = file(dir.path(), "password", content);
            for (mode, warned) in [(0o600, false), (0o640, false), (0o644, true)] {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set the mode");
                let files = AccessFiles {
                    username: Some("root".into()),
                    password_file: Some(path.clone()),
                    ..AccessFiles::default()
                };
                let access = Access::load(&files).expect("a good password file");
                assert_eq!(access.user, Some(("root".into(), password.into())));
                assert_eq!(access.warnings().len(), usize::from(warned), "{mode:o}");
                assert!(!format!("{access:?} {:?}", access.warnings()).contains("s3"));
            }
        }
    }

    #[test]
    fn without_files_there_is_a_default_limit() {
        let access = Access::load(&AccessFiles::default()).expect("nothing to read");
        assert_eq!(access.timeout(), Access::DEFAULT_TIMEOUT);
        assert!(access.tls.is_none() && access.user.is_none() && access.warnings().is_empty());
    }
}
