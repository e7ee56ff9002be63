//! Events on their way to the ledger: in order, one batch at a time, kept when the disk refuses them (law 2).
//!
//! The engine never waits here. A batch is sent, and answered when it is durable; until then later events gather. When
//! the ledger fails, events stay here and are tried again, in their order, so that nothing is lost that happened.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::oneshot;

use super::event::Event;
use super::job::JobId;
use super::queue::LedgerState;
use crate::error::{Error, Result};
use crate::ledger::Entry;

/// After a failure the ledger is left alone for so long.
const RETRY: SignedDuration = SignedDuration::from_secs(10);
/// An answer that takes longer is missing.
const PATIENCE: Duration = Duration::from_secs(5);
/// A ledger file of this size gives way to a new one that begins with what is known.
const ROTATE_AT: u64 = 4 << 20;
/// More than these wait only while the disk is full for days: what tells least goes first.
const MOST: usize = 5_000;

/// Where entries go. Never blocks.
pub trait Ledger: Send {
    fn append(&self, batch: Vec<Entry>, at: Timestamp) -> oneshot::Receiver<Result<u64>>;
    fn rotate(&self, checkpoint: Vec<Entry>, at: Timestamp) -> oneshot::Receiver<Result<()>>;
    /// Bytes of the current file.
    fn size(&self) -> u64;
}

impl Ledger for crate::ledger::Writer {
    fn append(&self, batch: Vec<Entry>, at: Timestamp) -> oneshot::Receiver<Result<u64>> {
        crate::ledger::Writer::append(self, batch, at)
    }

    fn rotate(&self, checkpoint: Vec<Entry>, at: Timestamp) -> oneshot::Receiver<Result<()>> {
        crate::ledger::Writer::rotate(self, checkpoint, at)
    }

    fn size(&self) -> u64 {
        crate::ledger::Writer::size(self)
    }
}

/// What is done once the event is durable, or is known not to become so.
#[derive(Debug)]
pub enum After {
    Nothing,
    /// The work of this job begins: the event is its intent.
    Start(JobId),
    /// Somebody waits for it.
    Tell(oneshot::Sender<()>),
}

#[derive(Debug)]
pub struct Pending {
    pub event: Event,
    pub at: Timestamp,
    pub after: After,
}

/// What came back.
#[derive(Debug)]
pub enum Answer {
    Durable(Vec<Pending>),
    /// Nothing of it was written.
    Failed(Vec<Pending>, Error),
    Rotated(Result<()>),
}

enum Flight {
    Batch(oneshot::Receiver<Result<u64>>, Vec<Pending>),
    Rotation(oneshot::Receiver<Result<()>>),
}

pub struct Outbox {
    ledger: Box<dyn Ledger>,
    waiting: VecDeque<Pending>,
    flight: Option<Flight>,
    sent: Option<(std::time::Instant, Timestamp)>,
    failed: Option<(String, Timestamp)>,
    /// Bytes of the current file when it was begun, where this process began it.
    begun_with: u64,
}

impl Outbox {
    pub fn new(ledger: Box<dyn Ledger>) -> Outbox {
        Outbox { ledger, waiting: VecDeque::new(), flight: None, sent: None, failed: None, begun_with: 0 }
    }

    pub fn push(&mut self, event: Event, at: Timestamp, after: After) {
        if self.waiting.len() >= MOST
            && let Some(least) =
                self.waiting.iter().position(|p| matches!(p.event, Event::Step { .. } | Event::Warned { .. }))
        {
            self.waiting.remove(least);
        }
        self.waiting.push_back(Pending { event, at, after });
    }

    /// Puts back what failed, before all that came later.
    pub fn put_back(&mut self, batch: Vec<Pending>) {
        batch.into_iter().rev().for_each(|pending| self.waiting.push_front(pending));
    }

