//! From the file into a nameless one in a store: the form of every stored snapshot.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;

use super::source::Source;
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::fs::patience::Watch;
use crate::snapshot::capture::{Batch, QUEUE, Sunk, start_sink};
use crate::snapshot::judge::Object;
use crate::snapshot::progress::Progress;
use crate::store::LocalStore;
use crate::store::codec::Framed;

/// How much is read at once, in bytes.
const PIECE: u64 = 1 << 20;
/// Until a writing side that is busy is asked again.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Which side failed: a store's failure is not that of the others.
#[derive(Debug)]
pub(super) enum Failed {
    Source(Error),
    Store(Error),
}

/// Compresses the whole file into a staged one of `store`.
pub(super) fn copy(
    source: &Source,
    store: &Arc<LocalStore>,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Sunk, Failed> {
    let (sender, receiver) = mpsc::channel::<Batch>(QUEUE);
    let sink = start_sink(store, receiver).map_err(Failed::Store)?;
    let read = feed(source, (sender, sink.watch()), progress, cancel);
    // A store that fails or hangs ends the reading, so its own reason comes first.
    let sunk = match (sink.wait(), &read) {
        (Err(_), Err(error)) if error.code() == Code::Canceled => None,
        (sunk, _) => Some(sunk.map_err(Failed::Store)?),
    };
    read.map_err(Failed::Source)?;
    sunk.ok_or_else(|| Failed::Source(Error::new(Code::Internal, "write snapshot from", source.name())))
}

fn feed(
    source: &Source,
    (sender, sinking): (mpsc::Sender<Batch>, Watch),
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<()> {
    let (on, total) = (source.name(), source.reader.len());
    let mut at = 0;
    while at < total {
        let mut piece = vec![0; PIECE.min(total - at) as usize];
        source.reader.read_at(at, &mut piece).map_err(|e| Error::io("read", format!("{on} at byte {at}"), e))?;
        at += piece.len() as u64;
        let mut batch = vec![Bytes::from(piece)];
        loop {
            if cancel.is_cancelled() {
                return Err(Error::new(Code::Canceled, "import", on).because("asked to stop; nothing was stored"));
            }
            batch = match sender.try_send(batch) {
                Ok(()) => break,
                Err(TrySendError::Full(batch)) if !sinking.is_hung() => batch,
                Err(_) => return Err(Error::new(Code::Io, "write snapshot from", on)),
            };
            std::thread::sleep(PAUSE);
        }
        progress.bytes(at, Some(total), "B");
    }
    Ok(())
}

/// What was written, to be read back.
pub(super) fn written(sunk: &Sunk, store: &LocalStore, on: &str) -> Result<Object> {
    let plain: Arc<dyn ReadAt> = Arc::new(store.read_back(&sunk.staged, on)?);
    let framed = Framed::open(plain).map_err(|e| e.into_error("read back", on))?;
    Ok(Object::Framed(Arc::new(framed)))
}
