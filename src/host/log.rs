//! Log lines that nobody waits for: a thread of their own writes them, and what it cannot take is counted and lost.
//!
//! For a process that must go on while the journal, or the disk behind it, stands still.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait at most.
const LINES: usize = 256;
/// Memory may be locked: a whole stack of the usual size would be, too.
const STACK: usize = 256 << 10;

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Lines that were lost since the start of the process.
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Takes lines for a sink that may block.
#[derive(Debug, Clone)]
pub struct Lossy {
    /// `None`: there is no thread, and everything is lost.
    lines: Option<SyncSender<Vec<u8>>>,
}

impl Lossy {
    pub fn new(mut sink: impl Write + Send + 'static) -> Lossy {
        let (lines, waiting): (SyncSender<Vec<u8>>, Receiver<Vec<u8>>) = sync_channel(LINES);
        let run = move || {
            for line in waiting {
                // A sink that is gone takes nothing, and there is nobody to tell.
                let _ = sink.write_all(&line);
            }
        };
        let started = std::thread::Builder::new().name("log".into()).stack_size(STACK).spawn(run);
        Lossy { lines: started.ok().map(|_| lines) }
    }

    fn take(&self, line: Vec<u8>) {
        let taken = self.lines.as_ref().is_some_and(|lines| lines.try_send(line).is_ok());
        if !taken {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One event, handed over when it is whole.
#[derive(Debug)]
pub struct Event<'a> {
    to: &'a Lossy,
    text: Vec<u8>,
}

impl Write for Event<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        self.to.take(std::mem::take(&mut self.text));
    }
}

impl<'a> MakeWriter<'a> for Lossy {
    type Writer = Event<'a>;

    fn make_writer(&'a self) -> Event<'a> {
        Event { to: self, text: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Takes one line and holds on to it until it is let go.
    struct Stuck(Arc<Mutex<Vec<u8>>>, Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.1.recv();
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_sink_that_hangs_holds_nobody_and_what_is_lost_is_counted() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let (go, wait) = sync_channel::<()>(0);
        let lossy = Lossy::new(Stuck(taken.clone(), wait));
        let before = dropped();
        for n in 0..LINES + 10 {
            writeln!(lossy.make_writer(), "line {n}").unwrap();
        }
        // One may be in the hand of the thread already.
        let lost = dropped() - before;
        assert!((9..=10).contains(&lost), "{lost}");
        for _ in 0..LINES {
            go.send(()).unwrap();
        }
        drop(go);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while taken.lock().unwrap().iter().filter(|b| **b == b'\n').count() < LINES {
            assert!(std::time::Instant::now() < end);
            std::thread::yield_now();
        }
        assert!(taken.lock().unwrap().starts_with(b"line 0\nline 1\n"));
    }
}
