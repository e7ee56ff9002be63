//! Errors on standard error: text for people, one JSON line for programs.

use std::io::Write;

use serde::Serialize;

use super::args::Format;
use crate::error::Error;

#[derive(Debug, Serialize)]
struct FailureDocument {
    schema: u32,
    error: ErrorDocument,
}

/// An error inside a document: also what the ledger keeps.
pub use crate::engine::failure::Failure as ErrorDocument;

pub(super) fn print(error: &Error, format: Format) {
    let text = match format {
        Format::Table => text(error),
        Format::Json | Format::Jsonl => json(error),
    };
    // With standard error gone, the exit code is all that is left to say.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

fn text(error: &Error) -> String {
    let mut text = format!("refloat: failed to {}\n", one_line(&error.to_string()));
    for cause in error.why() {
        text.push_str(&format!("  because: {}\n", one_line(&cause)));
    }
    if let Some(remedy) = error.get_remedy() {
        text.push_str(&format!("  try: {}\n", one_line(remedy)));
    }
    text
}

fn json(error: &Error) -> String {
    let document = FailureDocument { schema: 1, error: error.into() };
    // Strings and lists of strings always serialise.
    let mut line = serde_json::to_string(&document).unwrap_or_default();
    line.push('\n');
    line
}

/// File names and answers of servers may hold anything, also line breaks and escape sequences.
fn one_line(text: &str) -> String {
    super::output::printable(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn example() -> Error {
        Error::io("write frame", "/s/a\nb", std::io::Error::from_raw_os_error(28))
            .remedy("free some space")
            .during("take snapshot", "of member cp1")
    }

    #[test]
    fn text_has_one_line_per_cause() {
        assert_eq!(
            text(&example()),
            "refloat: failed to take snapshot of member cp1\n  because: write frame /s/a b\n  because: No space left on \
             device (os error 28)\n  try: free some space\n"
        );
        assert_eq!(text(&Error::new(Code::Internal, "x", "")), "refloat: failed to x\n");
    }

    #[test]
    fn json_has_the_documented_names() {
        assert_eq!(
            json(&example()),
            "{\"schema\":1,\"error\":{\"code\":\"io\",\"what\":\"take snapshot\",\"on\":\"of member cp1\",\"why\":[\"write \
             frame /s/a b\",\"No space left on device (os error 28)\"],\"remedy\":\"free some space\"}}\n"
        );
    }

    #[test]
    fn terminal_codes_are_defused() {
        let error = Error::new(Code::NotFound, "open", "/\u{1b}[2Jx");
        assert_eq!(text(&error), "refloat: failed to open /\\u{1b}[2Jx\n");
    }
}
