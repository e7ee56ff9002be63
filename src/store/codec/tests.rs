use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::format::ReadAt;

#[derive(Clone)]
struct Bytes(Arc<[u8]>);

impl ReadAt for Bytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let part =
            from.checked_add(buf.len()).and_then(|to| self.0.get(from..to)).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(part);
        Ok(())
    }
}

fn source(bytes: &[u8]) -> Arc<dyn ReadAt> {
    Arc::new(Bytes(bytes.into()))
}

/// Half text-like, half noise, from a fixed seed.
fn data(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    (0..len)
        .map(|i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if i / 4096 % 2 == 0 { (state >> 56) as u8 } else { b"kubernetes.io/"[i % 14] }
        })
        .collect()
}

fn stored(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = FrameWriter::new(&mut out, LEVEL).unwrap();
    writer.write_all(plain).unwrap();
    let (written, _) = writer.finish(&[]).unwrap();
    assert_eq!((written.plain_bytes, written.stored_bytes), (plain.len() as u64, out.len() as u64));
    assert_eq!(written.stored_bytes, out.len() as u64);
    out
}

fn all(framed: &Framed) -> Result<Vec<u8>, CodecError> {
    let (mut raw, mut plain, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..framed.frame_count() {
        framed.frame_stored(i, &mut raw)?;
        framed.decode(i, &raw, &mut plain)?;
        out.extend_from_slice(&plain);
    }
    Ok(out)
}

const SIZES: [usize; 8] =
    [0, 1, 1000, FRAME_PLAIN - 1, FRAME_PLAIN, FRAME_PLAIN + 1, 3 * FRAME_PLAIN, 3 * FRAME_PLAIN + 77];

#[test]
fn what_goes_in_comes_out_whole_and_by_frame() {
    for len in SIZES {
        let plain = data(len);
        let bytes = stored(&plain);
        let framed = Framed::open(source(&bytes)).unwrap();
        assert_eq!(framed.index_state(), IndexState::Stored);
        assert_eq!((framed.plain_len(), framed.stored_len()), (len as u64, bytes.len() as u64));
        assert_eq!(framed.frame_count(), len.div_ceil(FRAME_PLAIN));
        let index = framed.index_range().unwrap();
        let frames_end = framed.frame_count().checked_sub(1).map_or(0, |last| framed.frame_range(last).end);
        assert_eq!(index, frames_end..bytes.len() as u64);
        assert!(all(&framed).unwrap() == plain);
        // zstd's own decoder on the whole object: promise 10.
        assert!(zstd::stream::decode_all(&bytes[..]).unwrap() == plain);
    }
}

#[test]
fn the_way_it_is_written_makes_no_difference() {
    let plain = data(2 * FRAME_PLAIN + 12_345);
    let whole = stored(&plain);
    for step in [1 << 12, 32_768, FRAME_PLAIN - 1, FRAME_PLAIN + 1] {
        let mut out = Vec::new();
        let mut writer = FrameWriter::new(&mut out, LEVEL).unwrap();
        for part in plain.chunks(step) {
            writer.write_all(part).unwrap();
        }
        assert_eq!(writer.progress().0, plain.len() as u64);
        writer.finish(&[]).unwrap();
        assert!(out == whole, "{step}");
    }
}

#[test]
fn the_command_line_tool_unpacks_it_and_we_read_what_it_packs() {
    let run = |args: &[&str], input: &[u8]| -> Option<Vec<u8>> {
        let mut child = Command::new("zstd").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|s| {
            s.spawn(move || stdin.write_all(input).unwrap());
            child.wait_with_output().unwrap()
        });
        assert!(output.status.success());
        Some(output.stdout)
    };
    // A machine without the tool has the library's decoder on the same bytes in the test above.
    if run(&["--version"], b"").is_none() {
        return;
    }
    for len in SIZES {
        let plain = data(len);
        assert!(run(&["-dcq"], &stored(&plain)).unwrap() == plain, "{len}");
    }
    let plain = data(FRAME_PLAIN);
    let foreign = run(&["-cq", "-3", "--stream-size=1048576"], &plain).unwrap();
    let framed = Framed::open(source(&foreign)).unwrap();
    assert!(matches!(framed.index_state(), IndexState::Rebuilt(_)));
    assert!(all(&framed).unwrap() == plain);
    let unsized_frame = run(&["-cq"], &plain).unwrap();
    assert!(Framed::open(source(&unsized_frame)).unwrap_err().needs_unpacking());
}

