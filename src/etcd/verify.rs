//! Whether an authority signed the client certificate, as TLS would judge it: found before a member says no.

use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::server::WebPkiClientVerifier;

use super::Access;

impl Access {
    /// Why the authority in `ca_file` would refuse the client certificate at `now`; `None` without one, and for one that
    /// it takes. Members may trust another authority for clients than the one that signed their own certificates.
    pub fn refusal(&self, now: Timestamp) -> Option<String> {
        let tls = self.tls.as_ref()?;
        let (own, chain) = tls.own_chain.split_first()?;
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = match WebPkiClientVerifier::builder_with_provider(tls.roots.clone(), provider).build() {
            Ok(verifier) => verifier,
            Err(e) => return Some(e.to_string()),
        };
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        verifier.verify_client_cert(own, chain, at).err().map(|e| e.to_string())
    }
}
