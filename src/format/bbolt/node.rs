//! Branch and leaf pages: an array of elements, then keys and values.
//!
//! Branch element (16 bytes): pos u32, ksize u32, page u64. Leaf element (16 bytes): flags u32, pos u32,
//! ksize u32, vsize u32. `pos` counts from the start of its own element.

use super::page::{HEADER, Header, Kind, le32, le64};
use thiserror::Error;

/// Bytes of an element of either kind.
pub const ELEMENT: usize = 16;
/// Element flag: the value is a bucket.
pub const BUCKET_FLAG: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NodeFault {
    #[error("page is cut short")]
    Short,
    #[error("page says it is page {0}")]
    Id(u64),
    #[error("flags {0:#x} are no tree page")]
    Flags(u16),
    #[error("{0} elements do not fit on the page")]
    Count(u16),
    #[error("branch page has no elements")]
    EmptyBranch,
    #[error("element {0} lies outside the page")]
    Bounds(usize),
    #[error("element {0} has an empty key")]
    EmptyKey(usize),
    #[error("element {0} is not in the order of keys")]
    Order(usize),
    #[error("element {0} has flags {1:#x}")]
    ElementFlags(usize, u32),
}

/// What is unusual on a page without being wrong: never seen from bbolt itself.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NodeOddity {
    #[error("element {0} does not begin where the one before it ends")]
    Gap(usize),
    #[error("{overflow} overflow pages for {used} bytes")]
    Overflow { overflow: u32, used: usize },
    #[error("an inline page of {len} bytes holds {used}")]
    Inline { len: usize, used: usize },
    #[error("no elements, but data behind the header")]
    Emptied,
}

/// One entry of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub bucket: bool,
}

/// Bytes from the start of a page to the end of its last key or value, by what its `elements` say.
pub fn extent(header: &Header, elements: &[u8]) -> u64 {
    let branch = header.kind() == Some(Kind::Branch);
    let ends = elements.chunks_exact(ELEMENT).enumerate().map(|(i, element)| {
        let word = |at| u64::from(le32(element, at).unwrap_or(0));
        let own = if branch { word(0) + word(4) } else { word(4) + word(8) + word(12) };
        (HEADER + i * ELEMENT) as u64 + own
    });
    ends.max().unwrap_or(0).max((HEADER + elements.len()) as u64)
}

fn part(page: &[u8], element: usize, pos: u32, from: u32, len: u32) -> Option<&[u8]> {
    let start = element.checked_add(pos as usize)?.checked_add(from as usize)?;
    page.get(start..start.checked_add(len as usize)?)
}

fn header(page: &[u8], id: u64, wanted: Kind) -> Result<Header, NodeFault> {
    let header = Header::parse(page).ok_or(NodeFault::Short)?;
    if header.id != id {
        return Err(NodeFault::Id(header.id));
    }
    if header.kind() != Some(wanted) {
        return Err(NodeFault::Flags(header.flags));
    }
    if HEADER + usize::from(header.count) * ELEMENT > page.len() {
        return Err(NodeFault::Count(header.count));
    }
    Ok(header)
}

/// A branch page whose elements lie within it, in order.
#[derive(Debug, Clone, Copy)]
pub struct Branch<'a> {
    page: &'a [u8],
    count: usize,
}