#[test]
fn without_its_index_it_is_rebuilt() {
    let plain = data(3 * FRAME_PLAIN + 5);
    let bytes = stored(&plain);
    let at = Framed::open(source(&bytes)).unwrap().index_range().unwrap().start as usize;
    let with = |tail: &[u8]| [&bytes[..at], tail].concat();
    let mut torn = bytes[at..].to_vec();
    torn[10] ^= 1;
    let skippable = [&0x184D_2A50u32.to_le_bytes()[..], &3u32.to_le_bytes(), b"abc"].concat();
    for (tail, why) in [
        (vec![], "the object has none"),
        (skippable, "the object has none"),
        (torn, "its checksum does not match"),
        ([&bytes[at..], &bytes[at..]].concat(), "its figures contradict each other"),
    ] {
        let framed = Framed::open(source(&with(&tail))).unwrap();
        assert_eq!(framed.index_state(), IndexState::Rebuilt(why));
        assert_eq!(framed.index_range(), None);
        assert!(all(&framed).unwrap() == plain);
    }
    let twice = [&bytes[..], &bytes[..]].concat();
    let framed = Framed::open(source(&twice)).unwrap();
    assert!(all(&framed).unwrap() == [&plain[..], &plain[..]].concat());
}

#[test]
fn any_flipped_bit_in_the_index_costs_only_the_index() {
    let plain = data(2 * FRAME_PLAIN + 5);
    let bytes = stored(&plain);
    let at = Framed::open(source(&bytes)).unwrap().index_range().unwrap().start as usize;
    for i in at..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[i] ^= 1 << bit;
            let framed = Framed::open(source(&flipped)).unwrap_or_else(|e| panic!("{i} {bit}: {e}"));
            assert!(matches!(framed.index_state(), IndexState::Rebuilt(_)), "{i} {bit}");
            assert_eq!((framed.plain_len(), framed.frame_count()), (plain.len() as u64, 3));
        }
    }
}

#[test]
fn any_flipped_byte_in_a_frame_is_named_with_its_frame() {
    let plain = data(2 * FRAME_PLAIN + 5);
    let bytes = stored(&plain);
    let framed = Framed::open(source(&bytes)).unwrap();
    for i in 0..3 {
        let range = framed.frame_range(i);
        for at in (range.start..range.end.min(range.start + 20)).chain([range.end - 1]) {
            let mut flipped = bytes.clone();
            flipped[at as usize] ^= 0x10;
            let flipped = Framed::open(source(&flipped)).unwrap();
            match all(&flipped) {
                Err(CodecError::Damaged { frame, offset, .. }) => assert_eq!((frame, offset), (i, range.start)),
                other => panic!("{:?}", other.map(|b| b.len())),
            }
            let mut buf = [0; 1];
            let other_frame = if i == 0 { FRAME_PLAIN as u64 } else { 0 };
            flipped.read_at(other_frame, &mut buf).unwrap();
            let err = flipped.read_at((i * FRAME_PLAIN) as u64, &mut buf).unwrap_err();
            assert_eq!(err.kind(), io::ErrorKind::InvalidData);
        }
    }
}

#[test]
fn without_index_a_flipped_header_never_panics_nor_gives_more_than_was_there() {
    let plain = data(FRAME_PLAIN + 5);
    let bytes = stored(&plain);
    let at = Framed::open(source(&bytes)).unwrap().index_range().unwrap().start as usize;
    for i in (0..200).chain(at - 30..at) {
        for bit in 0..8 {
            let mut flipped = bytes[..at].to_vec();
            flipped[i] ^= 1 << bit;
            if let Ok(framed) = Framed::open(source(&flipped)) {
                assert!(framed.plain_len() <= 2 * FRAME_PLAIN_MAX);
                if let Ok(out) = all(&framed) {
                    assert_eq!(out.len() as u64, framed.plain_len());
                }
            }
        }
    }
}

