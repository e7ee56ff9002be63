//! An engine without etcd and without a disk: work that tests let go, a ledger that tests break.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::command::Handle;
use super::core::{Engine, Found, Parts, channels};
use super::event::{Event, Outcome, Survey};
use super::job::Task;
use super::outbox::Ledger;
use super::record::Record;
use super::work::{Undone, Works};
use crate::config::{self, Settings, Surroundings};
use crate::error::{Code, Error, Result};
use crate::ledger::Entry;
use crate::snapshot::progress::Progress;

/// How the work of a kind goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    Well,
    /// Until it is canceled.
    Hangs,
    /// It does not even hear a cancel, until this changes.
    Stuck,
    Fails(Code),
}

#[derive(Default)]
pub struct Fakes {
    pub goes: Mutex<BTreeMap<&'static str, Goes>>,
    pub ran: Mutex<Vec<String>>,
    pub stores: Mutex<Vec<(String, Survey)>>,
}

impl Fakes {
    pub fn set(&self, kind: &'static str, goes: Goes) {
        self.goes.lock().unwrap().insert(kind, goes);
    }

    fn how(&self, kind: &str) -> Goes {
        self.goes.lock().unwrap().get(kind).copied().unwrap_or(Goes::Well)
    }

    pub fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }
}

impl Works for Fakes {
    fn run(
        &self,
        _: &Settings,
        task: &Task,
        progress: Arc<dyn Progress>,
        cancel: &CancellationToken,
    ) -> std::result::Result<Outcome, Undone> {
        self.ran.lock().unwrap().push(words(task));
        progress.step("preflight");
        progress.step("stream");
        progress.bytes(1, Some(2), "B");
        loop {
            match self.how(task.kind()) {
                Goes::Well => return Ok(Outcome::Verify { checked: 1, damaged: vec![], failed: vec![] }),
                Goes::Fails(code) => return Err(Error::new(code, "work", "").into()),
                Goes::Hangs if cancel.is_cancelled() => return Err(Error::new(Code::Canceled, "work", "").into()),
                Goes::Hangs | Goes::Stuck => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn survey(&self, _: &Settings) -> Vec<(String, Survey)> {
        self.stores.lock().unwrap().clone()
    }

    fn clock_jump(&self, _: &Settings, _: Timestamp) -> Result<Option<i64>> {
        Ok(None)
    }
}

/// What was to be done, with its tags.
fn words(task: &Task) -> String {
    match task {
        Task::Snapshot { tags, .. } if !tags.is_empty() => format!("{task} {tags:?}"),
        _ => task.to_string(),
    }
}

/// What the disk holds, and how it does.
#[derive(Clone, Default)]
pub struct Disk {
    pub entries: Arc<Mutex<Vec<(Timestamp, Event)>>>,
    pub breaks: Arc<Mutex<Break>>,
    /// Of the file.
    pub size: Arc<AtomicU64>,
    /// New files that were asked for.
    pub rotations: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Break {
    #[default]
    No,
    Full,
    /// It answers nothing, for ever.
    Silent,
}

/// Answers that were never given: a sender that is dropped would be an answer.
static HELD: Mutex<Vec<oneshot::Sender<Result<u64>>>> = Mutex::new(Vec::new());

impl Ledger for Disk {
    fn append(&self, batch: Vec<Entry>, at: Timestamp) -> oneshot::Receiver<Result<u64>> {
        let (sender, receiver) = oneshot::channel();
        match *self.breaks.lock().unwrap() {
            Break::No => {
                let mut entries = self.entries.lock().unwrap();
                entries.extend(batch.iter().map(|entry| (at, Event::from_entry(entry).unwrap())));
                sender.send(Ok(entries.len() as u64)).unwrap();
            }
            Break::Full => sender.send(Err(Error::new(Code::TooLittleSpace, "append", ""))).unwrap(),
            Break::Silent => HELD.lock().unwrap().push(sender),
        }
        receiver
    }

    fn rotate(&self, _: Vec<Entry>, _: Timestamp) -> oneshot::Receiver<Result<()>> {
        self.rotations.fetch_add(1, Ordering::SeqCst);
        let (sender, receiver) = oneshot::channel();
        let full = *self.breaks.lock().unwrap() == Break::Full;
        sender.send(if full { Err(Error::new(Code::TooLittleSpace, "rotate", "")) } else { Ok(()) }).unwrap();
        receiver
    }

    fn size(&self) -> u64 {
        self.size.load(Ordering::SeqCst)
    }
}

impl Disk {
    /// What a daemon that starts on this disk knows.
    pub fn record(&self) -> Record {
        let mut record = Record::default();
        self.entries.lock().unwrap().iter().for_each(|(at, event)| record.apply(event, *at));
        record
    }

    pub fn events(&self) -> Vec<Event> {
        self.entries.lock().unwrap().iter().map(|(_, event)| event.clone()).collect()
    }
}

/// Set by tests.
pub struct Hands(pub Mutex<(Timestamp, Duration)>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn since_boot(&self) -> Option<Duration> {
        Some(self.0.lock().unwrap().1)
    }
}

pub struct Bench {
    pub works: Arc<Fakes>,
    pub clock: Arc<Hands>,
    pub handle: Handle,
    pub task: tokio::task::JoinHandle<()>,
    /// Turns of the loop.
    pub turned: Arc<AtomicU64>,
}

/// Settings as of a file with this text, with a state directory of its own.
pub fn settings(text: &str) -> Settings {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("refloat.toml");
    std::fs::write(&file, format!("node = \"cp1\"\n{text}")).unwrap();
    let surroundings = Surroundings { root: "/".into(), host_name: "cp1".into(), credentials: None };
    config::load(&surroundings, Some(&file)).unwrap().settings
}

/// Half past ten, in the middle of the default schedule's slots, with the schedule paused so that only what a test asks for
/// runs.
pub fn start(disk: Disk, works: Arc<Fakes>, at: &str, config: &str) -> Bench {
    let now: Timestamp = at.parse().unwrap();
    let clock = Arc::new(Hands(Mutex::new((now, Duration::from_secs(1000)))));
    let (handle, channels) = channels(now);
    let turned = Arc::new(AtomicU64::new(0));
    let parts = Parts {
        settings: Arc::new(settings(config)),
        works: works.clone(),
        clock: clock.clone(),
        tick: super::core::TICK,
        heartbeat: Box::new({
            let turned = turned.clone();
            move || {
                turned.fetch_add(1, Ordering::SeqCst);
            }
        }),
        journal: Box::new(|event, record| drop(super::journal::messages(event, record))),
    };
    let found = Found { ledger: Box::new(disk.clone()), record: disk.record(), first: Vec::new() };
    let task = tokio::spawn(Engine::new(parts, found, channels).run());
    Bench { works, clock, handle, task, turned }
}

impl Bench {
    /// Waits until a turn of the engine is so; fails after ten seconds with what it was.
    pub async fn until(&self, what: &str, is: impl Fn(&super::command::Turn) -> bool) -> Arc<super::command::Turn> {
        let mut turns = self.handle.turns();
        let found = tokio::time::timeout(Duration::from_secs(20), turns.wait_for(|turn| is(turn))).await;
        match found {
            Ok(Ok(turn)) => turn.clone(),
            _ => panic!("not seen: {what}; the last turn was {:#?}", self.handle.turn()),
        }
    }

    pub fn advance(&self, wall: i64, boot: u64) {
        let mut hands = self.clock.0.lock().unwrap();
        *hands = (hands.0 + jiff::SignedDuration::from_secs(wall), hands.1 + Duration::from_secs(boot));
    }

    /// Makes the engine look.
    pub async fn nudge(&self) {
        self.handle.tell(super::command::Command::Size { db_bytes: 1 }).await;
    }
}
