//! The file with which a directory says that it is a store, and which one.

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};
use crate::fs::{Dir, is_elsewhere, random};

/// Name of the marker in a store's root.
pub const MARKER: &str = "refloat-store.json";

const SCHEMA: u32 = 1;

/// A marker is a few dozen bytes; what is larger is not one.
const SIZE_MAX: u64 = 64 * 1024;

/// Written once; never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    pub schema: u32,
    /// 32 hex digits, random.
    pub id: String,
    /// RFC 3339, UTC.
    pub created_at: String,
}

impl Marker {
    /// The marker behind the handle; `None` if there is none. One that cannot be understood is an error.
    pub(super) fn read(dir: &Dir) -> Result<Option<Marker>> {
        let on = || dir.path().join(MARKER).display().to_string();
        let bytes = match dir.read(MARKER, SIZE_MAX) {
            Err(e) if e.code() == Code::NotFound => return Ok(None),
            // A link, a directory, a gigabyte: nothing that refloat writes.
            Err(e) if e.code() == Code::DataInvalid || is_elsewhere(&e) => return Err(e.with_code(Code::StoreForeign)),
            other => other?,
        };
        let foreign = || Error::new(Code::StoreForeign, "read store marker", on());
        let marker: Marker = serde_json::from_slice(&bytes).map_err(|e| {
            foreign().because(e).remedy("move the damaged marker away, then run `refloat store init` for this store")
        })?;
        if marker.schema != SCHEMA {
            let why = format!("it has schema {}, this version knows {SCHEMA}", marker.schema);
            return Err(foreign().because(why).remedy("use a newer version of refloat for this store"));
        }
        if marker.id.len() != 32 || !marker.id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(foreign().because("its id is not 32 hex digits"));
        }
        Ok(Some(marker))
    }

    /// Makes this directory a store. When two do so at once, both get the one that won.
    pub(super) fn create(dir: &Dir) -> Result<Marker> {
        let marker = Marker { schema: SCHEMA, id: random_id()?, created_at: jiff::Timestamp::now().to_string() };
        let text = serde_json::to_vec(&marker)
            .map_err(|e| Error::new(Code::Internal, "write store marker", MARKER).because(e))?;
        match dir.create(MARKER, &text) {
            Ok(()) => Ok(marker),
            Err(e) if e.code() == Code::AlreadyExists => match Marker::read(dir)? {
                Some(other) => Ok(other),
                None => Err(e),
            },
            Err(e) => Err(e),
        }
    }
}

fn random_id() -> Result<String> {
    Ok(format!("{:032x}", u128::from_ne_bytes(random()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_once_then_found() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        assert_eq!(Marker::read(&dir).unwrap(), None);
        let made = Marker::create(&dir).unwrap();
        assert_eq!(Marker::create(&dir).unwrap(), made);
        assert_eq!(Marker::read(&dir).unwrap(), Some(made));
    }

    #[test]
    fn what_is_no_marker_is_refused() {
        let id = "0".repeat(32);
        let table = [
            String::new(),
            "{".into(),
            "[]".into(),
            format!(r#"{{"schema":1,"id":"{id}"}}"#),
            format!(r#"{{"schema":2,"id":"{id}","created_at":""}}"#),
            r#"{"schema":1,"id":"../../etc","created_at":""}"#.into(),
            "x".repeat(100_000),
        ];
        for text in table {
            let tmp = tempfile::tempdir().unwrap();
            std::fs::write(tmp.path().join(MARKER), &text).unwrap();
            let err = Marker::read(&Dir::open(tmp.path()).unwrap()).unwrap_err();
            assert_eq!(err.code(), Code::StoreForeign, "{}", &text[..text.len().min(60)]);
        }
    }
}
