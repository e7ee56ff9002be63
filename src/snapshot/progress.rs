//! How long work tells that it moves: implemented by whoever shows it, called from any thread.

/// Told by the work, shown by the caller. Calls are cheap and may come often; the shower thins them out.
pub trait Progress: Send + Sync {
    /// A new step begins: "stream", "verify", …
    fn step(&self, step: &str);

    /// How far the step is, in `unit`s ("B" for bytes); `total` where it is known.
    fn bytes(&self, done: u64, total: Option<u64>, unit: &str);

    /// Something a person should read, although the work goes on.
    fn warn(&self, message: &str);
}

/// Shows nothing.
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _step: &str) {}
    fn bytes(&self, _done: u64, _total: Option<u64>, _unit: &str) {}
    fn warn(&self, _message: &str) {}
}
