//! The documents against the code: error codes, exit codes, and links that lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use refloat::error::Code;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Cells of the rows of all tables, head and ruler left out.
fn rows(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect();
    let table: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    let is_ruler = |line: &str| line.chars().all(|c| matches!(c, '|' | '-' | ' ' | ':'));
    let mut rows = Vec::new();
    for (i, line) in table.iter().enumerate() {
        let is_head = table.get(i + 1).is_some_and(|next| is_ruler(next));
        if !is_head && !is_ruler(line) {
            rows.push(cells(line));
        }
    }
    rows
}

#[test]
fn every_error_code_is_documented_with_its_exit_code_and_no_other() {
    let mut documented = BTreeMap::new();
    for row in rows(&read("docs/errors.md")) {
        let [word, exit, meaning, remedy] = &row[..] else { panic!("not four cells: {row:?}") };
        assert!(!meaning.is_empty() && !remedy.is_empty(), "{word}: empty cell");
        let exit: u8 = exit.parse().unwrap_or_else(|e| panic!("{word}: {exit:?}: {e}"));
        assert!(documented.insert(word.trim_matches('`').to_string(), exit).is_none(), "{word} twice");
    }
    let coded: BTreeMap<String, u8> = Code::ALL.iter().map(|c| (c.word().to_string(), c.exit() as u8)).collect();
    assert_eq!(documented, coded);
}

#[test]
fn a_timer_finds_every_exit_code() {
    let documented: BTreeSet<u8> =
        rows(&read("docs/operating.md")).iter().filter_map(|row| row.first()?.parse().ok()).collect();
    let mut coded: BTreeSet<u8> = Code::ALL.iter().map(|c| c.exit() as u8).collect();
    coded.insert(0);
    assert_eq!(documented, coded);
}

/// What stands between backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_tests_that_prove_a_promise_are_there() {
    let mut named = 0;
    for row in rows(&read("README.md")) {
        let [promise, tests] = &row[..] else { panic!("not two cells: {row:?}") };
        let mut test = None;
        for word in quoted(tests).into_iter().filter(|word| !word.starts_with("./dev")) {
            match word.ends_with(".rs") {
                true => {
                    let text = read(word);
                    if let Some(name) = test.take() {
                        assert!(text.contains(&format!("fn {name}()")), "{promise}: no test {name} in {word}");
                    }
                    named += 1;
                }
                false => assert!(test.replace(word).is_none(), "{promise}: a test without its file before {word}"),
            }
        }
        assert!(test.is_none(), "{promise}: {test:?} without its file");
    }
    assert!(named > 15, "only {named} files named");
}

/// Targets of `[text](target)`, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let after = line.split("](").skip(1).filter(|_| !in_code);
        found.extend(after.filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_string())));
    }
    found
}

/// As GitHub makes them from headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|line| line.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect::<String>())
        .map(|heading| heading.replace(' ', "-"))
        .collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut documents: Vec<PathBuf> = vec!["README.md".into(), "CHANGELOG.md".into()];
    let docs = std::fs::read_dir(root().join("docs")).expect("docs");
    documents.extend(docs.map(|e| Path::new("docs").join(e.expect("entry").file_name())));
    documents.retain(|path| path.extension().is_some_and(|e| e == "md"));
    let mut checked = 0;
    for document in documents {
        let text = read(&document.display().to_string());
        for target in links(&text).iter().filter(|t| !t.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let other = document.parent().unwrap_or(Path::new("")).join(file);
            let path = if file.is_empty() { document.clone() } else { other };
            assert!(root().join(&path).exists(), "{}: {target}", document.display());
            if !anchor.is_empty() {
                let there = anchors(&read(&path.display().to_string()));
                assert!(there.contains(anchor), "{}: {target}: no such heading in {there:?}", document.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} links found");
}

#[test]
fn every_cause_of_health_is_documented_and_no_other() {
    use refloat::health::verdict::Cause;
    let text = read("docs/health.md");
    let section =
        text.split("## Causes").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section on causes");
    let mut documented = BTreeSet::new();
    for row in rows(section) {
        let [cause, seen, advice, fences] = &row[..] else { panic!("not four cells: {row:?}") };
        assert!(!seen.is_empty() && !advice.is_empty() && !fences.is_empty(), "{cause}: empty cell");
        assert!(documented.insert(cause.trim_matches('`').to_string()), "{cause} twice");
    }
    let coded: BTreeSet<String> = Cause::ALL.iter().map(|cause| cause.word().to_string()).collect();
    assert_eq!(documented, coded);
}
