//! Names below a directory handle: `/` between parts, nothing that could lead elsewhere.
//!
//! The kernel refuses to leave the handle anyway (`openat2`); this check exists so that a wrong name is an error
//! of its own, before any system call, also for calls that have no such flag (`unlinkat`, `linkat`).

use crate::error::{Code, Error, Result};

/// Longest part that Linux file systems take, in bytes.
const PART_MAX: usize = 255;

/// Why `rel` is no name, or `None` if it is one.
fn fault(rel: &str) -> Option<&'static str> {
    if rel.contains('\0') {
        return Some("it has a NUL byte");
    }
    rel.split('/').find_map(|part| match part {
        "" => Some("it has an empty part"),
        "." | ".." => Some("it has a part `.` or `..`"),
        _ if part.len() > PART_MAX => Some("it has a part of more than 255 bytes"),
        _ => None,
    })
}

/// Whether `rel` is a plain relative name of one or more parts, the only kind that any call here takes.
pub fn is_name(rel: &str) -> bool {
    fault(rel).is_none()
}

/// Refuses what is not a plain relative name of one or more parts.
pub fn check(rel: &str) -> Result<()> {
    match fault(rel) {
        None => Ok(()),
        Some(why) => Err(Error::new(Code::CannotCreate, "use name", format!("{rel:?}")).because(why)),
    }
}

/// The parent's name (empty for the handle itself) and the last part.
pub fn split(rel: &str) -> (&str, &str) {
    rel.rsplit_once('/').unwrap_or(("", rel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_names_pass() {
        let long = "x".repeat(255);
        for good in ["a", "a/b", "-rf", "a b/c\nd", "...", ".hidden", "ü", long.as_str()] {
            assert!(check(good).is_ok(), "{good:?}");
        }
        let longer = "x".repeat(256);
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\0b", longer.as_str()] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn split_gives_parent_and_leaf() {
        assert_eq!(split("a"), ("", "a"));
        assert_eq!(split("a/b/c"), ("a/b", "c"));
    }
}
