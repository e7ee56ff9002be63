//! Times as they are written: RFC 3339 in documents, a compact form in names.
//!
//! Both are UTC. A name carries milliseconds, because two snapshots of one node can begin in the same second.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// Length of the compact form, `yyyymmddThhmmssmmmZ`.
pub const COMPACT_LEN: usize = 19;

/// Cuts a time down to whole milliseconds, which is all that a name can carry.
pub fn to_millis(at: Timestamp) -> Timestamp {
    let millis = at.as_nanosecond().div_euclid(1_000_000);
    i64::try_from(millis).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(at)
}

/// `yyyymmddThhmmssmmmZ`; `None` outside the years 0 to 9999, which four digits cannot tell.
pub fn compact(at: Timestamp) -> Option<String> {
    let d = Offset::UTC.to_datetime(to_millis(at));
    (0..=9999).contains(&d.year()).then(|| {
        let (date, clock) = (d.date(), d.time());
        format!(
            "{:04}{:02}{:02}T{:02}{:02}{:02}{:03}Z",
            date.year(),
            date.month(),
            date.day(),
            clock.hour(),
            clock.minute(),
            clock.second(),
            clock.millisecond()
        )
    })
}

/// Reads the compact form back; `None` for anything else, also for a day or second that does not exist.
pub fn parse_compact(text: &str) -> Option<Timestamp> {
    let b = text.as_bytes();
    if b.len() != COMPACT_LEN || b[8] != b'T' || b[18] != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i16> {
        let digits = &b[from..to];
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(digits.iter().fold(0i16, |n, d| n * 10 + i16::from(d - b'0')))
    };
    let small = |from: usize, to: usize| number(from, to).and_then(|n| i8::try_from(n).ok());
    let date = DateTime::new(
        number(0, 4)?,
        small(4, 6)?,
        small(6, 8)?,
        small(9, 11)?,
        small(11, 13)?,
        small(13, 15)?,
        i32::from(number(15, 18)?) * 1_000_000,
    )
    .ok()?;
    Offset::UTC.to_timestamp(date).ok()
}

/// serde: RFC 3339 in UTC.
pub mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(at: &Timestamp, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(at)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(input)?;
        text.parse().map_err(|e| D::Error::custom(format!("{text:?} is not an RFC 3339 time: {e}")))
    }

    /// The same for a field that may be absent.
    pub mod option {
        use jiff::Timestamp;
        use serde::{Deserialize, Deserializer, Serializer};

        #[derive(Deserialize)]
        struct Wrapped(#[serde(with = "super")] Timestamp);

        pub fn serialize<S: Serializer>(at: &Option<Timestamp>, out: S) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => super::serialize(at, out),
                None => out.serialize_none(),
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Timestamp>, D::Error> {
            Ok(Option::<Wrapped>::deserialize(input)?.map(|w| w.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn compact_form_is_what_names_carry() {
        let at: Timestamp = "2026-11-30T07:05:09.0426Z".parse().unwrap();
        assert_eq!(compact(at).as_deref(), Some("20261130T070509042Z"));
        assert_eq!(parse_compact("20261130T070509042Z"), Some(to_millis(at)));
    }

    #[test]
    fn times_that_do_not_exist_are_refused() {
        for text in [
            "",
            "20261130T070509042",
            "20261130t070509042Z",
            "20261130T070509042z",
            "20260230T000000000Z",
            "20261301T000000000Z",
            "20261130T240000000Z",
            "20261130T006000000Z",
            "2026113-T000000000Z",
            "+0261130T000000000Z",
            "２0261130T0000000Z",
        ] {
            assert_eq!(parse_compact(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(ms in -62_167_219_200_000i64..253_402_207_200_000) {
            let at = Timestamp::from_millisecond(ms).unwrap();
            let text = compact(at).unwrap();
            prop_assert_eq!(text.len(), COMPACT_LEN);
            prop_assert_eq!(parse_compact(&text), Some(at));
        }

        #[test]
        fn anything_is_survived(text in ".{0,24}") {
            if let Some(at) = parse_compact(&text) {
                prop_assert_eq!(compact(at), Some(text));
            }
        }
    }
}
