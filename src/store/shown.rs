//! Raw names as text that is safe to print and still tells any two names apart.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// The name itself if it is plain text; else control characters, backslashes and bytes that are not UTF-8 as `\xNN`.
/// What comes back borrowed is a name that refloat could have written; anything else never is.
pub fn shown(name: &OsStr) -> Cow<'_, str> {
    if let Some(plain) = name.to_str().filter(|n| !n.chars().any(odd)) {
        return Cow::Borrowed(plain);
    }
    let mut text = String::with_capacity(name.len() + 12);
    for chunk in name.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if odd(c) {
                let mut buf = [0; 4];
                hex(&mut text, c.encode_utf8(&mut buf).as_bytes());
            } else {
                text.push(c);
            }
        }
        hex(&mut text, chunk.invalid());
    }
    Cow::Owned(text)
}

fn odd(c: char) -> bool {
    c.is_control() || c == '\\'
}

fn hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_stays_and_odd_is_told_apart() {
        for plain in ["a", "-rf", "a b", "\u{fc}.json"] {
            assert!(matches!(shown(OsStr::new(plain)), Cow::Borrowed(p) if p == plain));
        }
        let table: &[(&[u8], &str)] = &[
            (b"a\nb", "a\\x0ab"),
            (b"\xff", "\\xff"),
            (b"\\xff", "\\x5cxff"),
            (b"x\xc3", "x\\xc3"),
            (b"\xc2\x85", "\\xc2\\x85"),
            (b"\x1b[0m", "\\x1b[0m"),
        ];
        for (raw, want) in table {
            assert!(matches!(shown(OsStr::from_bytes(raw)), Cow::Owned(got) if got == *want), "{want}");
        }
    }
}
