//! The composition root of `refloat answer`: what balancers ask, and nothing else.
//!
//! | task | reads | writes |
//! |---|---|---|
//! | agent-check, http | connections; the two files in the runtime directory | answers ([`crate::http::answer`]) |
//! | configuration, on a thread | the files, at start and on SIGHUP, again while they cannot be read | mode and runtime directory |
//! | this loop | signals | the watchdog, `STATUS=` |
//!
//! The disk may stand still, health may be dead, the configuration may be wrong: it answers all the same, and then *up*.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tokio::signal::unix::SignalKind;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::listen;
use crate::config::{self, FenceMode, FenceSettings, Settings, Surroundings};
use crate::error::{Code, Error, Result};
use crate::health::fence::{Answer, told};
use crate::host::notify::Notifier;
use crate::host::sockets::Inherited;
use crate::host::{memory, notify};
use crate::http::answer::{Source, agent_check, ready};

/// `FileDescriptorName=` of the two sockets.
pub const AGENT_CHECK: &str = "agent-check";
pub const HTTP: &str = "http";

/// Answers wait for the configuration so long, and no longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Files that cannot be read are looked at again after it.
const AGAIN: Duration = Duration::from_secs(10);
/// How often the answer is told to systemd, and the watchdog fed at the latest.
const TICK: Duration = Duration::from_secs(5);
/// Of the one thread; all of a stack is locked in memory.
const STACK: usize = 256 << 10;

/// What the configuration says.
#[derive(Debug, Clone)]
enum Rule {
    Unread,
    Refused,
    Read { mode: FenceMode, runtime: PathBuf },
}

impl Rule {
    fn answer(&self) -> Answer {
        match self {
            Rule::Unread => Answer::up("the configuration is not read yet"),
            Rule::Refused => Answer::up("the configuration cannot be read"),
            Rule::Read { mode, runtime } => told::now(*mode, runtime),
        }
    }
}

/// Runs until it is told to end. `inherited`: systemd's sockets; without any it binds what `[fence]` says. `only`: the
/// file of `--config`.
pub async fn run(mut inherited: Inherited, only: Option<PathBuf>) -> Result<()> {
    let notifier = Notifier::from_env();
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let (agents, https) = match inherited.is_empty() {
        true => bound(&load(only.as_deref())?.fence)?,
        false => (inherited.named(AGENT_CHECK), inherited.named(HTTP)),
    };
    for name in inherited.left() {
        tracing::warn!(
            "nobody answers on the socket that systemd calls {name:?}: it is neither {AGENT_CHECK} nor {HTTP}"
        );
    }

    let (set, mut rule) = watch::channel(Rule::Unread);
    let (again, asked) = mpsc::sync_channel(1);
    let reader = std::thread::Builder::new().name("configuration".into()).stack_size(STACK);
    let failed = |e| Error::new(Code::Internal, "start a thread", "").because(e);
    reader.spawn(move || read(only.as_deref(), &set, &asked)).map_err(failed)?;
    if let Err(why) = memory::lock() {
        tracing::warn!("{why}");
    }
    // Of two answers the first is not to be the wrong one.
    let _ = tokio::time::timeout(PATIENCE, rule.wait_for(|rule| !matches!(rule, Rule::Unread))).await;

    let source: Source = Arc::new({
        let rule = rule.clone();
        move || rule.borrow().answer()
    });
    let stop = CancellationToken::new();
    let mut servers = JoinSet::new();
    for listener in agents {
        servers.spawn(agent_check(taken(listener)?, source.clone(), stop.clone()));
    }
    for listener in https {
        servers.spawn(ready(taken(listener)?, source.clone(), stop.clone()));
    }
    notifier.ready();

    let mut tick = tokio::time::interval(notifier.watchdog_period().map_or(TICK, |period| TICK.min(period)));
    let mut said = String::new();
    loop {
        tokio::select! {
            _ = tick.tick() => beat(&notifier, &source, &mut said),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => {
                // One that waits is enough.
                let _ = again.try_send(());
            }
        }
    }
    notifier.stopping();
    // Who was let in is answered; who waits is answered by the next process, on the socket that systemd keeps.
    stop.cancel();
    while servers.join_next().await.is_some() {}
    Ok(())
}

fn beat(notifier: &notify::Notifier, source: &Source, said: &mut String) {
    notifier.watchdog();
    let answer = source();
    let sentence = format!("Answers {}: {}", answer.answer.text(), answer.reason);
    if sentence != *said {
        notifier.status(&sentence);
        *said = sentence;
    }
}

fn load(only: Option<&Path>) -> Result<Settings> {
    config::load(&Surroundings::of_this_process(), only).map(|loaded| loaded.settings)
}

/// Until whoever asks is gone. What is in force stays when a later configuration is wrong.
fn read(only: Option<&Path>, rule: &watch::Sender<Rule>, asked: &mpsc::Receiver<()>) {
    let mut complained = String::new();
    loop {
        crate::crash::point!("answer::configuration");
        let good = match load(only) {
            Ok(settings) => {
                rule.send_replace(Rule::Read { mode: settings.fence.mode, runtime: settings.paths.runtime });
                complained.clear();
                true
            }
            Err(error) => {
                rule.send_if_modified(|rule| {
                    let first = matches!(rule, Rule::Unread);
                    if first {
                        *rule = Rule::Refused;
                    }
                    first
                });
                if error.line() != complained {
                    complained = error.line();
                    tracing::error!("{complained}");
                }
                false
            }
        };
        let gone = match good {
            true => asked.recv().is_err(),
            false => asked.recv_timeout(AGAIN) == Err(RecvTimeoutError::Disconnected),
        };
        if gone {
            return;
        }
    }
}

type Bound = (Vec<TcpListener>, Vec<TcpListener>);

fn bound(fence: &FenceSettings) -> Result<Bound> {
    let bind = |address: std::net::SocketAddr| {
        let failed = |e| {
            Error::new(Code::CannotCreate, "listen on", address.to_string())
                .because(e)
                .remedy("see [fence] agent_check and http; does refloat-answer.socket listen there already?")
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(vec![listener])
    };
    Ok((bind(fence.agent_check)?, bind(fence.http)?))
}

fn taken(listener: TcpListener) -> Result<tokio::net::TcpListener> {
    let failed = |e| Error::new(Code::Internal, "take over socket", "").because(e);
    tokio::net::TcpListener::from_std(listener).map_err(failed)
}