    /// Sends what waits, if nothing is under way and it is time.
    pub fn flush(&mut self, now: Timestamp) {
        if self.flight.is_some() || self.waiting.is_empty() || self.is_resting(now) {
            return;
        }
        let batch: Vec<Pending> = self.waiting.drain(..).collect();
        let entries: Result<Vec<Entry>> = batch.iter().map(|pending| pending.event.to_entry()).collect();
        match entries {
            Ok(entries) => {
                self.sent = Some((std::time::Instant::now(), now));
                self.flight = Some(Flight::Batch(self.ledger.append(entries, now), batch));
            }
            // Cannot be: all are plain data. Then they are not kept for ever.
            Err(error) => tracing::error!("events are lost: {}", error.line()),
        }
    }

    /// Whether the file is so long that a new one is due, and may be begun now: all is written, the disk was not just
    /// full, and what a new file begins with is not most of this one.
    pub fn is_rotation_due(&self, now: Timestamp) -> bool {
        let size = self.ledger.size();
        size > ROTATE_AT && size > self.begun_with.saturating_mul(2) && self.is_empty() && !self.is_resting(now)
    }

    /// Begins a new file with this event, if nothing is under way.
    pub fn rotate(&mut self, checkpoint: &Event, now: Timestamp) {
        if self.flight.is_none()
            && let Ok(entry) = checkpoint.to_entry()
        {
            self.sent = Some((std::time::Instant::now(), now));
            self.flight = Some(Flight::Rotation(self.ledger.rotate(vec![entry], now)));
        }
    }

    /// Whether all that happened is on the disk.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.flight.is_none()
    }

    /// After a failure the disk is not asked again at once. Then whoever wants to record something tries again.
    fn is_resting(&self, now: Timestamp) -> bool {
        // Before the failure: the clock stepped back.
        self.failed.as_ref().is_some_and(|(_, at)| (*at..*at + RETRY).contains(&now))
    }

    pub fn state(&self, now: Timestamp) -> LedgerState {
        match (&self.sent, &self.failed) {
            (Some((sent, since)), _) if sent.elapsed() > PATIENCE => LedgerState::Silent { since: *since },
            (_, Some((why, _))) if self.is_resting(now) || !self.waiting.is_empty() => {
                LedgerState::Fails { why: why.clone() }
            }
            _ => LedgerState::Good,
        }
    }

    /// When the engine must look again although nothing happened.
    pub fn wake(&self) -> Option<Duration> {
        match (&self.sent, &self.failed) {
            // Once, when it is missing; after that only its answer changes something.
            (Some((sent, _)), _) => {
                let left = PATIENCE.checked_sub(sent.elapsed());
                left.map(|left| left + Duration::from_millis(50))
            }
            (None, Some(_)) => RETRY.try_into().ok(),
            _ => None,
        }
    }

    /// Waits for what is under way; for ever when nothing is. Safe to drop and to call again.
    pub async fn answer(&mut self, now: impl Fn() -> Timestamp) -> Answer {
        let gone = || Error::new(crate::error::Code::Internal, "record event", "").because("the writer has ended");
        let outcome = match &mut self.flight {
            None => std::future::pending().await,
            Some(Flight::Batch(receiver, _)) => receiver.await.unwrap_or_else(|_| Err(gone())).map(|_| ()),
            Some(Flight::Rotation(receiver)) => receiver.await.unwrap_or_else(|_| Err(gone())),
        };
        self.sent = None;
        self.failed = outcome.as_ref().err().map(|error| (error.line(), now()));
        match (self.flight.take(), outcome) {
            (Some(Flight::Batch(_, batch)), Ok(())) => Answer::Durable(batch),
            (Some(Flight::Batch(_, batch)), Err(error)) => Answer::Failed(batch, error),
            (_, outcome) => {
                if outcome.is_ok() {
                    self.begun_with = self.ledger.size();
                }
                Answer::Rotated(outcome)
            }
        }
    }
}
