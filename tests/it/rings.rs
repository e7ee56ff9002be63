//! Calls go downwards only: every path into the crate is held against the ring table (design §4.2).

use std::path::{Path, PathBuf};

/// Highest first; modules on one rung do not know each other.
const RINGS: &[&[&str]] = &[
    &["cli"],
    &["daemon"],
    &["http"],
    &["status"],
    &["engine"],
    &["playbook"],
    &["maintain"],
    &["restore"],
    &["snapshot", "health", "setup"],
    &["changes"],
    &["catalog"],
    &["peer"],
    &["store", "etcd", "host", "kube", "discover"],
    &["ledger", "config"],
    &["fs", "format"],
    &["crash", "error"],
];

fn rung(module: &str) -> Option<usize> {
    RINGS.iter().position(|rung| rung.contains(&module))
}

#[test]
fn every_path_points_downwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&src, &mut files);
    assert!(files.len() > 20, "only {} files below {}", files.len(), src.display());
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in files {
        let name = file.strip_prefix(&src).unwrap().to_path_buf();
        let text = std::fs::read_to_string(&file).unwrap();
        seen += paths(&name, &text).len();
        wrong.extend(violations(&name, &text));
    }
    assert!(seen > 25, "only {seen} paths found: the reader is broken");
    assert!(wrong.is_empty(), "against the ring table:\n{}", wrong.join("\n"));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

/// `file` is relative to `src/`.
fn violations(file: &Path, text: &str) -> Vec<String> {
    let own = top(file);
    let complain = |line: usize, what: String| format!("src/{}:{line}: {what}", file.display());
    let found = paths(file, text).into_iter().filter(|(_, target)| *target != own);
    let own_rung = match own.as_str() {
        // It declares the modules.
        "lib" => return Vec::new(),
        // It enters at the top, and nowhere else.
        "main" => {
            let below = found.filter(|(_, target)| target != "cli");
            return below
                .map(|(line, target)| complain(line, format!("`main` → `{target}` goes past `cli`")))
                .collect();
        }
        _ => match rung(&own) {
            Some(rung) => rung,
            None => return vec![complain(1, format!("`{own}` has no place in the ring table"))],
        },
    };
    found
        .filter_map(|(line, target)| match rung(&target) {
            None => Some(complain(line, format!("`{target}` has no place in the ring table"))),
            Some(rung) if rung > own_rung => None,
            Some(rung) if rung == own_rung => Some(complain(line, format!("`{own}` → `{target}` goes sideways"))),
            Some(_) => Some(complain(line, format!("`{own}` → `{target}` goes upwards"))),
        })
        .collect()
}

/// The module directly below the root that a file belongs to.
fn top(file: &Path) -> String {
    let first = file.iter().next().unwrap().to_str().unwrap();
    first.strip_suffix(".rs").unwrap_or(first).to_string()
}

