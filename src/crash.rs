//! Named places at which a test kills the process, as a power cut would, or holds it: feature `failpoints` alone.
//!
//! `FAILPOINTS="take::published=return"` sends SIGKILL to this process when it comes to that place;
//! `prune::looked=return(/path/of/a/fifo)` waits there until somebody has opened that FIFO for writing and closed it
//! again. Without the feature nothing of this is compiled in.

/// Kills this process here when the failpoint of this name says `return`, or holds it when that names a FIFO.
macro_rules! point {
    ($name:literal) => {{
        #[cfg(feature = "failpoints")]
        let _ = ::fail::eval($name, $crate::crash::here);
    }};
}

pub(crate) use point;

/// Dies like a process that nobody asks, or waits at a FIFO.
#[cfg(feature = "failpoints")]
pub fn here(fifo: Option<String>) {
    let Some(fifo) = fifo else { now() };
    // Opening waits for a writer, reading to the end waits until it has gone.
    if let Err(e) = std::fs::read(&fifo) {
        eprintln!("cannot wait at {fifo}: {e}");
        std::process::abort();
    }
}

/// Dies at once.
#[cfg(feature = "failpoints")]
pub fn now() -> ! {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
    std::process::abort()
}
