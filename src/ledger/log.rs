//! Appends to the newest file, and begins new ones.

use jiff::Timestamp;

use super::frame::{self, Entry, FILE_HEAD};
use super::open;
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::fs::{self, Dir, Lock, Writable};

/// Bytes that stay reserved behind the end, so that intents can still be written on a full disk.
pub const RESERVE: u64 = 1 << 20;
/// A file does not grow beyond; whoever rotates does it long before.
pub const FILE_MAX: u64 = 256 << 20;

/// One batch with its time.
pub type Batch = (Vec<Entry>, Timestamp);

/// The open end of the ledger. One per state directory: its lock is held until it is dropped.
#[derive(Debug)]
pub struct Ledger {
    dir: Dir,
    file: Writable,
    number: u32,
    /// Bytes of whole and durable frames.
    end: u64,
    next: u64,
    /// Up to where the disk has room for this file; `None` where the file system cannot say.
    reserved: Option<u64>,
    /// A write or sync failed: what stands behind `end`, or under the next file's name, is unknown.
    doubtful: bool,
    _lock: Lock,
}

impl Ledger {
    /// `end` and `next` are what a scan of the file found.
    pub(super) fn at(dir: Dir, number: u32, end: u64, next: u64, lock: Lock) -> Result<Ledger> {
        let file = dir.open_writable(&open::name(number))?;
        let mut ledger = Ledger { dir, file, number, end, next, reserved: Some(end), doubtful: false, _lock: lock };
        // A disk that is full is no reason not to start: the next append says so.
        let _ = ledger.reserve(0);
        Ok(ledger)
    }

    /// Bytes of the current file.
    pub fn size(&self) -> u64 {
        self.end
    }

    /// Appends one batch, all of it or nothing; it is durable when this returns. Gives the number of its last entry,
    /// or of the last one there is where the batch is empty. `TooLittleSpace` if the disk is full, also beyond what
    /// was reserved: nothing is written then, and it works again once there is room.
    pub fn append(&mut self, batch: &[Entry], at: Timestamp) -> Result<u64> {
        self.settle()?;
        if batch.is_empty() {
            return Ok(self.next - 1);
        }
        let frame = self.encode(self.next, self.end, batch, at)?;
        self.write(&frame)?;
        self.next += batch.len() as u64;
        Ok(self.next - 1)
    }

    /// Appends several batches with one wait for the disk; one result each, in order.
    pub(super) fn append_all(&mut self, batches: &[Batch]) -> Vec<Result<u64>> {
        if let Some(done) = self.append_together(batches) {
            return done.into_iter().map(Ok).collect();
        }
        // One that is too large, or a disk with room for some of them: each one by itself.
        batches.iter().map(|(batch, at)| self.append(batch, *at)).collect()
    }

    /// All or nothing; without a reason, since each one then gets its own.
    fn append_together(&mut self, batches: &[Batch]) -> Option<Vec<u64>> {
        if batches.len() < 2 {
            return None;
        }
        self.settle().ok()?;
        let (mut frames, mut next, mut done) = (Vec::new(), self.next, Vec::new());
        for (batch, at) in batches {
            if !batch.is_empty() {
                frames.extend(self.encode(next, self.end, batch, *at).ok()?);
                next += batch.len() as u64;
            }
            done.push(next - 1);
        }
        self.write(&frames).ok()?;
        self.next = next;
        Some(done)
    }

    /// Begins a new file with this batch. From then on reading begins there; the file before is kept, older ones are
    /// removed. When it fails the current file goes on.
    pub fn rotate(&mut self, checkpoint: &[Entry], at: Timestamp) -> Result<()> {
        const WHAT: &str = "begin new ledger file in";
        let shown = || self.dir.path().display().to_string();
        let number = self
            .number
            .checked_add(1)
            .filter(|n| *n <= open::NUMBER_MAX)
            .ok_or_else(|| Error::new(Code::Internal, WHAT, shown()).because("the numbers of files are used up"))?;
        let frame = self.encode(self.next, 0, checkpoint, at)?;
        if self.doubtful {
            open::remove_beyond(&self.dir, self.number).map_err(|e| e.during(WHAT, shown()))?;
        }
        crash::point!("ledger::rotating");
        let begun = open::begin(&self.dir, number, &frame).and_then(|()| self.dir.open_writable(&open::name(number)));
        let file = match begun {
            Ok(file) => file,
            Err(e) => {
                // It may have its name already; what is appended to this file would then never be read again.
                self.doubtful = true;
                return Err(full(e.during(WHAT, shown())));
            }
        };
        crash::point!("ledger::rotated");
        let before = std::mem::replace(&mut self.number, number);
        self.file = file;
        self.end = (FILE_HEAD + frame.len()) as u64;
        self.next += checkpoint.len() as u64;
        self.reserved = Some(self.end);
        self.doubtful = false;
        let _ = self.reserve(0);
        // What is left over is tried again at the next rotation.
        if let Err(e) = open::remove_before(&self.dir, before) {
            tracing::warn!("an old ledger file stays: {}", e.line());
        }
        Ok(())
    }

