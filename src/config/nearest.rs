//! The known word nearest to a misspelt one.

/// Insertions, deletions, replacements and swaps of neighbours between two words, in characters.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// `None` when nothing is near: a wrong hint is worse than none.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word of any length may come from an input file; no known one is nearly this long.
    if word.chars().count() > 64 {
        return None;
    }
    let word = word.to_ascii_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, candidate)| *distance * 2 <= candidate.len().max(3) && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [("", "", 0), ("", "abc", 3), ("abc", "acb", 1), ("store", "stores", 1), ("a", "b", 1)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn only_near_words_are_named() {
        let known = ["schedule", "every", "timezone", "agreement"];
        for (word, expected) in [
            ("schedul", Some("schedule")),
            ("shcedule", Some("schedule")),
            ("time-zone", Some("timezone")),
            ("TIMEZONE", Some("timezone")),
            ("ever", Some("every")),
            ("compression", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }
}
