//! What a check has to say about a file.

use serde::Serialize;

/// Findings beyond this many are counted, not kept: a file of noise must not fill the memory.
const KEPT: usize = 1000;

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Page number in the database, where the finding has one.
    pub page: Option<u64>,
    /// A stable word for the kind of check: `meta`, `page`, `tree`, `row`, `history`, `trailer`, `frame` …
    pub check: &'static str,
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.page {
            Some(page) => write!(f, "page {page}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// All that was found, plus oddities: things that bbolt or etcd never write, but that are readable.
///
/// An oddity is only a note where a checksum proves that the bytes are what etcd sent; in a file without a
/// trailer it is all that a flipped byte leaves behind, so there it counts as a finding.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    oddities: Vec<Finding>,
    dropped: u64,
}

impl Findings {
    pub fn add(&mut self, page: Option<u64>, check: &'static str, message: impl Into<String>) {
        if self.list.len() < KEPT {
            self.list.push(Finding { page, check, message: message.into() });
        } else {
            self.dropped += 1;
        }
    }

    pub fn odd(&mut self, page: Option<u64>, check: &'static str, message: impl Into<String>) {
        if self.oddities.len() < KEPT {
            self.oddities.push(Finding { page, check, message: message.into() });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Findings and oddities apart, each in the order of pages.
    pub fn into_parts(mut self) -> (Vec<Finding>, Vec<Finding>) {
        self.list.sort_by_key(|f| f.page);
        self.oddities.sort_by_key(|f| f.page);
        if self.dropped > 0 {
            let message = format!("{} more findings are not listed", self.dropped);
            self.list.push(Finding { page: None, check: "more", message });
        }
        (self.list, self.oddities)
    }
}
