//! gRPC messages on HTTP/2 streams: a flag byte, a length of four bytes, the message.

use std::future::poll_fn;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::{RecvStream, SendStream};
use http::HeaderMap;

/// The other side went away or broke a rule: the call is over, and that is all that matters here.
#[derive(Debug)]
pub struct Over;

impl From<h2::Error> for Over {
    fn from(_: h2::Error) -> Self {
        Over
    }
}

/// The next piece of a stream; None at its end.
pub async fn receive(body: &mut RecvStream) -> Result<Option<Bytes>, Over> {
    let Some(piece) = body.data().await else { return Ok(None) };
    let piece = piece?;
    body.flow_control().release_capacity(piece.len())?;
    Ok(Some(piece))
}

/// Sends all bytes as the receiver makes room.
pub async fn send(to: &mut SendStream<Bytes>, mut bytes: Bytes) -> Result<(), Over> {
    while bytes.has_remaining() {
        to.reserve_capacity(bytes.len());
        let room = poll_fn(|cx| to.poll_capacity(cx)).await.ok_or(Over)??;
        let piece = bytes.split_to(room.min(bytes.len()));
        to.send_data(piece, false)?;
    }
    Ok(())
}

/// Waits until the receiver gives the stream up.
pub async fn given_up(to: &mut SendStream<Bytes>) {
    // Either way, reset or a broken connection, it is over.
    let _ = poll_fn(|cx| to.poll_reset(cx)).await;
}

pub fn status(code: u32) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    trailers
}

pub fn frame(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).expect("a message below 4 GiB"));
    framed.put_slice(message);
    framed.freeze()
}

/// Cuts a stream into messages.
pub struct Messages {
    body: RecvStream,
    buffer: BytesMut,
}

impl Messages {
    pub fn new(body: RecvStream) -> Self {
        Messages { body, buffer: BytesMut::new() }
    }

    /// The next message; None at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Over> {
        loop {
            if let Some(head) = self.buffer.first_chunk::<5>() {
                let [_, length @ ..] = *head;
                let length = u32::from_be_bytes(length) as usize;
                if self.buffer.len() >= 5 + length {
                    self.buffer.advance(5);
                    return Ok(Some(self.buffer.split_to(length).freeze()));
                }
            }
            match receive(&mut self.body).await? {
                Some(piece) => self.buffer.put(piece),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Over),
            }
        }
    }

    pub async fn trailers(&mut self) -> Result<HeaderMap, Over> {
        Ok(self.body.trailers().await?.unwrap_or_default())
    }
}
