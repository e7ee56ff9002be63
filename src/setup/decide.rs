//! From what was found and what is there to what is to be done. Pure.

use std::path::{Path, PathBuf};

use super::node::{Node, Place};
use super::plan::{Action, Plan};
use super::text::Fragment;
use super::{CERTS, CERTS_DROP_IN, FRAGMENT, SERVICE, SERVICE_DROP_IN, text};
use crate::config::Settings;
use crate::error::Result;

/// Everybody may read configuration; state and stores hold every secret of a cluster.
const PUBLIC: u32 = 0o755;
const PRIVATE: u32 = 0o700;

pub fn decide(fragment: &Fragment, settings: &Settings, node: &Node) -> Result<Plan> {
    let mut plan = Plan { kept: fragment.kept.clone(), ..Plan::default() };
    let files = [
        (FRAGMENT, node.fragment.as_ref(), fragment.has_keys.then(|| fragment.text.clone())),
        (SERVICE_DROP_IN, node.service.as_ref(), text::service(&fragment.credentials, settings)?),
        (CERTS_DROP_IN, node.certs.as_ref(), text::certs(&fragment.credentials)?),
    ];
    let mut written: Vec<&str> = Vec::new();
    for (path, before, wanted) in files {
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
    units(&mut plan, node, &written);
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

fn units(plan: &mut Plan, node: &Node, written: &[&str]) {
    if node.installed.len() < 2 {
        let missing = [SERVICE, CERTS].into_iter().filter(|unit| !node.installed.contains(unit));
        let missing = missing.collect::<Vec<_>>().join(" and ");
        plan.warnings
            .push(format!("{missing}: not installed, so nothing is started; install the package, then run this again"));
        return;
    }
    let drop_ins = [SERVICE_DROP_IN, CERTS_DROP_IN];
    if written.iter().any(|path| drop_ins.contains(path)) {
        plan.actions.push(Action::Reload);
    }
    let new: Vec<String> =
        [SERVICE, CERTS].iter().filter(|unit| !node.enabled.contains(unit)).map(ToString::to_string).collect();
    let touched = |unit: &str, files: &[&str]| {
        new.iter().any(|name| name == unit) || written.iter().any(|path| files.contains(path))
    };
    let restart: Vec<Action> = [(SERVICE, &[FRAGMENT, SERVICE_DROP_IN][..]), (CERTS, &[CERTS_DROP_IN][..])]
        .into_iter()
        .filter(|(unit, files)| touched(unit, files))
        .map(|(unit, _)| Action::Restart { unit: unit.into() })
        .collect();
    if !new.is_empty() {
        plan.actions.push(Action::Enable { units: new });
    }
    plan.actions.extend(restart);
}
