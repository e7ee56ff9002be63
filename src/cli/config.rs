//! `refloat config`.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::context::{Context, Ending};
use super::output::{Document, SCHEMA};
use crate::config::Shown;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Read and validate the configuration; exit code 78 with file and line where it is wrong
    Check(CheckArgs),
    /// Print the values in force, as a configuration file
    Show(ShowArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat config check
  refloat config check --config ./refloat.toml")]
pub(super) struct CheckArgs {}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  refloat config show
  refloat config show --origin    with file and line of each value")]
pub(super) struct ShowArgs {
    /// Name the file and line of each value
    #[arg(long)]
    origin: bool,
}

#[derive(Debug, Serialize)]
struct CheckDocument {
    schema: u32,
    ok: bool,
    /// In the order in which later ones win.
    files: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ShowDocument {
    schema: u32,
    values: Vec<Shown>,
    #[serde(skip)]
    origin: bool,
}

pub(super) fn run(command: Command, context: &Context) -> Result<Ending> {
    let loaded = context.loaded()?;
    match command {
        Command::Check(CheckArgs {}) => {
            let files = loaded.files.iter().map(|path| path.display().to_string()).collect();
            context.output.document(&CheckDocument { schema: SCHEMA, ok: true, files })?;
        }
        Command::Show(ShowArgs { origin }) => {
            context.output.document(&ShowDocument { schema: SCHEMA, values: loaded.shown(), origin })?;
        }
    }
    Ok(Ending::Good)
}

impl Document for CheckDocument {
    fn table(&self) -> String {
        match self.files.as_slice() {
            [] => "valid: no file, defaults alone\n".into(),
            files => format!("valid: {}\n", files.join(", ")),
        }
    }
}

impl Document for ShowDocument {
    /// A configuration file that sets every value as it is.
    fn table(&self) -> String {
        let mut text = String::new();
        let mut section = String::new();
        for shown in &self.values {
            let (within, key) = split(&shown.key);
            if within != section {
                let header = match within.split_once('.') {
                    Some((list, _)) => format!("[[{list}]]"),
                    None => format!("[{within}]"),
                };
                text.push_str(&format!("\n{header}\n"));
                section = within.into();
            }
            let line = match &shown.value {
                Some(value) => format!("{key} = {value}"),
                None => format!("# {key} is not set"),
            };
            let origin = match (&shown.origin, &shown.value) {
                (Some(origin), _) => format!("{}:{}", super::output::printable(&origin.file), origin.line),
                (None, Some(_)) => "default".into(),
                (None, None) => String::new(),
            };
            if self.origin && !origin.is_empty() {
                text.push_str(&format!("{line:<48} # {origin}\n"));
            } else {
                text.push_str(&format!("{line}\n"));
            }
        }
        text
    }

    fn lines(&self) -> serde_json::Result<Vec<String>> {
        self.values.iter().map(serde_json::to_string).collect()
    }
}

/// `store.0.retention.keep_last` → `store.0`, `retention.keep_last`.
fn split(key: &str) -> (&str, &str) {
    let dots: Vec<usize> = key.match_indices('.').map(|(at, _)| at).collect();
    let in_list = |first: usize, second: usize| key[first + 1..second].bytes().all(|b| b.is_ascii_digit());
    match dots.as_slice() {
        [] => ("", key),
        [first, second, ..] if in_list(*first, *second) => (&key[..*second], &key[second + 1..]),
        [first, ..] => (&key[..*first], &key[first + 1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_split_into_section_and_name() {
        for (key, expected) in [
            ("node", ("", "node")),
            ("etcd.prefix", ("etcd", "prefix")),
            ("store.0.url", ("store.0", "url")),
            ("store.12.retention.keep_last", ("store.12", "retention.keep_last")),
        ] {
            assert_eq!(split(key), expected, "{key}");
        }
    }
}
