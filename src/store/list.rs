//! Pages of a directory tree, in ascending order of whole names.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ffi::OsString;

use super::{Entry, MARKER, Page, shown};
use crate::error::{Code, Result};
use crate::fs::patience::moved;
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

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.full == other.full
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.full.cmp(&other.full)
    }
}

impl Walk<'_> {
    /// Gives false once the page is full.
    fn enter(&mut self, dir: &Dir, base: &str, depth: usize) -> Result<bool> {
        let mut from = self.after.to_string();
        loop {
            let (candidates, more) = self.candidates(dir, base, &from)?;
            let last = candidates.last().map(|c| c.full.clone());
            if !self.walk(dir, candidates, depth)? {
                return Ok(false);
            }
            match last {
                // Directories without objects and names that vanished filled no place: go on behind them.
                Some(last) if more => from = last,
                _ => return Ok(true),
            }
        }
    }

    fn walk(&mut self, dir: &Dir, candidates: Vec<Candidate>, depth: usize) -> Result<bool> {
        for candidate in candidates {
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
            // A long list that goes on is not one that hangs.
            moved();
            // What vanished since the names were read is not there.
            if let Some(stat) = dir.stat(&raw)?
                && !self.push(full, stat, odd)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The first names behind `from`, no more than the page can still hold and one that tells whether it goes on; also
    /// whether there are more.
    fn candidates(&self, dir: &Dir, base: &str, from: &str) -> Result<(Vec<Candidate>, bool)> {
        let wanted = (self.limit - self.page.entries.len()).saturating_add(1);
        let (mut found, mut more): (BinaryHeap<Candidate>, bool) = (BinaryHeap::new(), false);
        dir.scan(|entry| {
            let name = shown(&entry.name);
            if base.is_empty() && is_reserved(&name) {
                return;
            }
            let odd = matches!(name, std::borrow::Cow::Owned(_));
            let slash = if entry.kind == Kind::Dir { "/" } else { "" };
            let full = format!("{base}{name}{slash}");
            // A directory that the page before ended in is entered again, once.
            let entered = entry.kind == Kind::Dir && from == self.after && from.starts_with(&full);
            if full.as_str() > from || entered {
                found.push(Candidate { full, raw: entry.name, kind: entry.kind, odd });
                if found.len() > wanted {
                    found.pop();
                    more = true;
                }
            }
        })?;
        Ok((found.into_sorted_vec(), more))
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
