//! Reads the ledger before the engine begins. A disk that does not answer keeps jobs from running, not the daemon from
//! saying so.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::engine::core::Found;
use crate::engine::event::Event;
use crate::engine::failure::Failure;
use crate::engine::record::Record;
use crate::error::{Code, Error, Result};
use crate::fs::{BootTime, Holder};
use crate::ledger::{Ledger, Writer};
use crate::snapshot::state::open_state;

/// What trouble with the ledger is filed under.
pub const ABOUT_LEDGER: &str = "ledger";
/// A disk that is full or broken is looked at again after so long.
const PAUSE: Duration = Duration::from_secs(10);

/// Opens it, however long that takes. `LockHeld`, and what only a person can mend, end the daemon.
pub async fn open(
    settings: &Settings,
    files: Vec<String>,
    tick: Duration,
    heartbeat: &(dyn Fn() + Send + Sync),
) -> Result<(Found, Identity)> {
    loop {
        let (sender, mut receiver) = oneshot::channel();
        let (settings, files) = (settings.clone(), files.clone());
        // Not on the executor's pool: a frozen disk would keep the process from ending.
        let spawned = std::thread::Builder::new().name("ledger-open".into()).spawn(move || {
            let _ = sender.send(read(&settings, files));
        });
        spawned.map_err(|e| Error::new(Code::Internal, "start a thread", "").because(e))?;
        let opened = loop {
            tokio::select! {
                opened = &mut receiver => break opened,
                // The engine's loop has not begun: until then this is it.
                () = tokio::time::sleep(tick) => heartbeat(),
            }
        };
        let gone = |_| Err(Error::new(Code::Internal, "read ledger", "").because("the thread panicked"));
        match opened.unwrap_or_else(gone) {
            Ok(found) => return Ok(found),
            Err(error) if matches!(error.code(), Code::Io | Code::TooLittleSpace | Code::StateHung) => {
                tracing::error!("{}", error.line());
                heartbeat();
                let begun = std::time::Instant::now();
                while begun.elapsed() < PAUSE {
                    tokio::time::sleep(tick).await;
                    heartbeat();
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Device and inode of the state directory.
pub type Identity = (u64, u64);

fn read(settings: &Settings, files: Vec<String>) -> Result<(Found, Identity)> {
    let state = open_state(settings, &CancellationToken::new())?;
    let opened = Ledger::open(&state, &Holder::current("refloat daemon", &settings.node))?;
    let record = Record::of(&opened.records);
    let boot_id = BootTime::now().map(|boot| boot.boot_id).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION").to_string();
    let stores = Some(settings.stores.iter().map(|store| store.name.clone()).collect());
    let started = Event::Started { version, pid: std::process::id(), boot_id };
    let mut first = vec![started, Event::Configured { files, stores }];
    match opened.repaired.filter(|repaired| repaired.lost()) {
        Some(repaired) => {
            let error =
                Error::new(Code::DataInvalid, "read all of the ledger", "").because(repaired.to_string()).remedy(
                    "what was cut off is kept beside it; jobs and slots of that time may be missing from the status",
                );
            first.push(Event::Troubled { about: ABOUT_LEDGER.into(), failure: Failure::from(&error) });
        }
        // It was told, and is in the journal; a clean start ends it.
        None if record.troubles.contains_key(ABOUT_LEDGER) => first.push(Event::Cleared { about: ABOUT_LEDGER.into() }),
        None => {}
    }
    Ok((Found { ledger: Box::new(Writer::start(opened.ledger)), record, first }, state.identity()))
}
