//! Waits for calls on one place (a store, the state directory) that may never come back.
//!
//! A file system that is frozen, a mount whose server is gone, a disk that accepts nothing: the kernel holds whoever
//! asks, and nothing ends that. So such a call runs on a thread of its own. Who waits for it gives up when it has not
//! moved for some time, or when he is told to stop; the thread stays behind, and what it brings back later is dropped
//! there. As long as one is out, further calls on that place fail at once: threads do not pile up.
//!
//! Slow is no failure: [`moved`] counts as progress, and [`idle`] as no wait at all.

use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::error::{Code, Error, Result};

mod pool;
mod registry;

use registry::Place;

/// How often somebody who waits looks whether he still should.
const TICK: Duration = Duration::from_millis(50);
/// A call that has begun may end when the whole is told to stop, so that as little as possible is left half done.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// For looking: opening, listing, reading.
const LOOK: Duration = Duration::from_secs(10);
/// For what waits until bytes are on the disk.
const WRITE: Duration = Duration::from_secs(30);
/// What is dropped aside is waited for so long: normally it is gone when the call returns.
const DROP: Duration = Duration::from_secs(1);
/// A disk that takes fewer bytes a second than this counts as hung.
const SLOWEST_DISK: u64 = 1 << 20;

/// How long calls may stand still, and who may stop them.
#[derive(Debug, Clone)]
pub struct Limits {
    /// For looking: opening, listing, reading.
    pub look: Duration,
    /// For what waits until bytes are on the disk.
    pub write: Duration,
    pub cancel: CancellationToken,
}

impl Limits {
    /// From `[snapshot] stall_timeout`: that long for writing, ten seconds at most for looking.
    pub fn new(stall: Duration, cancel: &CancellationToken) -> Limits {
        Limits { look: LOOK.min(stall), write: stall, cancel: cancel.clone() }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::new(WRITE, &CancellationToken::new())
    }
}

/// Calls on one place. Clones share it.
#[derive(Debug, Clone)]
pub struct Patience {
    place: Arc<Place>,
    on: Arc<str>,
    code: Code,
    limits: Limits,
}

impl Patience {
    /// `key` tells places apart within this process; `on` is the place for people; `code` says that it hangs.
    pub fn new(key: &str, on: impl Into<Arc<str>>, code: Code, limits: Limits) -> Patience {
        Patience { place: Place::of(key), on: on.into(), code, limits }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Runs a call that reads. `what` is a bare verb phrase.
    pub fn look<T: Send + 'static>(&self, what: &str, call: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        self.begin(what, self.limits.look, call)?.wait()
    }

