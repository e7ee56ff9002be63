//! What the tests about taking snapshots share: words for what a run said and what a store holds.

use std::path::Path;

use serde_json::Value;

use crate::bed::{Output, Refloat};

/// The error document of a failed run with `-o json`: code, what, on, why and remedy are there.
#[track_caller]
pub fn error_of(output: &Output) -> Value {
    let documents = output.stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors: Vec<Value> = documents.filter(|d| d.get("error").is_some()).collect();
    assert_eq!(errors.len(), 1, "one error document: {output}");
    let error = errors[0]["error"].clone();
    for field in ["code", "what", "on"] {
        assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {error}");
    }
    assert!(error["why"].as_array().is_some_and(|why| !why.is_empty()), "why in {error}");
    error
}

/// Its causes in one line.
pub fn why(error: &Value) -> String {
    let lines = error["why"].as_array().into_iter().flatten();
    lines.filter_map(Value::as_str).collect::<Vec<_>>().join(": ")
}

/// `snapshot take -o json`, demanding success; the snapshot.
#[track_caller]
pub fn take(refloat: &Refloat) -> Value {
    refloat.json(&["snapshot", "take"])["snapshot"].clone()
}

/// A text field.
#[track_caller]
pub fn text<'a>(document: &'a Value, field: &str) -> &'a str {
    document[field].as_str().unwrap_or_else(|| panic!("{field} in {document}"))
}

/// Ids of `snapshot list` with more arguments, newest first.
#[track_caller]
pub fn listed(refloat: &Refloat, more: &[&str]) -> Vec<String> {
    let list = refloat.json(&[&["snapshot", "list"], more].concat());
    let snapshots = list["snapshots"].as_array().unwrap_or_else(|| panic!("{list}"));
    snapshots.iter().map(|s| text(s, "id").to_owned()).collect()
}

/// The id of `latest`.
#[track_caller]
pub fn latest(refloat: &Refloat) -> String {
    text(&refloat.json(&["snapshot", "show", "latest"]), "id").to_owned()
}

/// All files of a store, its marker aside.
#[track_caller]
pub fn files(store: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![store.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).expect("read the store") {
            let entry = entry.expect("read the store");
            match entry.file_type().expect("read the store").is_dir() {
                true => open.push(entry.path()),
                false => found.push(entry.path().strip_prefix(store).expect("below it").display().to_string()),
            }
        }
    }
    found.retain(|name| name != "refloat-store.json");
    found.sort();
    found
}

/// Asserts that a failed take left nothing behind.
#[track_caller]
pub fn nothing_left(refloat: &Refloat, after: &str) {
    assert_eq!(files(&refloat.store()), [""; 0], "{after}");
    let list = refloat.json(&["snapshot", "list"]);
    assert_eq!(list["snapshots"], serde_json::json!([]), "{after}");
    assert_eq!(list["unfinished"], serde_json::json!([]), "{after}");
    assert_eq!(list["foreign"], 0, "{after}");
}
