//! Follows units: what they are now, and each change. It never changes one.
//!
//! systemd sends a signal when a unit changes, which says little; so each one makes the unit be read again. Between
//! signals nothing wakes. When the bus or systemd goes away, that is reported, and it is tried again.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{SelectAll, StreamExt as _, select_all};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zbus::message::Type;
use zbus::proxy::CacheProperties;
use zbus::{Connection, MatchRule, MessageStream};

use super::bus::{self, ManagerProxy, ServiceProxy, UnitProxy};

/// For a connection, and for one answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// A change comes as several signals; they are waited for, so that it is read once. It also bounds how often a unit
/// that restarts in a loop is read.
const GATHER: Duration = Duration::from_millis(100);
/// Between attempts, doubling.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A unit as systemd sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFacts {
    /// As it was asked for.
    pub name: String,
    /// `loaded`, `not-found`, `masked`, `error`, …
    pub load: String,
    /// `active`, `inactive`, `failed`, `activating`, …
    pub active: String,
    /// `running`, `dead`, `auto-restart`, …
    pub sub: String,
    /// 0 while there is none.
    pub main_pid: u32,
    /// Restarts by `Restart=` since it was last started by somebody.
    pub restarts: u32,
    /// When its state last changed.
    pub since: Option<Timestamp>,
    /// `success`, `exit-code`, `signal`, `timeout`, …; empty for what is no service.
    pub result: String,
}

/// What a watcher has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitReport {
    Unit(UnitFacts),
    /// Nothing is known of any unit now. Once units can be seen again, each of them is reported anew.
    Absent {
        why: String,
    },
}

/// Why a connection was given up.
enum End {
    /// Nobody listens to the reports.
    Unheard,
    Bus(zbus::Error),
}

impl From<zbus::Error> for End {
    fn from(e: zbus::Error) -> End {
        End::Bus(e)
    }
}

/// Reports each unit once at the start and again whenever it differs, until `cancel`, or until nobody listens.
/// A unit that does not exist has `load` "not-found". `address` is that of a bus; `None` means the system's.
pub async fn watch(
    units: Vec<String>,
    address: Option<String>,
    changed: mpsc::Sender<UnitReport>,
    cancel: CancellationToken,
) {
    let mut watcher = Watcher { units, changed, known: HashMap::new(), pause: PAUSE_MIN };
    tokio::select! {
        () = cancel.cancelled() => {}
        () = watcher.run(address.as_deref()) => {}
    }
}

struct Watcher {
    units: Vec<String>,
    changed: mpsc::Sender<UnitReport>,
    /// What was last reported.
    known: HashMap<String, UnitFacts>,
    pause: Duration,
}

