//! Writes entries with fields into systemd's journal, in its own protocol.
//!
//! One datagram an entry (systemd's "Native Journal Protocol"). A logger must neither wait nor fail: where no journal
//! listens, or it does not keep up, the entry is lost, and the next one that gets through says how many were.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Code, Error, Result};

/// Where systemd listens.
pub const SOCKET: &str = "/run/systemd/journal/socket";
const IDENTIFIER: &str = "refloat";
/// Of one value, in bytes. Longer ones are cut, with a mark at the end.
const VALUE_MAX: usize = 16 << 10;
/// Of one entry: below what a socket takes in one datagram by default (208 KiB). What does not fit is left out, and
/// counted in `REFLOAT_CUT`. Journald would also take a file; events of refloat are never that large.
const ENTRY_MAX: usize = 128 << 10;
const NAME_MAX: usize = 64;

/// One event.
#[derive(Debug, Clone, Copy)]
pub struct JournalEntry<'a> {
    /// Finds the text that explains this kind of event in the catalogue.
    pub message_id: u128,
    /// As syslog has it: 0 is the worst, 3 an error, 4 a warning, 6 information, 7 for debugging.
    pub priority: u8,
    /// What people read; a sentence.
    pub message: &'a str,
    /// More, by names of capital letters, digits and underscores that do not begin with an underscore or a digit.
    pub fields: &'a [(&'a str, &'a str)],
}

/// The sending end.
#[derive(Debug)]
pub struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
    lost: AtomicU64,
}

impl Journal {
    /// Nobody needs to listen at `path` yet.
    pub fn open(path: &Path) -> Result<Journal> {
        let opened = UnixDatagram::unbound().and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
        let socket = opened.map_err(|e| Error::io("open socket to journal", path.display().to_string(), e))?;
        Ok(Journal { socket, path: path.to_owned(), lost: AtomicU64::new(0) })
    }

    /// Sends one entry, or loses it. `Internal` for a field name that the journal would not take: nothing is sent then.
    pub fn send(&self, entry: &JournalEntry<'_>) -> Result<()> {
        if let Some((name, _)) = entry.fields.iter().find(|(name, _)| !is_field_name(name)) {
            return Err(Error::new(Code::Internal, "write journal entry", format!("{:032x}", entry.message_id))
                .because(format!("{name:?} is no name for a field")));
        }
        let lost = self.lost.load(Ordering::Relaxed);
        match self.socket.send_to(&encode(entry, lost), &self.path) {
            Ok(_) => {
                // What was lost since this was asked is told next time.
                self.lost.fetch_sub(lost, Ordering::Relaxed);
            }
            Err(e) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                self.note(&e);
            }
        }
        Ok(())
    }

    /// Entries that did not get through, and were not told of since.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Without a journal, or with one that is busy, there is nothing to say.
    fn note(&self, e: &io::Error) {
        use io::ErrorKind::{ConnectionRefused, NotFound, WouldBlock};
        if !matches!(e.kind(), NotFound | ConnectionRefused | WouldBlock) {
            tracing::debug!("cannot write to journal {}: {e}", self.path.display());
        }
    }
}

fn encode(entry: &JournalEntry<'_>, lost: u64) -> Vec<u8> {
    let mut text = Vec::with_capacity(512);
    put(&mut text, "MESSAGE", entry.message);
    put(&mut text, "MESSAGE_ID", &format!("{:032x}", entry.message_id));
    put(&mut text, "PRIORITY", &entry.priority.min(7).to_string());
    put(&mut text, "SYSLOG_IDENTIFIER", IDENTIFIER);
    if lost > 0 {
        put(&mut text, "REFLOAT_LOST", &lost.to_string());
    }
    let mut cut = 0;
    for (name, value) in entry.fields {
        // Name, two line breaks, length, and the value with its mark.
        if text.len() + name.len() + 10 + value.len().min(VALUE_MAX) > ENTRY_MAX {
            cut += 1;
        } else {
            put(&mut text, name, value);
        }
    }
    if cut > 0 {
        put(&mut text, "REFLOAT_CUT", &cut.to_string());
    }
    text
}

fn put(text: &mut Vec<u8>, name: &str, value: &str) {
    let shown = shortened(value);
    text.extend_from_slice(name.as_bytes());
    if shown.contains('\n') {
        text.push(b'\n');
        text.extend_from_slice(&(shown.len() as u64).to_le_bytes());
    } else {
        text.push(b'=');
    }
    text.extend_from_slice(shown.as_bytes());
    text.push(b'\n');
}

/// At most [`VALUE_MAX`] bytes.
fn shortened(value: &str) -> std::borrow::Cow<'_, str> {
    if value.len() <= VALUE_MAX {
        return value.into();
    }
    let mark = format!(" … [cut, {} bytes in all]", value.len());
    let room = VALUE_MAX - mark.len();
    let end = (0..=room).rev().find(|end| value.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{mark}", &value[..end]).into()
}

