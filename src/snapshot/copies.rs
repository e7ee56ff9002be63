//! Verifies a snapshot in every store that has it, and records the result there.

use tokio_util::sync::CancellationToken;

use super::check::{self, Checked};
use super::progress::Progress;
use super::stores::OpenStores;
use crate::catalog::{Node, Shown, Unreadable};
use crate::error::{Code, Result};
use crate::format::check::Finding;

/// What was found in one store.
#[derive(Debug)]
pub struct CopyChecked {
    pub checked: Checked,
    /// It could be looked at.
    pub read: bool,
}

pub type Copies = Vec<CopyChecked>;

/// One result a store that holds it.
pub fn verify_copies(
    stores: &OpenStores,
    shown: &Shown,
    node: &Node,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Copies> {
    let mut results = Vec::new();
    for opened in stores.good().filter(|s| shown.stores.contains(&s.name)) {
        let looked = check::snapshot(&opened.store, shown, progress, cancel);
        let mut checked = match looked {
            Ok(checked) => checked,
            Err(error) if error.code() == Code::Canceled => return Err(error),
            // One that cannot be read says nothing about the others, and is not left out.
            Err(error) => {
                results.push(unreadable(&shown.manifest.id.to_string(), &opened.name, "read", &error.line()));
                continue;
            }
        };
        let recorded = stores.writable(opened).and_then(|s| check::record(&s, &shown.manifest, node, &checked));
        if let Err(error) = recorded {
            let why = error.why().pop().unwrap_or_default();
            checked.notes.push(format!("the result could not be recorded in store {}: {why}", opened.name));
        }
        if shown.stores.len() > 1 {
            checked.subject = format!("{} in store {}", checked.subject, opened.name);
        }
        results.push(CopyChecked { checked, read: true });
    }
    Ok(results)
}

/// What cannot even be looked at is not sound.
impl From<Unreadable> for CopyChecked {
    fn from(named: Unreadable) -> Self {
        unreadable(&named.name, &named.store, "manifest", &named.reason)
    }
}

fn unreadable(what: &str, store: &str, check: &'static str, why: &str) -> CopyChecked {
    let checked = Checked {
        subject: format!("{what} in store {store}"),
        findings: vec![Finding { page: None, check, message: why.into() }],
        hash_kv: None,
        trailer: false,
        not_covered: Vec::new(),
        notes: Vec::new(),
    };
    CopyChecked { checked, read: false }
}