    fn encode(&self, next: u64, synced: u64, batch: &[Entry], at: Timestamp) -> Result<Vec<u8>> {
        frame::encode(next, synced, at, batch)
            .map_err(|e| Error::new(Code::Internal, "append to ledger", self.file.shown()).because(e))
    }

    /// Writes frames behind the end and waits until they are durable. Nothing is changed where there is no room.
    fn write(&mut self, frames: &[u8]) -> Result<()> {
        const WHAT: &str = "append to ledger";
        let size = frames.len() as u64;
        if size == 0 {
            return Ok(());
        }
        if self.end + size > FILE_MAX {
            return Err(Error::new(Code::TooLittleSpace, WHAT, self.file.shown())
                .because(format!("a file holds {FILE_MAX} bytes at most, and no new one could be begun"))
                .remedy("look in the journal why not"));
        }
        if let Err(e) = self.reserve(size) {
            return Err(full(e.during(WHAT, self.file.shown())));
        }
        crash::point!("ledger::writing");
        let written = self.file.write_all_at(frames, self.end).and_then(|()| {
            crash::point!("ledger::written");
            self.file.sync()
        });
        if let Err(e) = written {
            self.doubtful = true;
            // At once, so that the file is as it was; if that fails too, the next append begins with it.
            let _ = self.settle();
            return Err(full(e.during(WHAT, self.file.shown())));
        }
        crash::point!("ledger::synced");
        self.end += size;
        // For the next one; when it cannot be had there is what is left of it.
        let _ = self.reserve(0);
        Ok(())
    }

    /// Makes sure of room for `size` bytes and, where that can be had, for [`RESERVE`] beyond. Two reserves are asked
    /// for when less than one is left, so that it costs one call in a megabyte.
    fn reserve(&mut self, size: u64) -> Result<()> {
        let Some(reserved) = self.reserved else { return Ok(()) };
        let needed = self.end + size;
        if reserved >= needed + RESERVE {
            return Ok(());
        }
        let mut last = Ok(());
        for wanted in [needed + 2 * RESERVE, needed + RESERVE, needed] {
            if wanted <= reserved {
                return Ok(());
            }
            match self.file.reserve(self.end, wanted - self.end) {
                Ok(true) => {
                    self.reserved = Some(wanted);
                    return Ok(());
                }
                Ok(false) => {
                    self.reserved = None;
                    return Ok(());
                }
                Err(e) if fs::is_out_of_space(&e) => last = Err(e),
                Err(e) => return Err(e),
            }
        }
        last
    }

    /// Brings the file back to its last durable frame after a failure. A sync that failed once may succeed when it
    /// is repeated although the bytes are lost, so it is never repeated: the bytes are cut off, and written anew.
    fn settle(&mut self) -> Result<()> {
        if !self.doubtful {
            return Ok(());
        }
        let settled = open::remove_beyond(&self.dir, self.number)
            .and_then(|()| self.file.set_len(self.end))
            .and_then(|()| self.file.sync());
        settled.map_err(|e| e.during("bring ledger back to its last entry in", self.file.shown()))?;
        self.doubtful = false;
        // Cutting gave it back.
        self.reserved = Some(self.end);
        let _ = self.reserve(0);
        Ok(())
    }
}

/// A full disk has a code of its own.
fn full(err: Error) -> Error {
    if fs::is_out_of_space(&err) { err.with_code(Code::TooLittleSpace) } else { err }
}
