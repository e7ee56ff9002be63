//! Which snapshot a person means: `latest`, a whole id, or any prefix or suffix that fits one alone.

use std::cmp::Reverse;

use super::index::{Catalog, Entry};
use super::manifest::State;
use super::shown::Shown;
use super::value::{LineageId, Node};
use crate::error::{Code, Error, Result};

/// The word for [`Catalog::latest`].
pub const LATEST: &str = "latest";
/// So many candidates are named when an abbreviation fits several.
const MAX_NAMED: usize = 10;

impl Catalog<'_> {
    /// The lineage that this node's snapshots are about: that of the newest verified snapshot which this node took,
    /// else of the newest verified one of any node. Newest by the time in the id; imports never decide.
    pub fn current_lineage(&self, own: &Node) -> Option<LineageId> {
        let mut entries: Vec<Entry<'_>> = self.all_entries().filter(counts).collect();
        entries.sort_by_key(|e| (e.id().node() != own, Reverse(e.id().taken_at())));
        entries.iter().find(|e| self.verified(e).is_some()).map(Entry::lineage)
    }

    /// The newest verified snapshot of a lineage's newest timeline, this node's first. Without `lineage`, of the
    /// current one.
    ///
    /// `Code::NotFound` when there is none; an older timeline is never taken instead, because it is another history.
    pub fn latest(&self, own: &Node, lineage: Option<LineageId>) -> Result<Shown> {
        let none = |why: String| Error::new(Code::NotFound, "find snapshot", LATEST).because(why);
        let Some(lineage) = lineage.or_else(|| self.current_lineage(own)) else {
            return Err(none("no store holds a verified snapshot".into()).remedy("take one, or look at the whole list"));
        };
        let Some(timeline) = self.entries(lineage).filter(counts).map(|e| e.id().timeline()).max() else {
            return Err(none(format!("lineage {lineage} has no snapshot")));
        };
        let newest = || self.entries(lineage).filter(|e| counts(e) && e.id().timeline() == timeline);
        let mine = newest().filter(|e| e.id().node() == own).find_map(|e| self.verified(&e));
        mine.or_else(|| newest().find_map(|e| self.verified(&e))).ok_or_else(|| {
            none(format!("timeline {timeline:04}, the newest of lineage {lineage}, has no verified snapshot"))
                .remedy("name an older one by its id if its history is meant")
        })
    }

    /// Resolves `latest`, an id, or a prefix or suffix of one; `<lineage>/` before it narrows the search.
    ///
    /// `Code::Ambiguous` names the candidates, `Code::NotFound` when nothing fits, `Code::DataInvalid` when the one
    /// that fits cannot be read.
    pub fn find(&self, spec: &str, own: &Node, lineage: Option<LineageId>) -> Result<Shown> {
        if spec == LATEST {
            return self.latest(own, lineage);
        }
        let attempt = |code| Error::new(code, "find snapshot", spec);
        let candidates: Vec<Entry<'_>> = self
            .all_entries()
            .filter(|e| e.has_manifest() && lineage.is_none_or(|l| e.lineage() == l))
            .filter(|e| matches(spec, e))
            .collect();
        let exact: Vec<Entry<'_>> = candidates.iter().copied().filter(|e| is_whole(spec, e)).collect();
        let fitting = if exact.is_empty() { candidates } else { exact };
        match fitting.as_slice() {
            [] => Err(attempt(Code::NotFound)
                .because("no snapshot has such an id")
                .remedy("see `refloat snapshot list --all-lineages`")),
            [one] => {
                let loaded = self.load(one);
                loaded.shown.ok_or_else(|| {
                    let why: Vec<String> =
                        loaded.unreadable.iter().map(|u| format!("{}: {}", u.store, u.reason)).collect();
                    match why.is_empty() {
                        true => attempt(Code::NotFound).because("it was removed a moment ago"),
                        false => attempt(Code::DataInvalid).because(why.join("; ")),
                    }
                })
            }
            several => {
                let mut names: Vec<String> = several.iter().take(MAX_NAMED).map(whole).collect();
                if several.len() > MAX_NAMED {
                    names.push(format!("and {} more", several.len() - MAX_NAMED));
                }
                Err(attempt(Code::Ambiguous)
                    .because(format!("it fits {} snapshots: {}", several.len(), names.join(", ")))
                    .remedy("give more of the id"))
            }
        }
    }

    fn verified(&self, entry: &Entry<'_>) -> Option<Shown> {
        let usable = |s: &Shown| s.state == State::Verified && s.manifest.imported.is_none();
        self.load(entry).shown.filter(usable)
    }
}

/// Imports stand in timeline 0 and are never the newest.
fn counts(entry: &Entry<'_>) -> bool {
    entry.has_manifest() && entry.id().timeline() > 0
}

/// `<lineage>/<id>`: the form that is never ambiguous.
fn whole(entry: &Entry<'_>) -> String {
    format!("{}/{}", entry.lineage(), entry.id())
}

fn is_whole(spec: &str, entry: &Entry<'_>) -> bool {
    spec == whole(entry) || spec == entry.id().to_string()
}

fn matches(spec: &str, entry: &Entry<'_>) -> bool {
    let id = match spec.split_once('/') {
        Some((lineage, id)) if lineage == entry.lineage().to_string() => id,
        Some(_) => return false,
        None => spec,
    };
    let text = entry.id().to_string();
    !id.is_empty() && (text.starts_with(id) || text.ends_with(id))
}
