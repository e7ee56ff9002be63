//! Long results, written while they are made: a hundred thousand rows never lie in memory as text.

use std::io::{self, Write};

use serde::Serialize;

use super::args::Format;
use super::output::Output;
use crate::error::{Code, Error, Result};

const FULL: usize = 64 * 1024;

/// Collects what is written and passes it on in pieces.
pub struct Stream<'a> {
    output: &'a Output,
    buffer: Vec<u8>,
    failed: Option<Error>,
}

impl Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= FULL {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.output.raw(&self.buffer);
        self.buffer.clear();
        written.map_err(|e| {
            self.failed = Some(e);
            io::ErrorKind::Other.into()
        })
    }
}

/// A result that is written piece by piece. Its serialised names are an interface; its table is not.
pub trait Streamed: Serialize {
    /// For people.
    fn table(&self, out: &mut dyn Write) -> io::Result<()>;

    /// JSON lines: one for each element.
    fn lines(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Writes it in the form that was asked for.
pub fn print(output: &Output, document: &impl Streamed) -> Result<()> {
    let mut stream = Stream { output, buffer: Vec::new(), failed: None };
    let written = match output.format() {
        Format::Table => document.table(&mut stream),
        Format::Json => serde_json::to_writer_pretty(&mut stream, document)
            .map_err(io::Error::from)
            .and_then(|()| stream.write_all(b"\n")),
        Format::Jsonl => document.lines(&mut stream),
    };
    let written = written.and_then(|()| stream.flush());
    match (written, stream.failed) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(error)) => Err(error),
        (Err(e), None) => Err(Error::new(Code::Internal, "serialise the result", "").because(e)),
    }
}

/// One element as a JSON line.
pub fn line(out: &mut dyn Write, element: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, element).map_err(io::Error::from)?;
    out.write_all(b"\n")
}
