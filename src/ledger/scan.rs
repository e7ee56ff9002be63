//! Reads the frames of one file and judges what stands behind the last whole one (pure).
//!
//! Power loss leaves the end of a file in any state: short, zeros where bytes were to be, a frame half written, or, of
//! several frames that were written together, a later one whole and an earlier one not. None of it was acknowledged,
//! so all of it may be cut. It is different when bytes are bad that were durable once: then the disk has lost them,
//! and what follows was acknowledged. Each frame says how much of the file was durable when it was written, so a whole
//! frame behind the bad bytes tells which of the two it is.

use super::frame::{self, BadFile, FILE_HEAD, MAGIC, Record};
use thiserror::Error;

/// Why nothing of a file can be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Unreadable {
    #[error(transparent)]
    File(#[from] BadFile),
    #[error("its first batch is not whole")]
    NoBatch,
}

/// What stands behind the last whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    Nothing,
    /// Room that was never written.
    Zeros,
    /// Frames that were never acknowledged.
    Torn,
    /// Bytes that were durable once and are lost, with acknowledged frames behind them.
    Lost,
}

/// One file.
#[derive(Debug, PartialEq, Eq)]
pub struct Scan {
    /// Of all whole frames before the first that is not.
    pub records: Vec<Record>,
    /// The number that the next entry gets.
    pub next: u64,
    /// Bytes up to there.
    pub end: usize,
    pub rest: Rest,
}

/// Reads a whole file.
pub fn scan(bytes: &[u8]) -> Result<Scan, Unreadable> {
    frame::check_file_head(bytes)?;
    let mut records = Vec::new();
    let mut end = FILE_HEAD;
    let mut next = None;
    while let Some(found) = frame::decode(&bytes[end..]) {
        if next.is_some_and(|next| next != found.first) {
            break;
        }
        next = Some(found.first.saturating_add(found.records.len() as u64));
        records.extend(found.records);
        end += found.size;
    }
    let next = next.ok_or(Unreadable::NoBatch)?;
    Ok(Scan { records, next, end, rest: judge(bytes, end) })
}

fn judge(bytes: &[u8], end: usize) -> Rest {
    let rest = &bytes[end..];
    if rest.is_empty() {
        return Rest::Nothing;
    }
    if rest.iter().all(|b| *b == 0) {
        return Rest::Zeros;
    }
    let whole = (0..rest.len())
        .filter(|at| rest[*at..].starts_with(MAGIC))
        .filter_map(|at| frame::decode(&rest[at..]))
        .any(|frame| frame.synced > end as u64);
    if whole { Rest::Lost } else { Rest::Torn }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::frame::{Entry, encode, file_head};
    use super::*;

    fn batch(n: u8) -> Vec<Entry> {
        vec![
            Entry { kind: "k".into(), schema: 1, bytes: vec![n; 5] },
            Entry { kind: "l".into(), schema: 2, bytes: vec![] },
        ]
    }

    /// Frames in groups that were each synced at once; gives the bytes and where each frame ends.
    fn file(groups: &[&[u8]]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends, mut seq) = (file_head().to_vec(), Vec::new(), 1);
        for group in groups {
            let synced = bytes.len() as u64;
            for n in *group {
                bytes.extend(encode(seq, synced, Timestamp::UNIX_EPOCH, &batch(*n)).unwrap());
                seq += 2;
                ends.push(bytes.len());
            }
        }
        (bytes, ends)
    }

    fn values(scan: &Scan) -> Vec<u8> {
        scan.records.iter().step_by(2).map(|r| r.entry.bytes[0]).collect()
    }

    #[test]
    fn cut_at_each_byte_it_gives_the_whole_frames_before() {
        let (bytes, ends) = file(&[&[1], &[2, 3], &[4]]);
        for cut in 0..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            match scan(&bytes[..cut]) {
                Err(Unreadable::File(BadFile::Foreign)) => assert!(cut < FILE_HEAD),
                Err(Unreadable::NoBatch) => assert!(cut >= FILE_HEAD && whole == 0),
                Ok(found) => {
                    assert_eq!(values(&found), (1..=whole as u8).collect::<Vec<_>>(), "{cut}");
                    assert_eq!((found.end, found.next), (ends[whole - 1], 2 * whole as u64 + 1));
                    assert_eq!(found.rest, if cut == found.end { Rest::Nothing } else { Rest::Torn }, "{cut}");
                }
                other => panic!("{cut}: {other:?}"),
            }
        }
    }

    #[test]
    fn each_flipped_byte_ends_it_there_and_lost_is_told_from_torn() {
        let (bytes, ends) = file(&[&[1], &[2], &[3, 4, 5]]);
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            let hit = ends.iter().filter(|end| **end <= at).count();
            match scan(&bad) {
                Err(_) => assert!(hit == 0, "{at}"),
                Ok(found) => {
                    assert_eq!(values(&found), (1..=hit as u8).collect::<Vec<_>>(), "{at}");
                    // Frame 3, synced later, proves that frame 2 was durable; nothing proves it of 3, 4 and 5.
                    assert_eq!(found.rest, if hit == 1 { Rest::Lost } else { Rest::Torn }, "{at}");
                }
            }
        }
    }

    #[test]
    fn zeros_and_noise_behind_the_end() {
        let (bytes, ends) = file(&[&[1], &[2]]);
        let noise = [MAGIC.repeat(30), b"RFLB\xff\xff\xff\xff".repeat(9), vec![7]].concat();
        // A frame of its own that was written when less was durable says nothing about what stands here.
        let early = encode(9, ends[0] as u64, Timestamp::UNIX_EPOCH, &batch(9)).unwrap();
        for (tail, rest) in [(vec![0; 3000], Rest::Zeros), (noise, Rest::Torn), (early, Rest::Torn)] {
            let found = scan(&[bytes.clone(), tail].concat()).unwrap();
            assert_eq!((values(&found), found.end, found.rest), (vec![1, 2], ends[1], rest));
        }
    }

    #[test]
    fn a_frame_that_is_missing_in_between_ends_it() {
        let (bytes, ends) = file(&[&[1], &[2], &[3]]);
        let gap = [&bytes[..ends[0]], &bytes[ends[1]..]].concat();
        let found = scan(&gap).unwrap();
        assert_eq!((values(&found), found.rest), (vec![1], Rest::Lost));
    }
}
