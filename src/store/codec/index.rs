//! The index frame: written after the last frame, found from the end.

use super::{FRAME_PLAIN_MAX, FRAMES_MAX, Frame, plausible};
use crate::format::ReadAt;

const MAGIC: u32 = 0x184D_2A5E;
const VERSION: u32 = 1;
const TAG: &[u8; 8] = b"RFLTINDX";

/// Magic and length.
pub const SKIPPABLE_HEADER: u64 = 8;
const FIXED: usize = 24;
const ENTRY: usize = 8;
/// Length of the hints.
const HINTS: usize = 4;
/// Largest hints, compressed: those of a tree of several million leaves.
pub const HINTS_MAX: u64 = 64 << 20;
/// CRC, length, tag.
const FOOTER: usize = 16;

/// Encodes the index frame. `frames`: stored size and CRC of each, in order.
pub fn encode(frames: &[(u32, u32)], plain_per_frame: u32, plain: u64, stored: u64, hints: &[u8]) -> Vec<u8> {
    let payload = FIXED + frames.len() * ENTRY + HINTS + hints.len() + FOOTER;
    let mut out = Vec::with_capacity(SKIPPABLE_HEADER as usize + payload);
    // FRAMES_MAX keeps the length far within 32 bits; the writer stops there.
    let length = u32::try_from(payload).unwrap_or(u32::MAX);
    out.extend(MAGIC.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(VERSION.to_le_bytes());
    out.extend(plain_per_frame.to_le_bytes());
    out.extend(plain.to_le_bytes());
    out.extend(stored.to_le_bytes());
    for (size, crc) in frames {
        out.extend(size.to_le_bytes());
        out.extend(crc.to_le_bytes());
    }
    out.extend(u32::try_from(hints.len()).unwrap_or(0).to_le_bytes());
    out.extend(hints);
    let crc = crc32c::crc32c(&out[SKIPPABLE_HEADER as usize..]);
    out.extend(crc.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(TAG);
    out
}

/// What an index holds.
pub struct Index {
    pub frames: Vec<Frame>,
    /// Compressed; see [`super::FrameWriter::finish`].
    pub hints: Vec<u8>,
}

/// Why a stored index is not used.
pub type Fault = &'static str;

/// Offset at which the index frame begins, by what the footer says; `None` without a footer.
pub fn locate(source: &dyn ReadAt) -> std::io::Result<Option<u64>> {
    let len = source.len();
    let smallest = SKIPPABLE_HEADER + (FIXED + HINTS + FOOTER) as u64;
    if len < smallest {
        return Ok(None);
    }
    let mut end = [0; 12];
    source.read_at(len - end.len() as u64, &mut end)?;
    let (length, tag) = end.split_at(4);
    if tag != TAG {
        return Ok(None);
    }
    let whole = u64::from(u32_at(length, 0)) + SKIPPABLE_HEADER;
    Ok((smallest..=len).contains(&whole).then(|| len - whole))
}

/// Reads the index that begins at `at` and checks all of it.
pub fn read(source: &dyn ReadAt, at: u64) -> std::io::Result<Result<Index, Fault>> {
    // At most the object's length, by `locate`, and at most what the largest table takes.
    let whole = source.len() - at;
    let fixed = SKIPPABLE_HEADER + (FIXED + HINTS + FOOTER) as u64;
    if whole > fixed + FRAMES_MAX * ENTRY as u64 + HINTS_MAX {
        return Ok(Err("it is larger than any index"));
    }
    let mut bytes = vec![0; usize::try_from(whole).unwrap_or(0)];
    source.read_at(at, &mut bytes)?;
    Ok(parse(&bytes, at))
}

fn parse(bytes: &[u8], at: u64) -> Result<Index, Fault> {
    let payload = bytes.get(SKIPPABLE_HEADER as usize..).ok_or("it is cut short")?;
    if u32_at(bytes, 0) != MAGIC || u32_at(bytes, 4) as usize != payload.len() {
        return Err("its header is damaged");
    }
    let body = payload.len().checked_sub(FOOTER).filter(|b| *b >= FIXED + HINTS).ok_or("it is cut short")?;
    if crc32c::crc32c(&payload[..body]) != u32_at(payload, body) {
        return Err("its checksum does not match");
    }
    if u32_at(payload, 0) != VERSION {
        return Err("its version is unknown");
    }
    let per_frame = u64::from(u32_at(payload, 4));
    let (plain, stored) = (u64_at(payload, 8), u64_at(payload, 16));
    if per_frame == 0 || per_frame > FRAME_PLAIN_MAX || stored != at {
        return Err("its figures contradict each other");
    }
    // The table, then the hints, fill the body exactly.
    let room = (body - FIXED - HINTS) / ENTRY;
    let count = usize::try_from(plain.div_ceil(per_frame)).ok().filter(|n| *n <= room);
    let count = count.ok_or("its length does not fit its number of frames")?;
    let hints_at = FIXED + count * ENTRY + HINTS;
    if u32_at(payload, hints_at - HINTS) as usize != body - hints_at {
        return Err("its length does not fit its number of frames");
    }
    let mut frames = Vec::with_capacity(count);
    let (mut plain_at, mut stored_at) = (0, 0);
    for entry in payload[FIXED..hints_at - HINTS].chunks_exact(ENTRY) {
        let size = u32_at(entry, 0);
        let holds = per_frame.min(plain - plain_at);
        if !plausible(holds, size.into()) {
            return Err("a frame's stored size is impossible");
        }
        // Within FRAME_PLAIN_MAX, so within 32 bits.
        frames.push(Frame { plain_at, stored_at, plain: holds as u32, stored: size, crc: Some(u32_at(entry, 4)) });
        plain_at += holds;
        stored_at += u64::from(size);
    }
    if stored_at != stored {
        return Err("the frames' sizes do not add up");
    }
    Ok(Index { frames, hints: payload[hints_at..body].to_vec() })
}

/// Missing bytes count as zero: callers have checked lengths that matter.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}
