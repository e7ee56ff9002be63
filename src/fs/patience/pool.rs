//! Threads for calls that may not come back; those that do are used again, for a few seconds.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

pub type Job = Box<dyn FnOnce() + Send>;

/// How long a thread waits for its next call.
const KEEP: Duration = Duration::from_secs(5);
const STACK: usize = 512 << 10;

struct Pool {
    jobs: VecDeque<Job>,
    idle: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { jobs: VecDeque::new(), idle: 0 });
static WAKE: Condvar = Condvar::new();

/// Starts a job at once. An error when no thread can be made; the job is gone then.
pub fn run(job: Job) -> io::Result<()> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    pool.jobs.push_back(job);
    if pool.idle >= pool.jobs.len() {
        WAKE.notify_one();
        return Ok(());
    }
    let made = std::thread::Builder::new().name("store".into()).stack_size(STACK).spawn(work);
    if let Err(error) = made {
        // Outside of the lock: its end may start another one.
        let job = pool.jobs.pop_back();
        drop(pool);
        drop(job);
        return Err(error);
    }
    Ok(())
}

fn work() {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(job) = pool.jobs.pop_front() {
            drop(pool);
            job();
            pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        pool.idle += 1;
        let (back, waited) = WAKE.wait_timeout(pool, KEEP).unwrap_or_else(PoisonError::into_inner);
        pool = back;
        pool.idle -= 1;
        if waited.timed_out() && pool.jobs.is_empty() {
            return;
        }
    }
}