/// Line and first module of each path that starts at the crate's root, also by way of `super`.
fn paths(file: &Path, text: &str) -> Vec<(usize, String)> {
    let tokens = tokens(text);
    let parts: Vec<&str> = file.iter().map(|part| part.to_str().unwrap()).collect();
    // `config/units.rs` is two levels deep, `config/mod.rs` one.
    let is_folder = matches!(parts.last(), Some(&"mod.rs" | &"lib.rs" | &"main.rs"));
    let file_depth = parts.len() - usize::from(is_folder);
    let mut braces: Vec<bool> = Vec::new();
    let mut found = Vec::new();
    let word = |at: usize| tokens.get(at).map(|token| token.1.as_str()).unwrap_or("");
    let mut at = 0;
    while at < tokens.len() {
        match word(at) {
            "{" => braces.push(at >= 2 && word(at - 2) == "mod"),
            "}" => {
                braces.pop();
            }
            "super" if word(at.wrapping_sub(1)) != "::" => {
                let depth = file_depth + braces.iter().filter(|inline| **inline).count();
                let mut supers = 1;
                while word(at + 1) == "::" && word(at + 2) == "super" {
                    at += 2;
                    supers += 1;
                }
                if supers >= depth {
                    targets(&tokens, at + 1, &mut found);
                }
            }
            "crate" if word(at.wrapping_sub(1)) != "(" => targets(&tokens, at + 1, &mut found),
            // `pub(crate)` is no path.
            "crate" if word(at + 1) == "::" => targets(&tokens, at + 1, &mut found),
            "refloat" if word(at + 1) == "::" && word(at.wrapping_sub(1)) != "::" => {
                targets(&tokens, at + 1, &mut found);
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The names right after the root: one, or each of a group. Anything else hides which module is meant.
fn targets(tokens: &[(usize, String)], at: usize, found: &mut Vec<(usize, String)>) {
    let get = |at: usize| tokens.get(at).map(|(line, word)| (*line, word.as_str())).unwrap_or((0, ""));
    let line = get(at.saturating_sub(1)).0;
    match (get(at).1, get(at + 1).1) {
        ("::", "{") => {
            let mut depth = 1;
            let mut first = true;
            let mut next = at + 2;
            while depth > 0 && next < tokens.len() {
                let (line, word) = get(next);
                match word {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    "," if depth == 1 => {
                        first = true;
                        next += 1;
                        continue;
                    }
                    name if first => found.push((line, name.to_string())),
                    _ => {}
                }
                first = false;
                next += 1;
            }
        }
        ("::", name) => found.push((get(at + 1).0, name.to_string())),
        _ => found.push((line, "the crate's root".into())),
    }
}

/// Identifiers and punctuation with their lines; comments and literals are left out.
fn tokens(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut line = 1;
    let mut at = 0;
    let peek = |at: usize| chars.get(at).copied().unwrap_or('\0');
    while at < chars.len() {
        let start = at;
        match chars[at] {
            '/' if peek(at + 1) == '/' => {
                while at < chars.len() && chars[at] != '\n' {
                    at += 1;
                }
            }
            '/' if peek(at + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (peek(at), peek(at + 1)) {
                        ('/', '*') => (depth, at) = (depth + 1, at + 2),
                        ('*', '/') => (depth, at) = (depth - 1, at + 2),
                        _ => at += 1,
                    }
                    if depth == 0 || at >= chars.len() {
                        break;
                    }
                }
            }
            '"' => at = end_of_string(&chars, at),
            '\'' => {
                // A lifetime has no closing quote.
                at += match (peek(at + 1), peek(at + 2)) {
                    ('\\', _) => chars[at + 3..].iter().position(|c| *c == '\'').map_or(1, |n| n + 4),
                    (_, '\'') => 3,
                    _ => 1,
                };
            }
            c if c.is_alphabetic() || c == '_' => {
                while peek(at).is_alphanumeric() || peek(at) == '_' {
                    at += 1;
                }
                let word: String = chars[start..at].iter().collect();
                let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
                if matches!(word.as_str(), "r" | "br" | "cr") && peek(at + hashes) == '"' {
                    let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                    let body = at + hashes + 1;
                    let end = chars[body..].windows(close.len()).position(|w| w == close.as_slice());
                    at = end.map_or(chars.len(), |n| body + n + close.len());
                } else {
                    out.push((line, word));
                }
            }
            ':' if peek(at + 1) == ':' => {
                out.push((line, "::".into()));
                at += 2;
            }
            c => {
                if !c.is_whitespace() {
                    out.push((line, c.to_string()));
                }
                at += 1;
            }
        }
        line += chars[start..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    out
}

fn end_of_string(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

#[test]
fn it_finds_what_it_must() {
    let text = r##"
use crate::error::{Code, snapshot::x};
use crate::{
    config::{self, cli},
    format::ReadAt, store::{a, b::{c, d}},
};
// use crate::cli::a;
/* use crate::cli::b; /* nested */ use crate::cli::c; */
/// [`x`](crate::cli::d)
const S: &str = "crate::cli::e \" crate::cli::f";
const R: &str = r#"crate::cli::g" crate::cli::h"#;
pub(crate) fn f<'a>(c: char) -> bool { c == '"' || c == '\'' || crate::snapshot::g::<'a>() }
pub(in crate::cli) struct P;
mod tests {
    use super::super::Own;
    use super::super::super::snapshot::Up;
    macro_rules! m { () => { $crate::cli::run() } }
}
use super::super::fs;
use super::sibling;
use crate::*;
use crate as root;
"##;
    let expected = [
        (2, "error"),
        (4, "config"),
        (5, "format"),
        (5, "store"),
        (12, "snapshot"),
        (13, "cli"),
        (16, "snapshot"),
        (17, "cli"),
        (19, "fs"),
        (21, "*"),
        (22, "the crate's root"),
    ];
    let expected: Vec<(usize, String)> = expected.map(|(line, name)| (line, name.to_string())).into();
    assert_eq!(paths(Path::new("etcd/client.rs"), text), expected);
    assert_eq!(
        violations(Path::new("etcd/client.rs"), text),
        [
            "src/etcd/client.rs:5: `etcd` → `store` goes sideways",
            "src/etcd/client.rs:12: `etcd` → `snapshot` goes upwards",
            "src/etcd/client.rs:13: `etcd` → `cli` goes upwards",
            "src/etcd/client.rs:16: `etcd` → `snapshot` goes upwards",
            "src/etcd/client.rs:17: `etcd` → `cli` goes upwards",
            "src/etcd/client.rs:21: `*` has no place in the ring table",
            "src/etcd/client.rs:22: `the crate's root` has no place in the ring table",
        ]
    );
}

#[test]
fn roots_and_strangers() {
    assert!(violations(Path::new("main.rs"), "use refloat::cli; fn main() { cli::run() }").is_empty());
    assert_eq!(
        violations(Path::new("main.rs"), "use refloat::{cli, store};"),
        ["src/main.rs:1: `main` → `store` goes past `cli`"]
    );
    assert_eq!(
        violations(Path::new("helpers/mod.rs"), ""),
        ["src/helpers/mod.rs:1: `helpers` has no place in the ring table"]
    );
    assert_eq!(
        violations(Path::new("config/mod.rs"), "use super::fs;\nuse super::store::Store;"),
        ["src/config/mod.rs:2: `config` → `store` goes upwards"]
    );
    assert_eq!(
        violations(Path::new("error.rs"), "fn f() -> crate::fs::Dir {}"),
        ["src/error.rs:1: `error` → `fs` goes upwards"]
    );
    assert_eq!(
        violations(Path::new("store/mod.rs"), "use refloat::etcd::Client;"),
        ["src/store/mod.rs:1: `store` → `etcd` goes sideways"]
    );
}
