//! Which store was last seen where, in `stores.json` in the state directory.
//!
//! A marker says "I am store X"; only a memory of it can say "X was here and is gone", the difference between a new
//! disk and one that is not mounted. The ledger takes this over once there is one.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::shown;
use crate::error::{Code, Error, Result};
use crate::fs::{BootTime, Dir};

const FILE: &str = "stores.json";
const SCHEMA: u32 = 1;
const SIZE_MAX: u64 = 16 * 1024 * 1024;

/// One store as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The configured path, see [`super::OpenStore::path`].
    pub path: String,
    /// The id in its marker.
    pub store_id: String,
    /// The newest snapshot that was published there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_id: Option<String>,
}

/// The wall clock beside the time since boot, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    boot_id: String,
    /// Seconds.
    since_boot: u64,
    /// Seconds since 1970.
    wall: i64,
}

impl Clock {
    /// Seconds by which the wall clock left the time since boot from then to `now`; `None` across boots.
    pub fn jump(&self, boot: &BootTime, now: Timestamp) -> Option<i64> {
        if boot.boot_id != self.boot_id {
            return None;
        }
        let passed = i64::try_from(boot.since.as_secs()).ok()?.checked_sub(i64::try_from(self.since_boot).ok()?)?;
        now.as_second().checked_sub(self.wall)?.checked_sub(passed)
    }
}

/// All that were seen. Whoever changes it holds a lock on the state directory meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownStores {
    schema: u32,
    /// Of the last snapshot that this node took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lineage: Option<String>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock: Option<Clock>,
    stores: Vec<Known>,
}

impl Default for KnownStores {
    fn default() -> Self {
        KnownStores { schema: SCHEMA, lineage: None, clock: None, stores: Vec::new() }
    }
}

impl KnownStores {
    /// Nothing known if the file is missing; an error if it is there and cannot be understood, because unknown is
    /// not empty.
    pub fn load(state: &Dir) -> Result<KnownStores> {
        let on = || state.path().join(FILE).display().to_string();
        let invalid = || {
            Error::new(Code::DataInvalid, "read known stores", on()).remedy(
                "make sure that the stores are mounted, then remove this file: refloat learns it anew from their markers",
            )
        };
        let bytes = match state.read(FILE, SIZE_MAX) {
            Err(e) if e.code() == Code::NotFound => return Ok(KnownStores::default()),
            other => other?,
        };
        let known: KnownStores = serde_json::from_slice(&bytes).map_err(|e| invalid().because(e))?;
        if known.schema != SCHEMA {
            let why = format!("it has schema {}, this version knows {SCHEMA}", known.schema);
            return Err(invalid().because(why));
        }
        Ok(known)
    }

    pub fn get(&self, path: &Path) -> Option<&Known> {
        let path = shown(path.as_os_str());
        self.stores.iter().find(|k| k.path == path)
    }

    pub fn lineage(&self) -> Option<&str> {
        self.lineage.as_deref()
    }

    pub fn set_lineage(&mut self, lineage: &str) {
        self.lineage = Some(lineage.into());
    }

    pub fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// Where the time since boot is not known, nothing is.
    pub fn set_clock(&mut self, boot: Option<BootTime>, wall: Timestamp) {
        self.clock =
            boot.map(|boot| Clock { boot_id: boot.boot_id, since_boot: boot.since.as_secs(), wall: wall.as_second() });
    }

    /// All, in the order of the file.
    pub fn all(&self) -> &[Known] {
        &self.stores
    }

    /// Takes note of what was seen at `path` in memory. A newest id of the same store stays if none is given.
    pub fn remember(&mut self, path: &Path, store_id: &str, newest_id: Option<&str>) {
        let path = shown(path.as_os_str()).into_owned();
        match self.stores.iter_mut().find(|k| k.path == path) {
            Some(known) => {
                if known.store_id != store_id {
                    known.newest_id = None;
                }
                known.store_id = store_id.into();
                if let Some(newest) = newest_id {
                    known.newest_id = Some(newest.into());
                }
            }
            None => self.stores.push(Known { path, store_id: store_id.into(), newest_id: newest_id.map(String::from) }),
        }
    }

    /// Writes it durably, in one step.
    pub fn save(&self, state: &Dir) -> Result<()> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| Error::new(Code::Internal, "write known stores", FILE).because(e))?;
        state.replace(FILE, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_across_load_and_save() {
        let tmp = tempfile::tempdir().unwrap();
        let state = Dir::open(tmp.path()).unwrap();
        let mut known = KnownStores::load(&state).unwrap();
        assert_eq!(known, KnownStores::default());
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        known.remember(a, "1", Some("s1"));
        known.remember(b, "2", None);
        known.remember(a, "1", None);
        known.save(&state).unwrap();
        let mut again = KnownStores::load(&state).unwrap();
        assert_eq!(again, known);
        assert_eq!(again.get(a).unwrap().newest_id.as_deref(), Some("s1"));
        again.remember(a, "3", None);
        assert_eq!(again.get(a).unwrap().newest_id, None);
        assert_eq!((again.all().len(), again.get(Path::new("/c"))), (2, None));
    }

    #[test]
    fn a_step_of_the_wall_clock_is_seen_within_one_boot() {
        let boot = |id: &str, since| BootTime { boot_id: id.into(), since: std::time::Duration::from_secs(since) };
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut known = KnownStores::default();
        known.set_clock(Some(boot("a", 100)), at(1000));
        let clock = known.clock().unwrap();
        for (id, since, now, want) in [
            ("a", 100, 1000, Some(0)),
            ("a", 160, 1060, Some(0)),
            ("a", 160, 4660, Some(3600)),
            ("a", 160, 60, Some(-1000)),
            ("b", 5, 9999, None),
        ] {
            assert_eq!(clock.jump(&boot(id, since), at(now)), want, "{id} {since} {now}");
        }
        known.set_clock(None, at(1));
        assert_eq!(known.clock(), None);
    }

    #[test]
    fn torn_at_any_byte_it_is_an_error_and_never_empty() {
        let tmp = tempfile::tempdir().unwrap();
        let state = Dir::open(tmp.path()).unwrap();
        let mut known = KnownStores::default();
        known.remember(Path::new("/a"), "1", None);
        known.save(&state).unwrap();
        let path = tmp.path().join(FILE);
        let whole = std::fs::read(&path).unwrap();
        for len in 0..whole.len() {
            std::fs::write(&path, &whole[..len]).unwrap();
            let err = KnownStores::load(&state).unwrap_err();
            assert_eq!(err.code(), Code::DataInvalid, "{len}");
            assert!(err.on().ends_with(FILE) && err.get_remedy().is_some());
        }
        std::fs::write(&path, String::from_utf8(whole).unwrap().replace("\"schema\": 1", "\"schema\": 2")).unwrap();
        assert_eq!(KnownStores::load(&state).unwrap_err().code(), Code::DataInvalid);
    }
}