    /// Runs a call that waits for the disk.
    pub fn write<T: Send + 'static>(&self, what: &str, call: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        self.begin(what, self.limits.write, call)?.wait()
    }

    /// Starts a call and does not wait yet; it is hung once it has not moved for `stall`.
    pub fn begin<T: Send + 'static>(
        &self,
        what: &str,
        stall: Duration,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Pending<T>> {
        let call = Arc::new(Call::new(what, stall));
        let work: Box<dyn FnOnce() -> Result<T> + Send> = Box::new(work);
        let work = match self.place.enter(&call, work) {
            Ok(work) => work,
            Err(stuck) => return Err(self.still_out(what, &stuck)),
        };
        let (done, result) = sync_channel(1);
        let mut ended = Ended { place: self.place.clone(), call: call.clone(), begun: false };
        pool::run(Box::new(move || {
            ended.begin();
            let outcome = work();
            drop(ended);
            // Nobody may be there any more; then it ends here, on the thread that may wait.
            let _ = done.send(outcome);
        }))
        .map_err(|e| Error::new(Code::Internal, "start a thread for", what).because(e))?;
        Ok(Pending { patience: self.clone(), call, result: Mutex::new(result) })
    }

    /// Whether a call on this place has been standing still for too long.
    pub fn is_hung(&self) -> bool {
        self.place.stuck().is_some()
    }

    /// The error of a place where a call stands still.
    pub fn says_hung(&self, what: &str) -> Error {
        match self.place.stuck() {
            Some(stuck) => self.still_out(what, &stuck),
            None => self.error(what).because("it stood still, and answers again"),
        }
    }

    /// `Canceled` once the whole is told to stop: for loops of many short calls.
    pub fn check(&self, what: &str) -> Result<()> {
        if self.limits.cancel.is_cancelled() { Err(self.canceled(what)) } else { Ok(()) }
    }

    /// Drops something whose end may hang, such as the last handle of a file without a name.
    pub fn let_go<T: Send + 'static>(&self, value: T) {
        let waited =
            Patience { limits: Limits { cancel: CancellationToken::new(), ..self.limits.clone() }, ..self.clone() };
        let dropped = waited.begin("let go of", self.limits.write, move || {
            drop(value);
            Ok(())
        });
        // A place that hangs keeps it until it comes back.
        if let Ok(pending) = dropped {
            let result = pending.result.into_inner().unwrap_or_else(PoisonError::into_inner);
            let _ = result.recv_timeout(DROP);
        }
    }

    fn canceled(&self, what: &str) -> Error {
        Error::new(Code::Canceled, what, &*self.on)
    }

    fn hung(&self, call: &Call) -> Error {
        let secs = call.moved_at().elapsed().as_secs_f64();
        self.error(&call.what).because(format!("no answer for {secs:.1} s, since {}", call.since()))
    }

    fn still_out(&self, what: &str, stuck: &Call) -> Error {
        self.error(what).because(format!("a call from {} ({}) has not come back", stuck.begun_at(), stuck.what))
    }

    fn error(&self, what: &str) -> Error {
        Error::new(self.code, what, &*self.on)
            .remedy("look at that disk, mount or server: it answers nothing; refloat goes on there once it does")
    }
}

/// A call that was started.
pub struct Pending<T> {
    patience: Patience,
    call: Arc<Call>,
    /// Never contended: the lock only lets a future hold this.
    result: Mutex<Receiver<Result<T>>>,
}

/// Looks at a call from aside.
#[derive(Clone)]
pub struct Watch(Arc<Call>);

impl Watch {
    /// Whether it has stood still for too long.
    pub fn is_hung(&self) -> bool {
        self.0.overdue()
    }
}

impl<T> Pending<T> {
    pub fn watch(&self) -> Watch {
        Watch(self.call.clone())
    }

    /// The outcome; the place's own code once it has stood still for too long, `Canceled` when told to stop.
    pub fn wait(self) -> Result<T> {
        let result = self.result.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut canceled: Option<Instant> = None;
        loop {
            match result.recv_timeout(TICK) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(
                        Error::new(Code::Internal, &*self.call.what, &*self.patience.on).because("its thread panicked")
                    );
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            // Who waits on a thread of this kind himself stands not still: this call has a limit of its own.
            let wanted = moved();
            if self.call.overdue() {
                self.call.leave(false);
                return Err(self.patience.hung(&self.call));
            }
            if !wanted || self.patience.limits.cancel.is_cancelled() {
                let since = *canceled.get_or_insert_with(Instant::now);
                if since.elapsed() >= CANCEL_GRACE {
                    self.call.leave(true);
                    return Err(self.patience.canceled(&self.call.what));
                }
            }
        }
    }
}

/// One call on its thread.
#[derive(Debug)]
struct Call {
    what: String,
    began: Timestamp,
    stall: Duration,
    pace: Mutex<Pace>,
    /// Nobody waits any more.
    left: AtomicBool,
    /// It was told to stop: what it makes must not be there afterwards.
    undo: AtomicBool,
    /// What could not be dropped while it is out.
    late: Mutex<Vec<Box<dyn Any + Send>>>,
}

#[derive(Debug)]
struct Pace {
    moved: Instant,
    /// Beyond the stall limit, for this step.
    extra: Duration,
    /// It waits for something else.
    idle: bool,
}

impl Pace {
    fn overdue(&self, stall: Duration, now: Instant) -> bool {
        !self.idle && now.saturating_duration_since(self.moved) > stall.saturating_add(self.extra)
    }
}

