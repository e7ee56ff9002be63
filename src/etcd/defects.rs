//! Faults of etcd releases that a backup tool has to know (sources in each row). Pure: a version in, facts out.

use std::fmt;

/// A released version of etcd. A pre-release counts as the release before its fixes: `3.6.0-rc.1` is 3.6.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// Reads `3.5.34`, with or without a leading `v` and a suffix such as `-rc.1` or `+git`.
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let core = text.split(['-', '+']).next()?;
        let mut parts =
            core.split('.').map(|p| if p.bytes().all(|b| b.is_ascii_digit()) { p.parse().ok() } else { None });
        let version = Version { major: parts.next()??, minor: parts.next()??, patch: parts.next()?? };
        parts.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// One fault that the given version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defect {
    /// Stable kebab-case word.
    pub id: &'static str,
    /// One sentence without a full stop.
    pub summary: &'static str,
    /// The first good release of the same line, or of a later line; `None` when no release has a fix.
    pub fixed_in: Option<&'static str>,
    /// Issues and changes of etcd-io/etcd unless another project is named.
    pub reference: &'static str,
}

impl Defect {
    /// Whether an update within the line that runs now takes it away: the ones that a person can act on at once.
    pub fn has_patch_for(&self, version: &str) -> bool {
        match (Version::parse(version), self.fixed_in.and_then(Version::parse)) {
            (Some(running), Some(fixed)) => (running.major, running.minor) == (fixed.major, fixed.minor),
            // What is not known is said.
            (None, _) => true,
            (Some(_), None) => self.id == UNKNOWN.id,
        }
    }
}

