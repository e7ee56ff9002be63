//! The small words of names and documents, each with one written form.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Why a text is not one of the words below.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    #[error("{0:?} is no node name: 1 to 63 characters a-z, 0-9, '.' and '-'")]
    Node(String),
    #[error("{0:?} is no lineage: 16 lower-case hexadecimal digits")]
    Lineage(String),
    #[error("{0:?} is no timeline: four digits, '-', 8 lower-case hexadecimal digits")]
    Timeline(String),
    #[error("{0:?} is no id of etcd: 1 to 16 lower-case hexadecimal digits")]
    EtcdId(String),
    #[error("{0:?} is no SHA-256: 64 lower-case hexadecimal digits")]
    Digest(String),
}

/// Writes and reads a word through its text in JSON.
macro_rules! as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                String::deserialize(input)?.parse().map_err(D::Error::custom)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

fn lower_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Reads exactly `N` bytes of lower-case hexadecimal.
fn hex_bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !lower_hex(text) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
}

/// A host that takes snapshots: `[a-z0-9.-]{1,63}`, but neither `.` nor `..`, since it also names directories.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(Arc<str>);

impl Node {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Node {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let ok = (1..=63).contains(&text.len())
            && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
            && text != "."
            && text != "..";
        if ok { Ok(Node(text.into())) } else { Err(ValueError::Node(text.into())) }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
as_text!(Node);

/// Which cluster: 8 bytes, written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineageId(pub [u8; 8]);

impl FromStr for LineageId {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        hex_bytes(text).map(LineageId).ok_or_else(|| ValueError::Lineage(text.into()))
    }
}

impl fmt::Display for LineageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}
as_text!(LineageId);

/// Which history of a cluster: a number for sorting (1 to 9999) and 4 bytes that name it, `0001-89abcdef`.
///
/// Number 0 is the place of imports and of nothing else: [`TimelineId::IMPORTS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimelineId {
    pub number: u16,
    pub hex: [u8; 4],
}

impl TimelineId {
    pub const IMPORTS: TimelineId = TimelineId { number: 0, hex: [0; 4] };
    /// The largest number that four digits hold.
    pub const MAX_NUMBER: u16 = 9999;

    pub fn is_imports(self) -> bool {
        self.number == 0
    }
}

impl FromStr for TimelineId {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let parse = || {
            let (number, hex) = text.split_once('-')?;
            if number.len() != 4 || !number.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            Some(TimelineId { number: number.parse().ok()?, hex: hex_bytes(hex)? })
        };
        parse().ok_or_else(|| ValueError::Timeline(text.into()))
    }
}

impl fmt::Display for TimelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-", self.number)?;
        write_hex(f, &self.hex)
    }
}
as_text!(TimelineId);

/// A cluster or member id as etcd's own tools print it: lower-case hexadecimal without leading zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtcdId(pub u64);

impl FromStr for EtcdId {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let ok = (1..=16).contains(&text.len()) && lower_hex(text);
        ok.then(|| u64::from_str_radix(text, 16).ok())
            .flatten()
            .map(EtcdId)
            .ok_or_else(|| ValueError::EtcdId(text.into()))
    }
}

impl fmt::Display for EtcdId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}
as_text!(EtcdId);

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }
}

impl FromStr for Digest {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        hex_bytes(text).map(Digest).ok_or_else(|| ValueError::Digest(text.into()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}
as_text!(Digest);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_have_one_form() {
        assert_eq!("0001-89abcdef".parse::<TimelineId>().unwrap().to_string(), "0001-89abcdef");
        assert_eq!("00000000000000ff".parse::<LineageId>().unwrap().to_string(), "00000000000000ff");
        assert_eq!(EtcdId(0xcdf8_1818_e5ab_2f1d).to_string(), "cdf81818e5ab2f1d");
        for bad in ["1-89abcdef", "0001-89ABCDEF", "0001_89abcdef", "00010-89abcdef", "+001-89abcdef", ""] {
            assert!(bad.parse::<TimelineId>().is_err(), "{bad:?}");
        }
        for bad in ["", "00000000000000fF", "ff", "00000000000000fff", "0x000000000000ff"] {
            assert!(bad.parse::<LineageId>().is_err(), "{bad:?}");
        }
        for bad in ["", "+f", "FF", "11111111111111111"] {
            assert!(bad.parse::<EtcdId>().is_err(), "{bad:?}");
        }
        for bad in ["", ".", "..", "CP1", "a/b", "a b", "é", &"x".repeat(64)] {
            assert!(bad.parse::<Node>().is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in ".{0,70}") {
            let _ = (text.parse::<Node>(), text.parse::<LineageId>(), text.parse::<TimelineId>());
            let _ = (text.parse::<EtcdId>(), text.parse::<Digest>());
        }

        #[test]
        fn round_trips(l: [u8; 8], h: [u8; 4], n in 0u16..=9999, e: u64, d: [u8; 32]) {
            prop_assert_eq!(LineageId(l).to_string().parse(), Ok(LineageId(l)));
            let t = TimelineId { number: n, hex: h };
            prop_assert_eq!(t.to_string().parse(), Ok(t));
            prop_assert_eq!(EtcdId(e).to_string().parse(), Ok(EtcdId(e)));
            prop_assert_eq!(Digest(d).to_string().parse(), Ok(Digest(d)));
        }
    }
}
