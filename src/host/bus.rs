//! systemd's D-Bus interface, as far as it is used, and the way to it.

use std::time::Duration;

use zbus::connection::Builder;
use zbus::{Connection, OwnedObjectPath};

pub const SERVICE: &str = "org.freedesktop.systemd1";
pub const PATH: &str = "/org/freedesktop/systemd1";
pub const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNITS: &str = "/org/freedesktop/systemd1/unit/";

/// What `enable_unit_files` changed: kind of change, link, target.
pub type Links = Vec<(String, String, String)>;

#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1"
)]
pub trait Manager {
    fn subscribe(&self) -> zbus::Result<()>;
    fn start_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn stop_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn restart_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn reload(&self) -> zbus::Result<()>;
    fn enable_unit_files(&self, names: &[&str], runtime: bool, force: bool) -> zbus::Result<(bool, Links)>;
    #[zbus(signal)]
    fn job_removed(&self, id: u32, job: OwnedObjectPath, unit: String, result: String) -> zbus::Result<()>;
}

#[zbus::proxy(interface = "org.freedesktop.systemd1.Unit", default_service = "org.freedesktop.systemd1")]
pub trait Unit {
    #[zbus(property(emits_changed_signal = "false"))]
    fn load_state(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn active_state(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn sub_state(&self) -> zbus::Result<String>;
    /// Microseconds since 1970; 0 where it never changed.
    #[zbus(property(emits_changed_signal = "false"))]
    fn state_change_timestamp(&self) -> zbus::Result<u64>;
}

#[zbus::proxy(interface = "org.freedesktop.systemd1.Service", default_service = "org.freedesktop.systemd1")]
pub trait Service {
    #[zbus(property(emits_changed_signal = "false"), name = "MainPID")]
    fn main_pid(&self) -> zbus::Result<u32>;
    #[zbus(property(emits_changed_signal = "false"), name = "NRestarts")]
    fn restarts(&self) -> zbus::Result<u32>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn result(&self) -> zbus::Result<String>;
}

/// Connects to the bus at `address`, to the system's where there is none. `call`: how long an answer may take.
pub async fn connect(address: Option<&str>, within: Duration, call: Duration) -> zbus::Result<Connection> {
    let builder = match address {
        Some(address) => Builder::address(address),
        None => Builder::system(),
    };
    match tokio::time::timeout(within, builder.method_timeout(call).build()).await {
        Ok(connected) => connected,
        Err(_) => Err(zbus::Error::Failure(format!("no answer from the bus within {within:?}"))),
    }
}

/// Asks systemd to send signals to this connection; that it does so already is no error.
pub async fn subscribe(manager: &ManagerProxy<'_>) -> zbus::Result<()> {
    match manager.subscribe().await {
        Err(zbus::Error::MethodError(name, ..)) if name.ends_with(".AlreadySubscribed") => Ok(()),
        other => other,
    }
}

/// The object of a unit, whether it is loaded or not: systemd loads what is asked for by this path.
pub fn unit_path(name: &str) -> String {
    let mut path = String::from(UNITS);
    for (i, byte) in name.bytes().enumerate() {
        if byte.is_ascii_alphabetic() || (i > 0 && byte.is_ascii_digit()) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("_{byte:02x}"));
        }
    }
    if name.is_empty() {
        path.push('_');
    }
    path
}

/// The name of a D-Bus error, without the part before its last dot.
pub fn error_name(e: &zbus::Error) -> Option<String> {
    let full = match e {
        zbus::Error::MethodError(name, ..) => name.to_string(),
        zbus::Error::FDO(fdo) => match &**fdo {
            zbus::fdo::Error::ZBus(inner) => return error_name(inner),
            other => zbus::DBusError::name(other).to_string(),
        },
        _ => return None,
    };
    full.rsplit('.').next().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `systemd-escape`'s sibling for D-Bus does it, checked with `busctl tree` on a live system.
    #[test]
    fn names_of_units_as_paths() {
        for (name, want) in [
            ("etcd.service", "etcd_2eservice"),
            ("3x@a-b.service", "_33x_40a_2db_2eservice"),
            ("k3s_x", "k3s_5fx"),
            ("ü", "_c3_bc"),
            ("", "_"),
        ] {
            assert_eq!(unit_path(name), format!("{UNITS}{want}"), "{name}");
            assert!(OwnedObjectPath::try_from(unit_path(name)).is_ok());
        }
    }
}
