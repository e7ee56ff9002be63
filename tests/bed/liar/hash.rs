//! `Maintenance/HashKV`, told wrongly. HashKVResponse: 1 header, 2 hash (uint32), 3 compact_revision,
//! 4 hash_revision (3.6 and later).

use http::Response;

use super::super::proto::{Message, Value};
use super::Lie;
use super::grpc::{Messages, Over, frame, given_up, send, status};
use super::proxy::Call;

const HASH: u64 = 2;

pub async fn answer(mut call: Call, lie: Lie) -> Result<(), Over> {
    let (head, body) = (&mut call.answer).await?.into_parts();
    let mut messages = Messages::new(body);
    let mut to = call.client.send_response(Response::from_parts(head, ()), false)?;
    let trailers = match lie {
        Lie::HashHang => {
            given_up(&mut to).await;
            return Err(Over);
        }
        Lie::HashError { status: code } => status(code),
        _ => {
            while let Some(message) = messages.next().await? {
                let mut message = Message::decode(message).ok_or(Over)?;
                message.set(HASH, Value::Varint(message.number(HASH) ^ 0x5EED));
                send(&mut to, frame(&message.encode())).await?;
            }
            messages.trailers().await?
        }
    };
    to.send_trailers(trailers)?;
    Ok(())
}
