//! L1: this node, and whether this process may judge anybody: are its timers late, is memory short, did the clock step,
//! what is the file system of etcd's data and does it answer.
//!
//! What can block has a thread of its own, which is asked and not waited for: the answer is the last one that came, and
//! for how long one has been missing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::statfs::{FsType, statfs};
use nix::time::{ClockId, clock_gettime};

use super::super::model::{DataDir, Mono, Observer, Process};
use super::process::{Look, Watch};

/// The worst of so much time is told.
const LATE: Duration = Duration::from_secs(10);
/// Steps of the clock are told for so long.
const STEP: Duration = Duration::from_secs(60);
/// Less is the clock's own pace, set right by NTP.
const STEP_AT_LEAST: i64 = 2;
/// A call to a disk that takes longer hangs.
const HUNG: Duration = Duration::from_secs(1);
/// From how far back the rate is taken at which a disk fills up.
const FILL: Duration = Duration::from_secs(300);
/// Memory is locked: a stack that nobody uses costs as much as one that is used.
const STACK: usize = 256 << 10;

/// Now.
pub fn now() -> Mono {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(|at| Mono::default().plus(Duration::from(at))).unwrap_or_default()
}

/// Gathers what the observer says of itself.
#[derive(Debug)]
pub struct Local {
    lateness: VecDeque<(Mono, Duration)>,
    clock: VecDeque<(Mono, i64)>,
    free: VecDeque<(Mono, u64)>,
    disk: Option<Aside<Option<(String, u64)>>>,
    process: Option<Aside<Option<Look>>>,
    blocked_since: Option<Mono>,
    pressure: Option<Aside<Pressure>>,
    locked: Option<String>,
    /// Seconds since the epoch.
    certificate_ends: Option<i64>,
    started: Mono,
}

/// What of this node is looked at.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// The own member's.
    pub data_dir: Option<PathBuf>,
    /// Client URL of the own member.
    pub member: Option<String>,
    /// Why memory is not locked.
    pub locked: Option<String>,
    /// Of the own client certificate, seconds since the epoch.
    pub certificate_ends: Option<i64>,
}

/// Of this host.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    pub cpu: Option<f64>,
    pub memory: Option<f64>,
    /// Bytes.
    pub available: Option<u64>,
}

impl Local {
    pub fn new(node: Node, now: Mono) -> Local {
        let Node { data_dir, member, locked, certificate_ends } = node;
        let mut words: Vec<String> = data_dir.iter().map(|dir| dir.display().to_string()).collect();
        let process = member.and_then(|url| {
            words.push(url.split("://").last().unwrap_or_default().to_string());
            let mut watch = Watch::new(Path::new("/proc"), words);
            Aside::start("process", move || watch.look())
        });
        Local {
            lateness: VecDeque::new(),
            clock: VecDeque::new(),
            free: VecDeque::new(),
            disk: data_dir.and_then(|dir| Aside::start("statfs", move || file_system(&dir))),
            process,
            blocked_since: None,
            pressure: Aside::start("pressure", pressure),
            locked,
            certificate_ends,
            started: now,
        }
    }

    /// A timer that was due at `due` fired at `now`.
    pub fn fired(&mut self, due: Mono, now: Mono) {
        self.lateness.push_back((now, now.since(due)));
        trim(&mut self.lateness, LATE, now);
    }

    /// Asks for what is next; each second is often enough. `wall`: milliseconds since the epoch.
    pub fn look(&mut self, now: Mono, wall: i64) -> Observer {
        let difference = wall.saturating_sub(i64::try_from(now.0).unwrap_or(i64::MAX));
        self.clock.push_back((now, difference));
        trim(&mut self.clock, STEP, now);
        let pressure = self.pressure.as_ref().map(|aside| aside.ask(now).0.unwrap_or_default()).unwrap_or_default();
        let data_dir = self.disk.as_ref().map(|disk| {
            let (seen, asked) = disk.ask(now);
            let hung_since = asked.filter(|asked| now.since(*asked) > HUNG);
            let seen = seen.flatten();
            if let (Some((_, free)), None) = (&seen, hung_since) {
                self.free.push_back((now, *free));
                trim(&mut self.free, FILL, now);
            }
            DataDir {
                file_system: seen.as_ref().map(|(name, _)| name.clone()),
                free: seen.as_ref().map(|(_, free)| *free).filter(|_| hung_since.is_none()),
                hung_since,
                full_in: full_in(&self.free),
            }
        });
        let process = self.process.as_ref().and_then(|process| process.ask(now).0.flatten());
        self.blocked_since = match process {
            Some(Look { blocked: true, .. }) => self.blocked_since.or(Some(now)),
            _ => None,
        };
        Observer {
            at: now,
            lateness: self.lateness.iter().map(|(_, late)| *late).max().unwrap_or_default(),
            cpu_pressure: pressure.cpu,
            memory_pressure: pressure.memory,
            memory_available: pressure.available,
            clock_step: step(&self.clock),
            certificate_expired: self.certificate_ends.is_some_and(|ends| ends < wall / 1000),
            data_dir,
            process: process.map(|look| Process { stopped: look.stopped, blocked_since: self.blocked_since }),
            locked: self.locked.clone(),
            started: self.started,
        }
    }
}

