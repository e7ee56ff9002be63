//! From the file into a nameless one in a store: the form of every stored snapshot.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::source::Source;
use crate::error::{Code, Error, Result};
use crate::format::ReadAt;
use crate::snapshot::capture::{Batch, QUEUE, Sunk, sink};
use crate::snapshot::judge::Object;
use crate::snapshot::progress::Progress;
use crate::store::codec::Framed;
use crate::store::{LocalStore, PlainFile, Store};

/// How much is read at once, in bytes.
const PIECE: u64 = 1 << 20;

/// Which side failed: a store's failure is not that of the others.
#[derive(Debug)]
pub(super) enum Failed {
    Source(Error),
    Store(Error),
}

/// Compresses the whole file into a staged one of `store`.
pub(super) fn copy(
    source: &Source,
    store: &LocalStore,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Sunk, Failed> {
    let staged = store.stage().map_err(Failed::Store)?;
    let on = format!("store {}", store.location());
    let (sender, receiver) = mpsc::channel::<Batch>(QUEUE);
    std::thread::scope(|scope| {
        let sink = scope.spawn(|| sink(staged, receiver, &on));
        let read = feed(source, sender, progress, cancel);
        let panicked = || Error::new(Code::Internal, "write snapshot to", &on).because("a worker thread panicked");
        let sunk = sink.join().map_err(|_| Failed::Source(panicked()))?;
        // A store that fails closes the channel, so its own reason comes first.
        let sunk = sunk.map_err(Failed::Store)?;
        read.map_err(Failed::Source).map(|()| sunk)
    })
}

fn feed(
    source: &Source,
    sender: mpsc::Sender<Batch>,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<()> {
    let (on, total) = (source.name(), source.reader.len());
    let mut at = 0;
    while at < total {
        if cancel.is_cancelled() {
            return Err(Error::new(Code::Canceled, "import", on).because("asked to stop; nothing was stored"));
        }
        let mut piece = vec![0; PIECE.min(total - at) as usize];
        source.reader.read_at(at, &mut piece).map_err(|e| Error::io("read", format!("{on} at byte {at}"), e))?;
        at += piece.len() as u64;
        if sender.blocking_send(vec![Bytes::from(piece)]).is_err() {
            return Err(Error::new(Code::Io, "write snapshot from", on));
        }
        progress.bytes(at, Some(total), "B");
    }
    Ok(())
}

/// What was written, to be read back.
pub(super) fn written(sunk: &Sunk, on: &str) -> Result<Object> {
    let file = sunk.staged.file().try_clone().map_err(|e| Error::io("read back", on, e))?;
    let plain: Arc<dyn ReadAt> = Arc::new(PlainFile::new(file, on)?);
    let framed = Framed::open(plain).map_err(|e| e.into_error("read back", on))?;
    Ok(Object::Framed(Arc::new(framed)))
}
