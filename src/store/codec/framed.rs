//! Reads a stored object: at random, or frame by frame for a pipeline.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zstd::bulk::Decompressor;

use super::cache::Cache;
use super::error::CodecError;
use super::{Frame, frame, index};
use crate::format::ReadAt;

/// Decoded frames that are kept for random access, in bytes.
const CACHE: usize = 8 * 1024 * 1024;

/// Hints are taken up to this part of the plain bytes.
const HINT_PART: u64 = 8;

/// Where the table of frames came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    Stored,
    /// Found from the frames' headers, because the stored index cannot be used, for this reason.
    Rebuilt(&'static str),
}

/// A stored object, open. Threads may share it.
pub struct Framed {
    source: Arc<dyn ReadAt>,
    frames: Vec<Frame>,
    plain_len: u64,
    state: IndexState,
    index_at: Option<u64>,
    hints: Vec<u8>,
    cache: Mutex<Cache>,
    idle: Mutex<Vec<Worker>>,
}

/// What decoding one frame needs; as many as threads that ever decoded at once.
struct Worker {
    decompressor: Decompressor<'static>,
    raw: Vec<u8>,
    spare: Vec<u8>,
}

impl fmt::Debug for Framed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framed")
            .field("frames", &self.frames.len())
            .field("plain_len", &self.plain_len)
            .field("stored_len", &self.source.len())
            .field("state", &self.state)
            .finish()
    }
}

impl Framed {
    /// Reads the index, or finds the frames one by one if it cannot be used. Frames are not decoded.
    ///
    /// An object that is sound zstd but cannot be read at random gives an error for which
    /// [`CodecError::needs_unpacking`] is true.
    pub fn open(source: impl Into<Arc<dyn ReadAt>>) -> Result<Framed, CodecError> {
        let source = source.into();
        let len = source.len();
        let read_error = |source| CodecError::Read { offset: len, source };
        let located = index::locate(&*source).map_err(read_error)?;
        let stored = match located {
            None => Err("the object has none"),
            Some(at) => index::read(&*source, at).map_err(read_error)?,
        };
        let (frames, hints, state) = match stored {
            Ok(index) => (index.frames, index.hints, IndexState::Stored),
            // Where the footer says that the index begins, frames end, whatever the index itself looks like.
            Err(why) => (
                frame::walk(&*source, located.unwrap_or(len)).or_else(|first| match located {
                    // A footer in bytes that only look like one.
                    Some(_) => frame::walk(&*source, len).map_err(|_| first),
                    None => Err(first),
                })?,
                Vec::new(),
                IndexState::Rebuilt(why),
            ),
        };
        let plain_len = frames.last().map_or(0, |f| f.plain_at + u64::from(f.plain));
        Ok(Framed {
            source,
            frames,
            plain_len,
            state,
            index_at: located.filter(|_| state == IndexState::Stored),
            hints,
            cache: Mutex::new(Cache::new(CACHE)),
            idle: Mutex::new(Vec::new()),
        })
    }

    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Plain bytes in total.
    pub fn plain_len(&self) -> u64 {
        self.plain_len
    }

    /// Stored bytes in total, with the index.
    pub fn stored_len(&self) -> u64 {
        self.source.len()
    }

    pub fn index_state(&self) -> IndexState {
        self.state
    }

    /// Where the index is in the stored bytes; `None` if there is no sound one. Frames end where it begins.
    pub fn index_range(&self) -> Option<Range<u64>> {
        self.index_at.map(|at| at..self.source.len())
    }

    /// The hints that its writer left, unless there are none or they are damaged: never to be trusted.
    pub fn hints(&self) -> Option<Vec<u8>> {
        if self.hints.is_empty() {
            return None;
        }
        // Hints are a small part of a database; what claims more is not worth its memory.
        let limit = usize::try_from(self.plain_len / HINT_PART).ok()?;
        let claimed = zstd::zstd_safe::get_frame_content_size(&self.hints).ok().flatten()?;
        if claimed > limit as u64 {
            return None;
        }
        zstd::bulk::decompress(&self.hints, claimed as usize).ok()
    }

    /// Where the frame is in the stored bytes; empty for a frame that is not there.
    pub fn frame_range(&self, i: usize) -> Range<u64> {
        self.frames.get(i).map_or(0..0, |f| f.stored_at..f.stored_at + u64::from(f.stored))
    }

