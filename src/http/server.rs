//! The server: who asks, what for, and the answer.

use std::os::unix::fs::PermissionsExt;
use std::path::Path as FilePath;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::api::{Daemon, Done, ErrorBody, Jobs, Pause, Queued};
use super::connections::accept;
use super::follow::{follow_job, follow_status};
use crate::catalog::note::{TAG_RULE, is_tag};
use crate::config::Settings;
use crate::engine::command::Handle;
use crate::engine::failure::Failure;
use crate::engine::job::{JobId, Task};
use crate::error::{Code, Error, Exit, Result};
use crate::status::{Facts, Status, job, jobs, render};

/// More than any request needs.
const BODY: usize = 64 << 10;

/// What requests are answered from.
#[derive(Debug, Clone)]
pub struct App {
    pub handle: Handle,
    pub facts: watch::Receiver<Facts>,
    pub settings: watch::Receiver<Arc<Settings>>,
}

impl App {
    pub fn status(&self) -> Status {
        render(&self.handle.turn(), &self.facts.borrow(), &self.settings.borrow(), Timestamp::now())
    }
}

/// Who asks, by the kernel's word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    pub(super) uid: Option<u32>,
}

impl Peer {
    pub(super) fn of(stream: &UnixStream) -> Peer {
        Peer { uid: stream.peer_cred().ok().map(|cred| cred.uid()) }
    }

    pub(super) fn is_owner(self) -> bool {
        self.uid.is_some_and(|uid| uid == 0 || uid == nix::unistd::geteuid().as_raw())
    }

    /// Root and the daemon's own user may change something.
    fn may_change(self, what: &str) -> Result<u32> {
        match self.uid {
            Some(uid) if self.is_owner() => Ok(uid),
            uid => Err(Error::new(Code::Permission, what, "")
                .because(match uid {
                    Some(uid) => format!("uid {uid} may read here, not change"),
                    None => "nobody says who asks".into(),
                })
                .remedy("do it as root")),
        }
    }
}

/// Takes the socket; one that nobody answers on is left from a process that was killed.
pub async fn bind(path: &FilePath) -> Result<UnixListener> {
    let on = path.display().to_string();
    let failed = |e: std::io::Error| {
        Error::new(Code::CannotCreate, "listen on", &*on).because(e).remedy("see [paths] runtime; is it writable?")
    };
    // The kernel's limit of a socket's name, with the zero behind it.
    if path.as_os_str().len() >= 108 {
        return Err(Error::new(Code::Config, "listen on", &*on)
            .because("a socket's path has at most 107 bytes")
            .remedy("name a shorter directory as [paths] runtime"));
    }
    match UnixListener::bind(path) {
        Ok(listener) => Ok(listener),
        Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => {
            if UnixStream::connect(path).await.is_ok() {
                return Err(Error::new(Code::LockHeld, "listen on", &*on)
                    .because("another daemon listens there")
                    .remedy("stop it first, or give this one another [paths] runtime"));
            }
            remove_stale(path).map_err(failed)?;
            UnixListener::bind(path).map_err(failed)
        }
        Err(e) => Err(failed(e)),
    }
    .and_then(|listener| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(failed)?;
        Ok(listener)
    })
}

/// Only a socket, only in the directory that was opened.
fn remove_stale(path: &FilePath) -> std::io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let found = std::fs::symlink_metadata(path)?;
    if !found.file_type().is_socket() {
        return Err(std::io::Error::other("something that is no socket has its name"));
    }
    nix::unistd::unlink(path).map_err(std::io::Error::from)
}

/// Answers until `cancel` fires; then those under way are cut after a moment.
pub async fn serve(listener: UnixListener, app: App, cancel: CancellationToken) {
    let router = Router::new()
        .route("/v1/daemon", get(daemon))
        .route("/v1/status", get(status))
        .route("/v1/status/follow", get(status_follow))
        .route("/v1/jobs", get(all_jobs).post(submit))
        .route("/v1/jobs/{id}", get(one_job).delete(cancel_job))
        .route("/v1/jobs/{id}/follow", get(job_follow))
        .route("/v1/schedules", get(schedules))
        .route("/v1/schedules/{name}/pause", post(pause))
        .route("/v1/schedules/{name}/resume", post(resume))
        .fallback(|| async { answer::<()>(Err(Error::new(Code::NotFound, "find what was asked for", ""))) })
        .layer(axum::extract::DefaultBodyLimit::max(BODY))
        .layer(axum::middleware::map_response(in_our_words))
        .with_state(app);
    tokio::select! {
        () = accept(listener, router) => {}
        () = cancel.cancelled() => {}
    }
}

