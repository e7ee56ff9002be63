//! Tables of any length in the memory of a few rows.
//!
//! The widths of the columns are those of the first rows; what is wider later on pushes its own row to the right.

use super::output::{Output, printable};
use crate::error::Result;

/// Rows that are held back to find the widths.
const LOOK: usize = 256;
/// Bytes that are written at once.
const FULL: usize = 64 * 1024;

/// A table under way.
pub struct Columns<'a> {
    output: &'a Output,
    header: Vec<&'static str>,
    /// Names of columns that are aligned to the right.
    right: &'static [&'static str],
    waiting: Vec<Vec<String>>,
    /// Known once the first rows were seen.
    widths: Vec<usize>,
    buffer: String,
}

impl<'a> Columns<'a> {
    pub fn new(output: &'a Output, header: Vec<&'static str>, right: &'static [&'static str]) -> Self {
        Columns { output, header, right, waiting: Vec::new(), widths: Vec::new(), buffer: String::new() }
    }

    /// One cell a column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) -> Result<()> {
        let cells: Vec<String> = cells.into_iter().map(|cell| printable(&cell)).collect();
        if self.widths.is_empty() {
            self.waiting.push(cells);
            if self.waiting.len() == LOOK {
                self.settle();
            }
        } else {
            self.line(&cells);
        }
        if self.buffer.len() < FULL {
            return Ok(());
        }
        self.output.raw(std::mem::take(&mut self.buffer).as_bytes())
    }

    /// Writes what is left; a table without rows is nothing at all.
    pub fn end(mut self) -> Result<()> {
        if self.widths.is_empty() && !self.waiting.is_empty() {
            self.settle();
        }
        self.output.raw(self.buffer.as_bytes())
    }

    fn settle(&mut self) {
        let widest = |at: usize, name: &str| {
            let cells = self.waiting.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.max().unwrap_or(0).max(name.len())
        };
        self.widths = self.header.iter().enumerate().map(|(at, name)| widest(at, name)).collect();
        let header: Vec<String> = self.header.iter().map(|name| (*name).to_string()).collect();
        self.line(&header);
        for row in std::mem::take(&mut self.waiting) {
            self.line(&row);
        }
    }

    fn line(&mut self, cells: &[String]) {
        let from = self.buffer.len();
        for ((cell, name), width) in cells.iter().zip(&self.header).zip(&self.widths) {
            if self.buffer.len() > from {
                self.buffer.push_str("  ");
            }
            let blanks = width.saturating_sub(cell.chars().count());
            let blanks = std::iter::repeat_n(' ', blanks);
            if self.right.contains(name) {
                self.buffer.extend(blanks);
                self.buffer.push_str(cell);
            } else {
                self.buffer.push_str(cell);
                self.buffer.extend(blanks);
            }
        }
        self.buffer.truncate(self.buffer.trim_end().len().max(from));
        self.buffer.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::Format;
    use super::super::output::tests::Captured;
    use super::*;

    fn written(rows: usize) -> String {
        let sink = Captured::default();
        let output = Output::new(Format::Table, Box::new(sink.clone()));
        let mut columns = Columns::new(&output, vec!["NAME", "N", "NOTE"], &["N"]);
        for n in 0..rows {
            columns.row([format!("r{n}"), n.to_string(), if n == 0 { "x\ty".into() } else { String::new() }]).unwrap();
        }
        columns.end().unwrap();
        sink.text()
    }

    #[test]
    fn aligned_like_any_other_table() {
        assert_eq!(written(0), "");
        assert_eq!(written(1), "NAME  N  NOTE\nr0    0  x\\ty\n");
        let eleven = written(11);
        assert!(eleven.starts_with("NAME   N  NOTE\nr0     0  x\\ty\nr1     1\n"), "{eleven}");
        assert!(eleven.ends_with("r10   10\n"), "{eleven}");
    }

    #[test]
    fn rows_beyond_the_first_keep_the_widths() {
        let text = written(20_000);
        assert_eq!(text.lines().count(), 20_001);
        assert_eq!(text.lines().nth(1), Some("r0      0  x\\ty"));
        assert_eq!(text.lines().nth(257), Some("r256  256"));
        assert_eq!(text.lines().last(), Some("r19999  19999"), "wider than the first ones, and whole");
    }
}
