//! What refloat has to know of a certificate: whose it is, from when to when it counts, what it may be used for
//! (RFC 5280). It is read, never judged: signatures are TLS's business.

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_cert::certificate::Certificate;
use x509_cert::der::{Decode, asn1::ObjectIdentifier};
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage};

/// `id-kp-clientAuth` (RFC 5280, 4.2.1.12).
const CLIENT_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");
/// `anyExtendedKeyUsage`, the same section.
const ANY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");

/// One certificate of a PEM file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// As RFC 4514 writes it: `CN=kube-etcd-healthcheck-client,O=system:masters`.
    pub subject: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// Whether it may be shown as a client: no extended key usage allows everything.
    pub client: bool,
    /// Whether it may sign others.
    pub authority: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    #[error("it is no PEM file: {0}")]
    Pem(String),
    #[error("it holds no certificate")]
    None,
    #[error("certificate {at} in it cannot be read: {why}")]
    Der { at: usize, why: String },
}

/// All certificates of a PEM file in their order; at least one.
pub fn certificates(pem: &[u8]) -> Result<Vec<Facts>, CertificateFault> {
    let list: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|e| CertificateFault::Pem(e.to_string()))?;
    if list.is_empty() {
        return Err(CertificateFault::None);
    }
    list.iter()
        .enumerate()
        .map(|(at, der)| certificate(der).map_err(|why| CertificateFault::Der { at: at + 1, why }))
        .collect()
}

/// One certificate as TLS shows it; the reason when it cannot be read.
pub fn certificate(der: &[u8]) -> Result<Facts, String> {
    let certificate = Certificate::from_der(der).map_err(|e| e.to_string())?;
    let body = certificate.tbs_certificate();
    let usage = body.get_extension::<ExtendedKeyUsage>().map_err(|e| e.to_string())?;
    let client = usage.is_none_or(|(_, usage)| usage.0.iter().any(|id| [CLIENT_AUTH, ANY_USAGE].contains(id)));
    let constraints = body.get_extension::<BasicConstraints>().map_err(|e| e.to_string())?;
    let time = |time: &x509_cert::time::Time| {
        let seconds = time.to_unix_duration().as_secs();
        i64::try_from(seconds)
            .ok()
            .and_then(|s| Timestamp::from_second(s).ok())
            .ok_or_else(|| format!("time {seconds}"))
    };
    Ok(Facts {
        subject: body.subject().to_string(),
        not_before: time(&body.validity().not_before)?,
        not_after: time(&body.validity().not_after)?,
        client,
        authority: constraints.is_some_and(|(_, constraints)| constraints.ca),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_said() {
        assert_eq!(certificates(b"text"), Err(CertificateFault::None));
        assert_eq!(certificates(b""), Err(CertificateFault::None));
        let broken = b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        assert!(matches!(certificates(broken), Err(CertificateFault::Pem(_))));
        let junk = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(certificates(junk), Err(CertificateFault::Der { at: 1, .. })));
        // A key beside it is no certificate, and does no harm.
        let key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert_eq!(certificates(key), Err(CertificateFault::None));
    }
}
