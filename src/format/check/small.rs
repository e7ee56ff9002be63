//! Buckets that are small enough to be read where they are met: all but `key`.

use super::finding::Findings;
use super::tree::{self, MAX_DEPTH, Reached};
use crate::format::bbolt::node::Item;
use crate::format::bbolt::read::Root;
use crate::format::bbolt::{Bucket, Db, Header, Kind};

/// Walks one bucket depth-first and gives each entry with its page (0 for an inline page).
pub fn walk(
    db: &Db<'_>,
    bucket: &Bucket,
    reached: &mut Reached,
    findings: &mut Findings,
    take: &mut dyn FnMut(u64, Item<'_>, &mut Findings),
) {
    let mut walk = Walk { db, reached, findings, take, leaf_depth: None };
    match &bucket.root {
        Root::Inline(page) => walk.leaf(0, page, &[], None, 0),
        Root::Page(id) => walk.page(*id, &[], None, 0),
    }
}

struct Walk<'w, 'd> {
    db: &'w Db<'d>,
    reached: &'w mut Reached,
    findings: &'w mut Findings,
    take: &'w mut dyn FnMut(u64, Item<'_>, &mut Findings),
    leaf_depth: Option<usize>,
}

impl Walk<'_, '_> {
    fn page(&mut self, id: u64, low: &[u8], high: Option<&[u8]>, depth: usize) {
        if depth >= MAX_DEPTH {
            self.findings.add(Some(id), "tree", format!("tree is deeper than {MAX_DEPTH} levels"));
            return;
        }
        let Some(page) = tree::claim_page(self.db, id, self.reached, self.findings) else { return };
        if Header::parse(&page).and_then(|h| h.kind()) != Some(Kind::Branch) {
            return self.leaf(id, &page, low, high, depth);
        }
        let Some(branch) = tree::branch(&page, id, self.db.meta.page_size as usize, self.findings) else { return };
        let children: Vec<_> = branch.children().collect();
        if let (Some((first, _)), Some((last, _))) = (children.first(), children.last()) {
            tree::lower_bound(id, first, low, self.findings);
            tree::upper_bound(id, last, high, self.findings);
        }
        for (i, (key, child)) in children.iter().enumerate() {
            let next = children.get(i + 1).map(|(key, _)| *key).or(high);
            self.page(*child, key, next, depth + 1);
        }
    }

    fn leaf(&mut self, id: u64, page: &[u8], low: &[u8], high: Option<&[u8]>, depth: usize) {
        let page_size = if id == 0 { 0 } else { self.db.meta.page_size as usize };
        let Some(leaf) = tree::leaf(page, id, page_size, self.findings) else { return };
        if *self.leaf_depth.get_or_insert(depth) != depth {
            self.findings.add(Some(id), "tree", "leaf is not at the depth of the others");
        }
        if let (Some(first), Some(last)) = (leaf.item(0), leaf.item(leaf.len().wrapping_sub(1))) {
            tree::lower_bound(id, first.key, low, self.findings);
            tree::upper_bound(id, last.key, high, self.findings);
        } else if depth > 0 {
            self.findings.odd(Some(id), "tree", "empty leaf below a branch page");
        }
        for item in leaf.items() {
            (self.take)(id, item, self.findings);
        }
    }
}
