//! First pass: from the member's stream into a file that has no name yet, compressed on the way.
//!
//! The stream never waits for more than a few MiB of unwritten data: a stalled stream keeps etcd from freeing
//! pages. The file gets its name only when everything behind this step has succeeded, so a kill leaves nothing.
//!
//! Connection and reader share one thread, with an executor of its own: they wake each other for every few KiB, and
//! between two threads that takes as much of the processor as the bytes do, ours and etcd's.

use std::future::Future;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::judge::{TRAILER, split};
use super::progress::Progress;
use crate::catalog::Digest;
use crate::error::{Code, Error, Result};
use crate::etcd::{Member, SnapshotStream, StreamLimits};
use crate::format::check::Collector;
use crate::fs::Staged;
use crate::store::LocalStore;
use crate::store::codec::{FrameWriter, Written};

/// zstd's fastest standard level: about a third of the size, at several times the speed of the stream.
pub const LEVEL: i32 = 1;
/// Blobs, of 32 KiB each, that go to the writing side together, and how many such batches may wait there.
const BATCH: usize = 32;
pub(super) const QUEUE: usize = 4;
pub(super) type Batch = Vec<Bytes>;
/// Dirty pages are pushed out in steps of this size, so that the final sync is short and etcd's own syncs do
/// not queue behind gigabytes.
const FLUSH_EVERY: u64 = 32 << 20;

/// A stream that arrived whole; nothing of it is proven yet.
pub struct Captured {
    pub staged: Staged,
    pub written: Written,
    /// What the member sent behind the database: its SHA-256.
    pub trailer: Digest,
    pub started: Timestamp,
    /// Storage version as the stream said it (3.6 and later).
    pub storage_version: Option<String>,
    /// The last bytes on their way to the disk, while they are verified.
    pub flushing: Flushing,
}

/// What the writing side hands back.
pub(super) struct Sunk {
    pub(super) staged: Staged,
    pub(super) written: Written,
    /// The last bytes of all, up to 32.
    tail: Vec<u8>,
    pub(super) flushing: Flushing,
}

/// Streams a snapshot of `member` into a nameless file of `store`.
pub async fn capture(
    member: &Member,
    store: &Arc<LocalStore>,
    limits: StreamLimits,
    expected: u64,
    progress: &Arc<dyn Progress>,
    cancel: &CancellationToken,
) -> Result<Captured> {
    let staged = store.stage()?;
    let on = format!("store {}", crate::store::Store::location(&**store));
    let (sender, receiver) = mpsc::channel::<Batch>(QUEUE);
    let sink = tokio::task::spawn_blocking(move || sink(staged, receiver, &on));

    let started = Timestamp::now();
    let (own, progress, cancel) = (member.clone(), progress.clone(), cancel.clone());
    let streamed = tokio::task::spawn_blocking(move || {
        on_this_thread(async move { stream(&own, limits, expected, sender, &*progress, &cancel).await })
    });
    let streamed = streamed.await.map_err(|e| Error::new(Code::Internal, "stream snapshot", "").because(e))?;
    let sunk = sink.await.map_err(|e| Error::new(Code::Internal, "write snapshot", "").because(e))?;
    // A full disk closes the channel, so the sink's own reason comes first.
    let (storage_version, total) = match (streamed, &sunk) {
        (Err(error), Ok(_)) => return Err(error),
        (Err(error), Err(_)) if error.code() == Code::Canceled => return Err(error),
        (Ok(done), _) => done,
        (Err(_), Err(_)) => (None, 0),
    };
    let Sunk { staged, written, tail, flushing } = sunk?;
    let (db_len, has_trailer, _) = split(total);
    match <[u8; 32]>::try_from(tail) {
        Ok(trailer) if has_trailer && db_len > 0 => {
            Ok(Captured { staged, written, trailer: Digest(trailer), started, storage_version, flushing })
        }
        _ => Err(lie(
            member.url(),
            format!("the stream has {total} bytes, which is not a database with a trailer of {TRAILER}"),
        )),
    }
}

/// The member sent something that cannot be right.
pub fn lie(url: &str, why: String) -> Error {
    Error::new(Code::StreamLies, "take snapshot from", url)
        .because(why)
        .remedy("try again; if it happens again, look at the network path and the member's log")
}

fn on_this_thread<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::new(Code::Internal, "start an executor", "").because(e))?;
    let done = runtime.block_on(work);
    // A name that is still being looked up must not hold us.
    runtime.shutdown_background();
    done
}

