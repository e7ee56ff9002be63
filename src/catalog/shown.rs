//! A snapshot as it is shown: the manifest, the notes about it and the stores that hold it, folded into one.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::manifest::{Agreement, AgreementResult, Manifest, State, checks_suffice};
use super::note::{Note, NoteBody};

/// The fold. `manifest` is as stored; the fields beside it take the notes into account.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub manifest: Manifest,
    pub state: State,
    pub agreement: Vec<Agreement>,
    pub tags: Vec<String>,
    pub pinned: bool,
    /// Names of the stores with manifest and data.
    pub stores: Vec<String>,
    /// Those of them in which a later look found damage.
    pub damaged_stores: Vec<String>,
}

/// What one store holds of a snapshot besides its manifest.
#[derive(Debug, Clone, Default)]
pub struct Copy {
    pub store: String,
    /// Notes that could be read.
    pub notes: Vec<Note>,
    /// Pins and unpins whose content could not be read, by the time in their name; a pin counts all the same.
    pub blind_pins: Vec<Timestamp>,
}

impl Shown {
    /// Folds a manifest with its copies. Order of copies and notes does not matter, except for the order of `stores`.
    pub fn fold(manifest: Manifest, copies: &[Copy]) -> Self {
        let mut notes: Vec<&Note> = copies.iter().flat_map(|c| &c.notes).collect();
        notes.sort_by(|a, b| (a.at, &a.node).cmp(&(b.at, &b.node)));

        let (mut agreement, mut tags) = (manifest.agreement.clone(), manifest.tags.clone());
        for note in notes {
            match &note.body {
                NoteBody::Tag { tags: more } => tags.extend(more.iter().cloned()),
                NoteBody::Agreement { agreement: more } => agreement.extend(more.iter().cloned()),
                NoteBody::Pin { .. } | NoteBody::Unpin { .. } | NoteBody::Verified { .. } => {}
            }
        }
        dedup(&mut tags);
        dedup(&mut agreement);

        let states: Vec<State> = copies.iter().map(|c| copy_state(&manifest, c)).collect();
        let disputed = agreement.iter().any(|a| a.result == AgreementResult::Different);
        let state = if disputed {
            State::Disputed
        } else if states.contains(&State::Verified) || (copies.is_empty() && manifest.state() == State::Verified) {
            State::Verified
        } else {
            State::Unverified
        };
        let damaged = copies.iter().filter(|c| last_look(c).is_some_and(|(ok, _)| !ok));
        Shown {
            state,
            agreement,
            tags,
            pinned: pinned(copies),
            stores: copies.iter().map(|c| c.store.clone()).collect(),
            damaged_stores: damaged.map(|c| c.store.clone()).collect(),
            manifest,
        }
    }

    /// Seconds from the start of its stream to `now`; negative when the clock of the taker was ahead.
    pub fn age(&self, now: Timestamp) -> i64 {
        now.duration_since(self.manifest.taken_at).as_secs()
    }

    /// The `snapshot` document: every field of the manifest, and `state pinned stores age` beside them.
    pub fn document(&self, now: Timestamp) -> Value {
        let folded = Manifest { agreement: self.agreement.clone(), tags: self.tags.clone(), ..self.manifest.clone() };
        // A manifest is made of strings, numbers and lists: this cannot fail, and an empty document would show it.
        let mut document = serde_json::to_value(folded).unwrap_or_else(|_| json!({}));
        if let Some(fields) = document.as_object_mut() {
            fields.insert("state".into(), json!(self.state.word()));
            fields.insert("pinned".into(), json!(self.pinned));
            fields.insert("stores".into(), json!(self.stores));
            fields.insert("age".into(), json!(self.age(now)));
            if !self.damaged_stores.is_empty() {
                fields.insert("damaged_stores".into(), json!(self.damaged_stores));
            }
        }
        document
    }
}

fn dedup<T: PartialEq>(list: &mut Vec<T>) {
    let mut kept: Vec<T> = Vec::with_capacity(list.len());
    for item in list.drain(..) {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    *list = kept;
}

/// The newest verification note of a copy: whether it passed, and whether it covered all that is required.
fn last_look(copy: &Copy) -> Option<(bool, bool)> {
    let looks = copy.notes.iter().filter_map(|n| match &n.body {
        // Of two looks at one moment the bad one counts.
        NoteBody::Verified { ok, checks, .. } => Some(((n.at, !ok), (*ok, checks_suffice(checks)))),
        _ => None,
    });
    looks.max_by_key(|(order, _)| *order).map(|(_, look)| look)
}

/// What one store's copy is worth, agreement aside: a failed look takes away what the manifest said, a complete one
/// restores it.
fn copy_state(manifest: &Manifest, copy: &Copy) -> State {
    let by_manifest = checks_suffice(&manifest.checks);
    let verified = match last_look(copy) {
        Some((false, _)) => false,
        Some((true, complete)) => complete || by_manifest,
        None => by_manifest,
    };
    if verified { State::Verified } else { State::Unverified }
}

/// The latest word wins; a pin wins against an unpin of the same moment.
fn pinned(copies: &[Copy]) -> bool {
    let read = copies.iter().flat_map(|c| &c.notes).filter_map(|n| match n.body {
        NoteBody::Pin { .. } => Some((n.at, true)),
        NoteBody::Unpin { .. } => Some((n.at, false)),
        _ => None,
    });
    let blind = copies.iter().flat_map(|c| c.blind_pins.iter().map(|at| (*at, true)));
    read.chain(blind).max().is_some_and(|(_, pinned)| pinned)
}
