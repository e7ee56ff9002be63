//! What a person said: a small file of its own, which wins over all that is decided, also while the health process is
//! dead. Written by root alone, replaced whole; ends by itself, with the boot at the latest. docs/formats.md §11.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::file::{LIMIT, Word, line};
use crate::error::{Code, Result};
use crate::fs::Dir;
use crate::health::model::Mono;

/// In the runtime directory.
pub const HAND: &str = "fence.hand";
const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hand {
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// Since then.
    pub at: Mono,
    /// Until then; `None`: until somebody ends it, or the host boots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Mono>,
    pub answer: Word,
    pub reason: String,
    /// Who, by number.
    pub uid: u32,
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: u32,
    #[serde(flatten)]
    hand: Hand,
}

impl Hand {
    pub fn encode(&self) -> Vec<u8> {
        let hand = Hand { reason: line(&self.reason), ..self.clone() };
        let mut bytes = serde_json::to_vec(&Document { schema: SCHEMA, hand }).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Hand> {
        let document: Document = serde_json::from_slice(bytes).ok()?;
        (document.schema == SCHEMA).then_some(document.hand)
    }

    pub fn write(&self, runtime: &Dir) -> Result<()> {
        runtime.replace_public(HAND, &self.encode())
    }

    /// Nothing is said by hand any more.
    pub fn remove(runtime: &Dir) -> Result<()> {
        match runtime.remove_file(HAND) {
            Err(e) if e.code() == Code::NotFound => Ok(()),
            other => other,
        }
    }

    /// `None`: without an end.
    pub fn left(&self, now: Mono) -> Option<Duration> {
        self.until.map(|until| until.since(now))
    }
}

/// What is in force now. A file that is there and cannot be read is a hold *up*: somebody wanted something, and whatever
/// it was, it was no automatic fence.
pub fn in_force(bytes: Option<&[u8]>, boot_id: &str, now: Mono) -> Option<Hand> {
    let bytes = bytes?;
    let Some(hand) = Hand::parse(bytes) else {
        let reason = format!("{HAND} cannot be read, so nothing is fenced; end it: refloat fence release --for 0s");
        return Some(Hand { boot_id: boot_id.into(), at: now, until: None, answer: Word::Up, reason, uid: 0 });
    };
    let over = hand.until.is_some_and(|until| now >= until);
    (hand.boot_id == boot_id && !over).then_some(hand)
}

/// The bytes in the runtime directory, for [`in_force`]; `None`: no file.
pub fn read(runtime: &Dir) -> Option<Vec<u8>> {
    match runtime.read(HAND, LIMIT) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.code() == Code::NotFound => None,
        // A link, a directory, too large: there, and not to be read.
        Err(_) => Some(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOOT: &str = "0c15f1d5-3f29-4a14-9a6e-8f1a5b1c2d3e";

    fn hand(until: Option<u64>) -> Hand {
        let reason = "new disk".to_string();
        Hand { boot_id: BOOT.into(), at: Mono(5_000), until: until.map(Mono), answer: Word::Down, reason, uid: 0 }
    }

    #[test]
    fn it_holds_until_its_end_and_within_its_boot() {
        for (until, boot, now, holds) in [
            (None, BOOT, 5_000, true),
            (None, BOOT, u64::MAX, true),
            (Some(6_000), BOOT, 5_999, true),
            (Some(6_000), BOOT, 6_000, false),
            (None, "another", 5_000, false),
        ] {
            let found = in_force(Some(&hand(until).encode()), boot, Mono(now));
            assert_eq!(found, holds.then(|| hand(until)), "{until:?} {boot} {now}");
        }
        assert_eq!(in_force(None, BOOT, Mono(0)), None);
    }

    #[test]
    fn what_cannot_be_read_holds_up() {
        let later = String::from_utf8(hand(None).encode()).unwrap().replace(":1,", ":2,");
        for bytes in [b"".as_slice(), b"{}", later.as_bytes()] {
            assert_eq!(in_force(Some(bytes), BOOT, Mono(7)).map(|hand| hand.answer), Some(Word::Up), "{bytes:?}");
        }
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        assert_eq!(read(&dir), None);
        std::os::unix::fs::symlink("/etc/passwd", tmp.path().join(HAND)).unwrap();
        assert_eq!(read(&dir), Some(Vec::new()));
    }

    #[test]
    fn written_read_removed() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        hand(Some(9_000)).write(&dir).unwrap();
        let read_back = in_force(read(&dir).as_deref(), BOOT, Mono(8_000)).unwrap();
        assert_eq!((read_back.left(Mono(8_000)), &read_back), (Some(Duration::from_secs(1)), &hand(Some(9_000))));
        for _ in 0..2 {
            Hand::remove(&dir).unwrap();
            assert_eq!(read(&dir), None);
        }
    }

    proptest! {
        #[test]
        fn nothing_that_lies_there_takes_a_node_out(bytes: Vec<u8>, now: u64) {
            let held = in_force(Some(&bytes), BOOT, Mono(now));
            prop_assert!(held.is_none_or(|hand| hand.answer == Word::Up));
        }
    }
}
