//! Pages of a directory tree, in ascending order of whole names.

use std::ffi::OsString;

use super::{Entry, MARKER, Page, shown};
use crate::error::{Code, Result};
use crate::fs::{Dir, Kind, Stat, is_elsewhere};

/// Directories below this depth are named, not entered: refloat's own layout has four levels.
const DEPTH_MAX: usize = 16;

/// Names in a store's root that are not objects: the marker, refloat's locks and temporary names, ext4's own.
pub fn is_reserved(name: &str) -> bool {
    let first = name.split('/').next().unwrap_or_default();
    first == MARKER || first == "lost+found" || first.starts_with(".refloat-")
}

/// Objects below the directory `prefix` (empty: all) whose names come after `after`, at most `limit`.
pub fn list(root: &Dir, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
    let prefix = prefix.trim_end_matches('/');
    let dir = match root.open_dir(prefix) {
        Err(e) if e.code() == Code::NotFound => return Ok(Page::default()),
        other => other?,
    };
    let base = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    let mut walk = Walk { after: after.unwrap_or_default(), limit: limit.max(1), page: Page::default() };
    walk.enter(&dir, &base, 0)?;
    Ok(walk.page)
}

struct Walk<'a> {
    after: &'a str,
    limit: usize,
    page: Page,
}

struct Candidate {
    /// The whole name as shown; with a final `/` for a directory, which makes the order that of whole names.
    full: String,
    raw: OsString,
    kind: Kind,
    /// Its name is none that refloat would write.
    odd: bool,
}

impl Walk<'_> {
    /// Gives false once the page is full.
    fn enter(&mut self, dir: &Dir, base: &str, depth: usize) -> Result<bool> {
        for candidate in self.candidates(dir, base)? {
            let Candidate { full, raw, kind, odd } = candidate;
            if kind == Kind::Dir && !odd && depth < DEPTH_MAX {
                // Not odd, so the raw name is what is shown.
                let name = raw.to_str().unwrap_or_default();
                match dir.open_dir(name) {
                    Ok(sub) if sub.identity().0 == dir.identity().0 => {
                        if !self.enter(&sub, &full, depth + 1)? {
                            return Ok(false);
                        }
                        continue;
                    }
                    // A mount point, or a link that took the directory's place: named below, not entered.
                    Ok(_) => {}
                    Err(e) if is_elsewhere(&e) => {}
                    Err(e) if e.code() == Code::NotFound => continue,
                    // A directory that cannot be read makes the whole list unknown: no deletion may follow from it.
                    Err(e) => return Err(e),
                }
            }
            // What vanished since the names were read is not there.
            if let Some(stat) = dir.stat(&raw)?
                && !self.push(full, stat, odd)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn candidates(&self, dir: &Dir, base: &str) -> Result<Vec<Candidate>> {
        let mut found: Vec<Candidate> = Vec::new();
        for entry in dir.entries()? {
            let name = shown(&entry.name);
            if base.is_empty() && is_reserved(&name) {
                continue;
            }
            let odd = matches!(name, std::borrow::Cow::Owned(_));
            let slash = if entry.kind == Kind::Dir { "/" } else { "" };
            let full = format!("{base}{name}{slash}");
            if full.as_str() > self.after || (entry.kind == Kind::Dir && self.after.starts_with(&full)) {
                found.push(Candidate { full, raw: entry.name, kind: entry.kind, odd });
            }
        }
        found.sort_unstable_by(|a, b| a.full.cmp(&b.full));
        Ok(found)
    }

    fn push(&mut self, name: String, stat: Stat, odd: bool) -> bool {
        if name.as_str() <= self.after {
            return true;
        }
        if self.page.entries.len() == self.limit {
            self.page.next = self.page.entries.last().map(|e| e.name.clone());
            return false;
        }
        let irregular = odd || stat.kind != Kind::File;
        self.page.entries.push(Entry { name, size: stat.size, modified: stat.modified, irregular });
        true
    }
}
