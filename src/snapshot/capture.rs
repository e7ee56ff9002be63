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
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::judge::{TRAILER, split};
use super::progress::Progress;
use super::state::aside;
use crate::catalog::Digest;
use crate::crash;
use crate::error::{Code, Error, Result};
use crate::etcd::{Member, SnapshotStream, StreamLimits};
use crate::format::check::Collector;
use crate::fs::patience::{Watch, expect, idle, moved};
use crate::fs::{Aside, Pending, Staged};
use crate::store::codec::{FrameWriter, Written};
use crate::store::{LocalStore, Store};

/// zstd's fastest standard level: about a third of the size, at several times the speed of the stream.
pub const LEVEL: i32 = 1;
/// Blobs, of 32 KiB each, that go to the writing side together, and how many such batches may wait there.
const BATCH: usize = 32;
pub(super) const QUEUE: usize = 4;
pub(super) type Batch = Vec<Bytes>;
/// How often a stream that cannot hand on its bytes looks whether anybody still takes them.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Dirty pages are pushed out in steps of this size, so that the final sync is short and etcd's own syncs do
/// not queue behind gigabytes.
const FLUSH_EVERY: u64 = 32 << 20;

/// A stream that arrived whole; nothing of it is proven yet.
pub struct Captured {
    pub staged: Aside<Staged>,
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
    pub(super) staged: Aside<Staged>,
    pub(super) written: Written,
    /// The last bytes of all, up to 32.
    tail: Vec<u8>,
    pub(super) flushing: Flushing,
}

/// Streams a snapshot of `member` into a nameless file of `store`.
pub async fn capture(
    member: &Member,
    store: &Arc<LocalStore>,
    (limits, rate): (StreamLimits, Option<u64>),
    expected: u64,
    progress: &Arc<dyn Progress>,
    cancel: &CancellationToken,
) -> Result<Captured> {
    let (sender, receiver) = mpsc::channel::<Batch>(QUEUE);
    let home = store.clone();
    let sink = aside("start writing", move || start_sink(&home, receiver)).await?;

    let started = Timestamp::now();
    let (own, progress, cancel, sinking) = (member.clone(), progress.clone(), cancel.clone(), sink.watch());
    let streamed = tokio::task::spawn_blocking(move || {
        on_this_thread(
            async move { stream(&own, (limits, rate), expected, (sender, sinking), &*progress, &cancel).await },
        )
    });
    let streamed = streamed.await.map_err(|e| Error::new(Code::Internal, "stream snapshot", "").because(e))?;
    let sunk = aside("write snapshot", move || sink.wait()).await;
    // A disk that is full or hangs ends the stream, so the sink's own reason comes first.
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
    (limits, rate): (StreamLimits, Option<u64>),
    expected: u64,
    (sender, sinking): (mpsc::Sender<Batch>, Watch),
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<(Option<String>, u64)> {
    let canceled = || Error::new(Code::Canceled, "take snapshot from", member.url());
    let gone = || Error::new(Code::Io, "write snapshot of", member.url());
    // The member is not held while a store stands still: its stream is cut at once.
    let hand_on = async |batch: Batch| {
        loop {
            tokio::select! {
                place = sender.reserve() => return place.map(|place| place.send(batch)).map_err(|_| gone()),
                () = tokio::time::sleep(LOOK_AGAIN) => if sinking.is_hung() { return Err(gone()) },
                () = cancel.cancelled() => return Err(canceled()),
            }
        }
    };
    let mut stream = tokio::select! {
        opened = start(member, limits) => opened?,
        () = cancel.cancelled() => return Err(canceled()),
    };
    let begun = Instant::now();
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
            hand_on(std::mem::replace(&mut batch, Batch::with_capacity(BATCH))).await?;
            let ahead = rate.map_or(Duration::ZERO, |rate| ahead(rate, stream.received(), begun.elapsed()));
            if !ahead.is_zero() {
                tokio::select! {
                    () = tokio::time::sleep(ahead) => {}
                    () = cancel.cancelled() => return Err(canceled()),
                }
            }
        }
    }
    hand_on(batch).await?;
    progress.bytes(stream.received(), Some(stream.received()), "B");
    Ok((stream.version().map(String::from), stream.received()))
}