    /// The stored bytes, for reading those that belong to no frame.
    pub fn source(&self) -> &Arc<dyn ReadAt> {
        &self.source
    }

    /// Reads the stored bytes of frame `i`; `raw` is overwritten, its capacity kept.
    pub fn frame_stored(&self, i: usize, raw: &mut Vec<u8>) -> Result<(), CodecError> {
        let frame = self.frame(i)?;
        raw.resize(frame.stored as usize, 0);
        self.source.read_at(frame.stored_at, raw).map_err(|source| CodecError::Read { offset: frame.stored_at, source })
    }

    /// Decodes the stored bytes of frame `i`; `plain` is overwritten, its capacity kept. Exactly the bytes that the
    /// frame holds, or an error.
    pub fn decode(&self, i: usize, raw: &[u8], plain: &mut Vec<u8>) -> Result<(), CodecError> {
        let frame = self.frame(i)?;
        let mut worker = self.worker(&frame, i)?;
        let done = worker.decode(&frame, i, raw, plain);
        self.idle().push(worker);
        done
    }

    fn frame(&self, i: usize) -> Result<Frame, CodecError> {
        self.frames.get(i).copied().ok_or(CodecError::NoSuchFrame { frame: i })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn worker(&self, frame: &Frame, i: usize) -> Result<Worker, CodecError> {
        if let Some(worker) = self.idle().pop() {
            return Ok(worker);
        }
        let decompressor = Decompressor::new().map_err(|e| damaged(frame, i, e.to_string()))?;
        Ok(Worker { decompressor, raw: Vec::new(), spare: Vec::new() })
    }

    /// The plain bytes of a frame, from the cache if they are there. Two threads that miss the same frame at once
    /// both decode it: rare, and better than one waiting for the other's disk.
    fn plain(&self, i: usize) -> Result<Arc<Vec<u8>>, CodecError> {
        if let Some(plain) = self.cache().get(i) {
            return Ok(plain);
        }
        let frame = self.frame(i)?;
        let mut worker = self.worker(&frame, i)?;
        let mut raw = std::mem::take(&mut worker.raw);
        let mut plain = std::mem::take(&mut worker.spare);
        let done = self.frame_stored(i, &mut raw).and_then(|()| worker.decode(&frame, i, &raw, &mut plain));
        worker.raw = raw;
        let plain = Arc::new(plain);
        if done.is_ok()
            && let Some(spare) = self.cache().put(i, Arc::clone(&plain))
        {
            worker.spare = spare;
        }
        self.idle().push(worker);
        done.map(|()| plain)
    }
}

impl Worker {
    fn decode(&mut self, frame: &Frame, i: usize, raw: &[u8], plain: &mut Vec<u8>) -> Result<(), CodecError> {
        plain.clear();
        if raw.len() != frame.stored as usize {
            return Err(damaged(frame, i, format!("{} of its {} stored bytes are given", raw.len(), frame.stored)));
        }
        if frame.crc.is_some_and(|crc| crc != crc32c::crc32c(raw)) {
            return Err(damaged(frame, i, "its stored bytes do not match their checksum".into()));
        }
        let holds = frame.plain as usize;
        plain.reserve_exact(holds);
        let got = self.decompressor.decompress_to_buffer(raw, plain).map_err(|e| damaged(frame, i, e.to_string()))?;
        if got != holds {
            plain.clear();
            return Err(damaged(frame, i, format!("it holds {got} bytes instead of {holds}")));
        }
        Ok(())
    }
}

fn damaged(frame: &Frame, i: usize, why: String) -> CodecError {
    CodecError::Damaged { frame: i, offset: frame.stored_at, why }
}

impl ReadAt for Framed {
    fn len(&self) -> u64 {
        self.plain_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.plain_len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut at, mut left) = (offset, buf);
        let mut i = self.frames.partition_point(|f| f.plain_at <= offset).saturating_sub(1);
        while !left.is_empty() {
            let frame = self.frame(i)?;
            let plain = self.plain(i)?;
            let from = usize::try_from(at - frame.plain_at).unwrap_or(usize::MAX);
            let part = plain.get(from..).unwrap_or_default();
            let n = part.len().min(left.len());
            left[..n].copy_from_slice(&part[..n]);
            left = &mut left[n..];
            at += n as u64;
            i += 1;
        }
        Ok(())
    }
}
