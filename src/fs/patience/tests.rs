use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Sender, channel};

use super::*;

const SHORT: Duration = Duration::from_millis(100);

fn patience(key: &str, cancel: &CancellationToken) -> Patience {
    let limits = Limits { look: SHORT, write: SHORT, cancel: cancel.clone() };
    Patience::new(key, format!("store {key}"), Code::StoreHung, limits)
}

/// A call that comes back when it is told to, or its teller is gone.
fn held() -> (Sender<()>, impl FnOnce() -> Result<&'static str> + Send) {
    let (tell, told) = channel::<()>();
    (tell, move || {
        let _ = told.recv();
        Ok("late")
    })
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[track_caller]
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn what_comes_back_is_handed_on_with_its_error() {
    let p = patience("fine", &CancellationToken::new());
    assert_eq!(p.look("read", || Ok(7)).unwrap(), 7);
    let error = p.write("write", || Err::<(), _>(Error::new(Code::NotFound, "open", "x"))).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(!p.is_hung());
}

#[test]
fn a_call_that_hangs_is_left_and_no_other_joins_it() {
    let p = patience("hangs", &CancellationToken::new());
    let (back, call) = held();
    let error = p.look("list", call).unwrap_err();
    assert_eq!((error.code(), error.what(), error.on()), (Code::StoreHung, "list", "store hangs"));
    assert!(error.why()[0].contains("no answer for") && error.get_remedy().is_some(), "{error:?}");

    // The next one never starts, and what it holds waits for the stuck thread.
    let dropped = Arc::new(AtomicUsize::new(0));
    let (guard, ran) = (Counted(dropped.clone()), Arc::new(AtomicBool::new(false)));
    let runs = ran.clone();
    let error = p.look("read", move || {
        runs.store(true, Ordering::SeqCst);
        drop(guard);
        Ok(())
    });
    let error = error.unwrap_err();
    assert_eq!((error.code(), error.what()), (Code::StoreHung, "read"));
    assert!(error.why()[0].ends_with("(list) has not come back"), "{:?}", error.why());
    p.let_go(Counted(dropped.clone()));
    assert_eq!((ran.load(Ordering::SeqCst), dropped.load(Ordering::SeqCst)), (false, 0));
    // Another place is not concerned.
    assert!(patience("other", &CancellationToken::new()).look("read", || Ok(())).is_ok());

    drop(back);
    eventually("the place is free again", || !p.is_hung());
    eventually("what waited is dropped", || dropped.load(Ordering::SeqCst) == 2);
    assert!(!ran.load(Ordering::SeqCst));
    assert!(p.look("read", || Ok(())).is_ok());
}

#[test]
fn what_comes_late_is_dropped_on_its_own_thread() {
    let p = patience("late", &CancellationToken::new());
    let (back, call) = held();
    let dropped = Arc::new(AtomicUsize::new(0));
    let guard = Counted(dropped.clone());
    assert!(p.look("stage", || call().map(|_| guard)).is_err());
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    drop(back);
    eventually("it is dropped", || dropped.load(Ordering::SeqCst) == 1);
}

#[test]
fn what_moves_or_waits_for_others_is_not_hung() {
    let begun = Instant::now();
    let at = |secs| begun + Duration::from_secs(secs);
    let pace = |extra, idle| Pace { moved: begun, extra: Duration::from_secs(extra), idle };
    let stall = Duration::from_secs(10);
    for (pace, now, want) in [
        (pace(0, false), 10, false),
        (pace(0, false), 11, true),
        (pace(5, false), 15, false),
        (pace(5, false), 16, true),
        (pace(0, true), 9_999, false),
    ] {
        assert_eq!(pace.overdue(stall, at(now)), want, "{pace:?} at {now}");
    }

    let p = patience("moves", &CancellationToken::new());
    let before = Instant::now();
    let pace = || {
        current(|call| {
            let pace = call.pace();
            (pace.moved, pace.extra, pace.idle)
        })
    };
    p.look("list", move || {
        idle(|| assert!(pace().is_some_and(|(_, _, idle)| idle)));
        expect(7 * SLOWEST_DISK);
        assert!(pace().is_some_and(|(at, extra, idle)| at >= before && extra.as_secs() == 7 && !idle));
        assert!(moved() && pace().is_some_and(|(_, extra, _)| extra.is_zero()));
        Ok(())
    })
    .unwrap();
}

#[test]
fn of_a_call_within_a_call_the_inner_one_is_named() {
    let limits = Limits { look: Duration::from_secs(60), ..Limits::default() };
    let outer = Patience::new("outer", "store outer", Code::StoreHung, limits);
    let inner = patience("inner", &CancellationToken::new());
    let (_back, call) = held();
    let error = outer
        .look("copy", move || {
            let began = current(|call| call.moved_at());
            let got = inner.look("read", call);
            assert!(current(|call| call.moved_at()) > began, "waiting for another place is no standing still");
            got
        })
        .unwrap_err();
    assert_eq!(error.on(), "store inner");
    assert!(!outer.is_hung());
}

#[test]
fn told_to_stop_a_call_may_end_and_is_left_then() {
    let cancel = CancellationToken::new();
    let limits = Limits { look: Duration::from_secs(60), write: Duration::from_secs(60), cancel: cancel.clone() };
    let p = Patience::new("stopped", "store stopped", Code::StoreHung, limits);
    cancel.cancel();
    assert_eq!(p.look("read", || Ok(1)).unwrap(), 1, "what is quick still ends well");
    assert_eq!(p.check("copy").unwrap_err().code(), Code::Canceled);

    let (back, call) = held();
    let (told, tells) = channel();
    let error = p
        .write("create", move || {
            let outcome = call();
            tells_or(&told);
            outcome
        })
        .unwrap_err();
    assert_eq!(error.code(), Code::Canceled);
    drop(back);
    assert_eq!(tells.recv().unwrap(), (true, true), "it knows that it is not wanted, and must undo");
}

fn tells_or(told: &Sender<(bool, bool)>) {
    let _ = told.send((is_undone(), still_wanted("create", || "x".into()).is_err()));
}

#[test]
fn a_panic_is_an_error_and_frees_the_place() {
    let p = Patience::new("panics", "store panics", Code::StoreHung, Limits::default());
    let error = p.look("read", || -> Result<()> { panic!("on purpose") }).unwrap_err();
    assert_eq!(error.code(), Code::Internal);
    assert!(p.look("read", || Ok(())).is_ok());
}

#[test]
fn what_is_put_aside_is_used_and_dropped_once() {
    let p = patience("aside", &CancellationToken::new());
    let dropped = Arc::new(AtomicUsize::new(0));
    drop(Aside::new(Counted(dropped.clone()), p.clone()));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    let aside = Aside::new(Counted(dropped.clone()), p);
    assert_eq!(aside.0.load(Ordering::SeqCst), 1);
    aside
        .spend("publish", |counted| {
            drop(counted);
            Ok(())
        })
        .unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
}

#[test]
#[ignore = "a measurement: run it by hand with --ignored --nocapture"]
fn how_long_a_call_takes_beside_its_work() {
    let p = Patience::new("measure", "store measure", Code::StoreHung, Limits::default());
    let begun = Instant::now();
    for _ in 0..100_000 {
        p.look("read", || Ok(())).unwrap();
    }
    println!("{:?} a call", begun.elapsed() / 100_000);
}
