//! Watches: passed on, until silence is asked for. A watch that has kept something to itself ends with the silence.

use std::pin::pin;

use bytes::Bytes;
use http::Response;

use super::Book;
use super::grpc::{Over, given_up, receive, send};
use super::proxy::Call;

pub async fn pass(mut call: Call, book: &Book) -> Result<(), Over> {
    let head = tokio::select! {
        head = &mut call.answer => head?,
        _ = std::future::poll_fn(|cx| call.client.poll_reset(cx)) => return Err(Over),
    };
    let (head, mut body) = head.into_parts();
    let ends = body.is_end_stream();
    let mut to = call.client.send_response(Response::from_parts(head, ()), ends)?;
    if ends {
        return Ok(());
    }
    let mut kept = false;
    loop {
        // Before the question whether it is over, so that an end between the two is not missed.
        let mut honest = pin!(book.honest.notified());
        honest.as_mut().enable();
        if kept && !book.is_silent() {
            return Err(Over);
        }
        let piece = tokio::select! {
            piece = receive(&mut body) => piece?,
            () = given_up(&mut to) => return Err(Over),
            () = honest, if kept => return Err(Over),
        };
        match piece {
            None => break,
            Some(_) if kept || book.is_silent() => kept = true,
            Some(piece) => send(&mut to, piece).await?,
        }
    }
    match body.trailers().await? {
        Some(trailers) => to.send_trailers(trailers)?,
        None => to.send_data(Bytes::new(), true)?,
    }
    Ok(())
}