/// By how much a stream is ahead of its rate. One that fell behind catches up.
fn ahead(rate: u64, received: u64, since: Duration) -> Duration {
    let due = Duration::try_from_secs_f64(received as f64 / rate as f64).unwrap_or_default();
    due.saturating_sub(since)
}

async fn start(member: &Member, limits: StreamLimits) -> Result<SnapshotStream> {
    member.apart().await?.snapshot(limits).await
}

/// Everything that touches the disk, on a thread of its own, which may hang there.
pub(super) fn start_sink(store: &Arc<LocalStore>, batches: mpsc::Receiver<Batch>) -> Result<Pending<Sunk>> {
    let staged = store.stage()?;
    let own = store.clone();
    store.begin("write snapshot to", move || sink(&own, staged, batches))
}

/// Nothing is hashed here: the second pass hashes what was stored, and holds it against what the member sent behind
/// the database.
fn sink(store: &LocalStore, staged: Aside<Staged>, mut batches: mpsc::Receiver<Batch>) -> Result<Sunk> {
    let on = format!("store {}", store.location());
    let failed = |e: std::io::Error| write_failed(&on, e);
    let flusher = Flusher::start(store, staged.file(), &on)?;
    let mut frames = FrameWriter::new(flusher, LEVEL).map_err(failed)?;
    let (mut branches, mut tail) = (Collector::default(), Vec::<u8>::new());
    while let Some(batch) = idle(|| batches.blocking_recv()) {
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
    /// Bytes that no sync has begun to cover.
    unsynced: Arc<AtomicU64>,
    wake: std::sync::mpsc::SyncSender<()>,
    flushing: Flushing,
}

/// A sync under way. Its outcome must be asked for: the kernel reports a failed write-back once, to whoever syncs.
pub struct Flushing(Pending<()>);

impl Flushing {
    /// Waits until all that was written has reached the disk, as long as that takes what is due.
    pub fn wait(self) -> Result<()> {
        self.0.wait()
    }
}

impl Flusher {
    fn start(store: &LocalStore, file: &std::fs::File, on: &str) -> Result<Flusher> {
        let (wake, woken) = std::sync::mpsc::sync_channel::<()>(1);
        let cloned = || file.try_clone().map_err(|e| write_failed(on, e));
        let (synced, unsynced, on) = (cloned()?, Arc::new(AtomicU64::new(0)), on.to_string());
        let due = unsynced.clone();
        let flushing = store.begin("sync snapshot in", move || {
            let sync = || {
                expect(due.swap(0, Ordering::Relaxed));
                crash::point!("take::sync");
                synced.sync_data().map_err(|e| write_failed(&on, e))
            };
            while let Ok(()) = idle(|| woken.recv()) {
                sync()?;
            }
            // The sender is gone: everything was written.
            sync()
        })?;
        Ok(Flusher { file: cloned()?, since: 0, unsynced, wake, flushing: Flushing(flushing) })
    }

    /// Nothing more will be written; the last sync goes on aside.
    fn close(self) -> Flushing {
        self.flushing
    }
}

impl Write for Flusher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        crash::point!("take::write");
        let n = self.file.write(bytes)?;
        moved();
        self.since += n as u64;
        self.unsynced.fetch_add(n as u64, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_waits_until_its_bytes_are_due() {
        let second = Duration::from_secs(1);
        for (rate, received, since, wait) in [
            (10, 10, Duration::ZERO, second),
            (10, 25, second, Duration::from_millis(1500)),
            (10, 10, second, Duration::ZERO),
            (10, 0, Duration::ZERO, Duration::ZERO),
            // Behind: no debt is kept, and no figure overflows.
            (10, 10, second * 60, Duration::ZERO),
            (u64::MAX, u64::MAX, Duration::ZERO, second),
        ] {
            assert_eq!(ahead(rate, received, since), wait, "{rate} {received} {since:?}");
        }
    }
}
