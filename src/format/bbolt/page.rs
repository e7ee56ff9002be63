//! The 16 bytes that begin every page: id u64, flags u16, count u16, overflow u32.

/// Bytes of a page header.
pub const HEADER: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Branch,
    Leaf,
    Meta,
    Freelist,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub id: u64,
    pub flags: u16,
    /// Elements on a branch or leaf page.
    pub count: u16,
    /// Pages that follow and belong to this one.
    pub overflow: u32,
}

impl Header {
    /// `None` when there are fewer than 16 bytes.
    pub fn parse(page: &[u8]) -> Option<Header> {
        Some(Header { id: le64(page, 0)?, flags: le16(page, 8)?, count: le16(page, 10)?, overflow: le32(page, 12)? })
    }

    /// Exactly one flag is set on a sound page.
    pub fn kind(&self) -> Option<Kind> {
        match self.flags {
            0x01 => Some(Kind::Branch),
            0x02 => Some(Kind::Leaf),
            0x04 => Some(Kind::Meta),
            0x10 => Some(Kind::Freelist),
            _ => None,
        }
    }

    /// Pages in all.
    pub fn pages(&self) -> u64 {
        u64::from(self.overflow) + 1
    }
}

pub fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

pub fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

pub fn le64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}
