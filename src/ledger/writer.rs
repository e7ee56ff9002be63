//! The one thread that touches the ledger's file, so that a disk which does not answer holds up nobody else.
//!
//! Requests that have gathered while it waited for the disk become durable together, with one wait. It ends when the
//! [`Writer`] is closed or dropped and all requests are answered.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::Ledger;
use super::frame::Entry;
use super::log::Batch;
use crate::error::{Code, Error, Result};

/// It holds one group of frames on the heap and little on the stack.
const STACK: usize = 256 << 10;
/// Requests that become durable together at most.
const GROUP_MAX: usize = 256;

/// The engine's end of the ledger. No call waits.
#[derive(Debug)]
pub struct Writer {
    requests: mpsc::Sender<Request>,
    shared: Arc<Shared>,
    /// Says when the thread has ended; `None` where it could not be started.
    ended: Option<(mpsc::Receiver<()>, JoinHandle<()>)>,
}

#[derive(Debug, Default)]
struct Shared {
    size: AtomicU64,
    /// When each request came that is not answered yet.
    waiting: Mutex<VecDeque<Instant>>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self) {
        self.waiting().pop_front();
    }
}

#[derive(Debug)]
enum Request {
    Append(Batch, oneshot::Sender<Result<u64>>),
    Rotate(Batch, oneshot::Sender<Result<()>>),
}

impl Writer {
    /// Starts the thread. Where none can be had, each request is answered with an error.
    pub fn start(ledger: Ledger) -> Writer {
        let (requests, received) = mpsc::channel();
        let (ends, ended) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        shared.size.store(ledger.size(), Ordering::Relaxed);
        let its = Arc::clone(&shared);
        let thread = Builder::new().name("ledger".into()).stack_size(STACK).spawn(move || {
            serve(ledger, &received, &its);
            // Sent or not: the receiver also hears that this end is gone.
            let _ = ends.send(());
        });
        let ended = match thread {
            Ok(thread) => Some((ended, thread)),
            Err(e) => {
                tracing::error!("cannot start the thread that writes the ledger: {e}");
                None
            }
        };
        Writer { requests, shared, ended }
    }

    /// Appends one batch; see [`Ledger::append`]. The answer comes when it is durable, or failed.
    pub fn append(&self, batch: Vec<Entry>, at: Timestamp) -> oneshot::Receiver<Result<u64>> {
        let (answer, answered) = oneshot::channel();
        self.send(Request::Append((batch, at), answer));
        answered
    }

    /// Begins a new file after all that was appended before; see [`Ledger::rotate`].
    pub fn rotate(&self, checkpoint: Vec<Entry>, at: Timestamp) -> oneshot::Receiver<Result<()>> {
        let (answer, answered) = oneshot::channel();
        self.send(Request::Rotate((checkpoint, at), answer));
        answered
    }

    fn send(&self, request: Request) {
        // Under the lock, so that the times stand in the order of the requests.
        let mut waiting = self.shared.waiting();
        waiting.push_back(Instant::now());
        let Err(mpsc::SendError(request)) = self.requests.send(request) else { return };
        waiting.pop_back();
        let gone = || Error::new(Code::Internal, "append to ledger", "").because("its thread has ended");
        // Whoever asked may have stopped waiting.
        match request {
            Request::Append(_, answer) => drop(answer.send(Err(gone()))),
            Request::Rotate(_, answer) => drop(answer.send(Err(gone()))),
        }
    }

    /// Bytes of the current file, as last known.
    pub fn size(&self) -> u64 {
        self.shared.size.load(Ordering::Relaxed)
    }

    /// Since when the oldest request that is not answered has waited.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.shared.waiting().front().copied()
    }

    /// Answers all requests, ends the thread and lets go of the lock. `Io` when the disk does not answer within
    /// `patience`; the thread then ends by itself later, or with the process. Blocks.
    pub fn close(self, patience: Duration) -> Result<()> {
        const WHAT: &str = "close ledger";
        let Writer { requests, ended, .. } = self;
        drop(requests);
        let Some((ended, thread)) = ended else { return Ok(()) };
        if let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(patience) {
            return Err(Error::new(Code::Io, WHAT, "")
                .because(format!("the disk has not answered for {patience:?}"))
                .remedy("look whether the state directory's file system is frozen or gone"));
        }
        thread.join().map_err(|_| Error::new(Code::Internal, WHAT, "").because("its thread panicked"))
    }
}

/// Until nobody can ask any more.
fn serve(mut ledger: Ledger, requests: &mpsc::Receiver<Request>, shared: &Shared) {
    let mut batches = Vec::new();
    let mut answers = Vec::new();
    while let Ok(first) = requests.recv() {
        let mut next = Some(first);
        // All that has gathered, up to a rotation, which keeps its place in the order.
        while let Some(request) = next.take() {
            match request {
                Request::Append(batch, answer) => {
                    batches.push(batch);
                    answers.push(answer);
                    if batches.len() < GROUP_MAX {
                        next = requests.try_recv().ok();
                    }
                }
                Request::Rotate((checkpoint, at), answer) => {
                    append(&mut ledger, &mut batches, &mut answers, shared);
                    let done = ledger.rotate(&checkpoint, at);
                    shared.size.store(ledger.size(), Ordering::Relaxed);
                    shared.answered();
                    let _ = answer.send(done);
                }
            }
        }
        append(&mut ledger, &mut batches, &mut answers, shared);
    }
}

fn append(
    ledger: &mut Ledger,
    batches: &mut Vec<Batch>,
    answers: &mut Vec<oneshot::Sender<Result<u64>>>,
    shared: &Shared,
) {
    let done = ledger.append_all(batches);
    shared.size.store(ledger.size(), Ordering::Relaxed);
    batches.clear();
    for (answer, done) in answers.drain(..).zip(done) {
        shared.answered();
        let _ = answer.send(done);
    }
}
