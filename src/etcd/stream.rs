//! The snapshot stream and its limits (law 6): a stalled stream is cut, since it keeps etcd from freeing pages;
//! one that lies about its length is cut, since it would fill the disk.
//!
//! Whether the bytes are right is not judged here: that is for the verifier, on the stored bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use etcd_client::{Client, SnapshotResponse, SnapshotStreaming};
use tokio::time::{Instant, timeout};

use super::failure::{Peer, causes};
use super::pace::{Pace, Slow};
use super::probe::{self, Finding};
use crate::error::{Code, Error, Result};

/// Bytes that must arrive in each stall window by default: far below any real disk or network.
pub const DEFAULT_FLOOR: u64 = 64 << 10;

/// How many bytes beyond the promised ones are forgiven (the trailer of 32 bytes is not counted in it).
const MARGIN: u64 = 1 << 20;
const TRAILER: u64 = 32;

const AGAIN: &str = "see the log of that etcd; the next snapshot starts from the beginning";
const LOOK: &str = "look at the etcd process, its disk and the network to it";
const WHAT: &str = "stream a snapshot from";

/// When a stream has failed.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// No byte for this long is a failure. Only time spent waiting for the member counts.
    pub stall: Duration,
    /// Fewer bytes than this in a window of `stall` are a failure.
    pub floor: u64,
    /// For the whole stream, wall clock, the reader's own time included; derived from the size by the caller.
    pub deadline: Duration,
}

impl StreamLimits {
    pub fn new(stall: Duration, deadline: Duration) -> Self {
        StreamLimits { stall, floor: DEFAULT_FLOOR, deadline }
    }
}

/// Blobs of a snapshot, in order; the last one is etcd's trailer (32 bytes, SHA-256 of all others).
///
/// Dropping it cancels the call, so that the member frees its read transaction.
pub struct SnapshotStream {
    peer: Arc<Peer>,
    /// Holds the connection.
    _client: Client,
    state: State,
    limits: StreamLimits,
    started: Instant,
    /// Set while a wait is under way; stays when the caller cancels it.
    waiting_since: Option<Instant>,
    pace: Pace,
    tally: Tally,
    version: Option<String>,
}

enum State {
    Open(SnapshotStreaming),
    /// The call is over since then; why is still to be found out. A state, so that a canceled look is never
    /// mistaken for the end.
    Broken(Fault, Instant),
    Failed,
    Ended,
}

#[derive(Clone)]
enum Fault {
    Slow(Slow),
    /// What the transport said.
    Cut(String),
}

/// A blob that keeps its message alive: no copy.
struct Blob(SnapshotResponse);

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        self.0.blob()
    }
}

impl SnapshotStream {
    pub(super) fn new(
        peer: Arc<Peer>,
        client: Client,
        streaming: SnapshotStreaming,
        limits: StreamLimits,
        started: Instant,
    ) -> Self {
        let pace = Pace::new(limits.stall, limits.floor);
        let tally = Tally::default();
        SnapshotStream {
            peer,
            _client: client,
            state: State::Open(streaming),
            limits,
            started,
            waiting_since: None,
            pace,
            tally,
            version: None,
        }
    }

