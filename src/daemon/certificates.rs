//! Certificates that end soon, or cannot be used: said long before they fail.

use std::time::Duration;

use jiff::Timestamp;

use super::Shared;
use crate::engine::command::Command;
use crate::engine::failure::Failure;
use crate::error::{Code, Error};
use crate::etcd::expiry;
use crate::snapshot::preflight::access;

const ABOUT: &str = "certificates";
const PERIOD: Duration = Duration::from_secs(3600);
/// Missing files may come: they are looked at more often.
const SOON: Duration = Duration::from_secs(30);

pub(super) async fn watch(shared: Shared) {
    let mut settings = shared.settings.clone();
    loop {
        let etcd = settings.borrow_and_update().etcd.clone();
        let read = tokio::task::spawn_blocking(move || access(&etcd)).await;
        let failure = match read {
            Ok(Ok(access)) => {
                let warnings = expiry::warnings(Timestamp::now(), &access);
                (!warnings.is_empty()).then(|| {
                    let error = Error::new(Code::TlsFailed, "use certificates for long", "")
                        .because(warnings.join("; "))
                        .remedy("renew them, for instance with `kubeadm certs renew`; the service takes up new files by itself");
                    Failure::from(&error)
                })
            }
            Ok(Err(error)) => Some(Failure::from(&error)),
            Err(_) => None,
        };
        let period = if failure.is_some() { SOON } else { PERIOD };
        shared.handle.tell(Command::Trouble { about: ABOUT.into(), failure }).await;
        tokio::select! {
            () = tokio::time::sleep(period) => {}
            changed = settings.changed() => if changed.is_err() { return },
            () = shared.stop.cancelled() => return,
        }
    }
}
