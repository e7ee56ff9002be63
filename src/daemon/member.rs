//! What the own member says of itself: twice a minute one small request, so that the status knows how far it is ahead
//! of the newest snapshot. Not health: that has a service of its own.

use std::time::Duration;

use jiff::Timestamp;

use super::Shared;
use crate::engine::command::Command;
use crate::engine::failure::Failure;
use crate::error::Result;
use crate::etcd::{Member, MemberStatus};
use crate::snapshot::preflight::preflight;
use crate::status::{Answer, MemberFact};

/// What trouble with the member is filed under.
const ABOUT: &str = "etcd";
const PERIOD: Duration = Duration::from_secs(30);

pub(super) async fn watch(shared: Shared) {
    let mut known: Option<(Member, String)> = None;
    let mut settings = shared.settings.clone();
    loop {
        let etcd = settings.borrow_and_update().etcd.clone();
        let asked = match &known {
            Some((member, _)) => member.status().await,
            None => match preflight(&etcd, None, None).await {
                Ok(fit) => {
                    let name = fit.chosen.info.as_ref().map(|info| info.label()).unwrap_or_default();
                    known = Some((fit.member, name));
                    Ok(fit.status)
                }
                Err(error) => Err(error),
            },
        };
        let url = known.as_ref().map(|(member, _)| member.url().to_string());
        let name = known.as_ref().map(|(_, name)| name.clone()).unwrap_or_default();
        let url = url.or_else(|| etcd.member.clone().or(etcd.endpoints.first().cloned())).unwrap_or_default();
        tell(&shared, url, name, &asked).await;
        if asked.is_err() {
            // The certificates may have changed, or the member its address.
            known = None;
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            changed = settings.changed() => {
                known = None;
                if changed.is_err() {
                    return;
                }
            }
            () = shared.stop.cancelled() => return,
        }
    }
}

async fn tell(shared: &Shared, url: String, name: String, asked: &Result<MemberStatus>) {
    let answer = match asked {
        Ok(status) => {
            Ok(Answer { name, version: status.version.clone(), revision: status.revision, db_size: status.db_size })
        }
        Err(error) => Err(Failure::from(error)),
    };
    if let Ok(answer) = &answer {
        shared.handle.tell(Command::Size { db_bytes: answer.db_size }).await;
    }
    let failure = answer.as_ref().err().cloned();
    let fact = MemberFact { at: Timestamp::now(), url, answer };
    shared.facts.send_modify(|facts| facts.member = Some(fact));
    shared.handle.tell(Command::Trouble { about: ABOUT.into(), failure }).await;
}
