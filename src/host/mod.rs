//! This host as the daemon sees it: systemd (readiness, watchdog, units over D-Bus), users.

pub mod notify;
pub mod units;
pub mod user;
