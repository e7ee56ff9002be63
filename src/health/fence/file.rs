//! The fence file: what the health process decided last, for whoever answers balancers.
//!
//! Written each second, replaced whole. It says for which boot and when it was written, so that one that was left
//! behind, or whose writer hangs, means nothing after [`MAX_AGE`]: *up*. Documented in docs/formats.md §11.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::fs::Dir;
use crate::health::model::Mono;

/// In the runtime directory.
pub const FENCE: &str = "fence";
/// Bytes. None of ours is nearly as large.
pub const LIMIT: u64 = 4096;
/// A file that is older than this, or from later than now by more than this, means *up*.
pub const MAX_AGE: Duration = Duration::from_secs(10);
/// Characters. A balancer shows one line of it.
pub const REASON: usize = 300;
const SCHEMA: u32 = 1;

/// What a balancer hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    Up,
    Down,
}

impl Word {
    pub fn text(self) -> &'static str {
        match self {
            Word::Up => "up",
            Word::Down => "down",
        }
    }
}

/// The word, and why: one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    pub answer: Word,
    pub reason: String,
}

impl Answer {
    pub fn up(reason: impl Into<String>) -> Answer {
        Answer { answer: Word::Up, reason: reason.into() }
    }

    pub fn down(reason: impl Into<String>) -> Answer {
        Answer { answer: Word::Down, reason: reason.into() }
    }
}

/// What is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceFile {
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// CLOCK_BOOTTIME at which it was written.
    pub at: Mono,
    pub answer: Word,
    pub reason: String,
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: u32,
    #[serde(flatten)]
    file: FenceFile,
}

impl FenceFile {
    /// One line of JSON, at most [`LIMIT`] bytes: the reason is cut at [`REASON`] characters, and made one line.
    pub fn encode(&self) -> Vec<u8> {
        let file = FenceFile { reason: line(&self.reason), ..self.clone() };
        // Strings and numbers: it cannot fail, and nothing written is *up*.
        let mut bytes = serde_json::to_vec(&Document { schema: SCHEMA, file }).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// `None`: it is none of ours, or a later version's.
    pub fn parse(bytes: &[u8]) -> Option<FenceFile> {
        let document: Document = serde_json::from_slice(bytes).ok()?;
        (document.schema == SCHEMA).then_some(document.file)
    }

    /// Replaces the file at once, so that nobody reads half of it.
    pub fn write(&self, runtime: &Dir) -> Result<()> {
        runtime.replace_public(FENCE, &self.encode())
    }
}

/// The dead-man rule. `bytes`: `None` when there is no file. Only a fresh file of this boot says *down*.
pub fn answer(bytes: Option<&[u8]>, boot_id: &str, now: Mono) -> Answer {
    let Some(bytes) = bytes else { return Answer::up("no fence file: health does not run") };
    let Some(file) = FenceFile::parse(bytes) else { return Answer::up("the fence file cannot be read") };
    if file.boot_id != boot_id {
        return Answer::up("the fence file is of another boot");
    }
    let age = now.since(file.at).max(file.at.since(now));
    if age > MAX_AGE {
        return Answer::up(format!("the fence file is {} s old: health is silent", age.as_secs()));
    }
    Answer { answer: file.answer, reason: file.reason }
}

/// One line of at most [`REASON`] characters.
pub(super) fn line(text: &str) -> String {
    text.chars().take(REASON).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOOT: &str = "0c15f1d5-3f29-4a14-9a6e-8f1a5b1c2d3e";

    fn down(at: u64) -> FenceFile {
        FenceFile { boot_id: BOOT.into(), at: Mono(at), answer: Word::Down, reason: "hung process".into() }
    }

    #[test]
    fn only_a_fresh_file_of_this_boot_says_down() {
        let bytes = down(100_000).encode();
        let text = String::from_utf8(bytes.clone()).unwrap();
        let later = text.replace("\"schema\":1", "\"schema\":2").into_bytes();
        let up = FenceFile { answer: Word::Up, reason: "well".into(), ..down(100_000) }.encode();
        let cut = bytes[..bytes.len() / 2].to_vec();
        for (bytes, boot, now, expected) in [
            (Some(&bytes), BOOT, 100_000, Answer::down("hung process")),
            (Some(&bytes), BOOT, 110_000, Answer::down("hung process")),
            (Some(&bytes), BOOT, 90_000, Answer::down("hung process")),
            (Some(&bytes), BOOT, 110_001, Answer::up("the fence file is 10 s old: health is silent")),
            (Some(&bytes), BOOT, 89_999, Answer::up("the fence file is 10 s old: health is silent")),
            (Some(&bytes), "another", 100_000, Answer::up("the fence file is of another boot")),
            (Some(&up), BOOT, 100_500, Answer::up("well")),
            (Some(&later), BOOT, 100_000, Answer::up("the fence file cannot be read")),
            (Some(&cut), BOOT, 100_000, Answer::up("the fence file cannot be read")),
            (Some(&Vec::new()), BOOT, 100_000, Answer::up("the fence file cannot be read")),
            (None, BOOT, 100_000, Answer::up("no fence file: health does not run")),
        ] {
            assert_eq!(answer(bytes.map(Vec::as_slice), boot, Mono(now)), expected, "{now} {boot}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_replaces_what_was() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = Dir::open(tmp.path()).unwrap();
        for at in [1, 2] {
            down(at).write(&dir).unwrap();
            assert_eq!(FenceFile::parse(&dir.read(FENCE, LIMIT).unwrap()), Some(down(at)));
        }
        assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 1, "nothing else stays");
    }

    proptest! {
        #[test]
        fn round_trip_in_one_short_line(at: u64, is_down: bool, reason in "\\PC{0,400}|[\\x00-\\x7f]{0,400}") {
            let answer = if is_down { Word::Down } else { Word::Up };
            let file = FenceFile { boot_id: BOOT.into(), at: Mono(at), answer, reason };
            let bytes = file.encode();
            prop_assert!(bytes.len() as u64 <= LIMIT);
            prop_assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1);
            let read = FenceFile::parse(&bytes).unwrap();
            prop_assert_eq!(&read.reason, &line(&file.reason));
            prop_assert_eq!(FenceFile { reason: file.reason.clone(), ..read }, file);
        }

        #[test]
        fn whatever_lies_there_is_up_unless_it_is_ours_and_fresh(bytes: Vec<u8>, now: u64) {
            prop_assert_eq!(answer(Some(&bytes), BOOT, Mono(now)).answer, Word::Up);
        }

        #[test]
        fn never_down_beyond_ten_seconds(at: u64, now: u64) {
            let said = answer(Some(&down(at).encode()), BOOT, Mono(now)).answer;
            prop_assert_eq!(said == Word::Down, at.abs_diff(now) <= 10_000);
        }
    }
}
