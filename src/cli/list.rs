//! Documents with one long list, written row by row: memory stays the same for millions of rows.

use serde::Serialize;

use super::args::Format;
use super::output::Output;
use crate::error::{Code, Error, Result};

/// One element.
pub trait Row: Serialize {
    /// For people, without a line break.
    fn text(&self) -> String;
}

/// A document under way. Without [`List::end`] a JSON document stays open, which no reader takes for a whole one.
pub struct List<'a> {
    output: &'a Output,
    buffer: Vec<u8>,
    first: bool,
}

impl<'a> List<'a> {
    const FULL: usize = 64 * 1024;

    /// `head` is an object with at least one field; the list follows it under `name`. JSON lines have rows alone.
    pub fn begin(output: &'a Output, head: &impl Serialize, name: &str) -> Result<Self> {
        let mut list = List { output, buffer: Vec::new(), first: true };
        if output.format() == Format::Json {
            let head = serde_json::to_string(head).map_err(broken)?;
            list.buffer.extend_from_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
            list.buffer.extend_from_slice(format!(",\"{name}\":[").as_bytes());
        }
        Ok(list)
    }

    pub fn row(&mut self, row: &impl Row) -> Result<()> {
        match self.output.format() {
            Format::Table => self.buffer.extend_from_slice(row.text().as_bytes()),
            Format::Json => {
                self.buffer.extend_from_slice(if self.first { b"\n" } else { b",\n" });
                serde_json::to_writer(&mut self.buffer, row).map_err(broken)?;
            }
            Format::Jsonl => serde_json::to_writer(&mut self.buffer, row).map_err(broken)?,
        }
        if self.output.format() != Format::Json {
            self.buffer.push(b'\n');
        }
        self.first = false;
        if self.buffer.len() >= Self::FULL {
            self.output.raw(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    pub fn end(mut self) -> Result<()> {
        if self.output.format() == Format::Json {
            self.buffer.extend_from_slice(b"]}\n");
        }
        self.output.raw(&self.buffer)
    }

    /// Fields that are known only after the last row: in JSON behind the list, as JSON lines in a line of their own,
    /// which begins with the schema. `rest` is an object with at least one field.
    pub fn end_with(mut self, schema: u32, rest: &impl Serialize) -> Result<()> {
        let rest = serde_json::to_string(rest).map_err(broken)?;
        let fields = rest.strip_prefix('{').unwrap_or(&rest);
        match self.output.format() {
            Format::Table => {}
            Format::Json => self.buffer.extend_from_slice(format!("],{fields}\n").as_bytes()),
            Format::Jsonl => self.buffer.extend_from_slice(format!("{{\"schema\":{schema},{fields}\n").as_bytes()),
        }
        self.output.raw(&self.buffer)
    }
}

fn broken(e: serde_json::Error) -> Error {
    Error::new(Code::Internal, "serialise the result", "").because(e)
}

#[cfg(test)]
mod tests {
    use super::super::output::tests::Captured;
    use super::*;

    #[derive(Serialize)]
    struct Head {
        schema: u32,
    }

    #[derive(Serialize)]
    struct Number {
        n: usize,
    }

    impl Row for Number {
        fn text(&self) -> String {
            format!("number {}", self.n)
        }
    }

    fn written(format: Format, rows: usize) -> String {
        let sink = Captured::default();
        let output = Output::new(format, Box::new(sink.clone()));
        let mut list = List::begin(&output, &Head { schema: 1 }, "numbers").unwrap();
        for n in 0..rows {
            list.row(&Number { n }).unwrap();
        }
        list.end().unwrap();
        sink.text()
    }

    #[test]
    fn what_is_known_last_stands_last() {
        #[derive(Serialize)]
        struct Rest {
            left: Vec<u8>,
        }
        for (format, want) in [
            (Format::Table, "number 0\n"),
            (Format::Json, "{\"schema\":1,\"numbers\":[\n{\"n\":0}],\"left\":[7]}\n"),
            (Format::Jsonl, "{\"n\":0}\n{\"schema\":1,\"left\":[7]}\n"),
        ] {
            let sink = Captured::default();
            let output = Output::new(format, Box::new(sink.clone()));
            let mut list = List::begin(&output, &Head { schema: 1 }, "numbers").unwrap();
            list.row(&Number { n: 0 }).unwrap();
            list.end_with(1, &Rest { left: vec![7] }).unwrap();
            assert_eq!(sink.text(), want);
        }
    }

    #[test]
    fn each_format_holds_every_row() {
        for rows in [0, 1, 2, 20_000] {
            assert_eq!(written(Format::Table, rows), (0..rows).map(|n| format!("number {n}\n")).collect::<String>());
            assert_eq!(written(Format::Jsonl, rows), (0..rows).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
            let document: serde_json::Value = serde_json::from_str(&written(Format::Json, rows)).unwrap();
            assert_eq!(document["schema"], 1);
            let numbers = document["numbers"].as_array().unwrap();
            assert!(numbers.len() == rows && numbers.iter().enumerate().all(|(n, row)| row["n"] == n));
        }
    }
}
