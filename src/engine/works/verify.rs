//! A verification job: reads what is stored, again, and records what it found beside it.

use tokio_util::sync::CancellationToken;

use crate::catalog::{Filter, Lineages};
use crate::config::Settings;
use crate::engine::event::Outcome;
use crate::error::{Code, Error, Result};
use crate::snapshot::copies::{Copies, verify_copies};
use crate::snapshot::progress::Progress;
use crate::snapshot::select::{find, own_lineage, read_catalog};
use crate::snapshot::state;
use crate::snapshot::stores::OpenStores;

pub fn run(
    settings: &Settings,
    subject: &str,
    store: Option<&str>,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Outcome> {
    let node = state::node(settings)?;
    let only: Vec<String> = store.map(String::from).into_iter().collect();
    let stores = OpenStores::for_reading(settings, &only, cancel)?;
    stores.failed().iter().for_each(|(name, error)| progress.warn(&format!("store {name}: {}", error.line())));
    let (mut checked, mut damaged, mut failed) = (0u64, Vec::new(), Vec::new());
    let mut count = |copies: Copies| {
        for copy in copies {
            match (copy.read, copy.checked.ok()) {
                (false, _) => failed.push(copy.checked.subject),
                (true, ok) => {
                    checked += 1;
                    if !ok {
                        damaged.push(copy.checked.subject);
                    }
                }
            }
        }
    };
    if subject == "all" {
        let catalog = read_catalog(&stores.list(), progress)?;
        let lineages: Lineages = own_lineage(&stores, &catalog, progress);
        for loaded in catalog.shown(&Filter { lineages, node: None }, &node) {
            if let Some(shown) = &loaded.shown {
                progress.step(&format!("verify {}", shown.manifest.id));
                count(verify_copies(&stores, shown, &node, progress, cancel)?);
            }
            count(loaded.unreadable.into_iter().map(Into::into).collect());
        }
    } else {
        let shown = find(&stores, subject, &node, progress)?;
        progress.step(&format!("verify {}", shown.manifest.id));
        count(verify_copies(&stores, &shown, &node, progress, cancel)?);
    }
    match damaged.first().or(failed.first()) {
        None => Ok(Outcome::Verify { checked, damaged, failed }),
        Some(first) => Err(Error::new(Code::DataInvalid, "verify", subject)
            .because(format!("{first} and {} more: damaged or not readable", damaged.len() + failed.len() - 1))
            .remedy("see `refloat snapshot verify --all`, and take a new one: `refloat snapshot take`")),
    }
}
