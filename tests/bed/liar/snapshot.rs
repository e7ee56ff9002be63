//! `Maintenance/Snapshot`, told wrongly. SnapshotResponse: 1 header, 2 remaining_bytes, 3 blob, 4 version (3.6 and
//! later). The blobs together are the database file and then 32 bytes of SHA-256 over it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::{Reason, SendStream};
use http::Response;

use super::super::proto::{Message, Value};
use super::Lie;
use super::grpc::{Messages, Over, frame, given_up, send, status};
use super::proxy::Call;

const REMAINING: u64 = 2;
const BLOB: u64 = 3;
const TRAILER: usize = 32;
const PIECE: usize = 32 * 1024;

pub async fn answer(mut call: Call, lie: Lie) -> Result<(), Over> {
    let (head, body) = (&mut call.answer).await?.into_parts();
    let mut messages = Messages::new(body);
    let to = call.client.send_response(Response::from_parts(head, ()), false)?;
    let mut teller = Teller { lie, to, sent: 0, held: BytesMut::new() };
    if let Lie::Instead(bytes) = lie {
        return teller.instead(bytes).await;
    }
    while let Some(message) = messages.next().await? {
        let message = Message::decode(message).ok_or(Over)?;
        if teller.tell(&message).await? == Then::Stop {
            break;
        }
    }
    teller.end(messages, &call).await
}

#[derive(PartialEq)]
enum Then {
    GoOn,
    Stop,
}

struct Teller {
    lie: Lie,
    to: SendStream<Bytes>,
    /// Bytes of blobs so far.
    sent: u64,
    /// What may turn out to be the trailer.
    held: BytesMut,
}

impl Teller {
    /// Retells one message.
    async fn tell(&mut self, message: &Message) -> Result<Then, Over> {
        let blob = message.bytes(BLOB);
        match self.lie {
            Lie::CutOk { after }
            | Lie::CutError { after, .. }
            | Lie::Drop { after }
            | Lie::Reset { after }
            | Lie::Stall { after }
            | Lie::EmptyForever { after } => {
                let (before, rest) = self.split(&blob, after);
                self.blob(message, before).await?;
                if !rest.is_empty() || self.sent >= after {
                    return Ok(Then::Stop);
                }
            }
            Lie::Trickle { after, bytes, every } => {
                let (before, mut rest) = self.split(&blob, after);
                self.blob(message, before).await?;
                while !rest.is_empty() {
                    tokio::select! {
                        () = tokio::time::sleep(every) => {}
                        () = given_up(&mut self.to) => return Err(Over),
                    }
                    let piece = rest.split_to(bytes.clamp(1, rest.len()));
                    self.blob(message, piece).await?;
                }
            }
            Lie::WrongTrailer | Lie::NoTrailer => {
                self.held.extend_from_slice(&blob);
                let safe = self.held.len().saturating_sub(TRAILER);
                let piece = self.held.split_to(safe).freeze();
                self.blob(message, piece).await?;
            }
            Lie::Flip { at } => {
                let mut blob = BytesMut::from(&*blob);
                let inside = at.checked_sub(self.sent).and_then(|i| usize::try_from(i).ok());
                if let Some(byte) = inside.and_then(|i| blob.get_mut(i)) {
                    *byte ^= 1;
                }
                self.blob(message, blob.freeze()).await?;
            }
            Lie::Remaining(bytes) => {
                let mut message = message.clone();
                message.set(REMAINING, Value::Varint(bytes));
                self.blob(&message, blob).await?;
            }
            Lie::TooLong { .. }
            | Lie::Instead(_)
            | Lie::WrongHash
            | Lie::HashHang
            | Lie::HashError { .. }
            | Lie::SilentWatch => {
                self.blob(message, blob).await?;
            }
        }
        Ok(Then::GoOn)
    }

    /// The whole stream from bytes of the test's own.
    async fn instead(mut self, bytes: &'static [u8]) -> Result<(), Over> {
        let database = bytes.len().saturating_sub(TRAILER) as u64;
        for piece in bytes.chunks(PIECE) {
            let mut message = Message::default();
            let sent = self.sent + piece.len() as u64;
            message.set(REMAINING, Value::Varint(database.saturating_sub(sent)));
            self.blob(&message, Bytes::from_static(piece)).await?;
        }
        self.to.send_trailers(status(0))?;
        Ok(())
    }

    /// What comes after the last message, or instead of the rest.
    async fn end(mut self, mut messages: Messages, call: &Call) -> Result<(), Over> {
        let trailers = match self.lie {
            Lie::CutOk { .. } => status(0),
            Lie::CutError { status: code, .. } => status(code),
            Lie::Drop { .. } => {
                // First let what was sent go out, so that the receiver has it.
                tokio::time::sleep(Duration::from_millis(20)).await;
                call.hang_up.notify_one();
                return Ok(());
            }
            Lie::Reset { .. } => {
                self.to.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            }
            Lie::Stall { .. } => {
                given_up(&mut self.to).await;
                return Ok(());
            }
            Lie::EmptyForever { .. } => loop {
                self.blob(&Message::default(), Bytes::new()).await?;
                tokio::time::sleep(Duration::from_millis(1)).await;
            },
            Lie::WrongTrailer => {
                if let Some(byte) = self.held.last_mut() {
                    *byte ^= 0xff;
                }
                let held = self.held.split().freeze();
                self.blob(&Message::default(), held).await?;
                status(0)
            }
            Lie::NoTrailer => status(0),
            Lie::TooLong { mut extra } => {
                let noise = Bytes::from_static(&[0xa5; PIECE]);
                while extra > 0 {
                    let length = usize::try_from(extra).map_or(PIECE, |e| e.min(PIECE));
                    self.blob(&Message::default(), noise.slice(..length)).await?;
                    // For ever, where extra is the greatest number.
                    extra = if extra == u64::MAX { extra } else { extra - length as u64 };
                }
                status(0)
            }
            _ => messages.trailers().await?,
        };
        self.to.send_trailers(trailers)?;
        Ok(())
    }

    /// The part of a blob up to a position of the whole stream, and the rest.
    fn split(&self, blob: &Bytes, at: u64) -> (Bytes, Bytes) {
        let room = usize::try_from(at.saturating_sub(self.sent)).unwrap_or(usize::MAX).min(blob.len());
        (blob.slice(..room), blob.slice(room..))
    }

    /// Sends a message with another blob.
    async fn blob(&mut self, message: &Message, blob: Bytes) -> Result<(), Over> {
        self.sent += blob.len() as u64;
        let mut message = message.clone();
        message.set(BLOB, Value::Bytes(blob));
        send(&mut self.to, frame(&message.encode())).await
    }
}
