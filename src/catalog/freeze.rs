//! The freeze marker: while it stands, nothing is removed (design §7).
//!
//! A small JSON document, in a store for everybody who uses it (`<lineage>/freeze.json`) or in a node's own state
//! directory (`freeze.json`). One that is there and cannot be read stands: unknown is never taken as free.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::manifest::{MAX_BYTES, SCHEMA, check_schema};
use super::names::Name;
use super::retention::Freeze;
use super::time::rfc3339;
use super::value::LineageId;
use crate::error::{Code, Error, Result};
use crate::fs::Dir;
use crate::store::Store;

/// Its name in the state directory.
pub const LOCAL: &str = "freeze.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    schema: u32,
    /// From then on it says nothing.
    #[serde(with = "rfc3339")]
    until: Timestamp,
    /// Who set it, and why.
    reason: String,
}

/// The marker of a lineage in one store.
pub fn in_store(store: &dyn Store, lineage: LineageId) -> Option<Freeze> {
    let name = Name::Freeze(lineage).to_string();
    understand(store.read(&name, MAX_BYTES), &format!("{name} in store {}", store.name()))
}

/// The marker of this node.
pub fn in_state(state: &Dir) -> Option<Freeze> {
    understand(state.read(LOCAL, MAX_BYTES), &state.path().join(LOCAL).display().to_string())
}

/// Of several the one that stands longest; one that cannot be read stands for ever.
pub fn longest(freezes: impl IntoIterator<Item = Freeze>) -> Option<Freeze> {
    freezes.into_iter().max_by_key(|f| (f.until.is_none(), f.until))
}

fn understand(read: Result<Vec<u8>, Error>, on: &str) -> Option<Freeze> {
    let unreadable = |why: String| Some(Freeze { until: None, reason: format!("{on} cannot be read: {why}") });
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(e) if e.code() == Code::NotFound => return None,
        Err(e) => return unreadable(e.line()),
    };
    if let Err(e) = check_schema(&bytes) {
        return unreadable(e.to_string());
    }
    match serde_json::from_slice::<Marker>(&bytes) {
        Ok(Marker { until, reason, schema: 1..=SCHEMA }) => {
            Some(Freeze { until: Some(until), reason: format!("{reason} ({on})") })
        }
        Ok(_) => unreadable("its schema is not known".into()),
        Err(e) => unreadable(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::testing::{LINEAGE, MemStore, at};

    fn text(until: Timestamp) -> String {
        serde_json::to_string(&Marker { schema: 1, until, reason: "restore".into() }).unwrap()
    }

    #[test]
    fn absent_standing_and_unreadable() {
        let store = MemStore::new("a");
        assert_eq!(in_store(&store, LINEAGE), None);
        let name = Name::Freeze(LINEAGE).to_string();
        store.put_text(&name, text(at(9)));
        let freeze = in_store(&store, LINEAGE).unwrap();
        assert_eq!(freeze.until, Some(at(9)));
        assert!(freeze.reason.starts_with("restore ("), "{}", freeze.reason);
        for bad in ["", "{", r#"{"schema":2,"until":"2026-01-01T00:00:00Z","reason":"x"}"#, r#"{"schema":1}"#] {
            store.put_text(&name, bad);
            assert_eq!(in_store(&store, LINEAGE).unwrap().until, None, "{bad}");
        }
        store.broken.lock().unwrap().insert(name, Code::Io);
        assert_eq!(in_store(&store, LINEAGE).unwrap().until, None);
    }

    #[test]
    fn the_longest_counts() {
        let freeze = |until| Freeze { until, reason: String::new() };
        let of = |list: &[Option<Timestamp>]| longest(list.iter().map(|u| freeze(*u))).map(|f| f.until);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[Some(at(1)), Some(at(2))]), Some(Some(at(2))));
        assert_eq!(of(&[Some(at(1)), None, Some(at(2))]), Some(None));
    }

    #[test]
    fn beside_the_state() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        assert_eq!(in_state(&dir), None);
        dir.create(LOCAL, text(at(5)).as_bytes()).unwrap();
        assert_eq!(in_state(&dir).unwrap().until, Some(at(5)));
    }
}
