//! What the health process says, for the status and the ledger: followed on its socket, so whatever this process does
//! holds up nothing there, and what was not read is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Shared;
use crate::engine::command::Command;
use crate::engine::failure::Failure;
use crate::error::{Code, Result};
use crate::health::verdict::State;
use crate::http::client::{Client, Follow};
use crate::http::{HEALTH_SOCKET, QUIET};
use crate::status::health::{HealthTrouble, HealthWord};

/// A process that is not there may come.
const PAUSE: Duration = Duration::from_secs(5);
/// Signs of life come twice within it.
const PATIENCE: Duration = QUIET.saturating_mul(2);

pub(super) async fn watch(shared: Shared) {
    let mut told: BTreeMap<String, Failure> = BTreeMap::new();
    loop {
        let (enabled, socket) = {
            let settings = shared.settings.borrow();
            (settings.health.enabled, settings.paths.runtime.join(HEALTH_SOCKET))
        };
        if enabled {
            let Err(why) = follow(&shared, &Client::of_health(&socket), &mut told).await;
            let since = shared.facts.borrow().health.as_ref().and_then(|word| word.at);
            shared.facts.send_modify(|facts| facts.health = Some(HealthWord::silent(since, &why)));
        } else {
            shared.facts.send_if_modified(|facts| facts.health.take().is_some());
        }
        // Of what nobody watches nothing is known to be wrong.
        for about in std::mem::take(&mut told).into_keys() {
            shared.handle.tell(Command::Trouble { about, failure: None }).await;
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = shared.stop.cancelled() => return,
        }
    }
}

/// Follows until that ends; why it did.
async fn follow(
    shared: &Shared,
    client: &Client,
    told: &mut BTreeMap<String, Failure>,
) -> std::result::Result<std::convert::Infallible, String> {
    let mut follow = client.follow("/v1/health/changes").await.map_err(|e| e.line())?;
    loop {
        let word = next(&mut follow).await?;
        let troubles: BTreeMap<String, Failure> = word.troubles.iter().filter_map(trouble).collect();
        shared.facts.send_modify(|facts| facts.health = Some(word));
        for about in told.keys().filter(|about| !troubles.contains_key(*about)) {
            shared.handle.tell(Command::Trouble { about: about.clone(), failure: None }).await;
        }
        for (about, failure) in &troubles {
            if told.get(about).map(|before| &before.code) != Some(&failure.code) {
                shared.handle.tell(Command::Trouble { about: about.clone(), failure: Some(failure.clone()) }).await;
            }
        }
        *told = troubles;
    }
}

async fn next(follow: &mut Follow) -> std::result::Result<HealthWord, String> {
    let next: Result<Option<HealthWord>> = match tokio::time::timeout(PATIENCE, follow.next()).await {
        Ok(next) => next,
        Err(_) => return Err(format!("nothing was heard of it for {} s", PATIENCE.as_secs())),
    };
    next.map_err(|e| e.line())?.ok_or_else(|| "it has ended".into())
}

/// What is bad, as a trouble of this daemon; what is slow is in the status alone.
fn trouble(trouble: &HealthTrouble) -> Option<(String, Failure)> {
    let HealthTrouble { kind, name, state, cause, reason, since } = trouble;
    let failure = Failure {
        code: Code::Unhealthy.word().into(),
        what: "find healthy".into(),
        on: format!("{kind} {name}"),
        why: cause.iter().chain(reason).cloned().chain([format!("since {since:.0}")]).collect(),
        remedy: Some("see `refloat health`".into()),
    };
    (*state == State::Bad).then(|| (format!("{kind} {name}"), failure))
}
