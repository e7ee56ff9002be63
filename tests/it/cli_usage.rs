//! The command line as a whole: exit codes, error text, output into a closed pipe, signals.

use std::process::{Command, Output};

use assert_cmd::cargo::CommandCargoExt;

pub fn refloat(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("refloat").unwrap();
    command.args(args).env_clear();
    command
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn help_and_version_are_not_errors() {
    for args in [&["--help"][..], &["-h"], &["--version"], &["snapshot", "--help"], &["db", "hashkv", "-h"]] {
        let output = refloat(args);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{args:?}");
        assert!(!output.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(stdout(&refloat(&["--version"])), format!("refloat {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_wrong_command_line_is_64_and_says_why() {
    for (args, part) in [
        (&[][..], "Usage:"),
        (&["frobnicate"], "unrecognized subcommand"),
        (&["snapshot"], "Usage:"),
        (&["snapshot", "take", "--taag", "x"], "--tag"),
        (&["snapshot", "take", "--tag", "two words"], "letters, digits"),
        (&["snapshot", "verify"], "<ID|FILE|--all>"),
        (&["snapshot", "verify", "latest", "--all"], "cannot be used with"),
        (&["snapshot", "export", "latest"], "--to"),
        (&["db", "hashkv", "f", "--revision", "0"], "1.."),
        (&["-o", "yaml", "config", "show"], "possible values"),
        (&["completions", "tcsh-but-wrong"], "possible values"),
        (&["-q", "-v", "config", "check"], "cannot be used with"),
    ] {
        let output = refloat(args);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(64), ""), "{args:?}");
        assert!(stderr(&output).contains(part), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_wrong_command_line_is_json_where_json_was_asked_for() {
    let output = refloat(&["snapshot", "take", "--taag", "x", "-o", "json"]);
    assert_eq!(output.status.code(), Some(64));
    let document: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((document["schema"].clone(), document["error"]["code"].clone()), (1.into(), "usage".into()));
    let why = document["error"]["why"][0].as_str().unwrap();
    assert!(why.starts_with("unexpected argument '--taag' found") && why.contains("'--tag'"), "{why}");

    let output = refloat(&["snapshot", "--output=jsonl"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64));
    let why = document["error"]["why"][0].as_str().unwrap();
    assert!(why.contains("requires a subcommand") && why.contains("take, list, show, verify, export"), "{why}");
}

#[test]
fn completions_are_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let output = refloat(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        assert!(stdout(&output).contains("snapshot") && stdout(&output).contains("refloat"), "{shell}");
    }
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(&["completions", "bash"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_behind_standard_output_is_74() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(&["completions", "bash"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(74));
    assert_eq!(
        stderr(&output),
        "refloat: failed to write to standard output\n  because: No space left on device (os error 28)\n"
    );
}

#[test]
fn an_unknown_store_is_66_and_names_the_known() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.toml");
    std::fs::write(&file, "[[store]]\nname = 'a'\nurl = 'file:///a'\n[[store]]\nname = 'b'\nurl = 'file:///b'\n")
        .unwrap();
    let path = file.to_str().unwrap();
    for args in [&["snapshot", "list", "--store", "c"][..], &["store", "init", "c"]] {
        let output = command(args).args(["--config", path]).output().unwrap();
        assert_eq!(output.status.code(), Some(66), "{args:?}");
        assert_eq!(
            stderr(&output),
            "refloat: failed to find store c\n  because: no store of this name is configured\n  try: name one of: a, b\n"
        );
    }
}

/// A command whose output nobody reads cannot notice that it was canceled: the next signal ends it.
#[test]
fn a_second_signal_ends_at_once_with_130() {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::io::Write;

    let (_reader, mut full) = std::io::pipe().unwrap();
    fcntl(&full, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while full.write(&[b'x'; 512]).is_ok() {}
    fcntl(&full, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut child = command(&["completions", "bash"]).stdout(full.try_clone().unwrap()).spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32);
        while !handles(child.id(), &[Signal::SIGINT, Signal::SIGTERM]) {
            std::thread::yield_now();
        }
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None => kill(pid, signal).unwrap(),
            }
        };
        assert_eq!(status.code(), Some(130), "{signal}");
    }
}

/// Whether the process has a handler for each signal, by the kernel's own mask.
fn handles(pid: u32, signals: &[nix::sys::signal::Signal]) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    signals.iter().all(|signal| mask & (1 << (*signal as i32 - 1)) != 0)
}
