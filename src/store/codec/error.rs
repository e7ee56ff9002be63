//! What can be wrong with a stored object.

use std::io;

use crate::error::{Code, Error};

/// Frames count from 0; offsets are in stored bytes.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("read stored bytes at offset {offset}")]
    Read { offset: u64, source: io::Error },
    #[error("no zstd frame at offset {offset}")]
    NoFrame { offset: u64 },
    #[error("the object ends within frame {frame}, which begins at offset {offset}")]
    Cut { frame: usize, offset: u64 },
    #[error("frame {frame} at offset {offset} is damaged: {why}")]
    Damaged { frame: usize, offset: u64, why: String },
    #[error("frame {frame} at offset {offset} cannot be read at random: {why}")]
    NotRandom { frame: usize, offset: u64, why: NotRandom },
    #[error("the object has no frame {frame}")]
    NoSuchFrame { frame: usize },
    #[error("the object has more than {max} frames", max = super::FRAMES_MAX)]
    TooMany,
}

/// Why a sound frame has to be unpacked from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotRandom {
    #[error("it does not say how many bytes it holds")]
    NoSize,
    #[error("it holds more than 16 MiB")]
    TooLarge,
    #[error("it needs a dictionary")]
    Dictionary,
}

impl CodecError {
    /// Whether the object can still be read in order, from its beginning.
    pub fn needs_unpacking(&self) -> bool {
        matches!(self, CodecError::NotRandom { why: NotRandom::NoSize | NotRandom::TooLarge, .. })
    }

    /// `DataInvalid`, or `Io` if the bytes could not be had at all.
    pub fn into_error(self, what: &str, on: &str) -> Error {
        match self {
            CodecError::Read { offset, source } => {
                Error::io(format!("read at offset {offset} of"), on, source).during(what, on)
            }
            damage => Error::new(Code::DataInvalid, what, on).because(damage),
        }
    }
}

impl From<CodecError> for io::Error {
    fn from(err: CodecError) -> io::Error {
        match err {
            CodecError::Read { source, .. } => source,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        }
    }
}