/// Minor and patch numbers of 3.x: affected from `from` on, up to before `fixed`, which is also given as text.
struct Range {
    from: (u32, u32),
    fixed: (u32, u32, &'static str),
}

const fn fixed(from: (u32, u32), minor: u32, patch: u32, text: &'static str) -> Range {
    Range { from, fixed: (minor, patch, text) }
}

struct Row {
    id: &'static str,
    summary: &'static str,
    reference: &'static str,
    ranges: &'static [Range],
    /// Affects exactly these, without a known fix.
    only: &'static [(u32, u32)],
}

const fn row(id: &'static str, summary: &'static str, reference: &'static str, ranges: &'static [Range]) -> Row {
    Row { id, summary, reference, ranges, only: &[] }
}

const TABLE: &[Row] = &[
    row(
        "crash-inconsistency",
        "data and revision can become inconsistent when etcd is killed under load",
        "#13766, #13514, #13854, #13967",
        &[fixed((5, 0), 5, 3, "3.5.3")],
    ),
    row(
        "defrag-crash-inconsistency",
        "the revision can become inconsistent when etcd dies during a defragmentation",
        "#14685, #14733, #14749",
        &[fixed((5, 0), 5, 6, "3.5.6")],
    ),
    row(
        "auth-snapshot-inconsistency",
        "with auth enabled, a member that joined through a leader's snapshot can diverge",
        "#14571",
        &[fixed((4, 20), 4, 22, "3.4.22"), fixed((5, 5), 5, 6, "3.5.6")],
    ),
    row(
        "auth-consistent-index",
        "with auth enabled, the consistent index is not saved and members can diverge after a restart",
        "#11651, #11652",
        &[fixed((0, 0), 4, 8, "3.4.8")],
    ),
    row(
        "defrag-leftover",
        "a defragmentation can reuse a left-over file, which corrupts the database and revives dead leases",
        "#11613",
        &[fixed((0, 0), 4, 4, "3.4.4")],
    ),
    row(
        "defrag-leader-snapshot",
        "a defragmentation while a leader's snapshot is applied corrupts the database",
        "#20271, #20650, #20653, #20659",
        &[fixed((0, 0), 4, 38, "3.4.38"), fixed((5, 0), 5, 23, "3.5.23"), fixed((6, 0), 6, 5, "3.6.5")],
    ),
    row(
        "mixed-snapshot",
        "a snapshot can mix two database files when a defragmentation replaces the file meanwhile, and its hash is valid all the same",
        "etcd-io/bbolt#1058, etcd-io/bbolt#1059",
        &[fixed((0, 0), 4, 38, "3.4.38"), fixed((5, 0), 5, 23, "3.5.23"), fixed((6, 0), 6, 5, "3.6.5")],
    ),
    row(
        "revision-decreases",
        "the revision can go back after a crash during a compaction",
        "#17780, #16693",
        &[fixed((0, 0), 4, 32, "3.4.32"), fixed((5, 0), 5, 14, "3.5.14")],
    ),
    row(
        "watch-early-progress",
        "a progress notification can name a revision whose events were not sent yet, and a watch can go back in time after a leader's snapshot",
        "#15220",
        &[fixed((0, 0), 4, 25, "3.4.25"), fixed((5, 0), 5, 8, "3.5.8")],
    ),
    row(
        "watch-lost-after-compaction",
        "a slow watcher can lose events after a compaction",
        "#17780",
        &[fixed((0, 0), 4, 31, "3.4.31"), fixed((5, 0), 5, 13, "3.5.13")],
    ),
    row(
        "watch-lost-delete",
        "a watch can miss a delete at a revision that is compacted just then",
        "#18089, #19179",
        &[fixed((0, 0), 4, 36, "3.4.36"), fixed((5, 0), 5, 18, "3.5.18")],
    ),
    row(
        "watch-future-revision",
        "a watch from a future revision can get older events when the client changes the member",
        "#20221",
        &[fixed((4, 0), 7, 0, "3.7.0")],
    ),
    row(
        "txn-range-divergence",
        "a transaction with a range at an explicit revision can make members diverge",
        "#18667, #21432",
        &[fixed((4, 0), 7, 0, "3.7.0")],
    ),
    row(
        "read-buffer-deletes",
        "reads can be inconsistent right after deletes",
        "#17230",
        &[fixed((5, 0), 5, 12, "3.5.12")],
    ),
    row(
        "learner-promotion-lost",
        "the promotion of a learner is not stored everywhere, which breaks an upgrade to 3.6",
        "#19557, #20793",
        &[fixed((5, 1), 5, 24, "3.5.24")],
    ),
    row(
        "zombie-members",
        "removed members can come back on the upgrade to 3.6",
        "#20995",
        &[fixed((5, 0), 5, 26, "3.5.26")],
    ),
    row(
        "update-promotes-learner",
        "changing the peer URL of a learner promotes it",
        "#21736, #21737",
        &[fixed((0, 0), 5, 31, "3.5.31"), fixed((6, 0), 6, 12, "3.6.12")],
    ),
    row(
        "stale-leader-revokes-leases",
        "a deposed leader can revoke leases, so that keys vanish, also from backups",
        "#15247, #17425, #17465",
        &[fixed((0, 0), 4, 31, "3.4.31"), fixed((5, 0), 5, 13, "3.5.13")],
    ),
    Row {
        id: "unexplained-inconsistency",
        summary: "inconsistent members were reported for this release and never fully explained",
        reference: "#14211, #20059",
        ranges: &[],
        only: &[(4, 18), (5, 11)],
    },
];

const UNKNOWN: Defect = Defect {
    id: "unknown-version",
    summary: "this version is not one that refloat knows, so its faults are not known either",
    fixed_in: None,
    reference: "etcd 3.4 to 3.7 are known",
};

/// The known faults of a version, in the order of the table. A version that cannot be read, or of a line that
/// the table does not cover, is the warning `unknown-version`, never "no faults" (law 7).
pub fn defects(version: &str) -> Vec<Defect> {
    match Version::parse(version) {
        Some(Version { major: 3, minor, patch }) if (4..=7).contains(&minor) => known(minor, patch),
        _ => vec![UNKNOWN],
    }
}

fn known(minor: u32, patch: u32) -> Vec<Defect> {
    let at = (minor, patch);
    let mut found = Vec::new();
    for row in TABLE {
        let hit = row.ranges.iter().find(|r| at >= r.from && at < (r.fixed.0, r.fixed.1));
        if hit.is_none() && !row.only.contains(&at) {
            continue;
        }
        let fixed_in = hit.map(|r| r.fixed.2);
        found.push(Defect { id: row.id, summary: row.summary, fixed_in, reference: row.reference });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(version: &str) -> Vec<&'static str> {
        defects(version).iter().map(|d| d.id).collect()
    }

    #[test]
    fn patches_within_the_line_are_told_apart() {
        let patched = |version: &str| defects(version).iter().filter(|d| d.has_patch_for(version)).count();
        assert!(patched("3.5.0") > 2 && patched("3.6.4") > 0 && patched("unknown") == 1 && patched("3.9.0") == 1);
        assert_eq!((patched("3.6.16"), patched("3.5.34"), patched("3.7.3")), (0, 0, 0));
        assert!(!defects("3.6.16").is_empty());
    }

    #[test]
    fn versions_are_read_as_etcd_writes_them() {
        let v = |major, minor, patch| Some(Version { major, minor, patch });
        for (text, version) in [
            ("3.5.34", v(3, 5, 34)),
            ("v3.4.0", v(3, 4, 0)),
            ("3.6.0-rc.1", v(3, 6, 0)),
            ("3.5.21+git", v(3, 5, 21)),
            ("3.6", None),
            ("3.6.1.2", None),
            ("", None),
            ("3.x.1", None),
            ("3.-1.1", None),
            ("+3.5.1", None),
            ("3.5.99999999999", None),
        ] {
            assert_eq!(Version::parse(text), version, "{text}");
        }
    }

    #[test]
    fn known_versions_have_their_faults() {
        let always = ["watch-future-revision", "txn-range-divergence"];
        for (version, expected) in [
            (
                "3.4.23",
                &[
                    "defrag-leader-snapshot",
                    "mixed-snapshot",
                    "revision-decreases",
                    "watch-early-progress",
                    "watch-lost-after-compaction",
                    "watch-lost-delete",
                    "watch-future-revision",
                    "txn-range-divergence",
                    "update-promotes-learner",
                    "stale-leader-revokes-leases",
                ][..],
            ),
            ("3.5.34", &always),
            (
                "3.6.4",
                &[
                    "defrag-leader-snapshot",
                    "mixed-snapshot",
                    "watch-future-revision",
                    "txn-range-divergence",
                    "update-promotes-learner",
                ],
            ),
            ("3.6.16", &always),
            ("3.7.3", &[]),
        ] {
            assert_eq!(ids(version), expected, "{version}");
        }
        for patch in 0..=2 {
            let found = ids(&format!("3.5.{patch}"));
            assert_eq!(found[0], "crash-inconsistency", "3.5.{patch}");
            assert!(found.contains(&"mixed-snapshot") && found.contains(&"zombie-members"));
        }
    }

    #[test]
    fn a_fix_ends_a_fault_and_only_in_its_line() {
        for (id, bad, good) in [
            ("crash-inconsistency", "3.5.2", "3.5.3"),
            ("defrag-crash-inconsistency", "3.5.5", "3.5.6"),
            ("auth-snapshot-inconsistency", "3.4.21", "3.4.22"),
            ("auth-snapshot-inconsistency", "3.5.5", "3.5.6"),
            ("auth-snapshot-inconsistency", "3.4.20", "3.4.19"),
            ("auth-snapshot-inconsistency", "3.5.5", "3.5.4"),
            ("auth-consistent-index", "3.4.7", "3.4.8"),
            ("defrag-leftover", "3.4.3", "3.4.4"),
            ("mixed-snapshot", "3.4.37", "3.4.38"),
            ("mixed-snapshot", "3.5.22", "3.5.23"),
            ("mixed-snapshot", "3.6.4", "3.6.5"),
            ("revision-decreases", "3.5.13", "3.5.14"),
            ("learner-promotion-lost", "3.5.1", "3.5.0"),
            ("learner-promotion-lost", "3.5.23", "3.5.24"),
            ("zombie-members", "3.5.25", "3.5.26"),
            ("update-promotes-learner", "3.6.11", "3.6.12"),
            ("update-promotes-learner", "3.4.99", "3.7.0"),
            ("txn-range-divergence", "3.6.99", "3.7.0"),
            ("unexplained-inconsistency", "3.4.18", "3.4.17"),
            ("unexplained-inconsistency", "3.5.11", "3.5.12"),
        ] {
            assert!(ids(bad).contains(&id), "{bad} has {id}");
            assert!(!ids(good).contains(&id), "{good} has not {id}");
        }
        let fixed_in =
            |version: &str| defects(version).iter().find(|d| d.id == "mixed-snapshot").and_then(|d| d.fixed_in);
        assert_eq!(fixed_in("3.4.23"), Some("3.4.38"));
        assert_eq!(fixed_in("3.6.0-rc.1"), Some("3.6.5"));
    }

    #[test]
    fn unknown_is_a_warning() {
        for version in ["", "unknown", "3.8.0", "4.0.0", "3.3.27", "2.3.8"] {
            assert_eq!(ids(version), ["unknown-version"], "{version}");
        }
    }

    #[test]
    fn words_are_unique_and_texts_are_clauses() {
        let mut seen = std::collections::HashSet::new();
        for row in TABLE {
            assert!(seen.insert(row.id), "{} twice", row.id);
            assert!(!row.summary.ends_with('.') && !row.reference.is_empty(), "{}", row.id);
            for range in row.ranges {
                let (minor, patch, text) = range.fixed;
                assert_eq!(text, format!("3.{minor}.{patch}"), "{}", row.id);
                assert!(range.from < (minor, patch), "{}", row.id);
            }
        }
    }
}
