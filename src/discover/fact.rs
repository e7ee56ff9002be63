//! A fact and the place that it comes from: nothing is claimed without its evidence.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Where something was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    pub file: PathBuf,
    /// The flag, variable or key in it; empty where the file itself is the evidence.
    pub at: String,
}

impl Source {
    pub fn file(file: &Path) -> Source {
        Source { file: file.into(), at: String::new() }
    }

    pub fn at(file: &Path, at: impl Into<String>) -> Source {
        Source { file: file.into(), at: at.into() }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.at.is_empty() { Ok(()) } else { write!(f, " {}", self.at) }
    }
}

/// A value with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact<T> {
    pub value: T,
    pub from: Source,
}

impl<T> Fact<T> {
    pub fn new(value: T, from: Source) -> Fact<T> {
        Fact { value, from }
    }

    pub fn map<U>(&self, change: impl FnOnce(&T) -> U) -> Fact<U> {
        Fact { value: change(&self.value), from: self.from.clone() }
    }
}
