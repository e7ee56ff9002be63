//! How long the certificates still count: the warning comes a month before they end (design §5).

use jiff::{SignedDuration, Timestamp};

use super::Access;

/// Long enough to renew a certificate in working hours, short enough not to be overlooked as usual.
const NOTICE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// From when to when something counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiry {
    /// Such as `client certificate /etc/kubernetes/pki/etcd/healthcheck-client.crt`.
    pub what: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

/// A sentence for each of them that has ended, ends within 30 days or has not begun.
pub fn expiring(now: Timestamp, list: &[Expiry]) -> Vec<String> {
    list.iter().filter_map(|one| warning(now, one)).collect()
}

/// The same for what was loaded.
pub fn warnings(now: Timestamp, access: &Access) -> Vec<String> {
    expiring(now, access.expires())
}

fn warning(now: Timestamp, one: &Expiry) -> Option<String> {
    let Expiry { what, not_before, not_after } = one;
    let left = not_after.duration_since(now);
    let days = left.as_hours() / 24;
    if left.is_negative() {
        return Some(format!(
            "{what} ended {}, on {not_after}: renew it, etcd does not accept it any more",
            ago(-days)
        ));
    }
    if now < *not_before {
        return Some(format!(
            "{what} counts only from {not_before}: check the clock of this host and of the authority"
        ));
    }
    (left <= NOTICE).then(|| format!("{what} ends {}, on {not_after}: renew it", within(days)))
}

fn ago(days: i64) -> String {
    match days {
        0 => "today".into(),
        1 => "a day ago".into(),
        _ => format!("{days} days ago"),
    }
}

fn within(days: i64) -> String {
    match days {
        0 => "within a day".into(),
        1 => "in a day".into(),
        _ => format!("in {days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_before_the_end_and_not_earlier() {
        let one = Expiry {
            what: "client certificate /c".into(),
            not_before: "2026-01-01T00:00:00Z".parse().unwrap(),
            not_after: "2027-01-01T00:00:00Z".parse().unwrap(),
        };
        for (now, said) in [
            ("2026-11-30T00:00:00Z", ""),
            ("2026-12-01T23:59:59Z", ""),
            ("2026-12-02T00:00:00Z", "ends in 30 days, on 2027-01-01T00:00:00Z: renew it"),
            ("2026-12-30T12:00:00Z", "ends in a day, on"),
            ("2026-12-31T23:59:59Z", "ends within a day, on"),
            ("2027-01-01T00:00:01Z", "ended today, on 2027-01-01T00:00:00Z: renew it"),
            ("2027-01-02T00:00:01Z", "ended a day ago, on"),
            ("2027-01-11T00:00:01Z", "ended 10 days ago, on"),
            ("2025-12-31T23:59:59Z", "counts only from 2026-01-01T00:00:00Z: check the clock"),
        ] {
            let warnings = expiring(now.parse().unwrap(), std::slice::from_ref(&one));
            match said {
                "" => assert_eq!(warnings, [""; 0], "{now}"),
                said => assert!(warnings.len() == 1 && warnings[0].contains(said), "{now}: {warnings:?}"),
            }
        }
    }
}
