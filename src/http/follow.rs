//! Documents on each change, one a line, as long as somebody reads.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use serde::Serialize;

use super::server::App;
use crate::engine::job::JobId;
use crate::status::{Job, job};

/// Progress within a step is looked at so often; everything else is sent when it happens.
const LOOK: Duration = Duration::from_millis(500);
/// Ages in the status grow although nothing happens.
const AGE: Duration = Duration::from_secs(5);

fn line(document: &impl Serialize) -> Option<Bytes> {
    let mut text = serde_json::to_vec(document).ok()?;
    text.push(b'\n');
    Some(text.into())
}

/// The job at once, and again on each change, until it is over.
pub(super) fn follow_job(app: App, id: JobId) -> Body {
    let start = (app, None::<Job>, false);
    Body::from_stream(stream::unfold(start, move |(app, last, over)| async move {
        if over {
            return None;
        }
        let mut turns = app.handle.turns();
        loop {
            let now = job(&turns.borrow_and_update(), id)?;
            if last.as_ref() != Some(&now) {
                let over = now.state.is_over();
                let bytes = line(&now)?;
                return Some((Ok::<_, std::io::Error>(bytes), (app, Some(now), over)));
            }
            tokio::select! {
                changed = turns.changed() => changed.ok()?,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }))
}

/// The status at once, and again on each change.
pub(super) fn follow_status(app: App) -> Body {
    Body::from_stream(stream::unfold((app, false), |(app, begun)| async move {
        if begun {
            let (mut turns, mut facts) = (app.handle.turns(), app.facts.clone());
            turns.mark_unchanged();
            facts.mark_unchanged();
            let running = !app.handle.turn().live.is_empty();
            tokio::select! {
                changed = turns.changed() => changed.ok()?,
                changed = facts.changed() => changed.ok()?,
                () = tokio::time::sleep(if running { LOOK } else { AGE }) => {}
            }
        }
        let bytes = line(&app.status())?;
        Some((Ok::<_, std::io::Error>(bytes), (app, true)))
    }))
}