impl Watcher {
    async fn run(&mut self, address: Option<&str>) {
        let mut told = false;
        while let Err(End::Bus(e)) = self.session(address).await {
            if !told || !self.known.is_empty() {
                self.known.clear();
                if self.changed.send(UnitReport::Absent { why: e.to_string() }).await.is_err() {
                    return;
                }
                told = true;
            }
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    /// One connection, for as long as it lasts; ends well only when there is nothing to watch.
    async fn session(&mut self, address: Option<&str>) -> Result<(), End> {
        if self.units.is_empty() {
            return Ok(());
        }
        let connection = bus::connect(address, DEADLINE, DEADLINE).await?;
        let mut events = events(&connection, &self.units).await?;
        let manager = ManagerProxy::new(&connection).await?;
        bus::subscribe(&manager).await?;
        let mut stale: BTreeSet<usize> = (0..self.units.len()).collect();
        loop {
            for at in std::mem::take(&mut stale) {
                self.report(&connection, at).await?;
            }
            self.pause = PAUSE_MIN;
            let closed = || zbus::Error::Failure("the bus closed the connection".into());
            let mut next = Some(events.next().await.ok_or_else(closed)?);
            tokio::time::sleep(GATHER).await;
            while let Some(event) = next {
                match event? {
                    Event::Unit(at) => drop(stale.insert(at)),
                    Event::All => stale.extend(0..self.units.len()),
                    Event::NewManager => {
                        bus::subscribe(&manager).await?;
                        stale.extend(0..self.units.len());
                    }
                    Event::NoManager => return Err(zbus::Error::Failure("systemd has left the bus".into()).into()),
                }
                next = match events.next().now_or_never() {
                    Some(Some(event)) => Some(event),
                    Some(None) => return Err(closed().into()),
                    None => None,
                };
            }
        }
    }

    async fn report(&mut self, connection: &Connection, at: usize) -> Result<(), End> {
        let facts = read(connection, &self.units[at]).await?;
        if self.known.get(&facts.name) == Some(&facts) {
            return Ok(());
        }
        self.known.insert(facts.name.clone(), facts.clone());
        self.changed.send(UnitReport::Unit(facts)).await.map_err(|_| End::Unheard)
    }
}

enum Event {
    /// By its place in the list.
    Unit(usize),
    /// Unit files were read again.
    All,
    /// systemd executed itself anew, or came back.
    NewManager,
    NoManager,
}

type Events = SelectAll<futures_util::stream::BoxStream<'static, zbus::Result<Event>>>;

/// One rule for each unit, so that the changes of all others wake nobody.
async fn events(connection: &Connection, units: &[String]) -> zbus::Result<Events> {
    let mut streams = Vec::new();
    for (at, unit) in units.iter().enumerate() {
        let rule = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(bus::SERVICE)
            .path(bus::unit_path(unit))
            .interface("org.freedesktop.DBus.Properties")
            .member("PropertiesChanged")
            .build()?;
        let stream = MessageStream::for_match_rule(rule, connection, None).await?;
        streams.push(stream.map(move |message| message.map(|_| Event::Unit(at))).boxed());
    }
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(bus::SERVICE)
        .path(bus::PATH)
        .interface(bus::MANAGER)
        .member("Reloading")
        .build()?;
    let stream = MessageStream::for_match_rule(rule, connection, None).await?;
    streams.push(stream.map(|message| message.map(|_| Event::All)).boxed());
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender("org.freedesktop.DBus")
        .interface("org.freedesktop.DBus")
        .member("NameOwnerChanged")
        .arg(0, bus::SERVICE)
        .build()?;
    let stream = MessageStream::for_match_rule(rule, connection, None).await?;
    let owner = |message: zbus::Message| {
        let (_, _, new): (String, String, String) = message.body().deserialize()?;
        Ok(if new.is_empty() { Event::NoManager } else { Event::NewManager })
    };
    streams.push(stream.map(move |message| message.and_then(owner)).boxed());
    Ok(select_all(streams))
}

async fn read(connection: &Connection, name: &str) -> zbus::Result<UnitFacts> {
    let path = bus::unit_path(name);
    let unit = UnitProxy::builder(connection).path(path.as_str()).cache_properties(CacheProperties::No).build().await?;
    let service =
        ServiceProxy::builder(connection).path(path.as_str()).cache_properties(CacheProperties::No).build().await?;
    let micros = there(unit.state_change_timestamp().await)?.unwrap_or(0);
    let since = i64::try_from(micros).ok().filter(|micros| *micros > 0);
    Ok(UnitFacts {
        name: name.to_owned(),
        load: there(unit.load_state().await)?.unwrap_or_else(|| "not-found".into()),
        active: there(unit.active_state().await)?.unwrap_or_else(|| "inactive".into()),
        sub: there(unit.sub_state().await)?.unwrap_or_else(|| "dead".into()),
        main_pid: there(service.main_pid().await)?.unwrap_or(0),
        restarts: there(service.restarts().await)?.unwrap_or(0),
        since: since.and_then(|micros| Timestamp::from_microsecond(micros).ok()),
        result: there(service.result().await)?.unwrap_or_default(),
    })
}

/// `None` where the unit, or this side of it, does not exist: a socket has no process.
fn there<T>(answer: zbus::Result<T>) -> zbus::Result<Option<T>> {
    const MISSING: [&str; 5] = ["UnknownObject", "UnknownInterface", "UnknownProperty", "UnknownMethod", "NoSuchUnit"];
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(e) if bus::error_name(&e).is_some_and(|name| MISSING.contains(&name.as_str())) => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests;