impl<'a> Branch<'a> {
    /// `page` has all bytes of the page and its overflow.
    pub fn parse(page: &'a [u8], id: u64) -> Result<Branch<'a>, NodeFault> {
        let header = header(page, id, Kind::Branch)?;
        if header.count == 0 {
            return Err(NodeFault::EmptyBranch);
        }
        let branch = Branch { page, count: header.count.into() };
        let mut last: &[u8] = &[];
        for i in 0..branch.count {
            let (key, _) = branch.element(i).ok_or(NodeFault::Bounds(i))?;
            if key.is_empty() {
                return Err(NodeFault::EmptyKey(i));
            }
            if i > 0 && key <= last {
                return Err(NodeFault::Order(i));
            }
            last = key;
        }
        Ok(branch)
    }

    /// A page that [`Branch::parse`] has already found sound; children are still bounded by the page.
    pub(super) fn again(page: &'a [u8]) -> Branch<'a> {
        Branch { page, count: Header::parse(page).map_or(0, |h| h.count.into()) }
    }

    fn element(&self, i: usize) -> Option<(&'a [u8], u64)> {
        let at = HEADER + i * ELEMENT;
        let key = part(self.page, at, le32(self.page, at)?, 0, le32(self.page, at + 4)?)?;
        Some((key, le64(self.page, at + 8)?))
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Lower bound and page of each child.
    pub fn children(&self) -> impl Iterator<Item = (&'a [u8], u64)> + '_ {
        (0..self.count).filter_map(|i| self.element(i))
    }

    pub fn child(&self, i: usize) -> Option<(&'a [u8], u64)> {
        (i < self.count).then(|| self.element(i)).flatten()
    }

    /// The first thing on the page that bbolt would not write.
    pub fn oddity(&self, page_size: usize) -> Option<NodeOddity> {
        let sizes = (0..self.count).map(|i| {
            let at = HEADER + i * ELEMENT;
            (le32(self.page, at).unwrap_or(0), le32(self.page, at + 4).unwrap_or(0) as usize)
        });
        oddity(self.page, self.count, sizes, page_size)
    }
}

/// A leaf page whose elements lie within it, in order.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    page: &'a [u8],
    count: usize,
}

impl<'a> Leaf<'a> {
    /// `page` has all bytes of the page and its overflow.
    pub fn parse(page: &'a [u8], id: u64) -> Result<Leaf<'a>, NodeFault> {
        let header = header(page, id, Kind::Leaf)?;
        let leaf = Leaf { page, count: header.count.into() };
        let mut last: &[u8] = &[];
        for i in 0..leaf.count {
            let (flags, item) = leaf.element(i).ok_or(NodeFault::Bounds(i))?;
            if flags > BUCKET_FLAG {
                return Err(NodeFault::ElementFlags(i, flags));
            }
            if item.key.is_empty() {
                return Err(NodeFault::EmptyKey(i));
            }
            if i > 0 && item.key <= last {
                return Err(NodeFault::Order(i));
            }
            last = item.key;
        }
        Ok(leaf)
    }

    /// A page that [`Leaf::parse`] has already found sound; items are still bounded by the page.
    pub(super) fn again(page: &'a [u8]) -> Leaf<'a> {
        Leaf { page, count: Header::parse(page).map_or(0, |h| h.count.into()) }
    }

    fn element(&self, i: usize) -> Option<(u32, Item<'a>)> {
        let at = HEADER + i * ELEMENT;
        let flags = le32(self.page, at)?;
        let (pos, ksize, vsize) = (le32(self.page, at + 4)?, le32(self.page, at + 8)?, le32(self.page, at + 12)?);
        let key = part(self.page, at, pos, 0, ksize)?;
        let value = part(self.page, at, pos, ksize, vsize)?;
        Some((flags, Item { key, value, bucket: flags & BUCKET_FLAG != 0 }))
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn items(&self) -> impl Iterator<Item = Item<'a>> + '_ {
        (0..self.count).filter_map(|i| self.element(i).map(|(_, item)| item))
    }

    pub fn item(&self, i: usize) -> Option<Item<'a>> {
        (i < self.count).then(|| self.element(i)).flatten().map(|(_, item)| item)
    }

    /// The first thing on the page that bbolt would not write. `page_size` 0 is an inline page, which ends
    /// with its data.
    pub fn oddity(&self, page_size: usize) -> Option<NodeOddity> {
        let sizes = (0..self.count).map(|i| {
            let at = HEADER + i * ELEMENT;
            let word = |n: usize| le32(self.page, at + n).unwrap_or(0);
            (word(4), word(8) as usize + word(12) as usize)
        });
        oddity(self.page, self.count, sizes, page_size)
    }
}

/// bbolt writes data without gaps behind the elements, and as many pages as that needs; older versions one
/// more where the size is an exact multiple.
fn oddity(
    page: &[u8],
    count: usize,
    elements: impl Iterator<Item = (u32, usize)>,
    page_size: usize,
) -> Option<NodeOddity> {
    let mut end = HEADER + count * ELEMENT;
    for (i, (pos, size)) in elements.enumerate() {
        if HEADER + i * ELEMENT + pos as usize != end {
            return Some(NodeOddity::Gap(i));
        }
        end += size;
    }
    if count == 0 && page.iter().skip(HEADER).take(ELEMENT).any(|byte| *byte != 0) {
        return Some(NodeOddity::Emptied);
    }
    let overflow = Header::parse(page)?.overflow;
    if page_size == 0 {
        return (overflow != 0 || end != page.len()).then_some(NodeOddity::Inline { len: page.len(), used: end });
    }
    let exact = end.div_ceil(page_size);
    let pages = overflow as usize + 1;
    (pages != exact && pages != end / page_size + 1).then_some(NodeOddity::Overflow { overflow, used: end })
}

#[cfg(test)]
mod tests {
    use super::super::build::{branch_page, leaf_page};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_was_written() {
        let page = leaf_page(4096, 5, &[(b"a", b"1", false), (b"b", b"22", true)]);
        let leaf = Leaf::parse(&page, 5).unwrap();
        assert_eq!(leaf.item(1), Some(Item { key: b"b", value: b"22", bucket: true }));
        assert_eq!((leaf.items().count(), leaf.item(2), leaf.oddity(4096)), (2, None, None));

        let page = branch_page(4096, 6, &[(b"a", 7), (b"c", 8)]);
        let branch = Branch::parse(&page, 6).unwrap();
        assert_eq!(branch.children().collect::<Vec<_>>(), [(&b"a"[..], 7), (&b"c"[..], 8)]);
        assert_eq!(branch.oddity(4096), None);
    }

    #[test]
    fn names_each_fault() {
        let good = leaf_page(4096, 5, &[(b"a", b"1", false), (b"b", b"22", false)]);
        let with = |at: usize, byte: u8| {
            let mut page = good.clone();
            page[at] = byte;
            Leaf::parse(&page, 5).map(|l| l.oddity(4096))
        };
        assert_eq!(with(0, 9).unwrap_err(), NodeFault::Id(9));
        assert_eq!(with(8, 1).unwrap_err(), NodeFault::Flags(1));
        assert_eq!(with(11, 0xff).unwrap_err(), NodeFault::Count(0xff02));
        assert_eq!(with(16, 2).unwrap_err(), NodeFault::ElementFlags(0, 2));
        assert_eq!(with(23, 0xff).unwrap_err(), NodeFault::Bounds(0));
        assert_eq!(with(24, 0).unwrap_err(), NodeFault::EmptyKey(0));
        assert_eq!(with(10, 1).unwrap(), Some(NodeOddity::Gap(0)));
        assert_eq!(with(12, 1).unwrap(), Some(NodeOddity::Overflow { overflow: 1, used: 53 }));
        assert_eq!(with(48, b'c').unwrap_err(), NodeFault::Order(1));
        assert_eq!(Leaf::parse(&good[..20], 5).unwrap_err(), NodeFault::Count(2));
        assert_eq!(Branch::parse(&branch_page(4096, 6, &[]), 6).unwrap_err(), NodeFault::EmptyBranch);
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(mut page in proptest::collection::vec(any::<u8>(), 0..600), kind in 1u8..3, count in 0u8..20) {
            if page.len() >= 16 {
                page[..8].copy_from_slice(&5u64.to_le_bytes());
                page[8..12].copy_from_slice(&[kind, 0, count, 0]);
            }
            if let Ok(leaf) = Leaf::parse(&page, 5) {
                let _ = leaf.oddity(4096);
                prop_assert_eq!(leaf.items().count(), leaf.len());
            }
            if let Ok(branch) = Branch::parse(&page, 5) {
                let _ = branch.oddity(4096);
                prop_assert_eq!(branch.children().count(), branch.len());
            }
        }
    }
}
