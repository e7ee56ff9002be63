//! A prune job: one store, by the rules, with nobody to ask. What it would do is decided and done in one run; a store that
//! changes in between is looked at again.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::engine::event::Outcome;
use crate::error::{Code, Error, Result};
use crate::snapshot::progress::Progress;
use crate::snapshot::prune::{Pruner, Request, held};
use crate::snapshot::state;
use crate::snapshot::stores::{OpenStores, known};
use crate::store::Mode;

/// Another node may write just then.
const TRIES: usize = 3;

pub fn run(settings: &Settings, store: &str, progress: &dyn Progress, cancel: &CancellationToken) -> Result<Outcome> {
    let node = state::node(settings)?;
    let names = [store.to_string()];
    let limits = state::limits(settings, cancel);
    let known = known(settings, &limits)?;
    let opened = OpenStores::open(settings, &names, known, Mode::Remove, &limits)?.or_any_failure()?;
    let all = opened.beside(settings)?;
    let Some(one) = opened.good().next() else {
        return Err(Error::new(Code::NotFound, "find store", store)
            .because("no store of this name is configured any more")
            .remedy("see `refloat config show`"));
    };
    let pruner = Pruner { settings, node: &node, stores: &all, request: Request::default() };
    let mut tries = 0;
    loop {
        tries += 1;
        progress.step("plan");
        let planned = pruner.plan(one, Timestamp::now(), progress)?;
        let kept = planned.plan.decisions.keep.len() as u64;
        if !planned.plan.changes() {
            return Ok(Outcome::Prune { removed: 0, to_trash: 0, freed: 0, kept, foreign: planned.foreign });
        }
        if let Some(error) = held(&one.name, &planned.plan) {
            return Err(error);
        }
        progress.step("remove");
        let (planned, report) = match pruner.act(one, planned.plan.hash, Timestamp::now(), progress, cancel) {
            Ok(done) => done,
            Err(error) if error.code() == Code::PlanChanged && tries < TRIES => continue,
            Err(error) => return Err(error),
        };
        for refused in &report.refused {
            progress.warn(&format!("left {}: {}", refused.name, refused.error.line()));
        }
        if cancel.is_cancelled() {
            return Err(Error::new(Code::Canceled, "prune store", store)
                .because(format!("{} of {} were removed", report.removed.len(), planned.plan.decisions.remove.len()))
                .remedy("the next prune goes on where it stopped"));
        }
        if let Some(error) = report.failed {
            return Err(error);
        }
        if let Some(refused) = report.refused.first() {
            return Err(Error::new(Code::Refused, "prune store", store)
                .because(format!("{}: {}", refused.name, refused.error.line()))
                .remedy("look at what stands there; everything else was done"));
        }
        let removed = report.removed.len() as u64;
        let (to_trash, freed) = (report.to_trash, report.freed);
        return Ok(Outcome::Prune { removed, to_trash, freed, kept, foreign: planned.foreign });
    }
}
