//! From what was found and what is there to what is to be done. Pure.

use std::path::{Path, PathBuf};

use super::node::{Node, Place};
use super::plan::{Action, Plan};
use super::text::Fragment;
use super::units::{self, ANSWER, ANSWER_HTTP, CERTS, HEALTH, SERVICE, Unit};
use super::{FRAGMENT, text};
use crate::config::{FenceMode, FenceSettings, Settings};
use crate::error::Result;

/// Everybody may read configuration; state and stores hold every secret of a cluster.
const PUBLIC: u32 = 0o755;
const PRIVATE: u32 = 0o700;

pub fn decide(fragment: &Fragment, settings: &Settings, node: &Node) -> Result<Plan> {
    let mut plan = Plan { kept: fragment.kept.clone(), ..Plan::default() };
    let standard = FenceSettings::default();
    let fence = &settings.fence;
    let drop_ins = [
        (SERVICE, text::service(&fragment.credentials, settings)?),
        (HEALTH, text::health(&fragment.credentials)?),
        (CERTS, text::certs(&fragment.credentials)?),
        (ANSWER, text::socket(fence.agent_check, standard.agent_check)),
        (ANSWER_HTTP, text::socket(fence.http, standard.http)),
    ];
    let drop_ins = drop_ins.into_iter().map(|(unit, text)| (unit.drop_in, node.drop_ins.get(unit.name), text));
    let config = (FRAGMENT, node.fragment.as_ref(), fragment.has_keys.then(|| fragment.text.clone()));
    let mut written: Vec<&str> = Vec::new();
    for (path, before, wanted) in [config].into_iter().chain(drop_ins) {
        // A file that was needed before and is not any more stays, and says nothing.
        let wanted = match (wanted, before) {
            (Some(text), _) => text,
            (None, Some(_)) => text::empty(),
            (None, None) => continue,
        };
        if before == Some(&wanted) {
            continue;
        }
        let folders = node.missing_folders.iter().filter(|folder| Path::new(path).starts_with(folder));
        for folder in folders {
            make_dir(&mut plan, folder, PUBLIC, None);
        }
        plan.actions.push(Action::Write { path: path.into(), before: before.cloned(), after: wanted });
        written.push(path);
    }
    directories(&mut plan, node);
    let answers = settings.fence.mode != FenceMode::Off;
    start(&mut plan, node, &written, |unit| match unit {
        unit if *unit == HEALTH => settings.health.enabled,
        unit if *unit == ANSWER || *unit == ANSWER_HTTP => answers,
        _ => true,
    });
    Ok(plan)
}

fn make_dir(plan: &mut Plan, path: &Path, mode: u32, owner: Option<&crate::host::user::Owner>) {
    let action = Action::MakeDir { path: path.into(), mode, owner: owner.cloned() };
    if !plan.actions.contains(&action) {
        plan.actions.push(action);
    }
}

/// State, then stores: only onto a parent that is there, and never below a mount point that nothing is mounted on.
fn directories(plan: &mut Plan, node: &Node) {
    let mut made: Vec<PathBuf> = Vec::new();
    let state = node.state.iter().map(|place| (None, place));
    let stores = node.stores.iter().map(|(name, place)| (Some(name), place));
    for (store, place) in state.chain(stores).filter(|(_, place)| !place.there) {
        let what = store.map_or("the state directory".into(), |name| format!("store {name}"));
        let shown = place.path.display();
        match refusal(place, &made) {
            Some(why) => plan.warnings.push(format!("{what} at {shown} is missing and not made: {why}")),
            None if node.owner.is_none() => plan.warnings.push(format!(
                "{what} at {shown} is missing and not made: there is no user refloat to own it; install the package"
            )),
            None => {
                make_dir(plan, &place.path, PRIVATE, node.owner.as_ref());
                made.push(place.path.clone());
            }
        }
    }
}

fn refusal(place: &Place, made: &[PathBuf]) -> Option<String> {
    let parent = place.path.parent();
    if let Some(at) = &place.unmounted {
        return Some(format!("{} is a mount point in /etc/fstab, and nothing is mounted there", at.display()));
    }
    let parent_made = parent.is_some_and(|parent| made.iter().any(|path| path == parent));
    let parent = parent.map(|parent| parent.display().to_string()).unwrap_or_default();
    (!place.parent_there && !parent_made).then(|| format!("{parent} is missing as well"))
}

/// `wanted`: whether a unit is to run at all.
fn start(plan: &mut Plan, node: &Node, written: &[&str], wanted: impl Fn(&Unit) -> bool) {
    let all = units::ALL.into_iter().filter(|unit| wanted(unit));
    let (there, missing): (Vec<&Unit>, Vec<&Unit>) = all.partition(|unit| node.installed.contains(&unit.name));
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|unit| unit.name).collect();
        plan.warnings.push(format!(
            "{}: not installed, so not started; install the package, then run this again",
            names.join(", ")
        ));
    }
    let new: Vec<String> =
        there.iter().filter(|unit| !node.enabled.contains(&unit.name)).map(|unit| unit.name.to_string()).collect();
    let touched = |unit: &&&Unit| {
        new.iter().any(|name| name == unit.name)
            || written.contains(&unit.drop_in)
            || (unit.configured && written.contains(&FRAGMENT))
    };
    let restart: Vec<Action> =
        there.iter().filter(touched).map(|unit| Action::Restart { unit: unit.name.into() }).collect();
    // After a run that could not reach systemd the drop-ins are there, and systemd has not read them.
    let unread = !new.is_empty() || there.iter().any(|unit| written.contains(&unit.drop_in));
    if !new.is_empty() {
        plan.actions.push(Action::Enable { units: new });
    }
    if unread {
        plan.actions.push(Action::Reload);
    }
    plan.actions.extend(restart);
}