fn trim<T>(list: &mut VecDeque<(Mono, T)>, keep: Duration, now: Mono) {
    while list.len() > 1 && list.front().is_some_and(|(at, _)| now.since(*at) > keep) {
        list.pop_front();
    }
}

/// By how many seconds the wall clock moved against the other one, and `None` where that is its usual pace.
fn step(clock: &VecDeque<(Mono, i64)>) -> Option<i64> {
    let steps = clock.iter().zip(clock.iter().skip(1)).map(|((_, before), (_, after))| (after - before) / 1000);
    steps.filter(|step| step.abs() >= STEP_AT_LEAST).max_by_key(|step| step.abs())
}

/// Seconds until nothing is free at the rate of the last minutes; `None` while it does not shrink.
fn full_in(free: &VecDeque<(Mono, u64)>) -> Option<u64> {
    let ((first, before), (last, now)) = (free.front()?, free.back()?);
    let (seconds, lost) = (last.since(*first).as_secs(), before.checked_sub(*now)?);
    // Less than a minute, or less than a megabyte, is no rate.
    if seconds < 60 || lost < 1 << 20 {
        return None;
    }
    Some(u64::try_from(u128::from(*now) * u128::from(seconds) / u128::from(lost)).unwrap_or(u64::MAX))
}

/// A thread that does one thing each time it is asked.
#[derive(Debug)]
struct Aside<T> {
    ask: SyncSender<()>,
    shared: Arc<Mutex<Shared<T>>>,
}

#[derive(Debug)]
struct Shared<T> {
    last: Option<T>,
    /// The question that has no answer yet.
    asked: Option<Mono>,
}

impl<T: Clone + Send + 'static> Aside<T> {
    /// `None` where no thread can be had: then nothing is known.
    fn start(name: &str, mut work: impl FnMut() -> T + Send + 'static) -> Option<Aside<T>> {
        let shared = Arc::new(Mutex::new(Shared { last: None, asked: None }));
        let (ask, asked): (SyncSender<()>, Receiver<()>) = sync_channel(1);
        let theirs = shared.clone();
        let run = move || {
            while asked.recv().is_ok() {
                let done = work();
                let mut shared = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                shared.last = Some(done);
                shared.asked = None;
            }
        };
        std::thread::Builder::new().name(name.into()).stack_size(STACK).spawn(run).ok()?;
        Some(Aside { ask, shared })
    }

    /// The last answer, and since when the next one has been waited for. Asks again if nothing is under way.
    fn ask(&self, now: Mono) -> (Option<T>, Option<Mono>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let before = (shared.last.clone(), shared.asked);
        if shared.asked.is_none() && self.ask.try_send(()).is_ok() {
            shared.asked = Some(now);
        }
        before
    }
}

/// Name of the file system and bytes free for everybody, of the nearest directory that may be asked.
fn file_system(dir: &Path) -> Option<(String, u64)> {
    let mut place: PathBuf = dir.into();
    loop {
        match statfs(&place) {
            Ok(found) => {
                let free = found.blocks_available().saturating_mul(u64::try_from(found.block_size()).unwrap_or(0));
                return Some((name(found.filesystem_type()), free));
            }
            // Its parent may be closed to us, or it may be gone.
            Err(_) if place.pop() => {}
            Err(_) => return None,
        }
    }
}