#[test]
fn cut_anywhere_it_is_an_error_or_a_shorter_object() {
    let plain = data(3 * FRAME_PLAIN + 5);
    let bytes = stored(&plain);
    let framed = Framed::open(source(&bytes)).unwrap();
    let ends: Vec<usize> = (0..4).map(|i| framed.frame_range(i).end as usize).collect();
    let at_index = framed.index_range().unwrap().start as usize;
    for len in (0..64).map(|i| bytes.len() * i / 64).chain(ends.iter().copied()).chain(at_index + 1..bytes.len()) {
        match Framed::open(source(&bytes[..len])) {
            Ok(cut) => {
                // Only where a frame ends: nothing but the missing bytes themselves can show it.
                assert!(len == 0 || ends.contains(&len), "{len}");
                assert!(plain.starts_with(&all(&cut).unwrap()));
            }
            Err(CodecError::Cut { .. }) => assert!(!ends.contains(&len), "{len}"),
            Err(other) => panic!("{len}: {other}"),
        }
    }
}

#[test]
fn what_is_not_zstd_is_an_error() {
    for bytes in [&b"x"[..], b"text, not a database", &[0; 4096], &ZSTD_MAGIC.to_le_bytes(), b"\x5e\x2a\x4d\x18"] {
        assert!(Framed::open(source(bytes)).is_err());
    }
}

#[test]
fn a_claimed_size_that_the_bytes_cannot_hold_is_refused() {
    // A header that claims 16 MiB in one RLE block of one byte.
    let mut bomb = ZSTD_MAGIC.to_le_bytes().to_vec();
    bomb.push(0b1010_0000);
    bomb.extend((FRAME_PLAIN_MAX as u32).to_le_bytes());
    bomb.extend([0x03, 0, 0, b'x']);
    assert!(matches!(Framed::open(source(&bomb)), Err(CodecError::Damaged { frame: 0, offset: 0, .. })));
    // An index with a right checksum that claims the same.
    let index = index::encode(&[(9, 0)], FRAME_PLAIN_MAX as u32, FRAME_PLAIN_MAX, 9, &[]);
    let object = [&[0; 9][..], &index].concat();
    assert!(matches!(Framed::open(source(&object)), Err(CodecError::NoFrame { offset: 0 })));
    // One frame each: stored size, plain bytes per frame, plain and stored bytes in total.
    let table = [
        (9, 100, 100, 9, true),
        (9, 0, 1, 9, false),
        (9, u32::MAX, 1, 9, false),
        (9, 100, 101, 9, false),
        (9, 100, 0, 9, false),
        (9, 100, u64::MAX, 9, false),
        (9, FRAME_PLAIN_MAX as u32, FRAME_PLAIN_MAX, 9, false),
        (8, 100, 100, 9, false),
        (u32::MAX, 100, 100, 9, false),
        (9, 100, 100, 8, false),
        (9, 100, 100, u64::MAX, false),
    ];
    for (size, per_frame, plain, stored, good) in table {
        let object = [&[0; 9][..], &index::encode(&[(size, 0)], per_frame, plain, stored, &[])].concat();
        let at = index::locate(&*source(&object)).unwrap().unwrap();
        assert_eq!(index::read(&*source(&object), at).unwrap().is_ok(), good, "{size} {per_frame} {plain} {stored}");
    }
}

