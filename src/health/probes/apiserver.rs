//! A1 to A4 and V1: one apiserver, or all of them by way of their balancer.
//!
//! A 401, 403, 404 or 429 says nothing about the condition of an apiserver, so it is *unknown* with that reason.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::Method;
use jiff::Timestamp;
use serde_json::Value;

use super::super::model::{Failure, Outcome, Probe, Reading};
use super::super::schedule::Ask;
use super::{Found, good};
use crate::kube::probe::lease::{self, Lease};
use crate::kube::probe::{Answer, Asker, Identity, Why};

/// Between two looks whether the cache has caught up; it usually has before the first.
const PAUSES: [u64; 6] = [0, 20, 60, 120, 240, 400];
/// Of an error's text, so much is told.
const SAID: usize = 200;

/// Why there is no good answer.
enum No {
    Failed(Failure),
    /// It says nothing about the apiserver.
    Unknown(String),
}

impl From<No> for Outcome {
    fn from(no: No) -> Outcome {
        match no {
            No::Failed(failure) => Outcome::Failed(failure),
            No::Unknown(why) => Outcome::Unknown(why),
        }
    }
}

/// The Lease as this node knows it, by whatever apiserver it came.
type Known = Arc<Mutex<Option<Lease>>>;

#[derive(Debug)]
pub(super) struct Apiserver {
    /// A connection each, so that none waits for another's answer.
    checks: Asker,
    reads: Asker,
    writes: Asker,
    node: String,
    known: Known,
}

impl Apiserver {
    pub(super) fn new(
        url: &str,
        address: Option<IpAddr>,
        identity: &Identity,
        node: &str,
        known: &Known,
    ) -> crate::error::Result<Apiserver> {
        let asker = || Asker::new(url, address, identity);
        Ok(Apiserver { checks: asker()?, reads: asker()?, writes: asker()?, node: node.into(), known: known.clone() })
    }

    pub(super) async fn ask(&self, ask: &Ask) -> Vec<Found> {
        let asker = match ask.probe {
            Probe::A1 => &self.checks,
            Probe::A2 | Probe::V1 => &self.reads,
            _ => &self.writes,
        };
        if ask.repeat || ask.anew {
            asker.forget();
        }
        let begun = Instant::now();
        match ask.probe {
            Probe::A1 => self.checks(ask.deadline).await,
            Probe::A2 | Probe::V1 => {
                let outcome = match self.read(&self.reads, ask.deadline).await {
                    Ok(lease) => good(Reading::Lease { revision: lease.revision }),
                    Err(no) => no.into(),
                };
                vec![Found::since(begun, ask.probe, outcome)]
            }
            Probe::A3 | Probe::A5 => self.write(ask, begun).await,
            other => {
                let why = format!("{other} is not asked by itself");
                vec![Found::since(begun, other, Outcome::Unknown(why))]
            }
        }
    }

    /// A1: what it says of itself, and on a new connection when its certificate ends.
    async fn checks(&self, limit: Duration) -> Vec<Found> {
        let begun = Instant::now();
        let mut found = Vec::new();
        let outcome = self.both_checks(begun + limit, |ends| {
            found.push(Found::since(begun, Probe::A1, good(Reading::Certificate { not_after: ends.as_second() })));
        });
        let outcome = outcome.await.unwrap_or_else(Outcome::from);
        found.push(Found::since(begun, Probe::A1, outcome));
        found
    }

    async fn both_checks(&self, end: Instant, mut shown: impl FnMut(Timestamp)) -> Result<Outcome, No> {
        let mut failing: Vec<String> = Vec::new();
        let mut states = [false; 2];
        for (path, state) in ["/readyz", "/livez"].into_iter().zip(&mut states) {
            let left = end.saturating_duration_since(Instant::now());
            let answer = self.checks.request(Method::GET, path, None, left).await.map_err(failed)?;
            answer.certificate_ends.into_iter().for_each(&mut shown);
            match answer.status {
                200 => *state = true,
                500..=599 => {
                    let new = failing_checks(&answer.body).into_iter();
                    failing.extend(new.filter(|name| !failing.contains(name)).collect::<Vec<_>>());
                }
                _ => return Err(judge(&answer)),
            }
        }
        let [ready, live] = states;
        Ok(good(Reading::Checks { ready, live, failing }))
    }

