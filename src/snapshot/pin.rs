//! What is said about a snapshot later: pinned, no longer pinned, tags. Create-only notes beside its manifest.
//!
//! In: an open set of stores, a snapshot as the stores have it, a mark. Out: one outcome a store, and the snapshot as
//! it is then. Serves promise 2 (a pinned snapshot is never removed): a pin goes into every store that holds the
//! snapshot, or the store without it is named, and it is never written about one that was removed meanwhile.

use jiff::{SignedDuration, Timestamp};

use super::publish::StoreOutcome;
use super::stores::OpenStores;
use crate::catalog::{Name, Node, Note, NoteBody, PinWord, Shown, time};
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::store::{LocalStore, Store};

/// The step of a note's time.
const TICK: SignedDuration = SignedDuration::from_millis(1);
/// Names that are tried when another note has the same moment.
const TRIES: u32 = 100;

/// What is to be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    Pin { reason: Option<String> },
    Unpin { reason: Option<String> },
    Tag { tags: Vec<String> },
}

/// What came of it.
#[derive(Debug)]
pub struct Marked {
    /// As it is now.
    pub snapshot: Shown,
    /// Stores in which something had to be written, or that could not be opened; empty when all was said before.
    pub stores: Vec<StoreOutcome>,
}

impl Marked {
    /// Whether anything was written.
    pub fn changed(&self) -> bool {
        self.stores.iter().any(|s| s.result.is_ok())
    }

    /// The error that the whole run ends with, although some stores have the note.
    pub fn failure(&self, what: &str) -> Option<Error> {
        let failed: Vec<&str> = self.stores.iter().filter(|s| s.result.is_err()).map(|s| s.name.as_str()).collect();
        (!failed.is_empty()).then(|| {
            Error::new(Code::SomeStoresFailed, what, self.snapshot.manifest.id.to_string())
                .because(format!("it is not recorded in store {}", failed.join(", ")))
                .remedy("see the error of that store, then run the command again: it adds what is missing")
        })
    }
}

/// Writes the notes that are missing. `unread` are stores that could not be listed. An error only when nothing could be
/// written anywhere that had to be.
pub fn mark(
    stores: &OpenStores,
    unread: Vec<(String, Error)>,
    shown: &Shown,
    node: &Node,
    mark: &Mark,
    now: Timestamp,
) -> Result<Marked> {
    let mut outcomes: Vec<StoreOutcome> = Vec::new();
    let mut snapshot = shown.clone();
    if let Some((body, lacking)) = missing(mark, shown) {
        let at = moment(now, shown.pin.as_ref());
        for opened in stores.good().filter(|s| lacking.contains(&s.name)) {
            let result = stores.writable(opened).and_then(|store| write(&store, shown, node, &body, at));
            outcomes.push(StoreOutcome { name: opened.name.clone(), result });
        }
        let written: Vec<String> = outcomes.iter().filter(|o| o.result.is_ok()).map(|o| o.name.clone()).collect();
        if written.is_empty() {
            let first = outcomes.into_iter().find_map(|o| o.result.err());
            let none = || Error::new(Code::NotFound, "find snapshot", shown.manifest.id.to_string());
            return Err(first.unwrap_or_else(none));
        }
        snapshot = said(shown, &body, &written, node, at);
    }
    // A store that cannot be looked at may hold the snapshot: what is not known is not said to be done.
    outcomes.extend(stores.failed().iter().map(|(name, error)| unknown(name, error)));
    outcomes.extend(unread.iter().map(|(name, error)| unknown(name, error)));
    Ok(Marked { snapshot, stores: outcomes })
}

/// What has to be said and in which stores; `None` when each of them says it already.
fn missing(mark: &Mark, shown: &Shown) -> Option<(NoteBody, Vec<String>)> {
    let everywhere = || shown.stores.clone();
    // An earlier run may not have reached every store: alone, one of them would say something else.
    let pin = |wanted: bool| match shown.pinned == wanted {
        true => shown.stores.iter().filter(|s| shown.pinned_stores.contains(s) != wanted).cloned().collect(),
        false => everywhere(),
    };
    let (body, stores) = match mark {
        Mark::Pin { reason } => (NoteBody::Pin { reason: reason.clone() }, pin(true)),
        Mark::Unpin { reason } => (NoteBody::Unpin { reason: reason.clone() }, pin(false)),
        Mark::Tag { tags } => {
            let mut new: Vec<String> = Vec::new();
            for tag in tags {
                if !shown.tags.contains(tag) && !new.contains(tag) {
                    new.push(tag.clone());
                }
            }
            let stores = if new.is_empty() { Vec::new() } else { everywhere() };
            (NoteBody::Tag { tags: new }, stores)
        }
    };
    (!stores.is_empty()).then_some((body, stores))
}

fn unknown(store: &str, error: &Error) -> StoreOutcome {
    let error = Error::new(error.code(), "look for the snapshot in store", store).because(error.line());
    StoreOutcome { name: store.into(), result: Err(error) }
}

/// The latest word counts, so a new one must be the latest, also after the clock was put back.
fn moment(now: Timestamp, last: Option<&PinWord>) -> Timestamp {
    let now = time::to_millis(now);
    let after = last.and_then(|word| time::to_millis(word.at).checked_add(TICK).ok());
    after.map_or(now, |after| now.max(after))
}