    /// The next bytes, `None` at the end; never `None` after an error.
    ///
    /// Cancel-safe: no byte is lost, and a wait that was canceled goes on with the next call, so that a reader
    /// that wakes up every second still sees a stall. The time between the two calls counts as waiting then.
    ///
    /// `Code::StreamStalled`: no or too few bytes, or the deadline passed. `Code::StreamCut`: the connection or
    /// the member ended it early. `Code::StreamLies`: more bytes than announced.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let result = self.advance().await;
        // The call ends at once, not only when the caller gets round to dropping us.
        match &result {
            Ok(Some(_)) => {}
            Ok(None) => self.state = State::Ended,
            Err(_) => self.state = State::Failed,
        }
        result
    }

    async fn advance(&mut self) -> Result<Option<Bytes>> {
        loop {
            let streaming = match &mut self.state {
                State::Open(streaming) => streaming,
                State::Broken(fault, since) => {
                    let (fault, since) = (fault.clone(), *since);
                    return Err(self.explained(fault, since).await);
                }
                State::Failed => return Err(self.error(Code::StreamCut, "it has failed before".into()).remedy(AGAIN)),
                State::Ended => return Ok(None),
            };
            let begin = *self.waiting_since.get_or_insert_with(Instant::now);
            let patience = self.pace.patience().saturating_sub(begin.elapsed());
            let left = self.limits.deadline.saturating_sub(self.started.elapsed());
            let answer = timeout(patience.min(left), streaming.message()).await;
            self.waiting_since = None;
            let message = match answer {
                Ok(Ok(Some(message))) => Some(message),
                Ok(Ok(None)) => return self.end(),
                Ok(Err(error)) => {
                    if let Some(refusal) = self.peer.refusal(WHAT, &error) {
                        return Err(refusal);
                    }
                    self.state = State::Broken(Fault::Cut(causes(&error)), Instant::now());
                    continue;
                }
                Err(_) => None,
            };
            let bytes = message.as_ref().map_or(0, |m| m.blob().len() as u64);
            if let Err(slow) = self.pace.waited(begin.elapsed(), bytes) {
                self.state = State::Broken(Fault::Slow(slow), Instant::now());
                continue;
            }
            if self.started.elapsed() >= self.limits.deadline {
                return Err(self.late());
            }
            let Some(message) = message else { continue };
            self.tally.take(bytes, message.remaining_bytes()).map_err(|promised| self.lies(promised))?;
            if self.version.is_none() && !message.version().is_empty() {
                self.version = Some(message.version().to_string());
            }
            if bytes > 0 {
                return Ok(Some(Bytes::from_owner(Blob(message))));
            }
            // A flood of empty messages must not keep this thread from its other tasks.
            tokio::task::yield_now().await;
        }
    }

    /// Bytes that the member says are still to come, the trailer aside; `None` before the first message.
    pub fn remaining(&self) -> Option<u64> {
        self.tally.remaining
    }

    /// Bytes received, the trailer included.
    pub fn received(&self) -> u64 {
        self.tally.received
    }

    /// Storage version as told by the member from etcd 3.6 on, after the first message.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn end(&self) -> Result<Option<Bytes>> {
        let cause = match self.tally.promised {
            Some(promised) if self.tally.received >= promised => return Ok(None),
            Some(promised) => format!("the member ended it before {promised} bytes"),
            None => "the member ended it before the first byte".to_string(),
        };
        Err(self.error(Code::StreamCut, cause).remedy(AGAIN))
    }

    fn error(&self, code: Code, cause: String) -> Error {
        let received = self.tally.received;
        self.peer.error(code, WHAT).because(format!("{cause}; {received} bytes received"))
    }

    /// A broken pipe or silence says little: whether the member is still there says more.
    /// A reader that keeps canceling the look gets the bare fact after the time that a look may take.
    async fn explained(&self, fault: Fault, since: Instant) -> Error {
        let (code, mut cause, remedy) = match fault {
            Fault::Cut(cause) => (Code::StreamCut, cause, AGAIN),
            Fault::Slow(slow) => (Code::StreamStalled, slow.to_string(), LOOK),
        };
        let seen = match since.elapsed() < probe::LIMIT {
            true => probe::look(&self.peer.url, &self.peer.access).await,
            false => Finding::Answers,
        };
        match seen {
            Finding::Silent => cause.push_str("; its port accepts connections but the process does not answer"),
            Finding::Unreachable(e) => cause.push_str(&format!("; the member is gone ({e})")),
            Finding::NoConnection => cause.push_str("; its host does not answer any more"),
            _ => {}
        }
        self.error(code, cause).remedy(remedy)
    }

    fn late(&self) -> Error {
        self.error(Code::StreamStalled, format!("not finished within {:.1?}", self.limits.deadline))
            .remedy("look at the disk and network of the member, and at the disk of the store")
    }

    fn lies(&self, promised: u64) -> Error {
        self.error(Code::StreamLies, format!("the member announced {promised} bytes and sends more"))
            .remedy("check what answers at this address")
    }
}

/// Counts what came against what was announced.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    received: u64,
    /// From the first message: its own bytes and the remaining ones, the trailer aside.
    promised: Option<u64>,
    remaining: Option<u64>,
}

impl Tally {
    /// `Err` holds the promised number.
    fn take(&mut self, bytes: u64, remaining: u64) -> std::result::Result<(), u64> {
        let promised = *self.promised.get_or_insert(bytes.saturating_add(remaining));
        self.received = self.received.saturating_add(bytes);
        self.remaining = Some(remaining);
        if self.received > promised.saturating_add(TRAILER + MARGIN) { Err(promised) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_honest_count_is_accepted() {
        let mut tally = Tally::default();
        for (bytes, remaining) in [(32768, 8192), (8192, 0), (32, 0)] {
            assert_eq!(tally.take(bytes, remaining), Ok(()));
        }
        assert_eq!((tally.promised, tally.received, tally.remaining), (Some(40960), 40992, Some(0)));
    }

    #[test]
    fn only_the_first_promise_counts() {
        // A server that announces more and more never gets past its first word.
        let mut tally = Tally::default();
        assert_eq!(tally.take(32768, 0), Ok(()));
        let ended = (0..1000).find_map(|_| tally.take(32768, 1 << 40).err());
        assert_eq!(ended, Some(32768));
        assert!(tally.received <= 32768 + TRAILER + MARGIN + 32768);
        // Absurd figures do not overflow.
        let mut tally = Tally::default();
        assert_eq!(tally.take(1, u64::MAX), Ok(()));
        assert_eq!(tally.take(u64::MAX, u64::MAX), Ok(()));
    }
}