    /// A2: from etcd, through this apiserver.
    async fn read(&self, by: &Asker, limit: Duration) -> Result<Lease, No> {
        let answer = by.request(Method::GET, &lease::path(&self.node, false), None, limit).await.map_err(failed)?;
        self.lease(&answer)
    }

    fn lease(&self, answer: &Answer) -> Result<Lease, No> {
        if !matches!(answer.status, 200 | 201) {
            return Err(judge(answer));
        }
        let Some(read) = Lease::read(&answer.body) else {
            return Err(No::Failed(Failure::Server(format!("HTTP {} without a Lease", answer.status))));
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|known| known.revision < read.revision) {
            *known = Some(read.clone());
        }
        Ok(read)
    }

    /// A3 or A5, and where it was good A4. A large write that is good is also a small one that is.
    async fn write(&self, ask: &Ask, begun: Instant) -> Vec<Found> {
        let large = ask.probe == Probe::A5;
        let written = match self.renew(large, begun + ask.deadline).await {
            Ok(written) => written,
            Err(no) => return vec![Found::since(begun, ask.probe, no.into())],
        };
        let renewed = |probe| Found::since(begun, probe, good(Reading::Lease { revision: written.revision }));
        let mut found = vec![renewed(ask.probe)];
        if large {
            found.push(renewed(Probe::A3));
        }
        let begun = Instant::now();
        let caught_up = self.catch_up(written.revision, ask.deadline).await;
        found.push(Found::since(begun, Probe::A4, caught_up));
        found
    }

    async fn renew(&self, large: bool, end: Instant) -> Result<Lease, No> {
        let left = || end.saturating_duration_since(Instant::now());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut lease = match known {
            Some(known) => known,
            None => match self.read(&self.writes, left()).await {
                Ok(read) => read,
                Err(no) => return self.make(no, left()).await,
            },
        };
        let path = lease::path(&self.node, false);
        let put = async |lease: &Lease| {
            let body = lease.renewed(&self.node, Timestamp::now(), large);
            self.writes.request(Method::PUT, &path, Some(body), left()).await.map_err(failed)
        };
        let mut answer = put(&lease).await?;
        // Renewed meanwhile, through another apiserver.
        if answer.status == 409 {
            lease = self.read(&self.writes, left()).await?;
            answer = put(&lease).await?;
        }
        if answer.status == 404 {
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        self.lease(&answer)
    }

    /// The Lease that setup did not make. `otherwise`: what is so when it may not be made.
    async fn make(&self, otherwise: No, left: Duration) -> Result<Lease, No> {
        if !matches!(&otherwise, No::Unknown(why) if why.starts_with("404")) {
            return Err(otherwise);
        }
        let body = lease::first(&self.node, Timestamp::now());
        let answer = self.writes.request(Method::POST, lease::collection(), Some(body), left).await.map_err(failed)?;
        self.lease(&answer)
    }

    /// A4: the cache of this apiserver must come to what was written.
    async fn catch_up(&self, written: u64, limit: Duration) -> Outcome {
        let end = Instant::now() + limit;
        let path = lease::path(&self.node, true);
        let mut seen = 0;
        let mut pauses = PAUSES.iter();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let pause = Duration::from_millis(*pauses.next().unwrap_or(&PAUSES[PAUSES.len() - 1]));
            if left <= pause {
                return Outcome::Failed(Failure::Stale { written, seen });
            }
            tokio::time::sleep(pause).await;
            let left = end.saturating_duration_since(Instant::now());
            let answer = match self.writes.request(Method::GET, &path, None, left).await {
                Ok(answer) => answer,
                Err(why) => return failed(why).into(),
            };
            match Lease::read(&answer.body).filter(|_| answer.status == 200) {
                Some(lease) if lease.revision >= written => {
                    return good(Reading::Lease { revision: lease.revision });
                }
                Some(lease) => seen = lease.revision,
                // A Lease that was just made is not in the cache yet.
                None if answer.status == 404 => seen = 0,
                None => return judge(&answer).into(),
            }
        }
    }
}