/// What journald takes from a client, less the names that are set here.
fn is_field_name(name: &str) -> bool {
    const OWN: [&str; 6] = ["MESSAGE", "MESSAGE_ID", "PRIORITY", "SYSLOG_IDENTIFIER", "REFLOAT_LOST", "REFLOAT_CUT"];
    let first = name.bytes().next();
    first.is_some_and(|b| b.is_ascii_uppercase())
        && name.len() <= NAME_MAX
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && !OWN.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ENTRY: JournalEntry<'static> =
        JournalEntry { message_id: 0xabc, priority: 6, message: "Snapshot taken.", fields: &[] };

    fn bound(path: &Path) -> UnixDatagram {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket
    }

    fn received(socket: &UnixDatagram) -> Vec<u8> {
        let mut buffer = vec![0; 1 << 20];
        let n = socket.recv(&mut buffer).unwrap();
        buffer.truncate(n);
        buffer
    }

    /// Reads it as journald does.
    fn fields(mut text: &[u8]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        while !text.is_empty() {
            let line = text.iter().position(|b| *b == b'\n').unwrap();
            let (name, value) = match text[..line].iter().position(|b| *b == b'=') {
                Some(equals) => {
                    let pair = (&text[..equals], &text[equals + 1..line]);
                    text = &text[line + 1..];
                    pair
                }
                None => {
                    let (length, rest) = text[line + 1..].split_at(8);
                    let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
                    assert_eq!(rest[length], b'\n');
                    let pair = (&text[..line], &rest[..length]);
                    text = &rest[length + 1..];
                    pair
                }
            };
            found.push((String::from_utf8(name.into()).unwrap(), String::from_utf8(value.into()).unwrap()));
        }
        found
    }

    fn value(found: &[(String, String)], name: &str) -> Option<String> {
        found.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn an_entry_is_one_datagram_in_the_native_protocol() {
        let tmp = tempfile::tempdir().unwrap();
        let socket = bound(&tmp.path().join("socket"));
        let journal = Journal::open(&tmp.path().join("socket")).unwrap();
        let entry = JournalEntry { fields: &[("REFLOAT_JOB", "j1"), ("REFLOAT_WHY", "a\nMESSAGE=b\n")], ..ENTRY };
        journal.send(&entry).unwrap();
        let want = b"MESSAGE=Snapshot taken.\nMESSAGE_ID=00000000000000000000000000000abc\nPRIORITY=6\n\
            SYSLOG_IDENTIFIER=refloat\nREFLOAT_JOB=j1\nREFLOAT_WHY\n\x0c\0\0\0\0\0\0\0a\nMESSAGE=b\n\n";
        assert_eq!(received(&socket), want);
        // A line break in the message makes no field of its own either; no priority is beyond the last.
        journal.send(&JournalEntry { message: "a\nPRIORITY=0", priority: 9, ..ENTRY }).unwrap();
        let found = fields(&received(&socket));
        assert_eq!(value(&found, "MESSAGE").unwrap(), "a\nPRIORITY=0");
        assert_eq!(
            found.iter().filter(|(name, _)| name == "PRIORITY").collect::<Vec<_>>(),
            [&("PRIORITY".into(), "7".into())]
        );
    }

    #[test]
    fn names_that_the_journal_does_not_take_are_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let journal = Journal::open(&tmp.path().join("socket")).unwrap();
        let long = "X".repeat(65);
        for bad in ["", "_PID", "1A", "lower", "A=B", "A\nB", "Ä", "A B", "MESSAGE", "PRIORITY", long.as_str()] {
            let err = journal.send(&JournalEntry { fields: &[(bad, "x")], ..ENTRY }).unwrap_err();
            assert_eq!(err.code(), Code::Internal, "{bad:?}");
        }
        journal.send(&JournalEntry { fields: &[("REFLOAT_2X", "x"), (&long[1..], "x")], ..ENTRY }).unwrap();
    }

    #[test]
    fn a_journal_that_comes_later_hears_how_many_it_missed() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("socket");
        let journal = Journal::open(&path).unwrap();
        for _ in 0..3 {
            journal.send(&ENTRY).unwrap();
        }
        let socket = bound(&path);
        journal.send(&ENTRY).unwrap();
        journal.send(&ENTRY).unwrap();
        assert_eq!(value(&fields(&received(&socket)), "REFLOAT_LOST").unwrap(), "3");
        assert_eq!(value(&fields(&received(&socket)), "REFLOAT_LOST"), None);
        // One that does not read holds nobody up.
        let mut sent = 0;
        while journal.lost() == 0 && sent < 100_000 {
            journal.send(&ENTRY).unwrap();
            sent += 1;
        }
        assert_eq!(journal.lost(), 1, "after {sent}");
        drop(socket);
        journal.send(&ENTRY).unwrap();
        assert_eq!(journal.lost(), 2);
    }

    #[test]
    fn what_is_too_long_is_cut_with_a_mark() {
        let tmp = tempfile::tempdir().unwrap();
        let socket = bound(&tmp.path().join("socket"));
        let journal = Journal::open(&tmp.path().join("socket")).unwrap();
        let long = "ü\n".repeat(1 << 20);
        let names: Vec<String> = (0..20).map(|n| format!("REFLOAT_F{n}")).collect();
        let all: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), long.as_str())).collect();
        journal.send(&JournalEntry { message: &long, fields: &all, ..ENTRY }).unwrap();
        let text = received(&socket);
        assert!(text.len() <= ENTRY_MAX + 64, "{}", text.len());
        let found = fields(&text);
        let message = value(&found, "MESSAGE").unwrap();
        assert!(message.len() <= VALUE_MAX && message.ends_with(" … [cut, 3145728 bytes in all]"));
        let kept = found.iter().filter(|(name, _)| name.starts_with("REFLOAT_F")).count();
        assert_eq!(value(&found, "REFLOAT_CUT").unwrap(), (20 - kept).to_string());
        assert!(kept >= 5);
    }
}
