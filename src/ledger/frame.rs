//! The bytes of one batch: a frame with two checksums (docs/formats.md, section 8).
//!
//! The head has a checksum of its own, so that a length is believed only once it is known to be what was written, and
//! a search for frames behind damage costs a few bytes for each place that only looks like one.

use jiff::Timestamp;
use thiserror::Error;

/// What a caller hands in: what kind of thing, in which version of its encoding, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: String,
    pub schema: u32,
    pub bytes: Vec<u8>,
}

/// What is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// From 1 on, one more for each entry, also across files.
    pub seq: u64,
    /// Of its batch.
    pub at: Timestamp,
    pub entry: Entry,
}

/// Begins a file, with the version behind it.
const FILE_MAGIC: &[u8; 8] = b"RFLTLEDG";
pub const VERSION: u32 = 1;
/// Magic, version, checksum.
pub const FILE_HEAD: usize = 16;

pub const MAGIC: &[u8; 4] = b"RFLB";
/// Bytes of a frame before its body.
pub const HEAD: usize = 44;
const CHECKSUM: usize = 4;
/// Bytes of a body at most.
pub const BODY_MAX: usize = 16 << 20;

/// Why a batch cannot be written.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TooLarge {
    #[error("a batch of {0} bytes, at most {BODY_MAX} are written")]
    Batch(usize),
    #[error("a kind of {0} bytes, at most 65535 are written")]
    Kind(usize),
}

/// Why a file is none of ours.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadFile {
    #[error("it does not begin like a ledger")]
    Foreign,
    #[error("it has version {0}, this refloat reads {VERSION}")]
    Newer(u32),
}

/// The first bytes of each file.
pub fn file_head() -> [u8; FILE_HEAD] {
    let mut head = [0; FILE_HEAD];
    head[..8].copy_from_slice(FILE_MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc32c::crc32c(&head[..12]);
    head[12..].copy_from_slice(&sum.to_le_bytes());
    head
}

pub fn check_file_head(bytes: &[u8]) -> Result<(), BadFile> {
    let (magic, version, sum) = (bytes.get(..8), u32_at(bytes, 8), u32_at(bytes, 12));
    match (magic, version, sum) {
        (Some(magic), Some(version), Some(sum)) if magic == FILE_MAGIC && crc32c::crc32c(&bytes[..12]) == sum => {
            if version == VERSION {
                Ok(())
            } else {
                Err(BadFile::Newer(version))
            }
        }
        _ => Err(BadFile::Foreign),
    }
}

/// One batch as bytes. `synced`: how many bytes of the file are known to be durable while this is written.
pub fn encode(first: u64, synced: u64, at: Timestamp, batch: &[Entry]) -> Result<Vec<u8>, TooLarge> {
    let mut frame = vec![0; HEAD];
    for entry in batch {
        let kind = u16::try_from(entry.kind.len()).map_err(|_| TooLarge::Kind(entry.kind.len()))?;
        let length = u32::try_from(entry.bytes.len()).map_err(|_| TooLarge::Batch(entry.bytes.len()))?;
        frame.extend_from_slice(&kind.to_le_bytes());
        frame.extend_from_slice(entry.kind.as_bytes());
        frame.extend_from_slice(&entry.schema.to_le_bytes());
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&entry.bytes);
        if frame.len() - HEAD > BODY_MAX {
            return Err(TooLarge::Batch(frame.len() - HEAD));
        }
    }
    let body = frame.len() - HEAD;
    frame[..4].copy_from_slice(MAGIC);
    // Both fit: a body has at most 16 MiB, an entry at least ten bytes.
    frame[4..8].copy_from_slice(&(body as u32).to_le_bytes());
    frame[8..16].copy_from_slice(&first.to_le_bytes());
    frame[16..24].copy_from_slice(&synced.to_le_bytes());
    frame[24..32].copy_from_slice(&at.as_second().to_le_bytes());
    frame[32..36].copy_from_slice(&at.subsec_nanosecond().to_le_bytes());
    frame[36..40].copy_from_slice(&(batch.len() as u32).to_le_bytes());
    let sum = crc32c::crc32c(&frame[..40]);
    frame[40..44].copy_from_slice(&sum.to_le_bytes());
    let sum = crc32c::crc32c(&frame);
    frame.extend_from_slice(&sum.to_le_bytes());
    Ok(frame)
}

/// A whole frame as it was found.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub first: u64,
    pub synced: u64,
    pub records: Vec<Record>,
    /// Bytes, checksum included.
    pub size: usize,
}

/// The frame at the beginning of `bytes`, if all of it is there and sound. Allocates nothing for one that is not.
pub fn decode(bytes: &[u8]) -> Option<Frame> {
    if !bytes.starts_with(MAGIC) {
        return None;
    }
    let head = bytes.get(..HEAD)?;
    if crc32c::crc32c(&head[..40]) != u32_at(head, 40)? {
        return None;
    }
    let length = usize::try_from(u32_at(head, 4)?).ok().filter(|l| *l <= BODY_MAX)?;
    let summed = bytes.get(..HEAD + length)?;
    if crc32c::crc32c(summed) != u32_at(bytes, HEAD + length)? {
        return None;
    }
    let first = u64_at(head, 8)?;
    let synced = u64_at(head, 16)?;
    let at = Timestamp::new(u64_at(head, 24)?.cast_signed(), u32_at(head, 32)?.cast_signed()).ok()?;
    let records = entries(first, at, u32_at(head, 36)?, &summed[HEAD..])?;
    Some(Frame { first, synced, records, size: HEAD + length + CHECKSUM })
}

