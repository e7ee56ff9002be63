//! `refloat config`: what is refused with 78, and what `show` prints.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::cli_usage::{command, refloat, stderr, stdout};

fn with(dir: &Path, text: &str, args: &[&str]) -> Output {
    let file = dir.join("refloat.toml");
    std::fs::write(&file, text).unwrap();
    command(args).arg("--config").arg(&file).output().unwrap()
}

#[test]
fn errors_name_file_line_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let at = |line: usize| format!("{}/refloat.toml:{line}", dir.path().display());
    for (text, line, because, remedy) in [
        (
            "[snapshot]\nscheduel = '* * * * *'",
            2,
            "snapshot: `scheduel` is not a known key in this version",
            "did you mean `schedule`?",
        ),
        ("\n[changes]\nenabled = true", 2, "`changes` is not a known key in this version", "known here: node, paths"),
        (
            "[snapshot]\nstall_timeout = '10 minuts'",
            2,
            "snapshot.stall_timeout: \"10 minuts\" is not a duration: write whole numbers",
            "",
        ),
        (
            "[[store]]\nname='a'\nurl='file:///a'\nretention = { keep_last=1, keep_within='0s', keep_hourly=0, keep_daily=0 }",
            4,
            "store.0.retention: the rules contradict each other: min_keep = 3",
            "raise keep_last",
        ),
        ("a = = 1", 1, "", "correct the TOML syntax"),
    ] {
        let output = with(dir.path(), text, &["config", "check"]);
        let said = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(78), ""), "{text}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], format!("refloat: failed to read configuration {}", at(line)), "{text}");
        assert!(lines[1].starts_with(&format!("  because: {because}")), "{said}");
        assert!(
            remedy.is_empty() || lines.get(2).is_some_and(|l| l.starts_with("  try: ") && l.contains(remedy)),
            "{said}"
        );
    }
}

#[test]
fn errors_are_json_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let output = with(dir.path(), "nod = 'x'", &["config", "show", "-o", "json"]);
    assert_eq!(output.status.code(), Some(78));
    let document: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["error"]["code"], "config");
    assert_eq!(document["error"]["what"], "read configuration");
    assert_eq!(document["error"]["on"], format!("{}/refloat.toml:1", dir.path().display()));
    assert_eq!(document["error"]["remedy"], "did you mean `node`?");
}

#[test]
fn a_missing_or_unsafe_file_is_78() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("refloat.toml");
    let output = refloat(&["config", "check", "--config", path.to_str().unwrap()]);
    assert_eq!((output.status.code(), stderr(&output).contains("because: no such file")), (Some(78), true));

    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o646)).unwrap();
    // A command that needs the configuration for something else is stopped as well.
    for args in [&["config", "check"][..], &["snapshot", "take"], &["store", "list"]] {
        let output = command(args).arg("--config").arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(78), "{args:?}");
        assert!(stderr(&output).contains("because: writable by everybody (mode 0646)"), "{}", stderr(&output));
        assert!(stderr(&output).contains("chmod go-w"), "{}", stderr(&output));
    }
}

#[test]
fn check_names_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("refloat.toml").display().to_string();
    let output = with(dir.path(), "node = 'x'", &["config", "check"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), format!("valid: {path}\n")));
    let output = with(dir.path(), "node = 'x'", &["config", "check", "-o", "jsonl"]);
    assert_eq!(stdout(&output), format!("{{\"schema\":1,\"ok\":true,\"files\":[\"{path}\"]}}\n"));
}

const WRITTEN: &str = "\
node = \"n1\"
[etcd]
endpoints = [\"https://10.0.0.1:2379/\", \"https://h2:2379\"]
ca_file = \"/ca \\\"x\\\".crt\"
[[store]]
name = \"a\"
url = \"file:///a%20b\"
[[store]]
name = \"b\"
url = \"file:///b\"
max_bytes = \"1536MiB\"
retention.keep_last = 9
[snapshot]
every = \"90m\"
";

#[test]
fn show_prints_a_configuration_that_means_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let first = stdout(&with(dir.path(), WRITTEN, &["config", "show"]));
    assert!(first.contains("every = \"1h30m\"\n") && first.contains("# schedule is not set\n"), "{first}");
    assert_eq!(stdout(&with(dir.path(), &first, &["config", "show"])), first);
    let origins = stdout(&with(dir.path(), WRITTEN, &["config", "show", "--origin"]));
    assert_eq!(stdout(&with(dir.path(), &origins, &["config", "show"])), first);
}

#[test]
fn show_names_origins() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("refloat.toml").display().to_string();
    let text = stdout(&with(dir.path(), WRITTEN, &["config", "show", "--origin"]));
    for (start, origin) in [
        ("node = \"n1\" ", format!("# {path}:1")),
        ("state = ", "# default".into()),
        ("max_bytes = \"1536MiB\" ", format!("# {path}:11")),
        ("retention.keep_last = 9 ", format!("# {path}:12")),
    ] {
        let found = text.lines().any(|line| line.starts_with(start) && line.ends_with(&origin));
        assert!(found, "{start} {origin}\n{text}");
    }
    let json = with(dir.path(), WRITTEN, &["config", "show", "-o", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let node = serde_json::json!({"key": "node", "value": "n1", "origin": {"file": path, "line": 1}});
    assert_eq!((&document["schema"], &document["values"][0]), (&1.into(), &node));
}
