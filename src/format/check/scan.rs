//! The checker: begin with random access, feed all bytes in order, finish with a report.

use super::finding::{Finding, Findings};
use super::freelist;
use super::hints::Comparison;
use super::keys::Keys;
use super::leaves::{Found, Leaves};
use super::report::{Content, HashKv, Options, Report, Visitor};
use super::rows::{Rows, gap};
use super::small;
use super::tree::{self, Bits, Reached};
use crate::format::bbolt::meta::NO_FREELIST;
use crate::format::bbolt::node::{ELEMENT, extent};
use crate::format::bbolt::page::HEADER;
use crate::format::bbolt::read::{Root, SLACK};
use crate::format::bbolt::{Bucket, Db, Header, Leaf, ReadFault};
use crate::format::buckets::{self, Lease, Member};
use crate::format::mvcc::{self, Revision};
use crate::format::{ReadAt, crc::Joiner};
use std::collections::HashSet;

/// A check under way.
pub struct Checker<'v> {
    options: Options,
    findings: Findings,
    content: Content,
    reached: Reached,
    leaves: Leaves,
    rows: Rows<'v>,
    /// The next leaf in file order.
    next: usize,
    /// Bytes fed so far, and the page that is being put together.
    position: u64,
    carry: Vec<u8>,
    /// Bytes of the page being put together; 0 until its header is known.
    need: usize,
    /// Pages that were walked by their hints.
    comparison: Comparison,
    /// Leaves that have to be summed once more.
    again: Bits,
    /// The only leaf, where the `key` bucket is small enough to lie within its parent's page.
    inline: Option<Vec<u8>>,
    page_size: u64,
    /// False when the metas are unusable: nothing is scanned.
    walkable: bool,
    freelist: Option<u64>,
}

