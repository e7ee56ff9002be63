//! Writes a stored object: frames, then their index.

use std::io::{self, Write};

use zstd::bulk::Compressor;

use super::{FRAME_PLAIN, FRAMES_MAX, index};

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub plain_bytes: u64,
    /// With the index.
    pub stored_bytes: u64,
}

/// Compresses into independent frames. Context and buffers are made once; memory does not grow but for 8 bytes a
/// frame.
pub struct FrameWriter<W> {
    out: W,
    compressor: Compressor<'static>,
    plain: Vec<u8>,
    stored: Vec<u8>,
    frames: Vec<(u32, u32)>,
    plain_bytes: u64,
    stored_bytes: u64,
}

impl<W: Write> FrameWriter<W> {
    /// `level` as zstd counts them; [`super::LEVEL`] for snapshots.
    pub fn new(out: W, level: i32) -> io::Result<Self> {
        Ok(FrameWriter {
            out,
            compressor: Compressor::new(level)?,
            plain: Vec::with_capacity(FRAME_PLAIN),
            stored: Vec::with_capacity(zstd::zstd_safe::compress_bound(FRAME_PLAIN)),
            frames: Vec::new(),
            plain_bytes: 0,
            stored_bytes: 0,
        })
    }

    /// Takes the next plain bytes; a full frame is compressed and written at once. Whole frames within `bytes` are
    /// compressed where they are, without a copy.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.plain.is_empty()
                && let Some((frame, rest)) = bytes.split_at_checked(FRAME_PLAIN)
            {
                self.frame(frame)?;
                bytes = rest;
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(FRAME_PLAIN - self.plain.len()));
            self.plain.extend_from_slice(part);
            bytes = rest;
            if self.plain.len() == FRAME_PLAIN {
                self.buffered()?;
            }
        }
        Ok(())
    }

    /// Plain bytes taken and stored bytes written so far.
    pub fn progress(&self) -> (u64, u64) {
        (self.plain_bytes + self.plain.len() as u64, self.stored_bytes)
    }

    /// Writes what is left and the index, which also carries `hints`: any bytes that spare a reader work and that it
    /// need not trust; left out where they are too large. Gives back what was written to; the caller makes it durable.
    pub fn finish(mut self, hints: &[u8]) -> io::Result<(Written, W)> {
        if !self.plain.is_empty() {
            self.buffered()?;
        }
        let hints = if hints.is_empty() { Vec::new() } else { zstd::bulk::compress(hints, super::LEVEL)? };
        let hints = if hints.len() as u64 > index::HINTS_MAX { &[] } else { &hints[..] };
        let index = index::encode(&self.frames, FRAME_PLAIN as u32, self.plain_bytes, self.stored_bytes, hints);
        self.emit(&index)?;
        self.out.flush()?;
        Ok((Written { plain_bytes: self.plain_bytes, stored_bytes: self.stored_bytes }, self.out))
    }

    fn buffered(&mut self) -> io::Result<()> {
        let mut plain = std::mem::take(&mut self.plain);
        let done = self.frame(&plain);
        plain.clear();
        self.plain = plain;
        done
    }

    fn frame(&mut self, plain: &[u8]) -> io::Result<()> {
        if self.frames.len() as u64 >= FRAMES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "an object holds at most 4 TiB"));
        }
        let mut stored = std::mem::take(&mut self.stored);
        stored.clear();
        self.compressor.compress_to_buffer(plain, &mut stored)?;
        self.plain_bytes += plain.len() as u64;
        // The bound of a frame of 1 MiB is far within 32 bits.
        self.frames.push((stored.len() as u32, crc32c::crc32c(&stored)));
        let done = self.emit(&stored);
        self.stored = stored;
        done
    }

    fn emit(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.stored_bytes += bytes.len() as u64;
        Ok(())
    }
}
