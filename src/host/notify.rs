//! What a service tells systemd about itself (`sd_notify(3)`).
//!
//! Nothing here waits, and nothing here fails: a service manager that is gone or does not listen is no reason for the
//! service to stop. It is logged once.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

/// The service's end of the notify socket; without one each call does nothing.
#[derive(Debug)]
pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
    complained: AtomicBool,
}

impl Notifier {
    /// By `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`, as systemd sets them.
    pub fn from_env() -> Notifier {
        Notifier::new(std::env::var_os("NOTIFY_SOCKET"), sd_notify::watchdog_enabled())
    }

    /// `socket`: a path, or `@` and an abstract name. `watchdog`: after how long without a word systemd acts.
    pub fn new(socket: Option<OsString>, watchdog: Option<Duration>) -> Notifier {
        let opened = socket.filter(|name| !name.is_empty()).map(|name| open(&name));
        let mut notifier = Notifier { socket: None, watchdog, complained: AtomicBool::new(false) };
        match opened {
            None => {}
            Some(Ok(socket)) => notifier.socket = Some(socket),
            Some(Err(e)) => notifier.complain(&e),
        }
        notifier
    }

    /// Start-up is over.
    pub fn ready(&self) {
        self.send(&[NotifyState::Ready]);
    }

    /// The configuration is being read again; [`Notifier::ready`] ends it.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            // In one datagram: systemd pairs them.
            Ok(now) => self.send(&[NotifyState::Reloading, now]),
            Err(e) => self.complain(&e),
        }
    }

    /// The one sentence that `systemctl status` shows. Line breaks become spaces: each line would be a word of its own.
    pub fn status(&self, sentence: &str) {
        self.send(&[NotifyState::Status(&sentence.replace(|c: char| c.is_control(), " "))]);
    }

    /// Still alive.
    pub fn watchdog(&self) {
        self.send(&[NotifyState::Watchdog]);
    }

    /// How often [`Notifier::watchdog`] is to be called: half of the unit's `WatchdogSec=`; `None` without one.
    pub fn watchdog_period(&self) -> Option<Duration> {
        self.watchdog.map(|limit| limit / 2).filter(|period| !period.is_zero())
    }

    /// Starting or stopping takes so much longer from now on (at most 71 minutes, which is what the protocol has room
    /// for).
    pub fn extend(&self, by: Duration) {
        self.send(&[NotifyState::ExtendTimeoutUsec(u32::try_from(by.as_micros()).unwrap_or(u32::MAX))]);
    }

    /// Stopping has begun.
    pub fn stopping(&self) {
        self.send(&[NotifyState::Stopping]);
    }

    fn send(&self, words: &[NotifyState<'_>]) {
        let Some((socket, to)) = &self.socket else { return };
        let text: String = words.iter().map(|word| format!("{word}\n")).collect();
        if let Err(e) = socket.send_to_addr(text.as_bytes(), to) {
            self.complain(&e);
        }
    }

    fn complain(&self, e: &io::Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!("cannot tell systemd how this service does: {e}");
        }
    }
}

fn open(name: &OsString) -> io::Result<(UnixDatagram, SocketAddr)> {
    let to = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(Path::new(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that is itself stuck must not stop the loop that feeds the watchdog.
    socket.set_nonblocking(true)?;
    Ok((socket, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 4096];
        let n = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..n].to_vec()).unwrap()
    }

    fn bound(path: &Path) -> UnixDatagram {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket
    }

    #[test]
    fn each_word_is_one_datagram() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("notify");
        let socket = bound(&path);
        let notifier = Notifier::new(Some(path.into()), Some(Duration::from_secs(30)));
        assert_eq!(notifier.watchdog_period(), Some(Duration::from_secs(15)));
        type Act = fn(&Notifier);
        let words: [(Act, &str); 5] = [
            (Notifier::ready, "READY=1\n"),
            (Notifier::watchdog, "WATCHDOG=1\n"),
            (Notifier::stopping, "STOPPING=1\n"),
            (|n| n.status("two\nREADY=1\r\tlines"), "STATUS=two READY=1  lines\n"),
            (|n| n.extend(Duration::from_secs(7_200)), "EXTEND_TIMEOUT_USEC=4294967295\n"),
        ];
        for (act, want) in words {
            act(&notifier);
            assert_eq!(received(&socket), want);
        }
        notifier.reloading();
        let text = received(&socket);
        let usec = text.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|rest| rest.strip_suffix('\n'));
        assert!(usec.is_some_and(|usec| usec.parse::<u64>().is_ok_and(|usec| usec > 0)), "{text}");
    }

    #[test]
    fn an_abstract_name_works_too() {
        let name = format!("refloat-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Notifier::new(Some(format!("@{name}").into()), None).ready();
        assert_eq!(received(&socket), "READY=1\n");
    }

    #[test]
    fn without_a_manager_or_with_a_dead_or_stuck_one_nothing_happens() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("notify");
        for notifier in [Notifier::new(None, None), Notifier::new(Some("".into()), None)] {
            notifier.ready();
            assert_eq!((notifier.watchdog_period(), notifier.complained.load(Ordering::Relaxed)), (None, false));
        }
        let notifier = Notifier::new(Some(path.clone().into()), None);
        notifier.ready();
        assert!(notifier.complained.load(Ordering::Relaxed));
        // It comes, and is told; then it never reads, and nobody waits for it.
        let socket = bound(&path);
        notifier.ready();
        assert_eq!(received(&socket), "READY=1\n");
        for _ in 0..5_000 {
            notifier.watchdog();
        }
        assert_eq!(received(&socket), "WATCHDOG=1\n");
    }
}