fn write(store: &LocalStore, shown: &Shown, node: &Node, body: &NoteBody, at: Timestamp) -> Result<()> {
    let manifest = &shown.manifest;
    store.check_marker()?;
    // A prune holds the store alone: from here on the snapshot is there, and its note is seen, or it is gone.
    let _writing = store.share()?;
    let name = Name::Manifest(manifest.lineage, manifest.id.clone()).to_string();
    store.open(&name).map_err(|e| e.during("find snapshot", format!("{} in store {}", manifest.id, store.name())))?;
    crash::point!("note::before");
    let mut at = at;
    for attempt in 1.. {
        let note = Note::new(manifest.id.clone(), at, node.clone(), body.clone());
        let name = note.name(manifest.lineage).to_string();
        let bytes = note.to_bytes().map_err(|e| Error::new(Code::Internal, "encode note", &name).because(e))?;
        match store.create(&name, &bytes) {
            // Somebody said something at the same moment.
            Err(e) if e.code() == Code::AlreadyExists && attempt < TRIES => {
                at = at.checked_add(TICK).map_err(|e| Error::new(Code::Internal, "date note", &name).because(e))?;
            }
            other => return other,
        }
    }
    Ok(())
}

/// The snapshot as it is shown from now on.
fn said(shown: &Shown, body: &NoteBody, written: &[String], node: &Node, at: Timestamp) -> Shown {
    let mut shown = shown.clone();
    let word = |pinned, reason: &Option<String>| {
        Some(PinWord { at, pinned, node: Some(node.clone()), reason: reason.clone() })
    };
    match body {
        NoteBody::Pin { reason } => {
            let new = written.iter().filter(|name| !shown.pinned_stores.contains(name)).cloned();
            let new: Vec<String> = new.collect();
            shown.pinned_stores.extend(new);
            (shown.pinned, shown.pin) = (true, word(true, reason));
        }
        NoteBody::Unpin { reason } => {
            shown.pinned_stores.retain(|name| !written.contains(name));
            (shown.pinned, shown.pin) = (false, word(false, reason));
        }
        NoteBody::Tag { tags } => shown.tags.extend(tags.iter().cloned()),
        NoteBody::Verified { .. } | NoteBody::Agreement { .. } => {}
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::shown::Copy;
    use crate::catalog::testing::{at, node, snapshot};

    fn pin() -> NoteBody {
        NoteBody::Pin { reason: None }
    }

    fn unpin() -> NoteBody {
        NoteBody::Unpin { reason: None }
    }

    /// Stores `a` and `b` with these notes, each with the second of its time.
    fn shown(a: &[(i64, NoteBody)], b: &[(i64, NoteBody)]) -> Shown {
        let manifest = snapshot(1, 7, 0, "cp1");
        let copy = |store: &str, notes: &[(i64, NoteBody)]| Copy {
            store: store.into(),
            notes: notes
                .iter()
                .map(|(t, body)| Note::new(manifest.id.clone(), at(*t), node("cp1"), body.clone()))
                .collect(),
            ..Copy::default()
        };
        Shown::fold(manifest.clone(), &[copy("a", a), copy("b", b)])
    }

    #[test]
    fn what_is_missing_where() {
        let (yes, no) = (Mark::Pin { reason: None }, Mark::Unpin { reason: None });
        let both: &[&str] = &["a", "b"];
        type Notes = Vec<(i64, NoteBody)>;
        let table: Vec<(&str, &Mark, Notes, Notes, &[&str])> = vec![
            ("first pin", &yes, vec![], vec![], both),
            ("pinned everywhere", &yes, vec![(1, pin())], vec![(1, pin())], &[]),
            ("one store was not reached", &yes, vec![(1, pin())], vec![], &["b"]),
            ("the other store was unpinned later", &yes, vec![(1, pin())], vec![(2, unpin())], both),
            ("never pinned", &no, vec![], vec![], &[]),
            ("unpin", &no, vec![(1, pin())], vec![(1, pin())], both),
            ("pinned in one", &no, vec![(1, pin())], vec![], both),
            ("one still says pinned", &no, vec![(1, pin())], vec![(2, unpin())], &["a"]),
            ("unpinned everywhere", &no, vec![(1, pin()), (2, unpin())], vec![], &[]),
        ];
        for (case, mark, a, b, want) in table {
            let stores = missing(mark, &shown(&a, &b)).map(|(_, stores)| stores).unwrap_or_default();
            assert_eq!(stores, want, "{case}");
        }
    }

    #[test]
    fn only_new_tags_are_written_and_each_once() {
        let tagged = shown(&[(1, NoteBody::Tag { tags: vec!["x".into()] })], &[]);
        let ask = |tags: &[&str]| missing(&Mark::Tag { tags: tags.iter().map(|t| (*t).into()).collect() }, &tagged);
        assert_eq!(ask(&["x"]), None);
        let want = NoteBody::Tag { tags: vec!["y".into(), "z".into()] };
        assert_eq!(ask(&["y", "x", "z", "y"]), Some((want, vec!["a".into(), "b".into()])));
    }

    #[test]
    fn a_new_word_is_always_the_latest() {
        let pinned = shown(&[(100, pin())], &[]);
        let later = at(100).checked_add(TICK).unwrap();
        assert_eq!(moment(at(5), pinned.pin.as_ref()), later, "the clock was put back");
        assert_eq!(moment(at(200), pinned.pin.as_ref()), at(200));
        assert_eq!(moment(at(5), None), at(5));
        let unpinned = said(&pinned, &unpin(), &["a".into()], &node("cp2"), later);
        assert!(!unpinned.pinned && unpinned.pinned_stores.is_empty());
        let again = said(&unpinned, &pin(), &["b".into()], &node("cp2"), later);
        assert_eq!((again.pinned, again.pinned_stores), (true, vec!["b".to_string()]));
    }
}
