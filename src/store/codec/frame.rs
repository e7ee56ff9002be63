//! zstd's own framing (RFC 8878 §3.1), as far as it takes to find frames without decoding them.

use super::error::{CodecError, NotRandom};
use super::index::{SKIPPABLE_HEADER, u32_at};
use super::{
    BLOCK_MAX, FRAME_PLAIN_MAX, FRAME_STORED_MAX, FRAMES_MAX, Frame, ZSTD_MAGIC, is_skippable, most_plain, plausible,
};
use crate::format::ReadAt;

/// Longest frame header: magic, descriptor, window, dictionary id, content size.
const HEADER_MAX: u64 = 4 + 1 + 1 + 4 + 8;

#[derive(Debug, PartialEq, Eq)]
struct Header {
    /// Bytes, from the magic to the first block.
    len: u64,
    content: Option<u64>,
    checksum: bool,
    dictionary: bool,
}

/// `None` if the bytes are no zstd frame header or do not hold all of it.
fn parse_header(bytes: &[u8]) -> Option<Header> {
    if bytes.len() < 6 || u32_at(bytes, 0) != ZSTD_MAGIC {
        return None;
    }
    let descriptor = bytes[4];
    if descriptor & 0x08 != 0 {
        return None;
    }
    let single = descriptor & 0x20 != 0;
    let dictionary_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_len = match descriptor >> 6 {
        0 => usize::from(single),
        n => 1 << n,
    };
    let dictionary_at = 5 + usize::from(!single);
    let content_at = dictionary_at + dictionary_len;
    let dictionary = bytes.get(dictionary_at..content_at)?.iter().any(|b| *b != 0);
    let field = bytes.get(content_at..content_at + content_len)?;
    let value = field.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
    let content = match content_len {
        0 => None,
        2 => Some(value + 256),
        _ => Some(value),
    };
    Some(Header { len: (content_at + content_len) as u64, content, checksum: descriptor & 0x04 != 0, dictionary })
}

/// Content size in the header of the frame that begins at offset 0, if it says so.
pub fn first_content_size(source: &dyn ReadAt) -> Option<u64> {
    let mut bytes = vec![0; usize::try_from(HEADER_MAX.min(source.len())).ok()?];
    source.read_at(0, &mut bytes).ok()?;
    parse_header(&bytes)?.content
}

/// Finds all frames by their headers and block headers, up to `end` (exclusive), with ranged reads only.
pub fn walk(source: &dyn ReadAt, end: u64) -> Result<Vec<Frame>, CodecError> {
    let mut walk = Walk { source, end, frames: Vec::new(), at: 0, plain_at: 0 };
    while walk.at < end {
        walk.one()?;
    }
    Ok(walk.frames)
}

struct Walk<'a> {
    source: &'a dyn ReadAt,
    end: u64,
    frames: Vec<Frame>,
    at: u64,
    plain_at: u64,
}

impl Walk<'_> {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), CodecError> {
        self.source.read_at(offset, buf).map_err(|source| CodecError::Read { offset, source })
    }

    fn cut(&self) -> CodecError {
        CodecError::Cut { frame: self.frames.len(), offset: self.at }
    }

    fn damaged(&self, why: &str) -> CodecError {
        CodecError::Damaged { frame: self.frames.len(), offset: self.at, why: why.into() }
    }

    fn one(&mut self) -> Result<(), CodecError> {
        let offset = self.at;
        let left = self.end - offset;
        let mut bytes = [0; HEADER_MAX as usize];
        let bytes = &mut bytes[..left.min(HEADER_MAX) as usize];
        self.read(offset, bytes)?;
        if bytes.len() < 4 {
            return Err(self.cut());
        }
        let magic = u32_at(bytes, 0);
        if is_skippable(magic) {
            if left < SKIPPABLE_HEADER {
                return Err(self.cut());
            }
            let whole = SKIPPABLE_HEADER + u64::from(u32_at(bytes, 4));
            if whole > left {
                return Err(self.cut());
            }
            self.at += whole;
            return Ok(());
        }
        if magic != ZSTD_MAGIC {
            return Err(CodecError::NoFrame { offset });
        }
        let Some(header) = parse_header(bytes) else {
            return Err(if left < HEADER_MAX { self.cut() } else { self.damaged("its header makes no sense") });
        };
        let random = |why| CodecError::NotRandom { frame: self.frames.len(), offset, why };
        if header.dictionary {
            return Err(random(NotRandom::Dictionary));
        }
        let content = header.content.ok_or_else(|| random(NotRandom::NoSize))?;
        // Before anybody makes room for it.
        if content > most_plain(left) {
            return Err(self.damaged("it claims to hold more than so few stored bytes can"));
        }
        if content > FRAME_PLAIN_MAX {
            return Err(random(NotRandom::TooLarge));
        }
        let stored = self.blocks(&header)?;
        if stored > left {
            return Err(self.cut());
        }
        if stored > FRAME_STORED_MAX || !plausible(content, stored) {
            return Err(self.damaged("its sizes contradict each other"));
        }
        if content > 0 {
            if self.frames.len() as u64 >= FRAMES_MAX {
                return Err(CodecError::TooMany);
            }
            // Both are checked above to be far within 32 bits.
            let (plain, size) = (content as u32, stored as u32);
            let frame = Frame { plain_at: self.plain_at, stored_at: offset, plain, stored: size, crc: None };
            self.frames.push(frame);
        }
        self.at += stored;
        self.plain_at += content;
        Ok(())
    }

    /// Stored size of the frame at hand, by its block headers; may be past the end.
    fn blocks(&self, header: &Header) -> Result<u64, CodecError> {
        let mut size = header.len;
        loop {
            let mut bytes = [0; 4];
            // Three bytes of it: a block header.
            if self.at + size + 3 > self.end {
                return Err(self.cut());
            }
            self.read(self.at + size, &mut bytes[..3])?;
            let block = u32::from_le_bytes(bytes);
            let len = u64::from(block >> 3);
            if len > BLOCK_MAX {
                return Err(self.damaged("a block is larger than 128 KiB"));
            }
            size += 3 + match block >> 1 & 3 {
                0 | 2 => len,
                1 => 1,
                _ => return Err(self.damaged("a block has a reserved type")),
            };
            if size > FRAME_STORED_MAX {
                return Err(self.damaged("it is larger than its content allows"));
            }
            if block & 1 == 1 {
                return Ok(size + if header.checksum { 4 } else { 0 });
            }
        }
    }
}
