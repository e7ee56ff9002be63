//! Where the structure of a bbolt file lies, byte by byte: a second reader, written for the tests alone, so that
//! flipped bytes do not lean on the code that has to find them.

use std::ops::Range;

/// What a byte is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The 80 bytes of a meta page that mean something.
    Meta,
    /// Page header: id, flags, count, overflow.
    Header,
    BranchElement,
    BranchKey,
    LeafElement,
    /// Key of a row of etcd's `key` bucket: its revision.
    RowKey,
    /// Key in any other bucket.
    SmallKey,
    /// Name of a bucket at the top level.
    BucketName,
    /// Root page and sequence of a bucket.
    BucketValue,
    /// The same kinds on a page that lies within its bucket's value.
    InlineHeader,
    InlineElement,
    InlineKey,
    /// Content: without a trailer it is not covered.
    Value,
}

/// A run of bytes of one class.
#[derive(Debug, Clone)]
pub struct Piece {
    pub class: Class,
    pub at: Range<usize>,
    pub page: u64,
    /// Why a change here may leave no trace in a file without trailer.
    pub hidden: Option<&'static str>,
}

pub struct Walk<'a> {
    bytes: &'a [u8],
    pub page_size: usize,
    compact: u64,
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Top,
    Key,
    Small,
}

pub const HEADER: usize = 16;
const ELEMENT: usize = 16;
const BRANCH: u16 = 1;

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// All pieces of a sound database; `compact` is its compact revision.
pub fn walk(bytes: &[u8], compact: u64) -> Walk<'_> {
    let page_size = number(bytes, HEADER + 8, 4) as usize;
    let mut walk = Walk { bytes, page_size, compact, pieces: Vec::new() };
    let txid = |page: usize| number(bytes, page * page_size + HEADER + 48, 8);
    let chosen = usize::from(txid(1) > txid(0));
    for page in 0..2 {
        walk.add(Class::Meta, page * page_size..page * page_size + 80, page as u64);
    }
    let root = number(bytes, chosen * page_size + HEADER + 16, 8);
    walk.page(root, Within::Top);
    walk
}

impl Walk<'_> {
    fn add(&mut self, class: Class, at: Range<usize>, page: u64) {
        self.pieces.push(Piece { class, at, page, hidden: None });
    }

    fn page(&mut self, id: u64, within: Within) {
        let base = id as usize * self.page_size;
        self.add(Class::Header, base..base + HEADER, id);
        if number(self.bytes, base + 8, 2) as u16 != BRANCH {
            return self.leaf(base, id, within, false);
        }
        for i in 0..number(self.bytes, base + 10, 2) as usize {
            let element = base + HEADER + i * ELEMENT;
            let key = element + number(self.bytes, element, 4) as usize;
            let len = number(self.bytes, element + 4, 4) as usize;
            self.add(Class::BranchElement, element..element + ELEMENT, id);
            self.add(Class::BranchKey, key..key + len, id);
            self.page(number(self.bytes, element + 8, 8), within);
        }
    }

    fn leaf(&mut self, base: usize, page: u64, within: Within, inline: bool) {
        let pick = |plain, inside| if inline { inside } else { plain };
        for i in 0..number(self.bytes, base + 10, 2) as usize {
            let element = base + HEADER + i * ELEMENT;
            let word = |n: usize| number(self.bytes, element + 4 * n, 4) as usize;
            let (key, value) = (element + word(1), element + word(1) + word(2));
            let end = value + word(3);
            self.add(pick(Class::LeafElement, Class::InlineElement), element..element + ELEMENT, page);
            match within {
                Within::Top => {
                    self.add(Class::BucketName, key..value, page);
                    self.add(Class::BucketValue, value..value + 16, page);
                    let within = if &self.bytes[key..value] == b"key" { Within::Key } else { Within::Small };
                    match number(self.bytes, value, 8) {
                        0 => {
                            self.add(Class::InlineHeader, value + 16..value + 16 + HEADER, page);
                            self.leaf(value + 16, page, within, true);
                        }
                        root => self.page(root, within),
                    }
                }
                Within::Key => {
                    self.row_key(key..value, page, pick(Class::RowKey, Class::InlineKey));
                    self.add(Class::Value, value..end, page);
                }
                Within::Small => {
                    self.add(pick(Class::SmallKey, Class::InlineKey), key..value, page);
                    self.add(Class::Value, value..end, page);
                }
            }
        }
    }

    /// Above the compact revision no change may be missing, so every bit of a revision is bound by its
    /// neighbours. At or below it rows are missing anyway: the main revision of a put is bound by the mod revision
    /// within its value, but nothing says which place in its transaction it had, nor where a tombstone was.
    fn row_key(&mut self, at: Range<usize>, page: u64, class: Class) {
        let key = &self.bytes[at.clone()];
        let main = u64::from_be_bytes(key[..8].try_into().expect("8 bytes"));
        let (mut main_hidden, mut sub_hidden) = (None, None);
        if main <= self.compact {
            sub_hidden = Some("the place within its transaction of a row at or below the compact revision");
            main_hidden = (key.len() == 18).then_some("the revision of a tombstone at or below the compact revision");
        }
        let from = at.start;
        let mut add = |at, hidden| self.pieces.push(Piece { class, at, page, hidden });
        add(from..from + 8, main_hidden);
        add(from + 8..from + 9, None);
        add(from + 9..from + 17, sub_hidden);
        add(from + 17..at.end, None);
    }
}
