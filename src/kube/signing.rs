//! A client certificate from the cluster itself: asked for, approved by whoever may (the admin that setup runs as), signed
//! by the controller manager, and waited for.

use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::client::Client;
use super::request::Request;
use super::{MANAGER, USER};
use crate::error::{Code, Error, Result};
use crate::format::x509;
use crate::fs::random;

/// Signs certificates that the apiserver takes from clients.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// The signer does it within a second; it may have to be elected first.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);

/// Both as PEM.
pub struct Issued {
    pub certificate: Vec<u8>,
    /// A secret.
    pub key: Vec<u8>,
}

/// Asks, approves and waits, half a minute at most. The request is removed again, however that ends.
pub async fn issue(client: &Client, node: &str) -> Result<Issued> {
    let made = Request::of_user(USER)?;
    let random: [u8; 4] = random()?;
    let name = format!("refloat-{node}-{:08x}", u32::from_be_bytes(random));
    let mut request = CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(made.request.into_bytes()),
            signer_name: SIGNER.into(),
            usages: Some(vec!["digital signature".into(), "client auth".into()]),
            ..Default::default()
        },
        ..Default::default()
    };
    request.metadata.name = Some(name.clone());
    let api: Api<CertificateSigningRequest> = Api::all(client.inner());
    client.call("ask for a certificate", api.create(&PostParams::default(), &request)).await?;
    let signed = approved(client, &api, &name).await;
    // What is left is removed by the controller manager after an hour.
    let _ = client.call("remove the request", api.delete(&name, &DeleteParams::default())).await;
    Ok(Issued { certificate: signed?, key: made.key.into_bytes() })
}

async fn approved(client: &Client, api: &Api<CertificateSigningRequest>, name: &str) -> Result<Vec<u8>> {
    let yes = json!({ "status": { "conditions": [{
        "type": "Approved", "status": "True", "reason": "RefloatSetup",
        "message": "Asked for and approved by refloat setup, as the user of the kubeconfig that it was given.",
    }] } });
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..Default::default() };
    client.call("approve the certificate", api.patch_approval(name, &params, &Patch::Merge(&yes))).await?;
    let begun = Instant::now();
    loop {
        let now = client.call("wait for the certificate", api.get(name)).await?;
        let failed = |why: String| Error::new(Code::ApiserverFailed, "get a certificate", client.url()).because(why);
        let status = now.status.unwrap_or_default();
        if let Some(ByteString(pem)) = status.certificate.filter(|pem| !pem.0.is_empty()) {
            return match x509::certificates(&pem) {
                Ok(_) => Ok(pem),
                Err(fault) => Err(failed(format!("what was signed cannot be read: {fault}"))),
            };
        }
        let no = status.conditions.into_iter().flatten().find(|one| matches!(one.type_.as_str(), "Denied" | "Failed"));
        if let Some(no) = no {
            let why = no.message.or(no.reason).unwrap_or_default();
            return Err(failed(format!("{}: {why}", no.type_)));
        }
        if begun.elapsed() >= PATIENCE {
            return Err(failed(format!("nobody signed it within {} seconds", PATIENCE.as_secs()))
                .remedy("does kube-controller-manager run, with --cluster-signing-cert-file? Then run setup again"));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
