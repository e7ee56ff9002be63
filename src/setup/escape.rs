//! Values in TOML and in unit files: whatever a name holds, it stays a value.

use std::path::Path;

use crate::error::{Code, Error, Result};

/// A TOML string.
pub fn toml(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The text of a comment: one line, whatever it is.
pub fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A path that takes the rest of a line, as in `LoadCredential=` and `PathChanged=`. `Config` for one that such a line
/// cannot hold.
pub fn rest_of_line(path: &Path) -> Result<String> {
    let text = plain(path)?;
    let lost = text.ends_with('\\') || text.trim() != text;
    if lost { Err(refused(path, "a unit file loses a blank or a backslash at its end")) } else { Ok(specifiers(&text)) }
}

/// A path as one word of a list, as in `ReadWritePaths=`; `prefix` such as `-` belongs to it.
pub fn word(prefix: &str, path: &Path) -> Result<String> {
    let text = specifiers(&plain(path)?);
    let bare = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '%' | '+' | '@' | ':' | ',');
    if text.chars().all(bare) {
        return Ok(format!("{prefix}{text}"));
    }
    Ok(format!("\"{prefix}{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// `%` begins a specifier.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

fn plain(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) if !text.chars().any(char::is_control) => Ok(text.into()),
        Some(_) => Err(refused(path, "a unit file cannot hold a control character such as a line break")),
        None => Err(refused(path, "it is not UTF-8")),
    }
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(Code::Config, "name in a unit file", format!("{path:?}"))
        .because(why.to_string())
        .remedy("give the file a plainer name, or set its key in /etc/refloat/refloat.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_reads_back_what_was_written() {
        for text in ["cp1", "", "a\"b\\c", "line\nbreak\r\t\u{0}\u{7f}", "ünï → 🦀", "'''", "\"\"\"\n[etcd]\nx = 1"]
        {
            let table: toml::Table = format!("x = {}", toml(text)).parse().unwrap();
            assert_eq!(table["x"].as_str(), Some(text));
            assert_eq!(toml(text).lines().count(), 1, "{text:?}");
        }
        assert_eq!(comment("a\n[x]\r"), "a [x] ");
    }

    #[test]
    fn paths_in_unit_files() {
        for (path, line, list) in [
            ("/a/b-c.crt", Some("/a/b-c.crt"), Some("-/a/b-c.crt")),
            ("/a b/100%", Some("/a b/100%%"), Some("\"-/a b/100%%\"")),
            ("/a\"b\\c'd", Some("/a\"b\\c'd"), Some("\"-/a\\\"b\\\\c'd\"")),
            ("/a;b#c", Some("/a;b#c"), Some("\"-/a;b#c\"")),
            ("/a ", None, Some("\"-/a \"")),
            ("/a\\", None, Some("\"-/a\\\\\"")),
            ("/a\nb", None, None),
            ("/a\u{1b}", None, None),
        ] {
            let path = Path::new(path);
            assert_eq!(rest_of_line(path).ok().as_deref(), line, "{path:?}");
            assert_eq!(word("-", path).ok().as_deref(), list, "{path:?}");
        }
    }
}
