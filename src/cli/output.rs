//! The one place that writes results: a table for people, JSON or JSON lines for programs.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use comfy_table::{CellAlignment, Table, presets};
use indicatif::ProgressBar;
use serde::{Serialize, Serializer};

use super::args::Format;
use crate::error::{Error, Result};

/// The version of every document below; it changes when a name is removed or changes its meaning.
pub const SCHEMA: u32 = 1;

/// A result. Its serialised names are an interface; its table is not.
pub trait Document: Serialize {
    /// For people, with a line break at the end, or empty.
    fn table(&self) -> String;

    /// JSON lines: one per element for lists, else the document itself.
    fn lines(&self) -> serde_json::Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self)?])
    }
}

pub struct Output {
    format: Format,
    /// A person reads it, not a program.
    terminal: bool,
    sink: Mutex<Box<dyn Write + Send>>,
    /// A progress bar on the same terminal, which has to step aside.
    bar: Option<ProgressBar>,
}

impl Output {
    pub fn to_stdout(format: Format, bar: Option<ProgressBar>) -> Self {
        let stdout = io::stdout();
        Output { terminal: stdout.is_terminal(), bar, ..Output::new(format, Box::new(stdout)) }
    }

    pub fn new(format: Format, sink: Box<dyn Write + Send>) -> Self {
        Output { format, terminal: false, sink: Mutex::new(sink), bar: None }
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    pub fn document(&self, document: &impl Document) -> Result<()> {
        let broken = |e| Error::new(crate::error::Code::Internal, "serialise the result", "").because(e);
        let text = match self.format {
            Format::Table => document.table(),
            Format::Json => serde_json::to_string_pretty(document).map_err(broken)? + "\n",
            Format::Jsonl => document.lines().map_err(broken)?.into_iter().map(|line| line + "\n").collect(),
        };
        self.raw(text.as_bytes())
    }

    /// A document whose plain form is `bytes`: those alone for a pipe or a file, the table for a terminal, which
    /// bytes could upset.
    pub fn bytes_or(&self, bytes: &[u8], document: &impl Document) -> Result<()> {
        match self.format {
            Format::Table if !self.terminal => self.raw(bytes),
            _ => self.document(document),
        }
    }

    /// Bytes as they are, in every format. A reader that went away (`| head`) ends the output, not the command.
    pub fn raw(&self, bytes: &[u8]) -> Result<()> {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let mut write = || sink.write_all(bytes).and_then(|()| sink.flush());
        let written = match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        };
        match written {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::io("write to", "standard output", e)),
            _ => Ok(()),
        }
    }
}

/// Columns with a header; names in `right` are aligned to the right.
pub fn table(header: &[&str], right: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    for (index, name) in header.iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            column.set_padding((0, 2));
            if right.contains(name) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table.trim_fmt() + "\n"
}

/// Names and values, one per line; what is empty is left out.
pub fn fields(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let shown = pairs.iter().filter(|(_, value)| !value.is_empty());
    shown.map(|(name, value)| format!("{name:width$}  {}\n", printable(value))).collect()
}

/// Text from outside on one line, with terminal codes shown instead of obeyed.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Direction overrides can make a line read as something else.
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}') {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
    out
}

/// `1 snapshot`, `2 snapshots`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Lines of at most `width` characters, broken at spaces; a longer word has a line of its own.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for word in text.split(' ') {
        let more = word.chars().count();
        match lines.last_mut() {
            Some(line) if used + 1 + more <= width => {
                line.push(' ');
                line.push_str(word);
                used += 1 + more;
            }
            _ => {
                lines.push(word.into());
                used = more;
            }
        }
    }
    lines
}

/// Bytes for people: `1.4 GiB`.
pub fn size(bytes: u64) -> String {
    crate::config::rounded_size(bytes)
}

/// Seconds for people, in the two largest units: `2h05m`.
pub fn age(seconds: u64) -> String {
    let (d, h, m, s) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    match (d, h, m) {
        (0, 0, 0) => format!("{s}s"),
        (0, 0, _) => format!("{m}m{s:02}s"),
        (0, _, _) => format!("{h}h{m:02}m"),
        (_, _, _) => format!("{d}d{h:02}h"),
    }
}

/// RFC 3339 UTC to the second, for tables.
pub fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// RFC 3339 UTC, for documents: `#[serde(serialize_with = "rfc3339")]`.
pub fn rfc3339<S: Serializer>(at: &jiff::Timestamp, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::Arc;

    /// A sink whose content can be read afterwards.
    #[derive(Clone, Default)]
    pub struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What `document` prints in `format`.
    pub fn printed(document: &impl Document, format: Format) -> String {
        let sink = Captured::default();
        Output::new(format, Box::new(sink.clone())).document(document).unwrap();
        sink.text()
    }

    #[test]
    fn words_are_wrapped_and_counted() {
        assert_eq!(wrapped("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrapped("a bb ccc", 3), ["a", "bb", "ccc"]);
        assert_eq!(wrapped("é longer-than-it ö", 5), ["é", "longer-than-it", "ö"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!([0, 1, 2].map(|n| count(n, "name")), ["0 names", "1 name", "2 names"]);
    }

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_quiet_and_a_full_disk_is_not() {
        let write = |kind| Output::new(Format::Table, Box::new(Failing(kind))).raw(b"x");
        assert!(write(ErrorKind::BrokenPipe).is_ok());
        let error = write(ErrorKind::StorageFull).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (crate::error::Code::Io, "write to standard output"));
    }

    #[test]
    fn tables_are_plain_and_aligned() {
        let rows = vec![vec!["a".into(), "5".into(), "x\ty".into()], vec!["bcd".into(), "10".into(), String::new()]];
        assert_eq!(
            table(&["NAME", "SIZE", "NOTE"], &["SIZE"], rows),
            "NAME  SIZE  NOTE\na        5  x\\ty\nbcd     10\n"
        );
        assert_eq!(fields(&[("a", "1".into()), ("none", String::new()), ("bcd", "2".into())]), "a     1\nbcd   2\n");
    }

    #[test]
    fn sizes_and_ages() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_500_000, "1.4 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (20 << 30, "20.0 GiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        for (seconds, text) in [(0, "0s"), (59, "59s"), (60, "1m00s"), (7500, "2h05m"), (90_000, "1d01h")] {
            assert_eq!(age(seconds), text);
        }
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(time("2026-03-01T12:00:00.123Z".parse().unwrap()), "2026-03-01T12:00:00Z");
    }
}
