//! Asks before something is removed or replaced (design §15).

use std::io::{BufRead, IsTerminal, Write};

use crate::error::{Code, Error, Result};

/// Whether to go on: `yes` says so already, a terminal is asked, anything else is `NotConfirmed`.
pub fn confirm(question: &str, yes: bool, what: &str, on: &str) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    let (input, mut output) = (std::io::stdin(), std::io::stderr());
    if !input.is_terminal() || !output.is_terminal() {
        return Err(Error::new(Code::NotConfirmed, what, on)
            .because("there is no terminal to ask on")
            .remedy("look at it with --dry-run, then say --yes"));
    }
    let failed = |e| Error::io("ask on", "the terminal", e);
    write!(output, "{question} [y/N] ").and_then(|()| output.flush()).map_err(failed)?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
