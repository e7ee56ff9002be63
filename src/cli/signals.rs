//! SIGINT and SIGTERM: the first asks the work to stop and to clean up, the second ends the process.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::{Code, Error, Exit, Result};

/// Call inside the runtime.
pub(super) fn cancel_on_signal() -> Result<CancellationToken> {
    let listen = |kind| signal(kind).map_err(|e| Error::new(Code::Internal, "listen for signals", "").because(e));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let cancel = CancellationToken::new();
    let fire = cancel.clone();
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        fire.cancel();
        either(&mut interrupt, &mut terminate).await;
        // Asked twice: what is left behind is swept by the next run, as after a crash.
        #[allow(clippy::disallowed_methods)] // the one way out while a blocking call still runs
        std::process::exit(Exit::Canceled as i32);
    });
    Ok(cancel)
}

async fn either(a: &mut Signal, b: &mut Signal) {
    tokio::select! {
        _ = a.recv() => {}
        _ = b.recv() => {}
    }
}
