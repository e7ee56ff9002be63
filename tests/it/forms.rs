//! What every command prints in each form, quiet runs, closed pipes, and a configuration that stops a real command.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::bed::{Cluster, Fill, Line, Refloat, Run};
use crate::stores::edit;
use crate::taking::{error_of, files, take, text, why};

fn start() -> (Cluster, Refloat) {
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(100);
    let refloat = Refloat::new(cluster.node(0));
    (cluster, refloat)
}

#[test]
fn all_commands_in_all_forms() {
    let (_cluster, refloat) = start();
    let to = |n: usize| refloat.dir().join(format!("{n}.db")).display().to_string();
    let commands = |n: usize| {
        [
            vec!["snapshot".to_string(), "take".into()],
            vec!["snapshot".into(), "take".into(), "--dry-run".into()],
            vec!["snapshot".into(), "list".into(), "--foreign".into()],
            vec!["snapshot".into(), "show".into(), "latest".into()],
            vec!["snapshot".into(), "verify".into(), "latest".into()],
            vec!["snapshot".into(), "verify".into(), "--all".into()],
            vec!["snapshot".into(), "export".into(), "latest".into(), "--to".into(), to(n)],
            vec!["snapshot".into(), "verify".into(), to(n)],
            vec!["snapshot".into(), "import".into(), to(n)],
            vec!["snapshot".into(), "import".into(), to(n), "--dry-run".into()],
            vec!["snapshot".into(), "pin".into(), "latest".into()],
            vec!["snapshot".into(), "tag".into(), "latest".into(), "word".into()],
            vec!["snapshot".into(), "unpin".into(), "latest".into()],
            vec!["store".into(), "init".into(), "local".into()],
            vec!["store".into(), "list".into()],
            vec!["store".into(), "check".into()],
            vec!["db".into(), "inspect".into(), to(n)],
            vec!["db".into(), "check".into(), to(n)],
            vec!["db".into(), "hashkv".into(), to(n)],
            vec!["config".into(), "check".into()],
            vec!["config".into(), "show".into()],
        ]
    };
    for (n, form) in ["json", "jsonl", "table"].into_iter().enumerate() {
        for args in commands(n) {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let output = refloat.run(&[&["-q", "-o", form], &args[..]].concat());
            assert!(output.success(), "{output}");
            assert_eq!(output.stderr, "", "{args:?} is not quiet");
            assert!(output.stdout.ends_with('\n') && !output.stdout.contains('\u{1b}'), "{output}");
            match form {
                "json" => {
                    let document: Value =
                        serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output}"));
                    assert_eq!(document["schema"], 1, "{args:?}: {document}");
                }
                "jsonl" => {
                    for line in output.stdout.lines() {
                        let element: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {output}"));
                        assert!(element.is_object(), "{args:?}: {line}");
                    }
                }
                _ => {}
            }
        }
    }
}

#[test]
fn progress_and_closed_pipes() {
    let (_cluster, refloat) = start();
    let output = refloat.run(&["--progress", "jsonl", "snapshot", "take"]);
    assert!(output.success(), "{output}");
    let lines: Vec<Value> = output.stderr.lines().map(|l| serde_json::from_str(l).expect("a JSON line")).collect();
    assert!(lines.iter().all(|line| line["schema"] == 1), "{output}");
    let mut steps: Vec<&str> = lines.iter().filter_map(|line| line["step"].as_str()).collect();
    steps.dedup();
    assert_eq!(steps, ["preflight", "stream", "verify", "agree", "publish"]);
    let last = lines.iter().rfind(|l| l["step"] == "stream" && l["progress"].is_object()).expect("a figure");
    assert_eq!((&last["progress"]["done"], &last["progress"]["unit"]), (&last["progress"]["total"], &"B".into()));
    let silent = refloat.run(&["-q", "--progress", "none", "snapshot", "take"]);
    assert_eq!((silent.code, silent.stderr.as_str()), (Some(0), ""));

    // Nobody listens: the snapshot is taken all the same, and is not lost without a word.
    let before = files(&refloat.store()).len();
    let closed = |redirect: &str, args: &[&str]| {
        let script = format!("exec \"$@\" {redirect}");
        let run = Run::new("bash").args(["-c", &script, "bash", env!("CARGO_BIN_EXE_refloat"), "--config"]);
        run.args([refloat.config_file()]).args(args).run()
    };
    let output = closed(">&- 2>&-", &["snapshot", "take"]);
    assert!(!output.timed_out && output.code.is_some(), "{output}");
    assert_eq!(files(&refloat.store()).len(), before + 2, "{output}");
    assert!(closed(">/dev/full", &["snapshot", "list"]).code == Some(74));
    let output = closed("| head -c 1 >/dev/null", &["snapshot", "list", "-o", "jsonl"]);
    assert!(!output.stderr.contains("panicked"), "{output}");
}

#[test]
fn a_wrong_configuration_stops_a_take_with_its_line() {
    let (_cluster, refloat) = start();
    let good = std::fs::read_to_string(refloat.config_file()).unwrap();
    let line_of = |text: &str, needle: &str| 1 + text.lines().position(|l| l.contains(needle)).expect("the line");
    for (more, needle, parts, remedy) in [
        ("retension = { keep_last = 9 }\n", "retension", &["`retension` is not a known key"][..], "`retention`"),
        ("[snapshot]\nstall_timeout = \"10 minuts\"\n", "minuts", &["snapshot.stall_timeout", "10 minuts"], ""),
        ("max_bytes = \"10 %\"\n", "max_bytes", &["max_bytes"], ""),
        (
            "retention = { keep_last = 1, keep_within = \"0s\", keep_hourly = 0, keep_daily = 0 }\n",
            "retention",
            &["contradict", "min_keep = 3"],
            "keep_last",
        ),
        ("[[store]]\nname = \"local\"\nurl = \"file:///elsewhere\"\n", "elsewhere", &["local"], ""),
    ] {
        let text = format!("{}\n{more}", good.trim_end());
        std::fs::write(refloat.config_file(), &text).unwrap();
        for args in [&["snapshot", "take"][..], &["snapshot", "list"], &["store", "check"]] {
            let output = refloat.run(&[&["-o", "json"], args].concat());
            let error = error_of(&output);
            assert_eq!((output.code, &error["code"]), (Some(78), &"config".into()), "{more}: {output}");
            let on = text_on(&error);
            let line: usize = on.rsplit(':').next().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{on}"));
            assert!(line.abs_diff(line_of(&text, needle)) <= 2, "{on} instead of {}", line_of(&text, needle));
            let said = why(&error);
            parts.iter().for_each(|part| assert!(said.contains(part), "{part} in {said}"));
            assert!(error["remedy"].as_str().unwrap_or_default().contains(remedy), "{error}");
        }
    }
    std::fs::write(refloat.config_file(), &good).unwrap();
    std::fs::set_permissions(refloat.config_file(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let output = refloat.run(&["-o", "json", "snapshot", "take"]);
    assert_eq!((output.code, &error_of(&output)["code"]), (Some(78), &"config".into()), "{output}");
    assert!(why(&error_of(&output)).contains("writable by everybody"), "{output}");
    std::fs::set_permissions(refloat.config_file(), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(files(&refloat.store()), [""; 0]);
    take(&refloat);
    // A node's name stands in file names.
    edit(&refloat, "node = \"test\"", "node = \"../x\"");
    assert_eq!(refloat.run(&["snapshot", "take"]).code, Some(78));
}

fn text_on(error: &Value) -> &str {
    text(error, "on")
}
