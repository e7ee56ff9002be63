//! Meta pages: 0 and 1, of which the valid one with the higher transaction id tells where the tree begins.
//!
//! Behind the page header: magic u32, version u32, page size u32, flags u32, root page u64, root sequence
//! u64, freelist page u64, high-water mark u64, transaction id u64, FNV-1a 64 over the 56 bytes before it.

use super::page::{HEADER, Header, Kind, le32, le64};
use crate::format::ReadAt;
use thiserror::Error;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// The freelist is not stored: how etcd has bbolt write on Linux.
pub const NO_FREELIST: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Bytes.
    pub page_size: u32,
    pub flags: u32,
    pub root: u64,
    pub root_sequence: u64,
    /// Page id, or [`NO_FREELIST`].
    pub freelist: u64,
    /// The first page id that is not in use.
    pub high_water: u64,
    pub txid: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MetaFault {
    #[error("meta page is cut short")]
    Short,
    #[error("not a meta page (id {id}, flags {flags:#x}, count {count}, overflow {overflow})")]
    Header { id: u64, flags: u16, count: u16, overflow: u32 },
    #[error("magic is {0:#010x}, which is no bbolt database")]
    Magic(u32),
    #[error("bbolt version {0} is not known, only 2")]
    Version(u32),
    #[error("checksum of the meta page does not fit")]
    Checksum,
    #[error("page size {0} is not a power of two from 1024 to 65536")]
    PageSize(u32),
    #[error("root page {root} is not below the high-water mark {high_water}")]
    Root { root: u64, high_water: u64 },
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

impl Meta {
    /// Parses the page with number `id` (0 or 1); 80 bytes are enough.
    pub fn parse(page: &[u8], id: u64) -> Result<Meta, MetaFault> {
        let header = Header::parse(page).ok_or(MetaFault::Short)?;
        let body = page.get(HEADER..HEADER + 64).ok_or(MetaFault::Short)?;
        let (word, long) = (|at| le32(body, at).unwrap_or(0), |at| le64(body, at).unwrap_or(0));
        // The magic first: it tells a text file from a damaged database.
        if word(0) != MAGIC {
            return Err(MetaFault::Magic(word(0)));
        }
        let Header { id: found, flags, count, overflow } = header;
        if header.kind() != Some(Kind::Meta) || found != id || count != 0 || overflow != 0 {
            return Err(MetaFault::Header { id: found, flags, count, overflow });
        }
        if word(4) != VERSION {
            return Err(MetaFault::Version(word(4)));
        }
        if long(56) != fnv1a(&body[..56]) {
            return Err(MetaFault::Checksum);
        }
        let meta = Meta {
            page_size: word(8),
            flags: word(12),
            root: long(16),
            root_sequence: long(24),
            freelist: long(32),
            high_water: long(40),
            txid: long(48),
        };
        if !meta.page_size.is_power_of_two() || !(1024..=65536).contains(&meta.page_size) {
            return Err(MetaFault::PageSize(meta.page_size));
        }
        if meta.root < 2 || meta.root >= meta.high_water {
            return Err(MetaFault::Root { root: meta.root, high_water: meta.high_water });
        }
        Ok(meta)
    }

    /// Bytes from the start of the file to the high-water mark; `None` on overflow.
    pub fn database_len(&self) -> Option<u64> {
        self.high_water.checked_mul(u64::from(self.page_size))
    }

    #[cfg(test)]
    pub fn encode(&self, id: u64) -> Vec<u8> {
        let mut page = vec![0; self.page_size as usize];
        page[..8].copy_from_slice(&id.to_le_bytes());
        page[8] = 4;
        let words = [MAGIC, VERSION, self.page_size, self.flags].map(u32::to_le_bytes).concat();
        let longs = [self.root, self.root_sequence, self.freelist, self.high_water, self.txid].map(u64::to_le_bytes);
        let body = [words, longs.concat()].concat();
        page[16..72].copy_from_slice(&body);
        page[72..80].copy_from_slice(&fnv1a(&body).to_le_bytes());
        page
    }
}

/// Both meta pages of a file, each as found.
#[derive(Debug, Clone, Copy)]
pub struct Metas {
    pub each: [Result<Meta, MetaFault>; 2],
}

impl Metas {
    /// Reads page 0, then page 1 where page 0 says it is; when page 0 is damaged, at each possible size.
    pub fn read(file: &dyn ReadAt) -> std::io::Result<Metas> {
        let at = |offset: u64, id| -> std::io::Result<Result<Meta, MetaFault>> {
            let mut page = [0; 80];
            if file.len() < offset + 80 {
                return Ok(Err(MetaFault::Short));
            }
            file.read_at(offset, &mut page)?;
            Ok(Meta::parse(&page, id))
        };
        let first = at(0, 0)?;
        let second = match first {
            Ok(meta) => at(u64::from(meta.page_size), 1)?,
            Err(_) => {
                let mut found = Err(MetaFault::Short);
                for shift in 0..=6 {
                    let size = 1024u64 << shift;
                    let tried = at(size, 1)?;
                    if tried.is_ok_and(|m| u64::from(m.page_size) == size) {
                        found = tried;
                        break;
                    }
                    // Of several failures the one that saw a meta page tells most.
                    if !matches!(tried, Err(MetaFault::Magic(_) | MetaFault::Short)) || found == Err(MetaFault::Short) {
                        found = tried;
                    }
                }
                found
            }
        };
        Ok(Metas { each: [first, second] })
    }

    /// The meta page that counts, as bbolt chooses it.
    pub fn chosen(&self) -> Option<Meta> {
        match self.each {
            [Ok(a), Ok(b)] => Some(if b.txid > a.txid { b } else { a }),
            [Ok(m), Err(_)] | [Err(_), Ok(m)] => Some(m),
            [Err(_), Err(_)] => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(txid: u64, page_size: u32) -> Meta {
        Meta { page_size, flags: 0, root: 3, root_sequence: 0, freelist: NO_FREELIST, high_water: 9, txid }
    }

    #[test]
    fn the_higher_valid_transaction_wins() {
        for page_size in [1024, 4096, 16384, 65536] {
            let mut file = [meta(7, page_size).encode(0), meta(8, page_size).encode(1)].concat();
            assert_eq!(Metas::read(&file).unwrap().chosen().map(|m| m.txid), Some(8));
            file[page_size as usize + 20] ^= 1;
            assert_eq!(Metas::read(&file).unwrap().chosen().map(|m| m.txid), Some(7));
            file[page_size as usize + 20] ^= 1;
            file[30] ^= 1;
            let metas = Metas::read(&file).unwrap();
            assert_eq!(metas.chosen().map(|m| m.txid), Some(8), "found at page size {page_size}");
            assert_eq!(metas.each[0], Err(MetaFault::Checksum));
        }
    }

    #[test]
    fn every_flipped_byte_of_a_meta_page_is_seen() {
        let good = meta(7, 4096).encode(0);
        for at in 0..80 {
            let mut bad = good.clone();
            bad[at] ^= 0x41;
            assert!(Meta::parse(&bad, 0).is_err(), "byte {at}");
        }
    }

    #[test]
    fn short_or_foreign_files() {
        for len in [0usize, 1, 31, 79, 80, 511] {
            let metas = Metas::read(&vec![b'x'; len]).unwrap();
            assert!(metas.chosen().is_none(), "{len}");
        }
    }
}