/// Numbers of `statfs(2)`; what is missing here is told as its number.
fn name(kind: FsType) -> String {
    let names: [(i64, &str); 18] = [
        (0xEF53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683E, "btrfs"),
        (0x2FC1_2FC1, "zfs"),
        (0xF2F5_2010, "f2fs"),
        (0x0102_1994, "tmpfs"),
        (0x794C_7630, "overlay"),
        (0x6969, "nfs"),
        (0xFF53_4D42, "cifs"),
        (0xFE53_4D42, "smb2"),
        (0x517B, "smb"),
        (0x00C3_6400, "ceph"),
        (0x6573_5546, "fuse"),
        (0x0102_1997, "9p"),
        (0x0116_1970, "gfs2"),
        (0x7461_636F, "ocfs2"),
        (0x5346_414F, "afs"),
        (0x0BD0_0BD0, "lustre"),
    ];
    let number = kind.0;
    let found = names.iter().find(|(magic, _)| *magic == number || *magic == number & 0xFFFF_FFFF);
    found.map_or_else(|| format!("0x{number:x}"), |(_, name)| (*name).into())
}

fn pressure() -> Pressure {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    Pressure {
        cpu: some(&read("/proc/pressure/cpu")),
        memory: some(&read("/proc/pressure/memory")),
        available: available(&read("/proc/meminfo")),
    }
}

/// `some avg10=1.50 …`: 0 to 1.
fn some(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let value: f64 = line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()?;
    Some(value / 100.0)
}

fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(seconds * 1000)
    }

    #[test]
    fn the_kernel_is_read_as_it_writes() {
        assert_eq!(some("some avg10=12.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=1.00\n"), Some(0.125));
        assert_eq!((some(""), some("some avg60=1")), (None, None));
        assert_eq!(available("MemTotal: 1 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(name(FsType(0x6969)), "nfs");
        assert_eq!(name(FsType(0x1234)), "0x1234");
        assert!(file_system(Path::new("/nowhere/at/all")).is_some_and(|(_, free)| free > 0));
    }

    #[test]
    fn lateness_is_the_worst_of_ten_seconds() {
        let mut local = Local::new(Node { certificate_ends: Some(100), ..Node::default() }, at(0));
        local.fired(at(1), Mono(1_700));
        local.fired(at(2), Mono(2_010));
        assert_eq!(local.look(at(2), 0).lateness, Duration::from_millis(700));
        local.fired(at(12), at(12));
        assert_eq!(local.look(at(12), 0).lateness, Duration::from_millis(10));
        let observer = local.look(at(13), 101_000);
        assert!(observer.certificate_expired && observer.data_dir.is_none() && observer.started == at(0));
    }

    #[test]
    fn steps_of_the_clock_are_seen_and_its_pace_is_not() {
        let mut local = Local::new(Node::default(), at(0));
        let mut look = |now: u64, wall: i64| local.look(at(now), wall).clock_step;
        assert_eq!(look(0, 1_000_000), None);
        assert_eq!(look(1, 1_001_400), None);
        assert_eq!(look(2, 1_002_400 - 3_600_000), Some(-3600));
        assert_eq!(look(60, 1_060_400 - 3_600_000), Some(-3600));
        assert_eq!(look(130, 1_130_400 - 3_600_000), None);
    }

    #[test]
    fn a_disk_that_fills_up_says_when() {
        let free = |list: &[(u64, u64)]| list.iter().map(|(s, mib)| (at(*s), mib << 20)).collect::<VecDeque<_>>();
        for (list, seconds) in [
            (&[][..], None),
            (&[(0, 1000)][..], None),
            (&[(0, 1000), (59, 900)], None),
            (&[(0, 1000), (100, 900)], Some(900)),
            (&[(0, 900), (100, 1000)], None),
            (&[(0, 1000), (100, 1000)], None),
            (&[(0, 1000), (100, 0)], Some(0)),
        ] {
            assert_eq!(full_in(&free(list)), seconds, "{list:?}");
        }
    }

    #[test]
    fn a_call_that_does_not_come_back_is_told_and_not_waited_for() {
        let (release, held) = sync_channel::<()>(0);
        let held = Mutex::new(held);
        let aside = Aside::start("held", move || held.lock().map(|held| held.recv().is_ok()).unwrap_or(false)).unwrap();
        assert_eq!(aside.ask(at(1)), (None, None));
        assert_eq!(aside.ask(at(2)), (None, Some(at(1))));
        assert_eq!(aside.ask(at(9)), (None, Some(at(1))));
        release.send(()).unwrap();
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while aside.ask(at(10)).0 != Some(true) {
            assert!(std::time::Instant::now() < end);
            std::thread::yield_now();
        }
    }
}