#[test]
fn frames_that_are_not_there_are_errors() {
    let framed = Framed::open(source(&stored(b"abc"))).unwrap();
    let (mut raw, mut plain) = (Vec::new(), vec![1, 2, 3]);
    assert!(matches!(framed.frame_stored(1, &mut raw), Err(CodecError::NoSuchFrame { frame: 1 })));
    framed.frame_stored(0, &mut raw).unwrap();
    assert!(framed.decode(1, &raw, &mut plain).is_err());
    assert!(framed.decode(0, &raw[1..], &mut plain).is_err());
    framed.decode(0, &raw, &mut plain).unwrap();
    assert_eq!((plain.as_slice(), framed.frame_range(7)), (&b"abc"[..], 0..0));
    for (offset, len) in [(0, 4), (3, 1), (u64::MAX, 1), (4, 0)] {
        assert_eq!(framed.read_at(offset, &mut vec![0; len]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
    framed.read_at(3, &mut []).unwrap();
}

#[test]
fn threads_share_one_object() {
    let plain = data(12 * FRAME_PLAIN);
    let framed = Framed::open(source(&stored(&plain))).unwrap();
    std::thread::scope(|s| {
        for thread in 0..4usize {
            let (framed, plain) = (&framed, &plain);
            s.spawn(move || {
                let mut buf = vec![0; 5000];
                for i in 0..60 {
                    let at = (i * 7 + thread * 3) * 200_003 % (plain.len() - buf.len());
                    framed.read_at(at as u64, &mut buf).unwrap();
                    assert!(buf == plain[at..at + buf.len()]);
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn round_trip(seed in any::<u64>(), len in 0usize..2_500_000, cuts in prop::collection::vec(1usize..700_000, 1..8)) {
        let plain: Vec<u8> = data(len).into_iter().map(|b| b ^ seed as u8).collect();
        let mut out = Vec::new();
        let mut writer = FrameWriter::new(&mut out, LEVEL).unwrap();
        let (mut rest, mut cuts) = (&plain[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (part, next) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            writer.write_all(part).unwrap();
            rest = next;
        }
        writer.finish(&[]).unwrap();
        let framed = Framed::open(source(&out)).unwrap();
        prop_assert!(all(&framed).unwrap() == plain);
    }

    #[test]
    fn random_access(reads in prop::collection::vec((0usize..3_200_000, 0usize..2_200_000), 1..12)) {
        let plain = data(3 * FRAME_PLAIN + 99);
        let framed = Framed::open(source(&stored(&plain))).unwrap();
        for (at, len) in reads {
            let mut buf = vec![0; len];
            let got = framed.read_at(at as u64, &mut buf);
            match plain.get(at..at + len) {
                Some(want) => prop_assert!(got.is_ok() && buf == want),
                None => prop_assert!(got.is_err()),
            }
        }
    }

    #[test]
    fn any_bytes_are_an_error_or_an_object(mut bytes in prop::collection::vec(any::<u8>(), 0..400), magic in any::<bool>(), tag in any::<bool>()) {
        if magic { bytes.splice(0..0, ZSTD_MAGIC.to_le_bytes()); }
        if tag { bytes.extend(b"RFLTINDX"); }
        if let Ok(framed) = Framed::open(source(&bytes)) {
            prop_assert!(framed.plain_len() <= FRAME_PLAIN_MAX * framed.frame_count() as u64);
            let _ = all(&framed);
        }
    }
}

#[test]
fn hints_come_back_or_are_left_out() {
    let plain = vec![7u8; 3_000_000];
    let with = |hints: &[u8]| {
        let mut stored = Vec::new();
        let mut writer = FrameWriter::new(&mut stored, LEVEL).unwrap();
        writer.write_all(&plain).unwrap();
        writer.finish(hints).unwrap();
        stored
    };
    let stored = with(b"a hint");
    let framed = Framed::open(Arc::new(stored.clone()) as Arc<dyn ReadAt>).unwrap();
    assert_eq!((framed.index_state(), framed.hints()), (IndexState::Stored, Some(b"a hint".to_vec())));
    assert_eq!(zstd::stream::decode_all(&stored[..]).unwrap(), plain);
    // What claims to be a large part of the database is not unpacked.
    let large = Framed::open(Arc::new(with(&vec![1; 400_000])) as Arc<dyn ReadAt>).unwrap();
    assert_eq!((large.index_state(), large.hints()), (IndexState::Stored, None));
    // Each byte of the index, hints included, stands under its checksum.
    let range = framed.index_range().unwrap();
    for at in range.start..range.end {
        let mut bad = stored.clone();
        bad[at as usize] ^= 1;
        let framed = Framed::open(Arc::new(bad) as Arc<dyn ReadAt>).unwrap();
        assert!(matches!(framed.index_state(), IndexState::Rebuilt(_)), "{at}");
        assert_eq!(framed.hints(), None);
    }
}
