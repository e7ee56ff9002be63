//! The form in which a database is stored: zstd in independent frames, then an index of them.
//!
//! In: the bytes of a database, once, in order. Out: an object that can be read in parallel and at random, and that
//! `zstd -d` unpacks as a whole (promise 10). Each frame holds [`FRAME_PLAIN`] bytes (the last one fewer) and its own
//! content size. zstd's frame checksum is off: the plain bytes are proven by SHA-256 (trailer and manifest), and the
//! index has a CRC-32C of each frame's stored bytes, which names a damaged frame before it is decoded and costs less.
//!
//! The index is one skippable frame at the end of the object; numbers are little-endian:
//!
//! ```text
//! u32 magic 0x184D2A5E          u32 length of what follows
//! u32 version = 1               u32 plain bytes per frame
//! u64 plain bytes in total      u64 stored bytes of all frames = offset of this index
//! for each frame: u32 stored bytes, u32 CRC-32C of them
//! u32 length of the hints         the hints: one zstd frame, or nothing
//! u32 CRC-32C from `version` to here
//! u32 length again              8 bytes "RFLTINDX"      (found from the end of the object)
//! ```
//!
//! Hints are for the reader of what is stored (`format::check::hints` for a database): they spare work, and nothing
//! depends on them.
//!
//! An index that is missing or damaged is rebuilt from the frames' own headers, and that is said. Sizes that an
//! object claims are checked against its length before anything is allocated for them.

mod cache;
mod error;
mod frame;
mod framed;
mod index;
mod writer;

pub use error::{CodecError, NotRandom};
pub use frame::first_content_size;
pub use framed::{Framed, IndexState};
pub use writer::{FrameWriter, Written};

/// Plain bytes in each frame but the last.
pub const FRAME_PLAIN: usize = 1024 * 1024;

/// Largest frame that is held in memory, plain bytes.
pub const FRAME_PLAIN_MAX: u64 = 16 * 1024 * 1024;

/// Largest stored size of such a frame: zstd's own bound for bytes that cannot be compressed.
const FRAME_STORED_MAX: u64 = FRAME_PLAIN_MAX + FRAME_PLAIN_MAX / 256;

/// Most frames in one object: 4 TiB of plain bytes.
const FRAMES_MAX: u64 = 1 << 22;

/// Largest block in a zstd frame, plain bytes.
const BLOCK_MAX: u64 = 128 * 1024;

/// The compression level of snapshots: measured as 0.65 GB/s a core at about a third of the size.
pub const LEVEL: i32 = 1;

/// First bytes of a zstd frame.
pub const ZSTD_MAGIC: u32 = 0xFD2F_B528;

/// Whether these first bytes begin a skippable frame, which a zstd file may start with.
pub fn is_skippable(magic: u32) -> bool {
    magic & 0xFFFF_FFF0 == 0x184D_2A50
}

/// Where one frame is and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    plain_at: u64,
    stored_at: u64,
    plain: u32,
    stored: u32,
    /// CRC-32C of the stored bytes; `None` in an index that was rebuilt.
    crc: Option<u32>,
}

/// The most plain bytes that so many stored ones can hold at all: each block of at most 128 KiB takes 3 bytes.
fn most_plain(stored: u64) -> u64 {
    (stored / 3).saturating_mul(BLOCK_MAX)
}

fn plausible(plain: u64, stored: u64) -> bool {
    plain <= FRAME_PLAIN_MAX && stored <= FRAME_STORED_MAX && plain <= most_plain(stored)
}

#[cfg(test)]
mod tests;
