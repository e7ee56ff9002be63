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

/// Minor and patch numbers of 3.x: affected from `from` on, up to before `fixed`.
struct Range {
    from: (u32, u32),
    fixed: Option<(u32, u32, &'static str)>,
}

const fn fixed(from: (u32, u32), minor: u32, patch: u32, text: &'static str) -> Range {
    Range { from, fixed: Some((minor, patch, text)) }
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
        let hit =
            row.ranges.iter().find(|r| at >= r.from && r.fixed.is_none_or(|(minor, patch, _)| at < (minor, patch)));
        if hit.is_none() && !row.only.contains(&at) {
            continue;
        }
        let fixed_in = hit.and_then(|r| r.fixed).map(|(_, _, text)| text);
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
}