impl Call {
    fn new(what: &str, stall: Duration) -> Call {
        Call {
            what: what.into(),
            began: Timestamp::now(),
            stall,
            pace: Mutex::new(Pace { moved: Instant::now(), extra: Duration::ZERO, idle: false }),
            left: AtomicBool::new(false),
            undo: AtomicBool::new(false),
            late: Mutex::default(),
        }
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, idle: bool, extra: Duration) {
        *self.pace() = Pace { moved: Instant::now(), extra, idle };
    }

    fn overdue(&self) -> bool {
        self.pace().overdue(self.stall, Instant::now())
    }

    fn moved_at(&self) -> Instant {
        self.pace().moved
    }

    fn leave(&self, undo: bool) {
        self.undo.store(undo, Ordering::SeqCst);
        self.left.store(true, Ordering::SeqCst);
    }

    fn begun_at(&self) -> String {
        clock(self.began)
    }

    /// When it last moved.
    fn since(&self) -> String {
        let ago = jiff::SignedDuration::try_from(self.moved_at().elapsed()).unwrap_or_default();
        clock(Timestamp::now().checked_sub(ago).unwrap_or(self.began))
    }
}

/// To the second.
fn clock(at: Timestamp) -> String {
    at.round(jiff::Unit::Second).unwrap_or(at).to_string()
}

thread_local! {
    /// The call that this thread is for.
    static CURRENT: RefCell<Option<Arc<Call>>> = const { RefCell::new(None) };
}

/// Ends a call on its thread, also when that panics.
struct Ended {
    place: Arc<Place>,
    call: Arc<Call>,
    begun: bool,
}

impl Ended {
    fn begin(&mut self) {
        CURRENT.set(Some(self.call.clone()));
        self.call.set(false, Duration::ZERO);
        self.begun = true;
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if self.begun {
            CURRENT.set(None);
        }
        drop(self.place.leave(&self.call));
    }
}

fn current<T>(see: impl FnOnce(&Call) -> T) -> Option<T> {
    CURRENT.with_borrow(|call| call.as_deref().map(see))
}

/// Says that the call on this thread moves; whether anybody still waits for it. Elsewhere it does nothing.
pub fn moved() -> bool {
    current(|call| {
        call.set(false, Duration::ZERO);
        !call.left.load(Ordering::SeqCst)
    })
    .unwrap_or(true)
}

/// The same before a step that puts so many bytes on a disk at once: a slow one takes its time.
pub fn expect(bytes: u64) {
    current(|call| call.set(false, Duration::from_secs(bytes / SLOWEST_DISK)));
}

/// Waits for something else than the place: that is no standing still.
pub fn idle<T>(wait: impl FnOnce() -> T) -> T {
    current(|call| call.set(true, Duration::ZERO));
    let got = wait();
    current(|call| call.set(false, Duration::ZERO));
    got
}

/// Whether the call on this thread was stopped on request: what it has just made must go again.
pub(super) fn is_undone() -> bool {
    current(|call| call.left.load(Ordering::SeqCst) && call.undo.load(Ordering::SeqCst)).unwrap_or(false)
}

/// `Canceled` when nobody waits any more for the call on this thread: it must not go on.
pub(super) fn still_wanted(what: &str, on: impl FnOnce() -> String) -> Result<()> {
    match moved() {
        true => Ok(()),
        false => Err(Error::new(Code::Canceled, what, on()).because("nobody waits for it any more")),
    }
}

/// Something that is dropped on a thread of its own, since its end may hang.
#[derive(Debug)]
pub struct Aside<T: Send + 'static> {
    value: Option<T>,
    patience: Patience,
}

impl<T: Send + 'static> Aside<T> {
    pub fn new(value: T, patience: Patience) -> Aside<T> {
        Aside { value: Some(value), patience }
    }

    /// Hands it to a call that waits for the disk.
    pub fn spend<R: Send + 'static>(
        mut self,
        what: &str,
        call: impl FnOnce(T) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        match self.value.take() {
            Some(value) => self.patience.write(what, move || call(value)),
            None => unreachable!("it is taken out only when this is dropped or consumed"),
        }
    }
}

impl<T: Send + 'static> std::ops::Deref for Aside<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("it is taken out only when this is dropped or consumed"),
        }
    }
}

impl<T: Send + 'static> Drop for Aside<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.patience.let_go(value);
        }
    }
}

#[cfg(test)]
mod tests;
