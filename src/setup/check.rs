//! Whether it will work: certificate, key and authority fit, and the member answers. A failure is told and stops
//! nothing: a node is often set up while its etcd is down.

use jiff::Timestamp;
use serde::Serialize;

use crate::config::Settings;
use crate::error::Error;
use crate::etcd::{Access, AccessFiles, Member, expiry};

/// One look, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub what: String,
    pub ok: bool,
    /// Why not, or what was seen.
    pub said: String,
}

impl Check {
    fn good(what: impl Into<String>, said: impl Into<String>) -> Check {
        Check { what: what.into(), ok: true, said: said.into() }
    }

    fn bad(what: impl Into<String>, said: impl Into<String>) -> Check {
        Check { what: what.into(), ok: false, said: said.into() }
    }
}

/// Reads the credentials and asks the endpoint that comes first. `reachable`: whether this one may be asked.
pub async fn checks(
    files: &AccessFiles,
    settings: &Settings,
    reachable: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Vec<Check> {
    let access = match Access::load(files) {
        Ok(access) => access,
        Err(error) => return vec![Check::bad("credentials", told(&error))],
    };
    let mut list = Vec::new();
    if files.cert_file.is_some() {
        list.push(Check::good("credentials", "the key belongs to the certificate"));
    }
    list.extend(access.warnings().iter().map(|warning| Check::bad("credentials", warning)));
    let ends = expiry::warnings(now, &access);
    list.extend(ends.into_iter().map(|warning| Check::bad("expiry", warning)));
    match access.refusal(now) {
        Some(why) => {
            let why =
                format!("the authority in ca_file did not sign the client certificate, or it does not count: {why}");
            list.push(Check::bad("authority", why));
        }
        None if files.cert_file.is_some() => list.push(Check::good("authority", "it signed the client certificate")),
        None => {}
    }
    let first = settings.etcd.endpoints.first().filter(|url| reachable(url));
    if let Some(url) = first {
        list.push(ask(url, &access).await);
    }
    list
}

async fn ask(url: &str, access: &Access) -> Check {
    let what = format!("member at {url}");
    let status = async { Member::connect(url, access).await?.status().await };
    match status.await {
        Ok(status) => Check::good(what, format!("etcd {}, cluster {:x}", status.version, status.cluster_id)),
        Err(error) => Check::bad(what, told(&error)),
    }
}

fn told(error: &Error) -> String {
    match error.get_remedy() {
        Some(remedy) => format!("{}; try: {remedy}", error.line()),
        None => error.line(),
    }
}
