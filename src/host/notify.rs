//! What systemd is told.

use std::time::Duration;

use sd_notify::NotifyState;

pub struct Notifier;

impl Notifier {
    pub fn from_env() -> Notifier {
        Notifier
    }
    pub fn ready(&self) {
        let _ = sd_notify::notify(&[NotifyState::Ready]);
    }
    pub fn reloading(&self) {
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            let _ = sd_notify::notify(&[NotifyState::Reloading, now]);
        }
    }
    pub fn status(&self, text: &str) {
        let _ = sd_notify::notify(&[NotifyState::Status(&text.replace(['\n', '\r'], " "))]);
    }
    pub fn watchdog(&self) {
        let _ = sd_notify::notify(&[NotifyState::Watchdog]);
    }
    pub fn watchdog_period(&self) -> Option<Duration> {
        sd_notify::watchdog_enabled().map(|d| d / 2)
    }
    pub fn extend(&self, by: Duration) {
        let _ = sd_notify::notify(&[NotifyState::ExtendTimeoutUsec(u32::try_from(by.as_micros()).unwrap_or(u32::MAX))]);
    }
    pub fn stopping(&self) {
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
    }
}