/// Names of the checks that failed: lines such as `[-]etcd failed: reason withheld`.
fn failing_checks(body: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(body);
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("[-]"));
    names.filter_map(|rest| rest.split_whitespace().next()).take(32).map(|name| printable(name, 64)).collect()
}

fn printable(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
}

/// What an answer that is not a good one says.
fn judge(answer: &Answer) -> No {
    let message = serde_json::from_slice::<Value>(&answer.body)
        .ok()
        .and_then(|body| body.get("message").and_then(Value::as_str).map(String::from))
        .unwrap_or_else(|| String::from_utf8_lossy(&answer.body).into_owned());
    let message = printable(&message, SAID);
    let says = |text: &str| message.contains(text);
    let status = answer.status;
    let unknown = |why: &str| No::Unknown(format!("{status}: {why} ({message})"));
    match status {
        401 => unknown("the apiserver does not know this identity"),
        403 => unknown("this identity may not do that"),
        404 => unknown("the Lease is not there, and was not made"),
        409 => unknown("somebody else writes the Lease all the time"),
        429 => unknown("the apiserver has too many requests"),
        500..=599 if says("database space exceeded") => No::Failed(Failure::NoSpace),
        500..=599 if says("no leader") || says("leader changed") || says("etcdserver: request timed out") => {
            No::Failed(Failure::NoLeader(message))
        }
        500..=599 => No::Failed(Failure::Server(format!("HTTP {status}: {message}"))),
        _ => unknown("that is no answer of an apiserver"),
    }
}

fn failed(why: Why) -> No {
    No::Failed(match why {
        Why::Refused => Failure::Refused,
        Why::Unreachable => Failure::Unreachable,
        Why::Silent => Failure::Silent,
        Why::Reset => Failure::Reset,
        Why::Expired => Failure::Expired,
        Why::Tls(text) => Failure::Tls(text),
        Why::Nonsense(text) => Failure::Server(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Outcome {
        judge(&Answer { status, body: body.to_string().into(), certificate_ends: None }).into()
    }

    #[test]
    fn answers_that_say_nothing_about_the_apiserver_are_unknown() {
        for (status, word) in
            [(401, "identity"), (403, "may not"), (404, "not there"), (429, "too many"), (302, "no answer")]
        {
            let Outcome::Unknown(why) = answer(status, r#"{"kind":"Status","message":"so it is"}"#) else {
                panic!("{status}")
            };
            assert!(why.contains(word) && why.ends_with("(so it is)"), "{why}");
        }
    }

    #[test]
    fn errors_of_etcd_behind_it_keep_their_kind() {
        for (status, text, failure) in [
            (500, "etcdserver: mvcc: database space exceeded", Failure::NoSpace),
            (500, "etcdserver: leader changed", Failure::NoLeader("etcdserver: leader changed".into())),
            (504, "context deadline exceeded", Failure::Server("HTTP 504: context deadline exceeded".into())),
            (503, "a\u{1b}b", Failure::Server("HTTP 503: ab".into())),
        ] {
            assert_eq!(answer(status, text), Outcome::Failed(failure), "{text}");
        }
    }

    #[test]
    fn the_checks_that_fail_are_named() {
        let body = b"[+]ping ok\n[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\nreadyz check failed";
        assert_eq!(failing_checks(body), ["etcd", "etcd-readiness"]);
        assert!(failing_checks(b"").is_empty());
    }
}