impl<'v> Checker<'v> {
    /// Reads metas, the tree above the leaves and the small buckets. `db` is the database without trailer.
    pub fn begin(file: &dyn ReadAt, options: Options) -> Checker<'v> {
        Checker::showing(file, options, None)
    }

    /// The same, and shows each row to somebody.
    pub fn showing(file: &dyn ReadAt, options: Options, mut visitor: Option<&'v mut dyn Visitor>) -> Checker<'v> {
        if let Some(visitor) = &mut visitor {
            visitor.begin();
        }
        let rows = Rows {
            at: options.revision.unwrap_or(u64::MAX),
            compact: 0,
            history: 0,
            keys: Keys::new(),
            leases: HashSet::new(),
            leaseless: Vec::new(),
            wanted_key: options.wanted_key.clone(),
            wanted: None,
            rows: 0,
            tombstones: 0,
            superseded: Vec::new(),
            visitor,
        };
        let mut checker = Checker {
            options,
            findings: Findings::default(),
            content: Content::default(),
            reached: Reached::new(0),
            leaves: Leaves::default(),
            rows,
            next: 0,
            position: 0,
            carry: Vec::new(),
            need: 0,
            comparison: Comparison::default(),
            again: Bits::new(0),
            inline: None,
            page_size: 0,
            walkable: false,
            freelist: None,
        };
        match Db::open(file) {
            Ok(db) => checker.walk(file, &db),
            Err(ReadFault::NoMeta(first, second)) => {
                checker.findings.add(Some(0), "meta", first.to_string());
                checker.findings.add(Some(1), "meta", second.to_string());
            }
            Err(fault) => checker.findings.add(None, "meta", format!("{fault}{}", cause(&fault))),
        }
        checker
    }

    fn walk(&mut self, file: &dyn ReadAt, db: &Db<'_>) {
        let meta = db.meta;
        for (page, each) in db.metas.each.iter().enumerate() {
            if let Err(fault) = each {
                self.findings.add(Some(page as u64), "meta", fault.to_string());
            }
        }
        if let [Ok(a), Ok(b)] = db.metas.each
            && (a.page_size != b.page_size || a.txid.abs_diff(b.txid) != 1)
        {
            let message =
                format!("the two meta pages do not follow each other (transactions {} and {})", a.txid, b.txid);
            self.findings.add(Some(1), "meta", message);
        }
        if meta.flags != 0 || meta.root_sequence != 0 {
            self.findings.odd(None, "meta", "flags or root sequence are set, which etcd never does");
        }
        let Some(size) = meta.database_len().filter(|len| *len <= file.len()) else {
            let message = format!(
                "file has {} bytes, but its {} pages of {} need {}",
                file.len(),
                meta.high_water,
                meta.page_size,
                u128::from(meta.high_water) * u128::from(meta.page_size)
            );
            self.findings.add(None, "meta", message);
            return;
        };
        self.page_size = u64::from(meta.page_size);
        self.content = Content { page_size: meta.page_size, txid: meta.txid, size, ..Content::default() };
        self.reached = Reached::new(meta.high_water);
        self.walkable = true;
        self.freelist = (meta.freelist != NO_FREELIST).then_some(meta.freelist);

        let mut buckets: Vec<(Vec<u8>, Bucket)> = Vec::new();
        let top = Bucket { root: Root::Page(meta.root), sequence: 0 };
        small::walk(db, &top, &mut self.reached, &mut self.findings, &mut |page, item, findings| {
            if !item.bucket {
                findings.add(Some(page), "tree", "an entry beside the buckets at the top level");
                return;
            }
            match Bucket::parse(item.value) {
                Ok(bucket) => buckets.push((item.key.to_vec(), bucket)),
                Err(fault) => findings.add(Some(page), "tree", fault.to_string()),
            }
        });
        for required in [mvcc::BUCKET, b"meta"] {
            if !buckets.iter().any(|(name, _)| name == required) {
                self.findings.add(None, "tree", format!("there is no bucket `{}`", String::from_utf8_lossy(required)));
            }
        }
        // `key` last: its rows need what the others say.
        for (name, bucket) in buckets.iter().filter(|(name, _)| name != mvcc::BUCKET) {
            self.small_bucket(db, name, bucket);
        }
        let compact = self.options.compact_revision.unwrap_or(self.content.meta.compact_revision());
        self.content.compact_revision = compact;
        self.rows.compact = compact;
        self.rows.history = self.file_compact();
        for (_, bucket) in buckets.iter().filter(|(name, _)| name == mvcc::BUCKET) {
            self.sequence(mvcc::BUCKET, bucket);
            match &bucket.root {
                Root::Page(root) => {
                    let (hints, mut used) = (std::mem::take(&mut self.options.hints), Vec::new());
                    let (reached, findings) = (&mut self.reached, &mut self.findings);
                    self.leaves = Leaves::collect(db, *root, &hints, &mut used, reached, findings);
                    self.comparison = Comparison::new(used);
                    self.again = Bits::new(self.leaves.len() as u64);
                }
                Root::Inline(page) => {
                    self.leaves = Leaves::single(0);
                    self.again = Bits::new(1);
                    self.leaf(0, page);
                    self.inline = Some(page.clone());
                    self.next = 1;
                }
            }
        }
    }

    fn sequence(&mut self, name: &[u8], bucket: &Bucket) {
        if bucket.sequence != 0 {
            let message = format!("bucket `{}` has a sequence, which etcd never sets", String::from_utf8_lossy(name));
            self.findings.odd(None, "tree", message);
        }
    }

    fn small_bucket(&mut self, db: &Db<'_>, name: &[u8], bucket: &Bucket) {
        let shown = String::from_utf8_lossy(name).into_owned();
        self.sequence(name, bucket);
        if !buckets::KNOWN.contains(&name) {
            self.findings.odd(None, "tree", format!("bucket `{shown}` is not known"));
        }
        let (content, leases) = (&mut self.content, &mut self.rows.leases);
        let mut entries = 0;
        small::walk(db, bucket, &mut self.reached, &mut self.findings, &mut |page, item, findings| {
            entries += 1;
            if item.bucket {
                findings.odd(Some(page), "tree", format!("a bucket within bucket `{shown}`"));
                return;
            }
            let outcome = match name {
                b"meta" => content.meta.take(item.key, item.value),
                b"lease" => Lease::parse(item.key, item.value).map(|lease| {
                    leases.insert(lease.id);
                    true
                }),
                b"members" => Member::parse(item.key, item.value).map(|member| {
                    content.members.push(member);
                    true
                }),
                b"alarm" => buckets::alarm(item.key).map(|alarm| {
                    content.alarms.push(alarm);
                    true
                }),
                _ => {
                    if (name, item.key) == (b"cluster", b"clusterVersion") {
                        content.cluster_version = Some(String::from_utf8_lossy(item.value).into_owned());
                    }
                    buckets::plain_row(name, item.key, item.value)
                }
            };
            match outcome {
                Ok(true) => {}
                Ok(false) => {
                    let key = String::from_utf8_lossy(item.key);
                    findings.odd(Some(page), "row", format!("key `{key}` of bucket `{shown}` is not known"));
                }
                Err(message) => findings.add(Some(page), "row", message),
            }
        });
        if name == b"lease" {
            content.leases = entries;
        }
        content.buckets.push((shown, entries));
    }

    /// The next bytes of the database, in order, in pieces of any size.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        self.comparison.feed(bytes, self.page_size);
        loop {
            let Some(leaf) = self.leaves.in_file_order(self.next).filter(|_| self.walkable) else {
                self.position += bytes.len() as u64;
                return;
            };
            if self.carry.is_empty() {
                let start = self.leaves.page(leaf).saturating_mul(self.page_size);
                if self.position > start {
                    // Part of a page before it, or listed twice: claiming it says so.
                    self.claim(leaf, 1);
                    self.next += 1;
                    continue;
                }
                let skip = (start - self.position).min(bytes.len() as u64);
                bytes = &bytes[skip as usize..];
                self.position += skip;
                if bytes.is_empty() {
                    return;
                }
            }
            if self.need == 0 {
                let header = if self.carry.is_empty() && bytes.len() >= HEADER {
                    Header::parse(bytes)
                } else {
                    self.fill(HEADER, &mut bytes);
                    Header::parse(&self.carry)
                };
                let Some(header) = header else { return };
                let mut pages = if header.id == self.leaves.page(leaf) { header.pages() } else { 1 };
                if pages > 1 {
                    let head = HEADER + usize::from(header.count) * ELEMENT;
                    let elements = if self.carry.is_empty() && bytes.len() >= head {
                        &bytes[HEADER..head]
                    } else {
                        self.fill(head, &mut bytes);
                        if self.carry.len() < head {
                            return;
                        }
                        &self.carry[HEADER..head]
                    };
                    // A damaged header alone must not make this page swallow all that follow it.
                    if pages * self.page_size > extent(&header, elements).saturating_add(SLACK) {
                        let message = format!("{} overflow pages, far more than the elements need", header.overflow);
                        self.findings.add(Some(self.leaves.page(leaf)), "page", message);
                        pages = 1;
                    }
                }
                if !self.claim(leaf, pages) {
                    // It claims pages of others, or beyond the end: nothing worth gathering.
                    self.carry.clear();
                    self.next += 1;
                    continue;
                }
                let need = (pages * self.page_size) as usize;
                if bytes.len() < need && self.carry.try_reserve_exact(need - self.carry.len().min(need)).is_err() {
                    let message = format!("page has {need} bytes, more than there is memory for");
                    self.findings.add(Some(self.leaves.page(leaf)), "page", message);
                    self.carry.clear();
                    self.next += 1;
                    continue;
                }
                self.need = need;
            }
            if self.carry.is_empty() && bytes.len() >= self.need {
                let (page, rest) = bytes.split_at(self.need);
                self.position += page.len() as u64;
                bytes = rest;
                self.leaf(leaf, page);
            } else {
                self.fill(self.need, &mut bytes);
                if self.carry.len() < self.need {
                    return;
                }
                let mut page = std::mem::take(&mut self.carry);
                self.leaf(leaf, &page);
                page.clear();
                self.carry = page;
            }
            self.need = 0;
            self.next += 1;
        }
    }

    /// Moves bytes into `carry` until it has `len`.
    fn fill(&mut self, len: usize, bytes: &mut &[u8]) {
        let n = len.saturating_sub(self.carry.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(n);
        self.carry.extend_from_slice(head);
        self.position += n as u64;
        *bytes = rest;
    }

    fn claim(&mut self, leaf: usize, pages: u64) -> bool {
        self.reached.claim(self.leaves.page(leaf), pages, &mut self.findings)
    }

    /// One whole leaf of the `key` bucket.
    fn leaf(&mut self, leaf: usize, page: &[u8]) {
        let id = self.leaves.page(leaf);
        let page_size = if id == 0 { 0 } else { self.page_size as usize };
        let Some(node) = tree::leaf(page, id, page_size, &mut self.findings) else { return };
        if let (Some(first), Some(last)) = (node.item(0), node.item(node.len().wrapping_sub(1))) {
            tree::lower_bound(id, first.key, self.leaves.low(leaf), &mut self.findings);
            tree::upper_bound(id, last.key, self.leaves.high(leaf), &mut self.findings);
        } else if self.leaves.len() > 1 {
            self.findings.odd(Some(id), "tree", "empty leaf below a branch page");
        }
        let found = self.rows.first_pass(id, &node, &mut self.findings);
        self.leaves.set(leaf, found);
        for main in std::mem::take(&mut self.rows.superseded) {
            for holder in self.leaves.holding(main) {
                self.again.set(holder as u64);
            }
        }
    }

    /// What is left once all bytes were fed: joins, second looks, the freelist.
    ///
    /// `proven`: a checksum over all bytes fits, so oddities are what etcd sent and stay notes. Otherwise they
    /// are the trace that damage leaves, and become findings.
    pub fn finish(mut self, file: &dyn ReadAt, proven: bool) -> Report {
        if !self.walkable {
            let (findings, notes) = self.settle(proven);
            return Report { findings, notes, content: None, hash_kv: None, misled: false };
        }
        // Leaves that never came past: one finding for all that the end of the bytes cut off.
        let (mut unseen, mut first) = (0u64, None);
        while let Some(leaf) = self.leaves.in_file_order(self.next) {
            let page = self.leaves.page(leaf);
            if page < self.content.size / self.page_size {
                unseen += 1;
                first = first.or(Some(page));
            } else {
                self.claim(leaf, 1);
            }
            self.next += 1;
        }
        if unseen > 0 {
            let message = format!("{unseen} leaves from here on were not seen: the bytes end at {}", self.position);
            self.findings.add(first, "page", message);
        }
        let last = self.history();
        // A member that nobody has written to stands at revision 1.
        self.content.revision = last.main.max(self.content.compact_revision).max(1);
        if let Ok(db) = Db::open(file) {
            if let Some(page) = self.freelist {
                let pages = self.content.size / self.page_size;
                freelist::check(&db, page, pages, &mut self.reached, &mut self.findings);
            }
            if self.findings.is_empty() {
                self.second_looks(&db);
            }
        }
        self.content.in_use = (self.reached.bits.count() + 2) * self.page_size;
        self.content.live_keys = self.rows.keys.live();
        self.content.rows = self.rows.rows;
        self.content.tombstones = self.rows.tombstones;
        self.content.keys_without_lease = self.rows.keys_without_lease();
        self.content.wanted = self.rows.wanted.take().and_then(|(_, value)| value);
        self.content.buckets.push((String::from_utf8_lossy(mvcc::BUCKET).into_owned(), self.rows.rows));
        self.content.buckets.sort();

        let hash_kv = self.findings.is_empty().then(|| self.join());
        let content = std::mem::take(&mut self.content);
        let misled = !self.comparison.holds();
        let (findings, notes) = self.settle(proven);
        let hash_kv = hash_kv.filter(|_| findings.is_empty());
        Report { findings, notes, content: Some(content), hash_kv, misled }
    }

    fn settle(self, proven: bool) -> (Vec<Finding>, Vec<Finding>) {
        let (mut findings, mut notes) = self.findings.into_parts();
        if !proven {
            findings.append(&mut notes);
        }
        (findings, notes)
    }

    /// Gaps between leaves; gives the last revision.
    fn history(&mut self) -> Revision {
        let mut last: Option<Revision> = None;
        for i in 0..self.leaves.len() {
            let Some((first, end)) = self.leaves.found(i).rows else { continue };
            // Before the first row stands the compact revision; the history begins behind it.
            let before = last.unwrap_or(Revision { main: self.file_compact(), sub: 0 });
            if let Some(message) = gap(before, first, self.file_compact()) {
                self.findings.add(Some(self.leaves.page(i)), "history", message);
            }
            last = Some(end);
        }
        last.unwrap_or_default()
    }

    fn file_compact(&self) -> u64 {
        self.content.meta.compact_revision()
    }

    /// Leaves with rows that were superseded after they had been summed; all leaves when no key is alive.
    fn second_looks(&mut self, db: &Db<'_>) {
        let all_gone = self.rows.keys.live() == 0;
        for n in 0..self.leaves.len() {
            let Some(leaf) = self.leaves.in_file_order(n) else { break };
            let id = self.leaves.page(leaf);
            if !(all_gone || self.again.get(leaf as u64)) {
                continue;
            }
            let page = match self.inline.take().map_or_else(|| db.page(id), Ok) {
                Ok(page) => page,
                Err(fault) => {
                    self.findings.add(Some(id), "page", format!("second look: {fault}{}", cause(&fault)));
                    continue;
                }
            };
            if let Ok(node) = Leaf::parse(&page, id) {
                let (crc, bytes) = self.rows.second_pass(&node, all_gone);
                let rows = self.leaves.found(leaf).rows;
                self.leaves.set(leaf, Found { crc, bytes, rows });
            }
        }
    }

    fn join(&self) -> HashKv {
        let mut joiner = Joiner::default();
        let hash =
            (0..self.leaves.len()).map(|i| self.leaves.found(i)).fold(crc32c::crc32c(mvcc::BUCKET), |sum, leaf| {
                if leaf.bytes == 0 { sum } else { joiner.join(sum, leaf.crc, leaf.bytes) }
            });
        HashKv {
            hash,
            revision: self.options.revision.unwrap_or(self.content.revision),
            compact_revision: self.content.compact_revision,
        }
    }
}

fn cause(fault: &ReadFault) -> String {
    match fault {
        ReadFault::Io(cause) => format!(": {cause}"),
        _ => String::new(),
    }
}
