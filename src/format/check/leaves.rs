//! The leaves of the `key` bucket: found by a walk over branch pages alone, filled in by the scan.
//!
//! Levels are read in the order of the file, so that a compressed source decodes each part once a level.

use super::finding::Findings;
use super::hints::{Expected, Hints};
use super::tree::{self, MAX_DEPTH, Reached};
use crate::format::bbolt::{Db, Header, Kind, ReadFault};
use crate::format::mvcc::{Revision, RowKey};

/// Keys of varying length in one allocation.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Arena {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }
}

/// Where branch pages come from.
struct Source<'a> {
    db: &'a Db<'a>,
    hints: &'a Hints,
}

impl Source<'_> {
    fn page(&self, id: u64) -> Result<Vec<u8>, ReadFault> {
        match self.hints.get(id) {
            Some(hint) => Ok(padded(hint, self.db.meta.page_size as usize)),
            None => self.db.page(id),
        }
    }
}

/// A hint holds the used bytes alone.
fn padded(hint: &[u8], page_size: usize) -> Vec<u8> {
    let mut page = hint.to_vec();
    page.resize(page_size, 0);
    page
}

/// What the scan found on one leaf.
#[derive(Debug, Clone, Copy, Default)]
pub struct Found {
    /// Sum of the rows that count, and their bytes.
    pub crc: u32,
    pub bytes: u64,
    /// First and last row; `None` before the scan, on damage and on an empty page.
    pub rows: Option<(Revision, Revision)>,
}

/// All leaves in tree order.
#[derive(Default)]
pub struct Leaves {
    pages: Vec<u64>,
    lows: Arena,
    found: Vec<Found>,
    /// Indices of `pages` in the order of the file.
    order: Vec<u32>,
}

impl Leaves {
    /// A bucket that is one page, within its parent or on its own.
    pub fn single(page: u64) -> Leaves {
        let mut leaves = Leaves::default();
        leaves.push(page, &[]);
        leaves.finish()
    }

    fn push(&mut self, page: u64, low: &[u8]) {
        self.pages.push(page);
        self.lows.push(low);
    }

    fn finish(mut self) -> Leaves {
        self.found = vec![Found::default(); self.pages.len()];
        self.order = (0..self.pages.len() as u32).collect();
        let pages = &self.pages;
        self.order.sort_unstable_by_key(|i| pages[*i as usize]);
        self
    }

    /// Walks from the bucket's root page down to the level above the leaves.
    /// Pages come from `hints` where it has them; those are noted in `used`.
    pub fn collect(
        db: &Db<'_>,
        root: u64,
        hints: &Hints,
        used: &mut Vec<Expected>,
        reached: &mut Reached,
        findings: &mut Findings,
    ) -> Leaves {
        let source = Source { db, hints };
        let mut level = Leaves::default();
        level.push(root, &[]);
        for _ in 0..MAX_DEPTH {
            let level_order = {
                let mut order: Vec<u32> = (0..level.pages.len() as u32).collect();
                order.sort_unstable_by_key(|i| level.pages[*i as usize]);
                order
            };
            // All leaves of a bbolt tree are equally deep, so the leftmost page tells for its whole level.
            match level.pages.first().map(|id| source.page(*id)) {
                Some(Ok(page)) if Header::parse(&page).and_then(|h| h.kind()) == Some(Kind::Branch) => {}
                _ => return level.finish(),
            }
            // Children as they are met, then put in tree order: two flat copies at most, however many leaves.
            let mut met = Leaves::default();
            let mut ranges = vec![0..0; level.pages.len()];
            for i in level_order {
                let first = met.pages.len();
                level.children(i as usize, &source, &mut met, used, reached, findings);
                ranges[i as usize] = first..met.pages.len();
            }
            let mut next = Leaves::default();
            for child in ranges.into_iter().flatten() {
                next.push(met.pages[child], met.lows.get(child));
            }
            if next.pages.len() as u64 > db.meta.high_water {
                findings.add(Some(root), "tree", "more child pages than the file has pages");
                return Leaves::default();
            }
            level = next;
        }
        findings.add(Some(root), "tree", format!("tree is deeper than {MAX_DEPTH} levels"));
        Leaves::default()
    }

    /// Appends the children of the `i`th page to `met`.
    fn children(
        &self,
        i: usize,
        source: &Source<'_>,
        met: &mut Leaves,
        used: &mut Vec<Expected>,
        reached: &mut Reached,
        findings: &mut Findings,
    ) {
        let id = self.pages[i];
        let page_size = source.db.meta.page_size as usize;
        let page = match source.hints.get(id) {
            Some(hint) => {
                used.push(Expected::of(id, hint));
                reached.claim(id, 1, findings).then(|| padded(hint, page_size))
            }
            None => tree::claim_page(source.db, id, reached, findings),
        };
        let Some(page) = page else { return };
        let Some(branch) = tree::branch(&page, id, page_size, findings) else { return };
        if let (Some((first, _)), Some((last, _))) = (branch.child(0), branch.child(branch.len() - 1)) {
            tree::lower_bound(id, first, self.low(i), findings);
            tree::upper_bound(id, last, self.high(i), findings);
        }
        for (key, child) in branch.children() {
            met.push(child, key);
        }
    }

    pub fn len(&self) -> usize {
        self.pages.len()
    }

    pub fn page(&self, i: usize) -> u64 {
        self.pages[i]
    }

    /// The lower bound of the leaf's keys, from its parent.
    pub fn low(&self, i: usize) -> &[u8] {
        self.lows.get(i)
    }

    /// The bound that its keys stay below.
    pub fn high(&self, i: usize) -> Option<&[u8]> {
        (i + 1 < self.pages.len()).then(|| self.lows.get(i + 1))
    }

    /// The `n`th leaf in the order of the file.
    pub fn in_file_order(&self, n: usize) -> Option<usize> {
        self.order.get(n).map(|i| *i as usize)
    }

    pub fn found(&self, i: usize) -> &Found {
        &self.found[i]
    }

    pub fn set(&mut self, i: usize, found: Found) {
        self.found[i] = found;
    }

    /// The leaves that may hold a row of this main revision.
    pub fn holding(&self, main: u64) -> std::ops::RangeInclusive<usize> {
        let low = RowKey::first_of(main);
        let mut above = RowKey::first_of(main);
        above[9..].fill(0xff);
        let first = self.partition(|key| key <= &low[..]).saturating_sub(1);
        let last = self.partition(|key| key <= &above[..]).saturating_sub(1);
        first..=last
    }

    fn partition(&self, below: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.pages.len());
        while low < high {
            let mid = low + (high - low) / 2;
            if below(self.lows.get(mid)) {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        low
    }
}
