//! What the daemon says by itself: one sentence to systemd, one journal entry an event.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::core::Listener;
use crate::engine::journal::{Message, Priority, messages};
use crate::host::notify::Notifier;
use crate::http::App;
use crate::ledger::{JOURNAL_SOCKET, Journal, JournalEntry};

/// The age in the sentence is in minutes.
const PERIOD: Duration = Duration::from_secs(60);

/// `STATUS=`, when it changes: the summary of the status.
pub(super) async fn speak(app: App, notifier: Arc<Notifier>, stop: CancellationToken) {
    let (mut turns, mut facts) = (app.handle.turns(), app.facts.clone());
    let mut said = String::new();
    loop {
        turns.mark_unchanged();
        facts.mark_unchanged();
        let sentence = app.status().summary;
        if sentence != said {
            notifier.status(&sentence);
            said = sentence;
        }
        let changed = tokio::select! {
            changed = turns.changed() => changed.is_ok(),
            changed = facts.changed() => changed.is_ok(),
            () = tokio::time::sleep(PERIOD) => true,
            () = stop.cancelled() => false,
        };
        if !changed {
            return;
        }
    }
}

/// Writes an entry for each event: to the journal where this is a service, else to standard error.
pub(super) fn journal() -> Listener {
    // systemd sets it when standard error is the journal's: there, lines would be a second copy.
    let journal = std::env::var_os("JOURNAL_STREAM").and_then(|_| Journal::open(Path::new(JOURNAL_SOCKET)).ok());
    Box::new(move |event, record| {
        for message in messages(event, record) {
            match &journal {
                Some(journal) => send(journal, &message),
                None => print(&message),
            }
        }
    })
}

fn send(journal: &Journal, message: &Message) {
    let mut fields = vec![("REFLOAT_EVENT", message.kind.word)];
    fields.extend(message.fields.iter().map(|(name, value)| (*name, value.as_str())));
    let (message_id, priority) = (message.kind.id, message.priority as u8);
    let entry = JournalEntry { message_id, priority, message: &message.text, fields: &fields };
    if let Err(error) = journal.send(&entry) {
        tracing::error!("{}", error.line());
    }
}

fn print(message: &Message) {
    match message.priority {
        Priority::Error => tracing::error!("{}", message.text),
        Priority::Warning => tracing::warn!("{}", message.text),
        Priority::Notice | Priority::Info => tracing::info!("{}", message.text),
    }
}
