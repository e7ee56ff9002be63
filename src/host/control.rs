//! Starts, stops and enables units. For root units and commands run by root alone: the daemon only watches.
//!
//! A call to systemd answers with a job; what became of it is told by a signal, which may come before the answer and
//! between those of other jobs. So one listens first, then asks, and waits for the signal that names this very job.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::stream::StreamExt as _;
use zbus::OwnedObjectPath;

use super::bus::{self, ManagerProxy};
use crate::error::{Code, Error, Result};

/// What is asked of a unit replaces what is queued for it.
const MODE: &str = "replace";

/// A connection to systemd.
#[derive(Debug)]
pub struct Control {
    manager: ManagerProxy<'static>,
}

impl Control {
    /// To the bus at `address`, to the system's where there is none. `UnitFailed` if that takes longer than `deadline`,
    /// or if there is no D-Bus or no systemd on it.
    pub async fn connect(address: Option<&str>, deadline: Duration) -> Result<Control> {
        const WHAT: &str = "connect to systemd";
        within(WHAT, "", deadline, async {
            // Each call has its own deadline; this one is for those that have none.
            let connection = bus::connect(address, deadline, Duration::from_secs(600)).await?;
            let manager = ManagerProxy::new(&connection).await?;
            bus::subscribe(&manager).await?;
            Ok(Control { manager })
        })
        .await
    }

    /// Done when the unit is up, as its `Type=` defines that. `NotFound` for no such unit; `UnitFailed` with the result
    /// for anything but `done`, and when `deadline` passes: systemd then goes on by itself.
    pub async fn start_unit(&self, name: &str, deadline: Duration) -> Result<()> {
        self.job("start unit", name, deadline, self.manager.start_unit(name, MODE)).await
    }

    /// Done when no process of it is left; otherwise like [`Control::start_unit`].
    pub async fn stop_unit(&self, name: &str, deadline: Duration) -> Result<()> {
        self.job("stop unit", name, deadline, self.manager.stop_unit(name, MODE)).await
    }

    /// Also starts one that is down; otherwise like [`Control::start_unit`].
    pub async fn restart_unit(&self, name: &str, deadline: Duration) -> Result<()> {
        self.job("restart unit", name, deadline, self.manager.restart_unit(name, MODE)).await
    }

    /// Makes systemd read all unit files again.
    pub async fn reload_daemon(&self, deadline: Duration) -> Result<()> {
        within("reload systemd", "", deadline, self.manager.reload()).await
    }

    /// Makes units start at boot; gives the links that were made. [`Control::reload_daemon`] makes systemd see them.
    pub async fn enable_units(&self, names: &[&str], deadline: Duration) -> Result<Vec<String>> {
        let enabled = self.manager.enable_unit_files(names, false, false);
        let (_, links) = within("enable units", &names.join(", "), deadline, enabled).await?;
        Ok(links.into_iter().map(|(_, link, _)| link).collect())
    }

    async fn job(
        &self,
        what: &str,
        name: &str,
        deadline: Duration,
        asked: impl Future<Output = zbus::Result<OwnedObjectPath>>,
    ) -> Result<()> {
        let result = within(what, name, deadline, async {
            let gone = || zbus::Error::Failure("the bus closed the connection".into());
            let mut removed = self.manager.receive_job_removed().await?;
            tokio::pin!(asked);
            // Those that end before the answer says which one is ours. They are taken while waiting for it: what
            // nobody takes would hold up the answer.
            let mut early = HashMap::new();
            let job = loop {
                tokio::select! {
                    answer = &mut asked => break answer?,
                    signal = removed.next() => {
                        let signal = signal.ok_or_else(gone)?;
                        let args = signal.args()?;
                        early.insert(args.job, args.result);
                    }
                }
            };
            if let Some(result) = early.remove(&job) {
                return Ok(result);
            }
            loop {
                let signal = removed.next().await.ok_or_else(gone)?;
                let args = signal.args()?;
                if args.job == job {
                    return Ok(args.result);
                }
            }
        })
        .await?;
        if result == "done" {
            return Ok(());
        }
        Err(Error::new(Code::UnitFailed, what, name)
            .because(format!("its job ended as {result:?}"))
            .remedy(format!("look at: systemctl status {name}; journalctl -u {name}")))
    }
}

async fn within<T>(what: &str, on: &str, deadline: Duration, call: impl Future<Output = zbus::Result<T>>) -> Result<T> {
    let err = match tokio::time::timeout(deadline, call).await {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(e)) => e,
        Err(_) => {
            return Err(Error::new(Code::UnitFailed, what, on)
                .because(format!("not done within {deadline:?}"))
                .remedy("look at: systemctl list-jobs"));
        }
    };
    let named = bus::error_name(&err).unwrap_or_default();
    let failed = Error::new(Code::UnitFailed, what, on).because(err);
    Err(match named.as_str() {
        "NoSuchUnit" | "FileNotFound" => failed.with_code(Code::NotFound).remedy("look at: systemctl list-unit-files"),
        "AccessDenied" | "InteractiveAuthorizationRequired" => failed.remedy("run it as root"),
        "ServiceUnknown" | "NameHasNoOwner" => failed.remedy("run it on a system that was booted with systemd"),
        _ => failed,
    })
}

#[cfg(test)]
mod tests;