/// What the framework refuses by itself (a method, a body that is too long, a path that is no text) gets the same body as
/// all other errors.
async fn in_our_words(response: Response) -> Response {
    let status = response.status();
    let is_ours = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if is_ours || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let error = Error::new(Code::Usage, "understand the request", "").because(status.to_string());
    let body = serde_json::to_vec(&ErrorBody { schema: 1, error: Failure::from(&error) }).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

pub(super) fn answer<T: Serialize>(result: Result<T>) -> Response {
    let (status, body) = match &result {
        Ok(document) => (StatusCode::OK, serde_json::to_vec(document)),
        Err(error) => {
            let status = match error.exit() {
                Exit::Usage => StatusCode::BAD_REQUEST,
                Exit::NotFound => StatusCode::NOT_FOUND,
                Exit::Permission => StatusCode::FORBIDDEN,
                Exit::Temporary | Exit::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, serde_json::to_vec(&ErrorBody { schema: 1, error: Failure::from(error) }))
        }
    };
    match body {
        Ok(body) => (status, [(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

pub(super) fn lines(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "application/jsonl")], body).into_response()
}

/// A document in a request, or why it is none.
fn read<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|e| Error::new(Code::Usage, what, "").because(e))
}

fn id(text: &str) -> Result<JobId> {
    text.parse().map_err(|_| {
        Error::new(Code::NotFound, "find job", text).because("that is no number").remedy("see `refloat jobs list`")
    })
}

fn known(app: &App, text: &str) -> Result<JobId> {
    let id = id(text)?;
    job(&app.handle.turn(), id).map(|_| id).ok_or_else(|| {
        Error::new(Code::NotFound, "find job", text)
            .because("no job has this number; the oldest are forgotten")
            .remedy("see `refloat jobs list`")
    })
}

async fn daemon(State(app): State<App>) -> Response {
    let settings = app.settings.borrow().clone();
    answer(Ok(Daemon {
        schema: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        node: settings.node.clone(),
        state: settings.paths.state.display().to_string(),
    }))
}

async fn status(State(app): State<App>) -> Response {
    answer(Ok(app.status()))
}

async fn status_follow(State(app): State<App>) -> Response {
    lines(follow_status(app))
}

async fn all_jobs(State(app): State<App>) -> Response {
    answer(Ok(Jobs { schema: 1, jobs: jobs(&app.handle.turn()) }))
}

async fn one_job(State(app): State<App>, Path(text): Path<String>) -> Response {
    answer(known(&app, &text).map(|id| job(&app.handle.turn(), id)))
}

async fn job_follow(State(app): State<App>, Path(text): Path<String>) -> Response {
    match known(&app, &text) {
        Ok(id) => lines(follow_job(app, id)),
        Err(error) => answer::<()>(Err(error)),
    }
}

async fn submit(State(app): State<App>, ConnectInfo(peer): ConnectInfo<Peer>, body: axum::body::Bytes) -> Response {
    let queued = async {
        let task: Task = read(&body, "queue job")?;
        let uid = peer.may_change("queue job")?;
        check(&task, &app.settings.borrow())?;
        let (job, coalesced) = app.handle.submit(task, uid).await?;
        Ok(Queued { schema: 1, job, coalesced })
    };
    answer(queued.await)
}

/// What can never be done is not queued.
fn check(task: &Task, settings: &Settings) -> Result<()> {
    // A snapshot would keep it for ever, and one that is joined to a scheduled one must not spoil it.
    if let Task::Snapshot { tags, .. } = task
        && let Some(bad) = tags.iter().find(|tag| !is_tag(tag))
    {
        return Err(Error::new(Code::Usage, "tag snapshot with", bad).because(TAG_RULE));
    }
    let known = |name: &str| settings.stores.iter().any(|store| store.name == name);
    let unknown = match task {
        Task::Snapshot { stores, .. } => stores.iter().find(|name| !known(name)).cloned(),
        Task::Verify { store, .. } => store.clone().filter(|name| !known(name)),
        Task::Prune { store } => Some(store.clone()).filter(|name| !known(name)),
        Task::Defrag { .. } => None,
    };
    match unknown {
        None => Ok(()),
        Some(name) => Err(Error::new(Code::NotFound, "find store", name)
            .because("no store of this name is configured in the daemon")
            .remedy("see `refloat config show`; after a change, `systemctl reload refloat`")),
    }
}

async fn cancel_job(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path(text): Path<String>,
) -> Response {
    let canceled = async {
        let uid = peer.may_change("cancel job")?;
        app.handle.cancel(id(&text)?, uid).await?;
        Ok(Done { schema: 1, done: true })
    };
    answer(canceled.await)
}

async fn schedules(State(app): State<App>) -> Response {
    answer(Ok(app.status().schedules))
}

async fn pause(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path(name): Path<String>,
    body: axum::body::Bytes,
) -> Response {
    let paused = async {
        let uid = peer.may_change("pause schedule")?;
        let Pause { until } = read(&body, "pause schedule")?;
        app.handle.pause(name, until, uid).await?;
        Ok(Done { schema: 1, done: true })
    };
    answer(paused.await)
}

async fn resume(State(app): State<App>, ConnectInfo(peer): ConnectInfo<Peer>, Path(name): Path<String>) -> Response {
    let resumed = async {
        let uid = peer.may_change("resume schedule")?;
        app.handle.resume(name, uid).await?;
        Ok(Done { schema: 1, done: true })
    };
    answer(resumed.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_line_would_refuse_is_not_queued_either() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("refloat.toml");
        std::fs::write(&file, "node = \"cp1\"\n").unwrap();
        let surroundings = crate::config::Surroundings { root: "/".into(), host_name: "cp1".into(), credentials: None };
        let settings = crate::config::load(&surroundings, Some(&file)).unwrap().settings;
        let tagged = |tag: &str| Task::Snapshot { member: None, tags: vec!["a".into(), tag.into()], stores: vec![] };
        assert!(check(&tagged("before-upgrade"), &settings).is_ok());
        for tag in ["", "two words", "a\u{1b}[31m\nb", &"x".repeat(64)] {
            assert_eq!(check(&tagged(tag), &settings).unwrap_err().code(), Code::Usage, "{tag:?}");
        }
        assert!(read::<Pause>(br#"{"untill":"2026-12-01T00:00:00Z"}"#, "pause").is_err(), "it would never end");
        assert!(read::<Pause>(b"", "pause").is_ok());
    }
}
