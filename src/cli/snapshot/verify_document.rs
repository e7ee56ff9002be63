//! What `snapshot verify` and `db check` print: the same document, for a snapshot or for any file.

use serde::Serialize;

use crate::cli::output::{Document, SCHEMA, printable};
use crate::error::Exit;
use crate::format::check::{Finding, HashKv};
use crate::snapshot::check::Checked;

/// The result for one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyDocument {
    pub schema: u32,
    /// A snapshot id or a path.
    pub subject: String,
    /// No finding. Says nothing about what `not_covered` lists.
    pub ok: bool,
    pub findings: Vec<Finding>,
    pub hash_kv: Option<HashKv>,
    /// What no check could prove, such as value bytes of a file without trailer.
    pub not_covered: Vec<String>,
    /// What else there is to say, such as that a sound snapshot is disputed.
    pub notes: Vec<String>,
}

impl From<Checked> for VerifyDocument {
    fn from(checked: Checked) -> Self {
        let Checked { subject, findings, hash_kv, not_covered, notes, .. } = checked;
        VerifyDocument { schema: SCHEMA, subject, ok: findings.is_empty(), findings, hash_kv, not_covered, notes }
    }
}

/// `snapshot verify --all`.
#[derive(Debug, Serialize)]
pub struct VerifyAllDocument {
    pub schema: u32,
    /// Every single one is.
    pub ok: bool,
    pub results: Vec<VerifyDocument>,
}

impl VerifyDocument {
    /// The exit code that goes with it; `None` is 0.
    pub fn exit(&self) -> Option<Exit> {
        (!self.ok).then_some(Exit::Data)
    }
}

impl Document for VerifyDocument {
    fn table(&self) -> String {
        let mut text = format!("{}: {}\n", printable(&self.subject), if self.ok { "ok" } else { "INVALID" });
        for finding in &self.findings {
            let line = match finding.check {
                "page" => format!("  {finding}"),
                check => {
                    let page = finding.page.map(|page| format!(" page {page}")).unwrap_or_default();
                    format!("  {check}{page}: {}", finding.message)
                }
            };
            text.push_str(&printable(&line));
            text.push('\n');
        }
        for part in &self.not_covered {
            text.push_str(&format!("  not covered: {}\n", printable(part)));
        }
        if let Some(HashKv { hash, revision, compact_revision }) = self.hash_kv {
            text.push_str(&format!("  hash kv {hash} at revision {revision}, compact revision {compact_revision}\n"));
        }
        for note in &self.notes {
            text.push_str(&format!("  {}\n", printable(note)));
        }
        text
    }
}

impl Document for VerifyAllDocument {
    fn table(&self) -> String {
        let bad = self.results.iter().filter(|result| !result.ok).count();
        let each: String = self.results.iter().map(Document::table).collect();
        format!("{each}{} checked, {bad} invalid\n", self.results.len())
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.results.iter().map(serde_json::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Format;
    use crate::cli::output::tests::printed;

    fn bad() -> VerifyDocument {
        VerifyDocument {
            schema: 1,
            subject: "/b.db".into(),
            ok: false,
            findings: vec![
                Finding { check: "page-tree", page: Some(7), message: "reached twice".into() },
                Finding { check: "sha256", page: None, message: "differs\u{1b}[1m".into() },
            ],
            hash_kv: None,
            not_covered: vec!["value bytes".into()],
            notes: vec![],
        }
    }

    fn good() -> VerifyDocument {
        let hash_kv = Some(HashKv { hash: 5, revision: 9, compact_revision: 0 });
        let notes = vec!["disputed: see `snapshot show`".into()];
        VerifyDocument { subject: "a".into(), ok: true, findings: vec![], hash_kv, not_covered: vec![], notes, ..bad() }
    }

    #[test]
    fn names_are_the_documented_ones() {
        assert_eq!(
            printed(&bad(), Format::Jsonl),
            "{\"schema\":1,\"subject\":\"/b.db\",\"ok\":false,\"findings\":[{\"page\":7,\"check\":\"page-tree\",\
             \"message\":\"reached twice\"},{\"page\":null,\"check\":\"sha256\",\"message\":\"differs\\u001b[1m\"}],\
             \"hash_kv\":null,\"not_covered\":[\"value bytes\"],\"notes\":[]}\n"
        );
    }

    #[test]
    fn people_see_every_finding() {
        assert_eq!(
            printed(&bad(), Format::Table),
            "/b.db: INVALID\n  page-tree page 7: reached twice\n  sha256: differs\\u{1b}[1m\n  not covered: value bytes\n"
        );
        let all = VerifyAllDocument { schema: 1, ok: false, results: vec![good(), bad()] };
        assert!(printed(&all, Format::Table).starts_with(
            "a: ok\n  hash kv 5 at revision 9, compact revision 0\n  disputed: see `snapshot show`\n/b.db: INVALID\n"
        ));
        assert!(printed(&all, Format::Table).ends_with("2 checked, 1 invalid\n"));
        assert_eq!(printed(&all, Format::Jsonl).lines().count(), 2);
    }

    #[test]
    fn the_exit_code_follows() {
        assert_eq!((good().exit(), bad().exit()), (None, Some(Exit::Data)));
    }
}