async fn stream(
    member: &Member,
    limits: StreamLimits,
    expected: u64,
    sender: mpsc::Sender<Batch>,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<(Option<String>, u64)> {
    let canceled = || Error::new(Code::Canceled, "take snapshot from", member.url());
    let gone = || Error::new(Code::Io, "write snapshot of", member.url());
    let mut stream = tokio::select! {
        opened = start(member, limits) => opened?,
        () = cancel.cancelled() => return Err(canceled()),
    };
    // One message for many blobs: waking the other side for each costs more than what it then does.
    let mut batch = Batch::with_capacity(BATCH);
    loop {
        let blob = tokio::select! {
            blob = stream.next() => blob?,
            () = cancel.cancelled() => return Err(canceled()),
        };
        let Some(blob) = blob else { break };
        batch.push(blob);
        if batch.len() == BATCH {
            let total = stream.remaining().map_or(expected, |left| stream.received() + left);
            progress.bytes(stream.received(), Some(total.max(stream.received())), "B");
            sender.send(std::mem::replace(&mut batch, Batch::with_capacity(BATCH))).await.map_err(|_| gone())?;
        }
    }
    sender.send(batch).await.map_err(|_| gone())?;
    progress.bytes(stream.received(), Some(stream.received()), "B");
    Ok((stream.version().map(String::from), stream.received()))
}

async fn start(member: &Member, limits: StreamLimits) -> Result<SnapshotStream> {
    member.apart().await?.snapshot(limits).await
}

/// Everything that touches the disk, on a thread of its own. Nothing is hashed here: the second pass hashes what
/// was stored, and holds it against what the member sent behind the database.
pub(super) fn sink(staged: Staged, mut batches: mpsc::Receiver<Batch>, on: &str) -> Result<Sunk> {
    let failed = |e: std::io::Error| write_failed(on, e);
    let flusher = Flusher::start(staged.file(), on).map_err(failed)?;
    let mut frames = FrameWriter::new(flusher, LEVEL).map_err(failed)?;
    let (mut branches, mut tail) = (Collector::default(), Vec::<u8>::new());
    while let Some(batch) = batches.blocking_recv() {
        for blob in batch {
            frames.write_all(&blob).map_err(failed)?;
            branches.feed(&blob);
            // The last 32 bytes of all are the trailer, and nobody knows yet which these are.
            let keep = TRAILER as usize;
            tail.extend_from_slice(&blob[blob.len().saturating_sub(keep)..]);
            tail.drain(..tail.len().saturating_sub(keep));
        }
    }
    let (written, flusher) = frames.finish(&branches.finish().encode()).map_err(failed)?;
    Ok(Sunk { staged, written, tail, flushing: flusher.close() })
}

fn write_failed(on: &str, cause: std::io::Error) -> Error {
    let full = matches!(cause.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
    let error = Error::io("write snapshot to", on, cause);
    if full {
        error.remedy("free space on that file system: it filled up while the snapshot was written")
    } else {
        error
    }
}

/// Writes through, and has another thread sync what was written in steps.
struct Flusher {
    file: std::fs::File,
    since: u64,
    wake: std::sync::mpsc::SyncSender<()>,
    flushing: Flushing,
}

/// A sync under way. Its outcome must be asked for: the kernel reports a failed write-back once, to whoever syncs.
pub struct Flushing {
    thread: std::thread::JoinHandle<std::io::Result<()>>,
    on: String,
}

impl Flushing {
    /// Waits until all that was written has reached the disk.
    pub fn wait(self) -> Result<()> {
        match self.thread.join() {
            Ok(outcome) => outcome.map_err(|e| write_failed(&self.on, e)),
            Err(_) => Err(Error::new(Code::Internal, "sync snapshot in", self.on).because("the thread panicked")),
        }
    }
}

impl Flusher {
    fn start(file: &std::fs::File, on: &str) -> std::io::Result<Flusher> {
        let (wake, woken) = std::sync::mpsc::sync_channel::<()>(1);
        let synced = file.try_clone()?;
        let thread = std::thread::Builder::new().name("flush".into()).spawn(move || {
            for () in woken {
                synced.sync_data()?;
            }
            // The sender is gone: everything was written.
            synced.sync_data()
        })?;
        Ok(Flusher { file: file.try_clone()?, since: 0, wake, flushing: Flushing { thread, on: on.into() } })
    }

    /// Nothing more will be written; the last sync goes on aside.
    fn close(self) -> Flushing {
        self.flushing
    }
}

impl Write for Flusher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.since += n as u64;
        if self.since >= FLUSH_EVERY {
            self.since = 0;
            // Busy with the last step, or ended by an error, which `Flushing::wait` reports.
            let _ = self.wake.try_send(());
        }
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}
