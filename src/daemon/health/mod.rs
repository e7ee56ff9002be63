//! The composition root of `refloat health daemon`: a process of its own, so that it judges while the daemon is dead and
//! the disk is frozen.
//!
//! | task | reads | writes | file |
//! |---|---|---|---|
//! | look | answers of probes, timers | what is known, each second and on a change | [`look`] |
//! | probes | members and apiservers | samples | [`crate::health::probes`] |
//! | statfs, pressure, process, log | the disk, `/proc`, standard error: a thread each, never waited for | | [`crate::health::probes::local`], [`crate::host::log`] |
//! | desk | a person's word | the fence file, for whoever answers balancers | [`desk`] |
//! | socket | requests on health.sock | documents | [`crate::http`] |
//!
//! One thread for all that does not block. Nothing is read from a disk after the start but on SIGHUP, and nothing
//! written but below the runtime directory.

mod desk;
mod look;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::SignalKind;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::desk::Desk;
use self::look::{Change, Look, Read, read_again};
use super::{heart, listen, make_runtime_dir, reload};
use crate::config::{Loaded, Settings};
use crate::error::Result;
use crate::health::model::{Kind, Mono};
use crate::health::probes::local;
use crate::health::verdict::State;
use crate::host::memory;
use crate::host::notify::Notifier;
use crate::http::{HEALTH_SOCKET, bind, serve_health};
use crate::status::health::{Health, name};

/// Judged anew at least so often: what does not answer gets old.
const TURN: Duration = Duration::from_millis(500);
/// A look by hand ends by then, whatever is still open.
const ONCE: Duration = Duration::from_secs(15);
/// One that acts on nothing needs no time to settle.
const LONG_AGO: Mono = Mono(0);

/// Runs until it is told to end. `only`: the file of `--config`.
pub async fn run(loaded: Loaded, only: Option<PathBuf>) -> Result<()> {
    let notifier = Arc::new(Notifier::from_env());
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let started = local::now();
    let settings = Arc::new(loaded.settings);
    make_runtime_dir(&settings.paths.runtime)?;
    let socket = settings.paths.runtime.join(HEALTH_SOCKET);
    let listener = bind(&socket).await?;
    let locked = memory::lock().err();
    if let Some(why) = &locked {
        tracing::warn!("{why}");
    }

    let beat = heart(notifier.clone());
    let mut desk = Desk::open(&settings.paths.runtime)?;
    let before = desk.before(started);
    let mut look = Look::begin(Read::now(settings), locked.clone(), started).await.after(before);
    let pid = Some(std::process::id());
    let (latest, seen) = watch::channel(Arc::new(look.document(pid)));
    let stop = CancellationToken::new();
    let server = tokio::spawn(serve_health(listener, seen, stop.clone()));
    notifier.ready();
    let mut said = String::new();
    let mut turn = local::now();
    let mut turns: u64 = 0;
    loop {
        let changes = tokio::select! {
            changes = look.step(turn) => changes,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => {
                notifier.reloading();
                match again(&look, only.as_deref(), locked.clone(), started).await {
                    Ok(new) => look = new,
                    Err(error) => tracing::error!("the configuration stays as it was: {}", error.line()),
                }
                notifier.ready();
                Vec::new()
            }
        };
        let now = local::now();
        let mut changed = tell(&changes);
        let mut second = false;
        if now >= turn {
            turns += 1;
            second = turns.is_multiple_of(2);
            look.set_fence_rules(desk.rules(&look.settings().fence, now));
            if second {
                look.observe();
            }
            changed |= tell(&look.judge(now));
            turn = now.plus(TURN);
            beat();
        }
        // Each second, since what is shown grows old, and at once on a change.
        if changed || second {
            desk.tell(look.fence(), now);
            let document = look.document(pid);
            let sentence = document.sentence();
            if sentence != said {
                notifier.status(&sentence);
                said = sentence;
            }
            latest.send_replace(Arc::new(document));
        }
    }
    notifier.stopping();
    stop.cancel();
    server.abort();
    // Nobody answers on it any more.
    let _ = nix::unistd::unlink(&socket);
    Ok(())
}

/// One look without a process: everything is asked until it is settled.
pub async fn once(settings: Settings) -> Health {
    let mut look = Look::begin(Read::now(Arc::new(settings)), None, LONG_AGO).await;
    look.hurry();
    let end = local::now().plus(ONCE);
    loop {
        let now = local::now();
        look.step(now.plus(TURN).min(end)).await;
        if look.is_settled() || now >= end {
            break;
        }
    }
    look.observe();
    look.judge(local::now());
    look.document(None)
}

/// The same with what is on the disk now.
async fn again(before: &Look, only: Option<&Path>, locked: Option<String>, started: Mono) -> Result<Look> {
    let (settings, _) = reload::read(only.map(Path::to_path_buf)).await?;
    reload::stays(before.settings(), &settings)?;
    let read = read_again(settings).await?;
    Ok(Look::begin(read, locked, started).await.after(before.fence().clone()))
}

/// Says what became of targets. Whether anything did.
fn tell(changes: &[Change]) -> bool {
    for Change { kind, name: of, before, verdict } in changes {
        let kind = match kind {
            Kind::Member => "etcd",
            Kind::Apiserver => "apiserver",
            Kind::Balancer => "balancer",
        };
        let cause = verdict.cause.map(|cause| format!(", {cause}")).unwrap_or_default();
        let why = verdict.reasons.first().map(|why| format!(": {why}")).unwrap_or_default();
        let line = format!("{kind} {of} is {}{cause} (was {}){why}", name(verdict.state), name(*before));
        match verdict.state {
            State::Bad => tracing::warn!("{line}"),
            _ => tracing::info!("{line}"),
        }
    }
    !changes.is_empty()
}
