//! Named places at which a test kills the process, as a power cut would: feature `failpoints` alone.
//!
//! `FAILPOINTS="take::published=return"` sends SIGKILL to this process when it comes to that place. Without the
//! feature nothing of this is compiled in.

/// Kills this process here when the failpoint of this name says `return`.
macro_rules! point {
    ($name:literal) => {{
        #[cfg(feature = "failpoints")]
        ::fail::fail_point!($name, |_| $crate::crash::now());
    }};
}

pub(crate) use point;

/// Dies like a process that nobody asks.
#[cfg(feature = "failpoints")]
pub fn now() -> ! {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
    std::process::abort()
}
