//! What the health process serves on its own socket: it answers when the daemon is dead, and nothing here changes
//! anything.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/health` | [`Health`] |
//! | `GET /v1/health/follow` | the same, one a line, each time it is looked at anew |
//! | `GET /v1/health/changes` | [`HealthWord`], one a line, when it changes, else now and then as a sign of life |

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use futures_util::stream;
use serde::Serialize;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::connections::accept;
use super::server::{answer, lines};
use crate::error::{Code, Error};
use crate::status::health::{Health, HealthWord};

/// In the runtime directory.
pub const HEALTH_SOCKET: &str = "health.sock";
/// Without a change a follower hears this often that there is none.
pub const QUIET: Duration = Duration::from_secs(5);

type Latest = watch::Receiver<Arc<Health>>;

/// Answers until `stop` fires.
pub async fn serve_health(listener: UnixListener, latest: Latest, stop: CancellationToken) {
    let router = Router::new()
        .route("/v1/health", get(async |State(latest): State<Latest>| answer(Ok(latest.borrow().as_ref().clone()))))
        .route("/v1/health/follow", get(follow))
        .route("/v1/health/changes", get(changes))
        .fallback(async || answer::<()>(Err(Error::new(Code::NotFound, "find what was asked for", ""))))
        .with_state(latest);
    tokio::select! {
        () = accept(listener, router) => {}
        () = stop.cancelled() => {}
    }
}

fn line(document: &impl Serialize) -> Option<Bytes> {
    let mut text = serde_json::to_vec(document).ok()?;
    text.push(b'\n');
    Some(text.into())
}

async fn follow(State(mut latest): State<Latest>) -> Response {
    latest.mark_changed();
    lines(Body::from_stream(stream::unfold(latest, async |mut latest| {
        latest.changed().await.ok()?;
        let bytes = line(latest.borrow_and_update().as_ref())?;
        Some((Ok::<_, std::io::Error>(bytes), latest))
    })))
}

async fn changes(State(mut latest): State<Latest>) -> Response {
    latest.mark_changed();
    lines(Body::from_stream(stream::unfold((latest, None), async |(mut latest, mut said)| {
        loop {
            latest.changed().await.ok()?;
            let word = latest.borrow_and_update().word();
            if is_new(said.as_ref(), &word) {
                let bytes = line(&word)?;
                said = Some((Instant::now(), word));
                return Some((Ok::<_, std::io::Error>(bytes), (latest, said)));
            }
        }
    })))
}

/// The time alone is no change.
fn is_new(said: Option<&(Instant, HealthWord)>, now: &HealthWord) -> bool {
    said.is_none_or(|(at, before)| at.elapsed() >= QUIET || *before != HealthWord { at: before.at, ..now.clone() })
}
