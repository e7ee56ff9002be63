//! Branch pages, gathered while a database streams past, so that a later walk need not look for them.
//!
//! Walking a tree at random in a compressed object decodes nearly every frame once more, only to find the few
//! branch pages in them. Whoever sees all bytes in order keeps these pages aside instead. They are hints: the
//! check walks by them and then compares each one that it used with the page in the file; one that differs makes
//! the whole result void, and the check is done again without hints.

use sha2::{Digest, Sha256};

use super::super::bbolt::page::{HEADER, Header, Kind, le32, le64};
use super::super::bbolt::{Branch, Meta};

/// Used bytes of branch pages without overflow, in ascending order of page ids.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Hints {
    ids: Vec<u64>,
    /// Where each page's used bytes lie in `encoded`.
    places: Vec<std::ops::Range<usize>>,
    /// The form in which hints are stored: there may be tens of megabytes, so there is no second copy.
    encoded: Vec<u8>,
}

/// Bytes before each page in the encoded form: id u64, length u32.
const ENTRY: usize = 12;

impl Hints {
    fn push(&mut self, id: u64, used: &[u8]) {
        self.encoded.extend(id.to_le_bytes());
        // Used bytes of one page without overflow: at most 64 KiB.
        self.encoded.extend((used.len() as u32).to_le_bytes());
        let start = self.encoded.len();
        self.encoded.extend_from_slice(used);
        self.ids.push(id);
        self.places.push(start..self.encoded.len());
    }

    /// The used bytes of a page.
    pub fn get(&self, id: u64) -> Option<&[u8]> {
        let i = self.ids.binary_search(&id).ok()?;
        self.encoded.get(self.places.get(i)?.clone())
    }

    /// For each page: id u64, length u32, bytes; little-endian.
    pub fn encode(self) -> Vec<u8> {
        self.encoded
    }

    /// Anything that is not in this form, or not in order, is no hint at all.
    pub fn decode(encoded: Vec<u8>) -> Option<Hints> {
        let mut hints = Hints { encoded, ..Hints::default() };
        let mut at = 0;
        while at < hints.encoded.len() {
            let (id, len) = (le64(&hints.encoded, at)?, le32(&hints.encoded, at + 8)? as usize);
            let place = at + ENTRY..(at + ENTRY).checked_add(len)?;
            if place.end > hints.encoded.len() || hints.ids.last().is_some_and(|last| *last >= id) {
                return None;
            }
            at = place.end;
            hints.ids.push(id);
            hints.places.push(place);
        }
        Some(hints)
    }
}

/// What a page that was walked by its hint must turn out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    pub id: u64,
    pub used: usize,
    digest: [u8; 32],
}

impl Expected {
    pub fn of(id: u64, used: &[u8]) -> Expected {
        Expected { id, used: used.len(), digest: Sha256::digest(used).into() }
    }
}

/// Compares the expected pages with the bytes of the file as they come past.
#[derive(Default)]
pub struct Comparison {
    expected: Vec<Expected>,
    next: usize,
    position: u64,
    hasher: Sha256,
    /// Bytes of the current page that were hashed.
    hashed: usize,
    differs: bool,
}

impl Comparison {
    pub fn new(mut expected: Vec<Expected>) -> Comparison {
        expected.sort_unstable_by_key(|e| e.id);
        expected.dedup();
        Comparison { expected, ..Comparison::default() }
    }

    pub fn feed(&mut self, bytes: &[u8], page_size: u64) {
        let end = self.position + bytes.len() as u64;
        while let Some(page) = self.expected.get(self.next) {
            let from = page.id.saturating_mul(page_size).saturating_add(self.hashed as u64);
            if from >= end {
                break;
            }
            let Some(start) = from.checked_sub(self.position) else {
                // Two hints for overlapping pages.
                self.differs = true;
                break;
            };
            let left = page.used - self.hashed;
            let take = left.min((end - from) as usize);
            self.hasher.update(&bytes[start as usize..start as usize + take]);
            self.hashed += take;
            if take < left {
                break;
            }
            self.differs |= <[u8; 32]>::from(std::mem::take(&mut self.hasher).finalize()) != page.digest;
            self.hashed = 0;
            self.next += 1;
        }
        self.position = end;
    }

