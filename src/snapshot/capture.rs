//! First pass: from the member's stream into a file that has no name yet, hashed and compressed on the way.
//!
//! The stream never waits for more than a few MiB of unwritten data: a stalled stream keeps etcd from freeing
//! pages. The file gets its name only when everything behind this step has succeeded, so a kill leaves nothing.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::judge::{TRAILER, split};
use super::progress::Progress;
use crate::catalog::Digest;
use crate::error::{Code, Error, Result};
use crate::etcd::{Member, StreamLimits};
use crate::format::check::Collector;
use crate::fs::Staged;
use crate::store::LocalStore;
use crate::store::codec::{FrameWriter, Written};

/// zstd's fastest standard level: about a third of the size, at several times the speed of the stream.
pub const LEVEL: i32 = 1;
/// Blobs of 32 KiB between stream and disk.
const QUEUE: usize = 128;
/// Dirty pages are pushed out in steps of this size, so that the final sync is short and etcd's own syncs do
/// not queue behind gigabytes.
const FLUSH_EVERY: u64 = 32 << 20;

/// A stream that arrived whole.
pub struct Captured {
    pub staged: Staged,
    pub written: Written,
    /// Bytes without trailer.
    pub db_len: u64,
    pub db_sha256: Digest,
    pub started: Timestamp,
    pub seconds: f64,
    /// Storage version as the stream said it (3.6 and later).
    pub storage_version: Option<String>,
}

/// What the writing side hands back.
struct Sunk {
    staged: Staged,
    written: Written,
    digest: [u8; 32],
    tail: Vec<u8>,
}

/// Streams a snapshot of `member` into a nameless file of `store`.
pub async fn capture(
    member: &Member,
    store: &Arc<LocalStore>,
    limits: StreamLimits,
    expected: u64,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Captured> {
    let staged = store.stage()?;
    let on = format!("store {}", crate::store::Store::location(&**store));
    let (sender, receiver) = mpsc::channel::<Bytes>(QUEUE);
    let sink = tokio::task::spawn_blocking(move || sink(staged, receiver, &on));

    let (started, clock) = (Timestamp::now(), Instant::now());
    let streamed = stream(member, limits, expected, sender, progress, cancel).await;
    let sunk = sink.await.map_err(|e| Error::new(Code::Internal, "write snapshot", "").because(e))?;
    // A full disk closes the channel, so the sink's own reason comes first.
    let (storage_version, total) = match (streamed, &sunk) {
        (Err(error), Ok(_)) => return Err(error),
        (Err(error), Err(_)) if error.code() == Code::Canceled => return Err(error),
        (Ok(done), _) => done,
        (Err(_), Err(_)) => (None, 0),
    };
    let Sunk { staged, written, digest, tail } = sunk?;

    let lie = |why: String| {
        Err(Error::new(Code::StreamLies, "take snapshot from", member.url())
            .because(why)
            .remedy("try again; if it happens again, look at the network path and the member's log"))
    };
    let (db_len, has_trailer, _) = split(total);
    if !has_trailer || db_len == 0 {
        return lie(format!("the stream has {total} bytes, which is not a database with a trailer of {TRAILER}"));
    }
    if tail != digest {
        let sent: [u8; 32] = tail.try_into().unwrap_or_default();
        return lie(format!(
            "SHA-256 of the {db_len} bytes of the database is {}, the trailer that the member sent is {}",
            Digest(digest),
            Digest(sent)
        ));
    }
    Ok(Captured {
        staged,
        written,
        db_len,
        db_sha256: Digest(digest),
        started,
        seconds: clock.elapsed().as_secs_f64(),
        storage_version,
    })
}

async fn stream(
    member: &Member,
    limits: StreamLimits,
    expected: u64,
    sender: mpsc::Sender<Bytes>,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<(Option<String>, u64)> {
    let canceled = || Error::new(Code::Canceled, "take snapshot from", member.url());
    let mut stream = tokio::select! {
        opened = member.snapshot(limits) => opened?,
        () = cancel.cancelled() => return Err(canceled()),
    };
    loop {
        let blob = tokio::select! {
            blob = stream.next() => blob?,
            () = cancel.cancelled() => return Err(canceled()),
        };
        let Some(blob) = blob else { break };
        let total = stream.remaining().map_or(expected, |left| stream.received() + left);
        progress.bytes(stream.received(), Some(total.max(stream.received())), "B");
        if sender.send(blob).await.is_err() {
            return Err(Error::new(Code::Io, "write snapshot of", member.url()));
        }
    }
    Ok((stream.version().map(String::from), stream.received()))
}

/// Everything that touches the disk, on a thread of its own.
fn sink(staged: Staged, mut blobs: mpsc::Receiver<Bytes>, on: &str) -> Result<Sunk> {
    let failed = |e: std::io::Error| {
        let full = e.kind() == std::io::ErrorKind::StorageFull || e.kind() == std::io::ErrorKind::QuotaExceeded;
        let error = Error::io("write snapshot to", on, e);
        if full {
            error.remedy("free space on that file system: it filled up while the snapshot was written")
        } else {
            error
        }
    };
    let (mut hasher, mut tail) = (Sha256::new(), Vec::<u8>::new());
    let flusher = Flusher::start(staged.file()).map_err(failed)?;
    let mut frames = FrameWriter::new(flusher, LEVEL).map_err(failed)?;
    let mut branches = Collector::default();
    while let Some(blob) = blobs.blocking_recv() {
        frames.write_all(&blob).map_err(failed)?;
        branches.feed(&blob);
        // The last 32 bytes of all are the trailer, and nobody knows yet which these are.
        let keep = TRAILER as usize;
        if blob.len() >= keep {
            hasher.update(&tail);
            hasher.update(&blob[..blob.len() - keep]);
            tail.clear();
            tail.extend_from_slice(&blob[blob.len() - keep..]);
        } else {
            tail.extend_from_slice(&blob);
            let settled = tail.len().saturating_sub(keep);
            hasher.update(&tail[..settled]);
            tail.drain(..settled);
        }
    }
    let written = frames.finish(&branches.finish().encode()).map_err(failed)?;
    staged.file().sync_data().map_err(failed)?;
    Ok(Sunk { staged, written, digest: hasher.finalize().into(), tail })
}

/// Writes through, and has another thread sync what was written in steps.
struct Flusher {
    file: std::fs::File,
    since: u64,
    wake: Option<std::sync::mpsc::SyncSender<()>>,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl Flusher {
    fn start(file: &std::fs::File) -> std::io::Result<Flusher> {
        let (wake, woken) = std::sync::mpsc::sync_channel::<()>(1);
        let synced = file.try_clone()?;
        let thread = std::thread::Builder::new().name("flush".into()).spawn(move || {
            for () in woken {
                synced.sync_data()?;
            }
            Ok(())
        })?;
        Ok(Flusher { file: file.try_clone()?, since: 0, wake: Some(wake), thread: Some(thread) })
    }
}

impl Write for Flusher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.since += n as u64;
        if self.since >= FLUSH_EVERY {
            self.since = 0;
            // Busy or ended by an error: the latter comes out of `flush`.
            let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
        }
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        // The final `sync_data` of the caller reports what a sync here could not.
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
