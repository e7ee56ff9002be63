//! The composition root of `refloat daemon`: builds the parts, owns the tasks, drains them. [`health`] is that of the other
//! process.
//!
//! | task | reads | writes | file |
//! |---|---|---|---|
//! | engine | commands, reports of jobs, answers of the ledger | turns, the ledger, the watchdog | [`crate::engine`] |
//! | opening | the ledger's files, on a thread | what it held, to the engine | [`opening`] |
//! | jobs, survey | one thread each, made by the engine | reports | [`crate::engine::works`] |
//! | control | requests on the socket | commands; turns and facts as documents | [`crate::http`] |
//! | member | the own member, twice a minute | facts; trouble *etcd* | [`member`] |
//! | certificates | the credential files, each hour | trouble *certificates* | [`certificates`] |
//! | place | the state directory's name, twice a minute | trouble *state directory* | [`place`] |
//! | health | health.sock | facts; a trouble for what is bad | [`follow_health`] |
//! | units | D-Bus | facts | [`units`] |
//! | voice | turns and facts | `STATUS=` | [`voice`] |
//! | signals | SIGTERM, SIGINT, SIGHUP | drain; new settings | this file, [`reload`] |
//!
//! [`answer`] is the root of a process of its own.
//!
//! All of it is one thread but for what blocks. Nothing here decides anything about jobs.

pub mod answer;
mod certificates;
mod follow_health;
pub mod health;
mod member;
mod opening;
mod place;
mod reload;
mod units;
mod voice;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{Loaded, Settings};
use crate::engine::clock::SystemClock;
use crate::engine::command::{Command, Handle};
use crate::engine::core::{Engine, Parts, TICK, channels};
use crate::engine::works::Real;
use crate::error::{Code, Error, Result};
use crate::host::notify::Notifier;
use crate::http::{App, SOCKET, bind, serve};
use crate::status::Facts;

/// After SIGTERM running jobs may go on for so long, then they are asked to stop.
const GRACE: Duration = Duration::from_secs(25);
/// systemd is told again before this is over.
const EXTENSION: Duration = Duration::from_secs(30);

/// What tasks share.
#[derive(Clone)]
struct Shared {
    handle: Handle,
    facts: watch::Sender<Facts>,
    settings: watch::Receiver<Arc<Settings>>,
    stop: CancellationToken,
}

/// Runs until it is told to end. `only`: the file of `--config`.
pub async fn run(loaded: Loaded, only: Option<PathBuf>) -> Result<()> {
    let notifier = Arc::new(Notifier::from_env());
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hangup = listen(SignalKind::hangup())?;

    let settings = Arc::new(loaded.settings);
    let runtime_dir = settings.paths.runtime.clone();
    make_runtime_dir(&runtime_dir)?;
    let socket = runtime_dir.join(SOCKET);
    let listener = bind(&socket).await?;

    let (handle, channels) = channels(Timestamp::now());
    let (facts, seen) = watch::channel(Facts::default());
    let (set_settings, current) = watch::channel(settings.clone());
    let stop = CancellationToken::new();
    let shared = Shared { handle: handle.clone(), facts, settings: current.clone(), stop: stop.clone() };
    let app = App { handle: handle.clone(), facts: seen, settings: current };

    let control = tokio::spawn(serve(listener, app.clone(), stop.clone()));
    // From here on it answers, whatever the disk does.
    notifier.ready();
    let files = loaded.files.iter().map(|file| file.display().to_string()).collect();
    let beat = heart(notifier.clone());
    let tick = notifier.watchdog_period().map_or(TICK, |period| TICK.min(period / 2));
    let (told, journal, around) = (settings.clone(), voice::journal(), shared.clone());
    let mut engine = tokio::spawn(async move {
        let (found, identity) = opening::open(&told, files, tick, &*beat).await?;
        tokio::spawn(place::watch(around, told.paths.state.clone(), identity));
        let parts = Parts {
            settings: told,
            works: Arc::new(Real),
            clock: Arc::new(SystemClock),
            tick,
            heartbeat: beat,
            journal,
        };
        Engine::new(parts, found, channels).run().await;
        Ok::<(), Error>(())
    });
    let tasks = [
        tokio::spawn(voice::speak(app, notifier.clone(), stop.clone())),
        tokio::spawn(member::watch(shared.clone())),
        tokio::spawn(certificates::watch(shared.clone())),
        tokio::spawn(follow_health::watch(shared.clone())),
        tokio::spawn(units::watch(shared)),
    ];

    let ended = loop {
        tokio::select! {
            ended = &mut engine => break Some(ended),
            _ = terminate.recv() => break None,
            _ = interrupt.recv() => break None,
            _ = hangup.recv() => reload::reload(&handle, &set_settings, only.as_deref(), &notifier).await,
        }
    };
    let ended = match ended {
        Some(ended) => ended,
        None => drain(&handle, &notifier, &mut engine).await,
    };
    stop.cancel();
    tasks.iter().for_each(|task| task.abort());
    control.abort();
    // Nobody answers on it any more. A new daemon would also take one that is left.
    let _ = nix::unistd::unlink(&socket);
    ended.map_err(|e| Error::new(Code::Internal, "run the engine", "").because(e))?
}

fn listen(kind: SignalKind) -> Result<tokio::signal::unix::Signal> {
    signal(kind).map_err(|e| Error::new(Code::Internal, "listen for signals", "").because(e))
}

/// systemd makes it; by hand it is made here.
fn make_runtime_dir(path: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(|e| {
        Error::new(Code::CannotCreate, "create runtime directory", path.display().to_string())
            .because(e)
            .remedy("run it as a service, or name a directory of your own as [paths] runtime")
    })
}

/// Feeds the watchdog, not more often than it needs.
fn heart(notifier: Arc<Notifier>) -> Box<dyn Fn() + Send + Sync> {
    let period = notifier.watchdog_period();
    let last = std::sync::Mutex::new(None::<std::time::Instant>);
    Box::new(move || {
        let Some(period) = period else { return };
        let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= period / 4) {
            notifier.watchdog();
            *last = Some(std::time::Instant::now());
        }
    })
}

type Ended = std::result::Result<Result<()>, tokio::task::JoinError>;

/// No new work; what runs ends at its next safe point. systemd hears that it goes on, as long as it does.
async fn drain(handle: &Handle, notifier: &Notifier, engine: &mut tokio::task::JoinHandle<Result<()>>) -> Ended {
    notifier.stopping();
    notifier.extend(EXTENSION);
    // Before the ledger is read there is no engine to ask.
    if !handle.turn().ready && handle.turn().record.run.is_none() {
        engine.abort();
        return Ok(Ok(()));
    }
    handle.tell(Command::Drain { grace: GRACE }).await;
    loop {
        tokio::select! {
            ended = &mut *engine => return ended,
            () = tokio::time::sleep(EXTENSION / 3) => notifier.extend(EXTENSION),
        }
    }
}
