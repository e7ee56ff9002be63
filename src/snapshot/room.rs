//! Whether a snapshot fits, decided before its first byte (design §6.1), with the numbers.

use crate::error::{Code, Error};

/// Room beyond the expected size: for growth while streaming, and for the file system's own needs.
const MARGIN: u64 = 256 << 20;

/// What the decision needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that the database has now.
    pub db_size: u64,
    /// Stored and plain bytes of the last snapshot, if there is one.
    pub last: Option<(u64, u64)>,
    /// Of the file system; `None` where the backend has no such notion.
    pub space: Option<(u64, u64)>,
    /// Bytes of that file system that are left to others (`min_free`).
    pub reserved: u64,
    pub max_bytes: Option<u64>,
    /// Bytes that count for `max_bytes` now.
    pub used: u64,
}

impl Room {
    /// Bytes that the snapshot is expected to take: by the ratio of the last one, else as large as the database.
    pub fn expected(&self) -> u64 {
        match self.last {
            Some((stored, plain)) if plain > 0 => (u128::from(self.db_size) * u128::from(stored))
                .div_ceil(u128::from(plain))
                .min(u128::from(u64::MAX)) as u64,
            _ => self.db_size,
        }
    }

    /// Bytes that must be there.
    pub fn needed(&self) -> u64 {
        let expected = self.expected();
        expected.saturating_add(expected / 4).saturating_add(MARGIN)
    }

    /// `TooLittleSpace` with the numbers when it does not fit.
    pub fn check(&self, store: &str) -> Result<(), Error> {
        let short = |why: String, remedy: &str| {
            Err(Error::new(Code::TooLittleSpace, "make room for a snapshot in store", store)
                .because(why)
                .remedy(remedy))
        };
        let (needed, expected) = (self.needed(), self.expected());
        if let Some((total, free)) = self.space {
            let reserved = self.reserved;
            if free < needed.saturating_add(reserved) {
                return short(
                    format!(
                        "{free} bytes are free of {total}; {needed} are needed (expected size {expected} × 1.25 + {MARGIN}) \
                         beside {reserved} that stay free (min_free)"
                    ),
                    "free space on that file system, use another one, or set a smaller min_free",
                );
            }
        }
        if let Some(max) = self.max_bytes
            && self.used.saturating_add(expected) > max
        {
            return short(
                format!("snapshots take {} bytes; {expected} more would exceed max_bytes = {max}", self.used),
                "raise max_bytes or remove snapshots that are no longer needed",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MinFree;

    const GIB: u64 = 1 << 30;

    fn room() -> Room {
        let space = Some((100 * GIB, 50 * GIB));
        Room { db_size: GIB, last: None, space, reserved: 5 * GIB, max_bytes: None, used: 0 }
    }

    #[test]
    fn what_is_expected_and_reserved() {
        assert_eq!(room().needed(), GIB + GIB / 4 + MARGIN);
        assert_eq!(Room { last: Some((3, 10)), ..room() }.expected(), (GIB * 3).div_ceil(10));
        assert_eq!(Room { last: Some((3, 0)), ..room() }.expected(), GIB);
        assert_eq!(MinFree::Auto.bytes(100 * GIB, false), 5 * GIB);
        assert_eq!(MinFree::Auto.bytes(100 * GIB, true), 20 * GIB);
        assert_eq!(MinFree::Auto.bytes(GIB, true), 2 * GIB);
        assert_eq!(MinFree::Bytes(7).bytes(GIB, true), 7);
    }

    #[test]
    fn fits_or_says_the_numbers() {
        let needed = room().needed() + 5 * GIB;
        let with = |free| Room { space: Some((100 * GIB, free)), ..room() };
        assert!(with(needed).check("a").is_ok());
        let error = with(needed - 1).check("a").unwrap_err();
        assert_eq!(error.code(), Code::TooLittleSpace);
        assert!(error.why()[0].contains(&(needed - 1).to_string()), "{:?}", error.why());
        assert!(Room { space: None, ..room() }.check("a").is_ok());
        assert!(Room { max_bytes: Some(3 * GIB), used: 2 * GIB, ..room() }.check("a").is_ok());
        assert!(Room { max_bytes: Some(3 * GIB), used: 2 * GIB + 1, ..room() }.check("a").is_err());
        assert!(Room { db_size: u64::MAX, ..room() }.check("a").is_err());
    }
}
