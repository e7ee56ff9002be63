//! Sockets that systemd holds open for a service (`sd_listen_fds(3)`): clients wait while it is started or exchanged,
//! and are never refused.

use std::net::TcpListener;

use listenfd::ListenFd;

use crate::error::{Code, Error, Result};

/// Those that were handed to this process, each with its `FileDescriptorName=`.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(String, TcpListener)>);

impl Inherited {
    /// Takes them all, and takes the words that name them out of the environment. To be called once, before there are
    /// threads. None without systemd; an error where one is no TCP listener.
    pub fn take() -> Result<Inherited> {
        // Before the other, which removes it.
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut fds = ListenFd::from_env();
        let mut names = names.split(':');
        let mut taken = Vec::new();
        for at in 0..fds.len() {
            let name = names.next().unwrap_or_default().to_string();
            let failed = |e| Error::new(Code::CannotCreate, "take over socket", &*name).because(e);
            if let Some(listener) = fds.take_tcp_listener(at).map_err(failed)? {
                listener.set_nonblocking(true).map_err(failed)?;
                taken.push((name, listener));
            }
        }
        Ok(Inherited(taken))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of that name: one unit may listen on several addresses.
    pub fn named(&mut self, name: &str) -> Vec<TcpListener> {
        let (own, others) = std::mem::take(&mut self.0).into_iter().partition(|(known, _)| known == name);
        self.0 = others;
        let own: Vec<(String, TcpListener)> = own;
        own.into_iter().map(|(_, listener)| listener).collect()
    }

    /// Names of those that nobody asked for.
    pub fn left(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }
}
