//! What the daemon says by itself: one sentence to systemd, one journal entry an event.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::event::Event;
use crate::engine::journal::{Priority, messages};
use crate::engine::record::Record;
use crate::host::notify::Notifier;
use crate::http::App;

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

/// Writes entries as they happen.
pub(super) fn journal() -> Box<dyn Fn(&Event, &Record) + Send> {
    Box::new(|event, record| {
        for message in messages(event, record) {
            match message.priority {
                Priority::Error => tracing::error!("{}", message.text),
                Priority::Warning => tracing::warn!("{}", message.text),
                Priority::Notice | Priority::Info => tracing::info!("{}", message.text),
            }
        }
    })
}