    /// Whether every page that was walked by its hint is the one in the file.
    pub fn holds(&self) -> bool {
        !self.differs && self.next == self.expected.len()
    }
}

/// Gathers hints from the bytes of a database in order, in pieces of any size.
#[derive(Default)]
pub struct Collector {
    hints: Hints,
    page_size: usize,
    page: u64,
    /// The beginning of a page that the last piece cut.
    carry: Vec<u8>,
    /// No page size could be read: nothing is gathered.
    blind: bool,
}

impl Collector {
    pub fn feed(&mut self, mut bytes: &[u8]) {
        if self.page_size == 0 && !self.blind {
            self.carry.extend_from_slice(bytes);
            if self.carry.len() < 80 {
                return;
            }
            match Meta::parse(&self.carry, 0) {
                Ok(meta) => self.page_size = meta.page_size as usize,
                Err(_) => self.blind = true,
            }
            let start = std::mem::take(&mut self.carry);
            return self.feed(&start);
        }
        if self.blind {
            return;
        }
        while !bytes.is_empty() {
            if self.carry.is_empty() && bytes.len() >= self.page_size {
                let (page, rest) = bytes.split_at(self.page_size);
                self.take(page);
                bytes = rest;
                continue;
            }
            let n = (self.page_size - self.carry.len()).min(bytes.len());
            self.carry.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.carry.len() == self.page_size {
                let page = std::mem::take(&mut self.carry);
                self.take(&page);
            }
        }
    }

    fn take(&mut self, page: &[u8]) {
        let id = self.page;
        self.page += 1;
        let plain = Header::parse(page).filter(|h| h.id == id && h.overflow == 0 && h.kind() == Some(Kind::Branch));
        if plain.is_none() {
            return;
        }
        if let Ok(branch) = Branch::parse(page, id)
            && branch.oddity(self.page_size).is_none()
        {
            let used = HEADER + branch.children().map(|(key, _)| 16 + key.len()).sum::<usize>();
            self.hints.push(id, &page[..used.min(page.len())]);
        }
    }

    pub fn finish(self) -> Hints {
        self.hints
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::bbolt::build::{Rows, database};
    use super::*;
    use proptest::prelude::*;

    fn file() -> Vec<u8> {
        let rows: Rows = (0..400u32).map(|i| (format!("{i:05}").into_bytes(), vec![1; 20])).collect();
        database(1024, 6, &[(b"key", rows)])
    }

    fn collect(file: &[u8], piece: usize) -> Hints {
        let mut collector = Collector::default();
        file.chunks(piece).for_each(|part| collector.feed(part));
        collector.finish()
    }

    #[test]
    fn gathers_all_branch_pages_whatever_the_pieces() {
        let file = file();
        let branches = file.chunks(1024).filter(|page| page[8] == 1).count();
        let hints = collect(&file, 4096);
        assert!(branches > 10);
        assert_eq!(hints.ids.len(), branches);
        for piece in [1, 7, 79, 80, 1000, 1024, 5000, file.len()] {
            assert_eq!(collect(&file, piece), hints, "{piece}");
        }
        assert_eq!(Hints::decode(hints.clone().encode()), Some(hints));
        assert_eq!(
            collect(b"no database, but long enough to tell: none of this is a meta page at all, is it", 5),
            Hints::default()
        );
    }

    #[test]
    fn a_hint_that_differs_is_noticed_in_any_pieces() {
        let file = file();
        let hints = collect(&file, 4096);
        let expected = || hints.ids.iter().map(|id| Expected::of(*id, hints.get(*id).unwrap())).collect();
        for piece in [1, 100, 1024, 4096, file.len()] {
            let compare = |file: &[u8]| {
                let mut comparison = Comparison::new(expected());
                file.chunks(piece).for_each(|part| comparison.feed(part, 1024));
                comparison.holds()
            };
            assert!(compare(&file));
            let mut bad = file.clone();
            bad[hints.ids[3] as usize * 1024 + 20] ^= 1;
            assert!(!compare(&bad));
            assert!(!compare(&file[..file.len() / 2]));
        }
    }

    proptest! {
        #[test]
        fn decoding_noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Hints::decode(bytes);
        }
    }
}