fn entries(first: u64, at: Timestamp, count: u32, body: &[u8]) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    let mut rest = body;
    for seq in (first..).take(usize::try_from(count).ok()?) {
        let kind = take(&mut rest, 2).and_then(|b| Some(u16::from_le_bytes(b.try_into().ok()?)))?;
        let kind = std::str::from_utf8(take(&mut rest, usize::from(kind))?).ok()?.to_owned();
        let schema = u32_at(take(&mut rest, 4)?, 0)?;
        let length = u32_at(take(&mut rest, 4)?, 0)?;
        let bytes = take(&mut rest, usize::try_from(length).ok()?)?.to_vec();
        records.push(Record { seq, at, entry: Entry { kind, schema, bytes } });
    }
    (rest.is_empty() && first.checked_add(u64::from(count)).is_some()).then_some(records)
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(kind: &str, bytes: &[u8]) -> Entry {
        Entry { kind: kind.into(), schema: 7, bytes: bytes.into() }
    }

    /// Byte for byte what docs/formats.md says.
    #[test]
    fn the_documented_bytes() {
        let at = Timestamp::new(0x0102_0304, 5).unwrap();
        let frame = encode(9, 16, at, &[entry("job", b"xy")]).unwrap();
        let mut want =
            b"RFLB\x0f\0\0\0\x09\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x04\x03\x02\x01\0\0\0\0\x05\0\0\0\x01\0\0\0".to_vec();
        want.extend(crc32c::crc32c(&want).to_le_bytes());
        want.extend(b"\x03\0job\x07\0\0\0\x02\0\0\0xy");
        want.extend(crc32c::crc32c(&want).to_le_bytes());
        assert_eq!(frame, want);
        let mut head = b"RFLTLEDG\x01\0\0\0".to_vec();
        head.extend(crc32c::crc32c(&head).to_le_bytes());
        assert_eq!(file_head(), *head);
        assert_eq!(crc32c::crc32c(b"123456789"), 0xE306_9283, "Castagnoli");
    }

    #[test]
    fn a_file_of_another_kind_or_version_is_told() {
        assert_eq!(check_file_head(&file_head()), Ok(()));
        assert_eq!(check_file_head(&file_head()[..15]), Err(BadFile::Foreign));
        let mut newer = file_head();
        newer[8] = 2;
        assert_eq!(check_file_head(&newer), Err(BadFile::Foreign), "a flipped bit is no version");
        let sum = crc32c::crc32c(&newer[..12]);
        newer[12..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(check_file_head(&newer), Err(BadFile::Newer(2)));
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let at = Timestamp::UNIX_EPOCH;
        let kind = "k".repeat(1 << 16);
        assert_eq!(encode(1, 0, at, &[entry(&kind, b"")]), Err(TooLarge::Kind(1 << 16)));
        let half = entry("k", &vec![0; BODY_MAX / 2]);
        assert!(matches!(encode(1, 0, at, &[half.clone(), half]), Err(TooLarge::Batch(_))));
        let fits = entry("k", &vec![1; BODY_MAX - 11]);
        let frame = encode(1, 0, at, std::slice::from_ref(&fits)).unwrap();
        assert_eq!(decode(&frame).unwrap().records[0].entry, fits);
    }

    #[test]
    fn a_length_or_count_that_lies_under_right_checksums_is_no_frame() {
        let good = encode(1, 0, Timestamp::UNIX_EPOCH, &[entry("k", b"abc")]).unwrap();
        assert!(decode(&good).is_some());
        // (offset, value) of fields that are then summed anew.
        for (at, value) in [(4, u32::MAX), (4, 1 << 30), (36, u32::MAX), (36, 0), (36, 2), (32, 2_000_000_000)] {
            let mut frame = good.clone();
            frame[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let sum = crc32c::crc32c(&frame[..40]);
            frame[40..44].copy_from_slice(&sum.to_le_bytes());
            let end = frame.len() - 4;
            let sum = crc32c::crc32c(&frame[..end]);
            frame[end..].copy_from_slice(&sum.to_le_bytes());
            assert_eq!(decode(&frame), None, "{at} {value}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            first in 0..u64::MAX / 2, synced: u64, second in -377_705_023_201i64..253_402_207_200, nano in 0..1_000_000_000i32,
            batch in prop::collection::vec((".{0,9}", any::<u32>(), prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            behind in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let at = Timestamp::new(second, nano).unwrap();
            let batch: Vec<Entry> = batch.into_iter().map(|(kind, schema, bytes)| Entry { kind, schema, bytes }).collect();
            let mut bytes = encode(first, synced, at, &batch).unwrap();
            let size = bytes.len();
            bytes.extend(behind);
            let frame = decode(&bytes).unwrap();
            prop_assert_eq!((frame.first, frame.synced, frame.size), (first, synced, size));
            prop_assert!(frame.records.iter().all(|r| r.at == at));
            prop_assert!(frame.records.iter().map(|r| r.seq).eq(first..first + batch.len() as u64));
            prop_assert_eq!(frame.records.into_iter().map(|r| r.entry).collect::<Vec<_>>(), batch);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), lead: bool) {
            let mut bytes = bytes;
            if lead {
                bytes.splice(0..0, *MAGIC);
            }
            prop_assert_eq!(decode(&bytes), None);
        }
    }
}
