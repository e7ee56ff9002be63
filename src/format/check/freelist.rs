//! A stored freelist: no page both free and reachable, none lost.
//!
//! Ids are u64; a count of 0xFFFF means that the true count is the first of them (bbolt `internal/freelist`).
//! etcd on Linux stores none.

use super::finding::Findings;
use super::tree::{self, Bits, Reached};
use crate::format::bbolt::page::{HEADER, le64};
use crate::format::bbolt::{Db, Header, Kind};

/// Checks the list at page `id` once everything reachable has been claimed. `pages`: all pages of the file.
pub fn check(db: &Db<'_>, id: u64, pages: u64, reached: &mut Reached, findings: &mut Findings) {
    let Some(page) = tree::claim_page(db, id, reached, findings) else { return };
    let header = Header::parse(&page);
    let Some(header) = header.filter(|h| h.id == id && h.kind() == Some(Kind::Freelist)) else {
        findings.add(Some(id), "freelist", "not a freelist page");
        return;
    };
    let (count, from) = match header.count {
        0xffff => (le64(&page, HEADER).unwrap_or(0), HEADER + 8),
        n => (u64::from(n), HEADER),
    };
    if count > (page.len() - from) as u64 / 8 {
        findings.add(Some(id), "freelist", format!("{count} free pages do not fit on the page"));
        return;
    }
    let mut free = Bits::new(pages);
    for i in 0..count as usize {
        let Some(page) = le64(&page, from + i * 8) else { break };
        if page < 2 || page >= pages || reached.bits.get(page) || !free.set(page) {
            findings.add(Some(page), "freelist", "page is free, but in use, listed twice or outside the file");
        }
    }
    for page in 2..pages {
        if !free.get(page) && !reached.bits.get(page) {
            findings.add(Some(page), "freelist", "page is neither in use nor free");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Checker, Finding, Options};
    use crate::format::bbolt::build::database;
    use crate::format::bbolt::meta::Meta;

    /// A small database with two free pages behind it and then a list of `free`, in either of its two forms.
    fn with_list(free: &[u64], long: bool) -> Vec<u8> {
        let rows = (b"consistent_index".to_vec(), 9u64.to_be_bytes().to_vec());
        let mut file = database(1024, 9, &[(b"key", vec![]), (b"meta", vec![rows])]);
        let meta = Meta::parse(&file, 0).unwrap();
        let list = meta.high_water + 2;
        file.resize(file.len() + 2 * 1024, 0);
        let count = if long { 0xffff } else { free.len() as u16 };
        let mut page = [&list.to_le_bytes()[..], &0x10u16.to_le_bytes(), &count.to_le_bytes(), &[0; 4]].concat();
        if long {
            page.extend((free.len() as u64).to_le_bytes());
        }
        free.iter().for_each(|id| page.extend(id.to_le_bytes()));
        page.resize(1024, 0);
        file.extend(page);
        for (slot, txid) in [(0u64, meta.txid), (1, meta.txid - 1)] {
            let meta = Meta { freelist: list, high_water: list + 1, txid, ..meta };
            let at = slot as usize * 1024;
            file[at..at + 1024].copy_from_slice(&meta.encode(slot));
        }
        file
    }

    fn findings(file: &[u8]) -> Vec<Finding> {
        let mut checker = Checker::begin(&file, Options::default());
        checker.feed(file);
        checker.finish(&file, false).findings
    }

    #[test]
    fn free_and_reachable_pages_are_told_apart() {
        let first = with_list(&[], false).len() as u64 / 1024 - 3;
        let (a, b) = (first, first + 1);
        for long in [false, true] {
            assert_eq!(findings(&with_list(&[a, b], long)), []);
            for (free, what) in [
                (&[a][..], "neither in use nor free"),
                (&[a, b, b], "listed twice"),
                (&[a, b, 2], "in use"),
                (&[a, b, 1 << 40], "outside the file"),
            ] {
                let found = findings(&with_list(free, long));
                assert_eq!(found.len(), 1, "{free:?}: {found:?}");
                assert!(found[0].check == "freelist" && found[0].message.contains(what), "{found:?}");
            }
        }
        let mut bad = with_list(&[a, b], true);
        let at = bad.len() - 1024 + 16;
        bad[at..at + 8].fill(0xff);
        assert!(findings(&bad)[0].message.contains("do not fit"));
    }
}
