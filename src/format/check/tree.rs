//! Reachability: every page at most once, inside the file, of the right kind, with keys in its parent's range.

use super::finding::Findings;
use crate::format::bbolt::{Branch, Db, Leaf, ReadFault, node::NodeFault};

/// bbolt's own trees are a handful of levels deep; more can only be a loop.
pub const MAX_DEPTH: usize = 64;

/// One bit a page.
pub struct Bits(Vec<u64>);

impl Bits {
    pub fn new(n: u64) -> Bits {
        Bits(vec![0; n.div_ceil(64) as usize])
    }

    /// Sets the bit; false when it was set already or lies outside.
    pub fn set(&mut self, i: u64) -> bool {
        match self.0.get_mut((i / 64) as usize) {
            Some(word) => {
                let bit = 1 << (i % 64);
                let fresh = *word & bit == 0;
                *word |= bit;
                fresh
            }
            None => false,
        }
    }

    pub fn get(&self, i: u64) -> bool {
        self.0.get((i / 64) as usize).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    pub fn count(&self) -> u64 {
        self.0.iter().map(|w| u64::from(w.count_ones())).sum()
    }
}

/// The pages of a database that the walk has reached so far.
pub struct Reached {
    pub bits: Bits,
    high_water: u64,
}

impl Reached {
    pub fn new(high_water: u64) -> Reached {
        Reached { bits: Bits::new(high_water), high_water }
    }

    /// Claims `pages` pages from `first`; a finding and false when one is outside or already claimed.
    pub fn claim(&mut self, first: u64, pages: u64, findings: &mut Findings) -> bool {
        let Some(end) = first.checked_add(pages).filter(|end| first >= 2 && *end <= self.high_water) else {
            let message = format!("{pages} pages from here reach beyond the high-water mark {}", self.high_water);
            findings.add(Some(first), "tree", message);
            return false;
        };
        let mut free = true;
        for page in first..end {
            if !self.bits.set(page) {
                findings.add(
                    Some(page),
                    "tree",
                    format!("page is reached twice, the second time as part of page {first}"),
                );
                free = false;
                break;
            }
        }
        free
    }
}

/// Reads a page and claims it with its overflow; a finding and `None` on failure.
pub fn claim_page(db: &Db<'_>, id: u64, reached: &mut Reached, findings: &mut Findings) -> Option<Vec<u8>> {
    match db.page(id) {
        Ok(page) => {
            let pages = page.len() as u64 / u64::from(db.meta.page_size);
            reached.claim(id, pages, findings).then_some(page)
        }
        Err(fault) => {
            findings.add(Some(id), "page", fault_text(&fault));
            None
        }
    }
}

fn fault_text(fault: &ReadFault) -> String {
    match fault {
        ReadFault::Io(cause) => format!("cannot be read: {cause}"),
        other => other.to_string(),
    }
}

/// A sound branch page, or a finding.
pub fn branch<'p>(page: &'p [u8], id: u64, page_size: usize, findings: &mut Findings) -> Option<Branch<'p>> {
    match Branch::parse(page, id) {
        Ok(branch) => {
            if let Some(oddity) = branch.oddity(page_size) {
                findings.odd(Some(id), "page", oddity.to_string());
            }
            Some(branch)
        }
        Err(fault) => {
            node_finding(id, &fault, findings);
            None
        }
    }
}

/// A sound leaf page, or a finding. `page_size` 0 is an inline page, which has no size of its own.
pub fn leaf<'p>(page: &'p [u8], id: u64, page_size: usize, findings: &mut Findings) -> Option<Leaf<'p>> {
    match Leaf::parse(page, id) {
        Ok(leaf) => {
            if let Some(oddity) = leaf.oddity(page_size) {
                findings.odd(Some(id), "page", oddity.to_string());
            }
            Some(leaf)
        }
        Err(fault) => {
            node_finding(id, &fault, findings);
            None
        }
    }
}

fn node_finding(id: u64, fault: &NodeFault, findings: &mut Findings) {
    findings.add(Some(id), "page", fault.to_string());
}

/// A child's first key against the bound that its parent has for it.
pub fn lower_bound(id: u64, first: &[u8], low: &[u8], findings: &mut Findings) {
    if first < low {
        findings.add(Some(id), "tree", "first key is below the bound that the parent page has for this page");
    } else if first != low && !low.is_empty() {
        findings.odd(Some(id), "tree", "first key is not the one that the parent page has for this page");
    }
}

/// A child's last key against the next sibling's bound.
pub fn upper_bound(id: u64, last: &[u8], high: Option<&[u8]>, findings: &mut Findings) {
    if high.is_some_and(|high| last >= high) {
        findings.add(Some(id), "tree", "last key is not below the first one of the next page");
    }
}
