//! A fresh key and the request for its certificate (PKCS#10, RFC 2986): ECDSA on P-256 with SHA-256. The key never leaves
//! this host.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use k8s_openapi::ByteString;
use x509_cert::der::asn1::{BitString, ObjectIdentifier};
use x509_cert::der::{Decode, Encode};
use x509_cert::name::Name;
use x509_cert::request::{CertReq, CertReqInfo, Version};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use crate::error::{Code, Error, Result};

/// `ecdsa-with-SHA256` (RFC 5758, 3.2).
const ECDSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");

/// Both as PEM.
pub struct Request {
    /// PKCS#8; a secret.
    pub key: String,
    pub request: String,
}

impl Request {
    /// For a user of Kubernetes: the common name alone, in no group.
    pub fn of_user(name: &str) -> Result<Request> {
        let failed = |why: String| Error::new(Code::Internal, "make a certificate request for", name).because(why);
        let wrong = |e: x509_cert::der::Error| failed(e.to_string());
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)
            .map_err(|e| failed(e.to_string()))?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref())
            .map_err(|e| failed(e.to_string()))?;
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(|e| failed(e.to_string()))?;
        let info = CertReqInfo {
            version: Version::V1,
            subject: subject(name).map_err(wrong)?,
            public_key: SubjectPublicKeyInfoOwned::from_der(public.as_ref()).map_err(wrong)?,
            attributes: Default::default(),
        };
        let signature = pair.sign(&random, &info.to_der().map_err(wrong)?).map_err(|e| failed(e.to_string()))?;
        let request = CertReq {
            info,
            algorithm: AlgorithmIdentifierOwned { oid: ECDSA_SHA256, parameters: None },
            signature: BitString::from_bytes(signature.as_ref()).map_err(wrong)?,
        };
        Ok(Request {
            key: pem("PRIVATE KEY", key.as_ref()),
            request: pem("CERTIFICATE REQUEST", &request.to_der().map_err(wrong)?),
        })
    }
}

/// `CN=name`.
fn subject(name: &str) -> Result<Name, x509_cert::der::Error> {
    // Names here are our own: letters alone, so that nothing needs escaping.
    format!("CN={name}").parse()
}

/// RFC 7468.
fn pem(label: &str, der: &[u8]) -> String {
    let text = base64(der);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned());
    let body: Vec<String> = lines.collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", body.join("\n"))
}

/// As Kubernetes writes bytes.
pub(super) fn base64(bytes: &[u8]) -> String {
    match serde_json::to_value(ByteString(bytes.to_vec())) {
        Ok(serde_json::Value::String(text)) => text,
        // It has no other form.
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// openssl's own word about what we made.
    fn openssl(args: &[&str], input: &str) -> String {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let mut command = Command::new("openssl");
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
    }

    #[test]
    fn openssl_takes_the_request_and_the_key_fits() {
        let made = Request::of_user("refloat").unwrap();
        let said = openssl(&["req", "-verify", "-noout", "-subject", "-pubkey"], &made.request);
        assert!(said.contains("verify OK") && said.contains("CN = refloat"), "{said}");
        let public = openssl(&["pkey", "-pubout"], &made.key);
        assert!(said.contains(public.trim()), "{said}\n{public}");
        assert_ne!(made.key, Request::of_user("refloat").unwrap().key);
    }
}
