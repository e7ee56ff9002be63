//! A client of one apiserver.

use std::time::Duration;

use kube::config::{Config, KubeConfigOptions};

use super::failure;
use super::kubeconfig::Access;
use crate::error::{Code, Error, Result};

/// Connections of its own: what is shared with another one is nothing.
#[derive(Clone)]
pub struct Client {
    inner: kube::Client,
    url: String,
    timeout: Duration,
}

impl Client {
    /// Connects with the first call. `timeout`: the deadline of each call, from the connection to the last byte.
    pub async fn new(access: &Access, timeout: Duration) -> Result<Client> {
        let url = access.server().to_string();
        let failed = |why: String| Error::new(Code::Config, "use kubeconfig", access.on()).because(why);
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(access.kubeconfig().clone(), &options)
            .await
            .map_err(|e| failed(e.to_string()))?;
        config.proxy_url = None;
        config.default_retry = false;
        config.connect_timeout = Some(timeout);
        // Each call has a deadline of its own, and none is longer than it.
        config.read_timeout = None;
        config.write_timeout = None;
        let inner = kube::Client::try_from(config).map_err(|e| failed(e.to_string()))?;
        Ok(Client { inner, url, timeout })
    }

    /// `https://10.0.0.1:6443`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// For `kube::Api`; its calls go through [`Client::call`].
    pub fn inner(&self) -> kube::Client {
        self.inner.clone()
    }

    /// Waits for a call until its deadline. `what`: a bare verb phrase, "read lease refloat-cp1".
    pub async fn call<T>(&self, what: &str, call: impl Future<Output = kube::Result<T>>) -> Result<T> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failure::told(error, what, &self.url)),
            Err(_) => Err(failure::silent(what, &self.url, self.timeout)),
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("url", &self.url).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
