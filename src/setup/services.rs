//! systemd's part of the plan, over D-Bus.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::plan::Action;
use super::units;
use crate::error::{Error, Result};
use crate::host::control::Control;
use crate::host::units::{UnitReport, watch};

/// A bus that answers does so at once.
const CONNECT: Duration = Duration::from_secs(5);
/// systemd reads hundreds of files and runs its generators.
const RELOAD: Duration = Duration::from_secs(90);
/// A drain and a start, each with its own limit in the unit.
const RESTART: Duration = Duration::from_secs(300);

/// Does them in their order. What is left, with the reason: everything where there is no systemd to be reached, and from
/// the one that failed on.
pub async fn apply(actions: &[Action]) -> std::result::Result<(), (Vec<Action>, Error)> {
    let all: Vec<Action> = actions.iter().filter(|action| action.is_of_systemd()).cloned().collect();
    if all.is_empty() {
        return Ok(());
    }
    let control = match Control::connect(None, CONNECT).await {
        Ok(control) => control,
        Err(error) => return Err((all, error)),
    };
    for (at, action) in all.iter().enumerate() {
        if let Err(error) = one(&control, action).await {
            return Err((all[at..].to_vec(), error));
        }
    }
    Ok(())
}

async fn one(control: &Control, action: &Action) -> Result<()> {
    match action {
        Action::MakeDir { .. } | Action::Write { .. } => Ok(()),
        Action::Reload => control.reload_daemon(RELOAD).await,
        Action::Enable { units } => {
            let names: Vec<&str> = units.iter().map(String::as_str).collect();
            control.enable_units(&names, RELOAD).await.map(drop)
        }
        Action::Restart { unit } => control.restart_unit(unit, RESTART).await,
    }
}

/// Those of our units that are not up; none where systemd cannot be asked.
pub async fn down() -> Vec<String> {
    let names = units::ALL.map(|unit| unit.name);
    let (sender, mut reports) = mpsc::channel(2);
    let stop = CancellationToken::new();
    let units = names.map(String::from).to_vec();
    let watching = tokio::spawn(watch(units, None, sender, stop.clone()));
    let mut open: BTreeSet<&str> = names.into();
    let mut found = Vec::new();
    let asked = async {
        while !open.is_empty() {
            match reports.recv().await {
                Some(UnitReport::Unit(facts)) => {
                    open.remove(facts.name.as_str());
                    if matches!(facts.active.as_str(), "inactive" | "failed") {
                        found.push(facts.name);
                    }
                }
                Some(UnitReport::Absent { .. }) | None => break,
            }
        }
    };
    // Without an answer in time nothing is known, and nothing is done about it.
    let _ = tokio::time::timeout(CONNECT, asked).await;
    stop.cancel();
    watching.abort();
    found
}
