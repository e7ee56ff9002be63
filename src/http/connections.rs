//! Connections: how many each user may hold, and for how long one may say nothing.
//!
//! Whoever may read the socket must not be able to use up the descriptors that jobs need, nor keep root from asking.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::api::ErrorBody;
use super::server::Peer;
use crate::engine::failure::Failure;
use crate::error::{Code, Error};

/// At once, of each user; root and the daemon's own user do more, for instance wait for many jobs.
const OF_ONE: usize = 32;
const OF_OWNERS: usize = 256;
/// That are told so at the same time.
const REFUSALS: usize = 16;
/// A request's head takes no longer, nor does a connection that is kept say nothing for longer.
const HEAD: Duration = Duration::from_secs(10);
/// Descriptors or memory are short: they may be there again soon.
const REST: Duration = Duration::from_secs(1);

/// Connections that are open, by user.
#[derive(Debug, Clone, Default)]
struct Open(Arc<Mutex<BTreeMap<Option<u32>, usize>>>);

/// One of them; counted until it is dropped.
struct Held(Open, Option<u32>);

impl Open {
    /// `None`: this user has too many.
    fn take(&self, peer: Peer) -> Option<Held> {
        let most = if peer.is_owner() { OF_OWNERS } else { OF_ONE };
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(peer.uid).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Held(self.clone(), peer.uid))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.1);
            }
        }
    }
}

/// Accepts for ever.
pub(super) async fn accept(listener: UnixListener, router: Router) {
    let open = Open::default();
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let peer = Peer::of(&stream);
                match open.take(peer) {
                    Some(held) => drop(tokio::spawn(serve(stream, peer, router.clone(), held))),
                    None => drop(tokio::spawn(refuse(stream, refusals.clone()))),
                }
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection on the control socket: {error}");
                tokio::time::sleep(REST).await;
            }
        }
    }
}

/// Tells it why, once it has asked: an answer that comes before the question is taken for nonsense. Where many are to be
/// told at once, some find the connection closed.
async fn refuse(stream: UnixStream, refusals: Arc<Semaphore>) {
    let Ok(_permit) = refusals.try_acquire() else { return };
    if let Ok(Ok(())) = tokio::time::timeout(REST, stream.readable()).await {
        // What is read is not looked at; unread, it would make the end of this connection a reset.
        let _ = stream.try_read(&mut [0; 8 << 10]);
        // A fresh socket has room for it.
        let _ = stream.try_write(&too_many());
    }
}

/// The whole answer for one too many.
fn too_many() -> Vec<u8> {
    let error = Error::new(Code::LockHeld, "take up the connection", "")
        .because("this user holds as many as one may")
        .remedy("end some of its commands that wait, or try again");
    let body = serde_json::to_vec(&ErrorBody { schema: 1, error: Failure::from(&error) }).unwrap_or_default();
    let mut answer =
        format!("HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len())
            .into_bytes();
    answer.extend(body);
    answer
}

async fn serve(stream: UnixStream, peer: Peer, router: Router, _held: Held) {
    let service = TowerToHyperService::new(router.layer(Extension(ConnectInfo(peer))));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    // A client that goes away, or talks nonsense, is its own affair.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_so_many_and_takes_none_from_others() {
        let open = Open::default();
        let own = nix::unistd::geteuid().as_raw();
        let stranger = Peer { uid: Some(own.wrapping_add(4242)) };
        let mut held: Vec<Held> = (0..OF_ONE).map(|_| open.take(stranger).unwrap()).collect();
        assert!(open.take(stranger).is_none());
        let owners: Vec<Held> = (0..OF_OWNERS).map(|_| open.take(Peer { uid: Some(own) }).unwrap()).collect();
        assert!(open.take(Peer { uid: Some(own) }).is_none() && open.take(Peer { uid: None }).is_some());
        held.pop();
        held.push(open.take(stranger).unwrap());
        drop((held, owners));
        assert!(open.0.lock().unwrap().is_empty());
    }
}
