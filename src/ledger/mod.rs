//! refloat's own record of what it did: an append-only file of `(kind, schema, bytes)` with a checksum a record.
//!
//! In: entries from the one writer of a process role (law 2). Out: all of them again at the next start, up to the last
//! one that was acknowledged. It knows no domain type; what an entry means is said by whoever wrote it. Serves
//! promise 11 (the next start knows what was under way) and law 4 (an intent is durable before its effect).
//!
//! Reading order: [`frame`](self::frame) is the format of one batch, `scan` reads a file of them and judges what stands
//! behind the last whole one, `open` acts on that judgement, [`Ledger`] appends and rotates, [`Writer`] is the one
//! thread that waits for the disk, so that nobody else does. [`Journal`] tells the same events to people, by way of
//! systemd's journal.

mod frame;
mod journal;
mod log;
mod open;
#[cfg(test)]
mod power_loss;
mod scan;
#[cfg(test)]
mod tests;
mod writer;

pub use frame::{BODY_MAX, Entry, Record};
pub use journal::{Journal, JournalEntry, SOCKET as JOURNAL_SOCKET};
pub use log::Ledger;
pub use open::{Opened, Repair, Repaired, read};
pub use writer::Writer;
