//! Sizes and durations as people write them: `"20GiB"`, `"2h30m"`.
//!
//! Pure: text in, number out. An error names the allowed forms, because whoever reads it has no manual at hand.

use std::time::Duration;

const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// Largest first, which is also the order in which they must be written. Milliseconds each.
const DURATIONS: &[(&str, u64)] =
    &[("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

const SPELLED: &[(&str, &str)] = &[
    ("weeks", "w"),
    ("days", "d"),
    ("hours", "h"),
    ("minutes", "m"),
    ("min", "m"),
    ("seconds", "s"),
    ("sec", "s"),
    ("milliseconds", "ms"),
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error(
        "{text:?} is not a size: write a whole number and one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, \
         such as \"500MiB\" or \"20GiB\""
    )]
    Size { text: String },
    #[error("{text:?} is too large for a size: at most 16777215TiB")]
    SizeRange { text: String },
    #[error(
        "{text:?} is not a duration: write whole numbers with w, d, h, m, s or ms, largest first, \
         such as \"30s\", \"2h30m\" or \"3d\"{}", hint.as_ref().map(|h| format!("; did you mean \"{h}\"?")).unwrap_or_default()
    )]
    Duration { text: String, hint: Option<String> },
    #[error("{text:?} is too long for a duration: at most 5200w")]
    DurationRange { text: String },
}

/// A hundred years: far beyond every use, far below every overflow. Milliseconds.
const LONGEST: u64 = 5_200 * 604_800_000;
const LARGEST: u64 = 16_777_215 << 40;

/// Bytes.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let bad = || UnitError::Size { text: text.into() };
    let (digits, unit) = split_number(text).ok_or_else(bad)?;
    let (_, factor) = SIZES.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
    let range = || UnitError::SizeRange { text: text.into() };
    let number: u64 = digits.parse().map_err(|_| range())?;
    number.checked_mul(*factor).filter(|bytes| *bytes <= LARGEST).ok_or_else(range)
}

/// The shortest text that [`parse_size`] reads as `bytes`, in binary units.
pub fn format_size(bytes: u64) -> String {
    let fits = |factor: u64| bytes != 0 && bytes.is_multiple_of(factor);
    let (name, factor) =
        SIZES.iter().rev().find(|(name, factor)| name.ends_with("iB") && fits(*factor)).unwrap_or(&("B", 1));
    format!("{}{name}", bytes / factor)
}

/// Bytes for people, to be read and not to be parsed: `1.4 GiB`.
pub fn rounded_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    // 1023.95 and more would print as 1024.0 of the smaller unit.
    while value >= 1023.95 {
        let Some(larger) = units.next() else { break };
        value /= 1024.0;
        unit = Some(larger);
    }
    format!("{value:.1} {}", unit.unwrap_or(&UNITS[0]))
}

/// Whole milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let bad = || UnitError::Duration { text: text.into(), hint: spelled_out(text) };
    let range = || UnitError::DurationRange { text: text.into() };
    let mut rest = text;
    let mut units = DURATIONS.iter();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (digits, tail) = split_number(rest).ok_or_else(bad)?;
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        // The iterator goes on where it stopped: a unit can come once, and only after larger ones.
        let (_, factor) = units.find(|(name, _)| *name == unit).ok_or_else(bad)?;
        let number: u64 = digits.parse().map_err(|_| range())?;
        total = number.checked_mul(*factor).and_then(|n| total.checked_add(n)).ok_or_else(range)?;
        rest = tail;
    }
    match total {
        _ if text.is_empty() => Err(bad()),
        _ if total > LONGEST => Err(range()),
        _ => Ok(Duration::from_millis(total)),
    }
}

/// The text that [`parse_duration`] reads as this duration, cut to milliseconds.
pub fn format_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    // Weeks are read but not written: "14d" says more than "2w".
    for (name, factor) in DURATIONS.iter().skip(1) {
        if rest >= *factor {
            text.push_str(&format!("{}{name}", rest / factor));
            rest %= factor;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

/// Leading digits and the rest; `None` without digits or with nothing after them.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    (end > 0).then(|| text.split_at(end))
}

/// `10 minuts` → `10m`.
fn spelled_out(text: &str) -> Option<String> {
    let (digits, word) = split_number(text.trim())?;
    let word = word.trim().to_ascii_lowercase();
    if let Some((unit, _)) = DURATIONS.iter().find(|(name, _)| *name == word) {
        return Some(format!("{digits}{unit}"));
    }
    let (_, unit) = SPELLED
        .iter()
        .map(|(name, unit)| (super::nearest::distance(name, &word), unit))
        .filter(|(distance, _)| *distance <= 2 && word.len() > 2)
        .min_by_key(|(distance, _)| *distance)?;
    Some(format!("{digits}{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes() {
        let good = [("0B", 0), ("1kB", 1000), ("20GiB", 20 << 30), ("3TB", 3_000_000_000_000), ("512MiB", 512 << 20)];
        for (text, bytes) in good {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "20", "GiB", "20 GiB", "20G", "20gib", "-1GiB", "1.5GiB", "20GiBGiB", "２0GiB", "auto"] {
            assert_eq!(parse_size(text), Err(UnitError::Size { text: text.into() }), "{text}");
        }
        for text in ["99999999999999999999B", "16777216TiB", "18446744073709551615B"] {
            assert_eq!(parse_size(text), Err(UnitError::SizeRange { text: text.into() }), "{text}");
        }
    }

    #[test]
    fn durations() {
        let good = [
            ("30s", 30_000),
            ("2h30m", 9_000_000),
            ("3d", 259_200_000),
            ("1w1ms", 604_800_001),
            ("250ms", 250),
            ("0s", 0),
        ];
        for (text, millis) in good {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "30", "s", "30m2h", "1h1h", "1.5h", "-3s", "10 m", "10 minuts", "3 days ago", "daily"] {
            assert!(matches!(parse_duration(text), Err(UnitError::Duration { .. })), "{text}");
        }
        for text in ["5201w", "99999999999999999999s", "18446744073709551615w"] {
            assert!(matches!(parse_duration(text), Err(UnitError::DurationRange { .. })), "{text}");
        }
    }

    #[test]
    fn a_misspelt_unit_gets_a_hint() {
        for (text, hint) in [("10 minuts", Some("10m")), ("3 Days", Some("3d")), ("5 m", Some("5m")), ("7xyz", None)] {
            let Err(UnitError::Duration { hint: found, .. }) = parse_duration(text) else { panic!("{text}") };
            assert_eq!(found.as_deref(), hint, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,40}") {
            let _ = parse_size(&text);
            let _ = parse_duration(&text);
        }

        #[test]
        fn number_like_text_never_panics(text in "([0-9]{1,22}[a-zA-Z ]{0,5}){0,4}") {
            let _ = parse_size(&text);
            let _ = parse_duration(&text);
        }

        #[test]
        fn sizes_round_trip(bytes in 0..=LARGEST) {
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }

        #[test]
        fn durations_round_trip(millis in 0..=LONGEST) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }
}
