//! A snapshot as it is shown: the manifest, the notes about it and the stores that hold it, folded into one.

use jiff::Timestamp;
use serde::Serialize;

use super::manifest::{Agreement, AgreementResult, Manifest, State, checks_suffice};
use super::note::{Note, NoteBody};
use super::value::Node;

/// The fold. `manifest` is as stored; the fields beside it take the notes into account.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub manifest: Manifest,
    pub state: State,
    pub agreement: Vec<Agreement>,
    pub tags: Vec<String>,
    pub pinned: bool,
    /// The latest pin or unpin of all stores, which decides.
    pub pin: Option<PinWord>,
    /// Stores whose own notes alone say pinned.
    pub pinned_stores: Vec<String>,
    /// Names of the stores with manifest and data.
    pub stores: Vec<String>,
    /// What the copy in each of them is worth, in the same order.
    pub states: Vec<State>,
    /// Those of them in which a later look found damage.
    pub damaged_stores: Vec<String>,
}

/// One pin or unpin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PinWord {
    #[serde(with = "super::time::rfc3339")]
    pub at: Timestamp,
    /// A pin, not an unpin.
    #[serde(skip)]
    pub pinned: bool,
    /// Who wrote it and why; unknown where the note cannot be read.
    pub node: Option<Node>,
    pub reason: Option<String>,
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
        let pin = last_word(copies);
        let pinned_here = |copy: &&Copy| last_word(std::slice::from_ref(*copy)).is_some_and(|word| word.pinned);
        Shown {
            state,
            agreement,
            tags,
            pinned: pin.as_ref().is_some_and(|word| word.pinned),
            pin,
            pinned_stores: copies.iter().filter(pinned_here).map(|c| c.store.clone()).collect(),
            stores: copies.iter().map(|c| c.store.clone()).collect(),
            states: if disputed { vec![State::Disputed; states.len()] } else { states },
            damaged_stores: damaged.map(|c| c.store.clone()).collect(),
            manifest,
        }
    }

    /// Seconds from the start of its stream to `now`; negative when the clock of the taker was ahead.
    pub fn age(&self, now: Timestamp) -> i64 {
        now.duration_since(self.manifest.taken_at).as_secs()
    }

    /// The `snapshot` document: every field of the manifest, and `state pinned stores age` beside them.
    pub fn document(&self, now: Timestamp) -> impl Serialize {
        let Shown { manifest, agreement, tags, .. } = self;
        Document {
            manifest: Manifest { agreement: agreement.clone(), tags: tags.clone(), ..manifest.clone() },
            state: self.state,
            pinned: self.pinned,
            pin: self.pin.as_ref().filter(|word| word.pinned),
            stores: &self.stores,
            damaged_stores: &self.damaged_stores,
            age: self.age(now),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    manifest: Manifest,
    state: State,
    pinned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<&'a PinWord>,
    stores: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    damaged_stores: &'a [String],
    age: i64,
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
fn last_word(copies: &[Copy]) -> Option<PinWord> {
    let word = |n: &Note, pinned, reason: &Option<String>| PinWord {
        at: n.at,
        pinned,
        node: Some(n.node.clone()),
        reason: reason.clone(),
    };
    let read = copies.iter().flat_map(|c| &c.notes).filter_map(|n| match &n.body {
        NoteBody::Pin { reason } => Some(word(n, true, reason)),
        NoteBody::Unpin { reason } => Some(word(n, false, reason)),
        _ => None,
    });
    let blind = copies.iter().flat_map(|c| &c.blind_pins);
    let blind = blind.map(|at| PinWord { at: *at, pinned: true, node: None, reason: None });
    // One that can be read tells more than one that cannot.
    read.chain(blind).max_by_key(|w| (w.at, w.pinned, w.node.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::testing::{at, node, snapshot};
    use proptest::prelude::*;
    use serde_json::json;

    fn note(seconds: i64, body: NoteBody) -> Note {
        Note::new(snapshot(1, 7, 0, "cp1").id, at(seconds), node("cp1"), body)
    }

    fn look(ok: bool) -> NoteBody {
        let checks = crate::catalog::manifest::check::REQUIRED.map(String::from).to_vec();
        NoteBody::Verified { ok, checks, findings: Vec::new() }
    }

    fn copy(store: &str, notes: Vec<Note>) -> Copy {
        Copy { store: store.into(), notes, blind_pins: Vec::new() }
    }

    fn pin() -> NoteBody {
        NoteBody::Pin { reason: None }
    }

    fn unpin() -> NoteBody {
        NoteBody::Unpin { reason: None }
    }

    #[test]
    fn the_latest_pin_or_unpin_counts_in_whatever_store() {
        let table: Vec<(Vec<Copy>, bool)> = vec![
            (vec![copy("a", vec![])], false),
            (vec![copy("a", vec![note(1, pin())])], true),
            (vec![copy("a", vec![note(1, pin()), note(2, unpin())])], false),
            (vec![copy("a", vec![note(3, pin()), note(2, unpin())])], true),
            (vec![copy("a", vec![note(2, pin()), note(2, unpin())])], true),
            (vec![copy("a", vec![note(1, pin())]), copy("b", vec![note(2, unpin())])], false),
            (vec![Copy { blind_pins: vec![at(3)], ..copy("a", vec![note(2, unpin())]) }], true),
        ];
        for (copies, want) in table {
            assert_eq!(Shown::fold(snapshot(1, 7, 0, "cp1"), &copies).pinned, want, "{copies:?}");
        }
        let reason = Some("audit".to_string());
        let copies = [
            copy("a", vec![note(1, pin()), note(3, unpin())]),
            copy("b", vec![note(4, NoteBody::Pin { reason: reason.clone() })]),
        ];
        let shown = Shown::fold(snapshot(1, 7, 0, "cp1"), &copies);
        assert_eq!((shown.pinned_stores.as_slice(), shown.pinned), (&["b".to_string()][..], true));
        let word = PinWord { at: at(4), pinned: true, node: Some(node("cp1")), reason };
        assert_eq!(shown.pin, Some(word));
    }

    #[test]
    fn later_looks_change_the_state() {
        let good = || snapshot(1, 7, 0, "cp1");
        let unchecked = || Manifest { checks: Vec::new(), ..good() };
        let state = |manifest, copies: &[Copy]| Shown::fold(manifest, copies).state;
        assert_eq!(state(good(), &[copy("a", vec![])]), State::Verified);
        assert_eq!(state(good(), &[copy("a", vec![note(1, look(false))])]), State::Unverified);
        assert_eq!(state(good(), &[copy("a", vec![note(1, look(false)), note(2, look(true))])]), State::Verified);
        assert_eq!(state(good(), &[copy("a", vec![note(2, look(false)), note(2, look(true))])]), State::Unverified);
        assert_eq!(state(unchecked(), &[copy("a", vec![])]), State::Unverified);
        assert_eq!(state(unchecked(), &[copy("a", vec![note(1, look(true))])]), State::Verified);
        let partial = NoteBody::Verified { ok: true, checks: vec!["stored".into()], findings: Vec::new() };
        assert_eq!(state(unchecked(), &[copy("a", vec![note(1, partial)])]), State::Unverified);
        // One rotten copy does not take the other one's worth away, but it is named.
        let two = [copy("a", vec![note(1, look(false))]), copy("b", vec![])];
        let shown = Shown::fold(good(), &two);
        assert_eq!((shown.state, shown.damaged_stores.as_slice()), (State::Verified, &["a".to_string()][..]));
        // A dispute outlasts every look at the bytes.
        let dispute = NoteBody::Agreement { agreement: vec![Agreement::new("member 2", AgreementResult::Different)] };
        assert_eq!(state(good(), &[copy("a", vec![note(1, dispute), note(2, look(true))])]), State::Disputed);
    }

    #[test]
    fn document_has_the_names_of_the_interface() {
        let tags = NoteBody::Tag { tags: vec!["weekly".into(), "weekly".into()] };
        let shown = Shown::fold(snapshot(1, 7, 0, "cp1"), &[copy("local", vec![note(1, tags), note(2, pin())])]);
        let d = serde_json::to_value(shown.document(at(60))).unwrap();
        for field in "id lineage timeline cluster_id node member_id revision compact_revision taken_at state agreement \
                      size sha256 stores tags pinned etcd_version age"
            .split_whitespace()
        {
            assert!(d.get(field).is_some(), "{field}");
        }
        assert_eq!((d["age"].clone(), d["state"].clone()), (json!(60), json!("verified")));
        assert_eq!((d["stores"].clone(), d["tags"].clone()), (json!(["local"]), json!(["weekly"])));
        assert_eq!(d["pinned"], json!(true));
    }

    proptest! {
        #[test]
        fn order_of_notes_does_not_matter(
            kinds in proptest::collection::vec((0i64..4, 0u8..5), 0..6).prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle()))
        ) {
            let body = |k: u8| match k {
                0 => pin(),
                1 => unpin(),
                2 => look(true),
                3 => look(false),
                _ => NoteBody::Agreement { agreement: vec![Agreement::new("m", AgreementResult::Different)] },
            };
            let fold = |list: &[(i64, u8)]| {
                let notes = list.iter().map(|(t, k)| note(*t, body(*k))).collect();
                let s = Shown::fold(snapshot(1, 7, 0, "cp1"), &[copy("a", notes)]);
                (s.state, s.pinned)
            };
            prop_assert_eq!(fold(&kinds.0), fold(&kinds.1));
        }
    }
}
