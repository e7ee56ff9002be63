//! What a run removes and renames, as the kernel saw it: strace's log, and the rule that every line of it must keep.

use std::path::{Path, PathBuf};

use crate::bed::{Refloat, Run};

const CALLS: &str = "unlink,unlinkat,rmdir,rename,renameat,renameat2";

pub struct Traced {
    log: PathBuf,
}

impl Traced {
    pub fn new(refloat: &Refloat) -> Traced {
        Traced { log: refloat.dir().join("strace.log") }
    }

    /// refloat with its configuration under strace.
    pub fn command(&self, refloat: &Refloat, args: &[&str]) -> Run {
        let run = Run::new("strace").args(["-f", "-y", "-qq", "-e"]).args([format!("trace={CALLS}"), "-o".into()]);
        let run = run.args([self.log.as_os_str(), env!("CARGO_BIN_EXE_refloat").as_ref(), "--config".as_ref()]);
        run.args([refloat.config_file()]).args(args)
    }

    /// Each call names a handle beneath one of `roots` and a plain name in it; gives how many calls there were.
    #[track_caller]
    pub fn beneath(&self, roots: &[&Path]) -> usize {
        let log = std::fs::read_to_string(&self.log).expect("strace wrote a log");
        let mut calls = 0;
        for line in log.lines() {
            let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
            // A call that is told in two lines has its arguments in the first one.
            let Some((name, args)) = call.split_once('(').filter(|(name, _)| CALLS.split(',').any(|c| c == *name))
            else {
                continue;
            };
            assert!(name.ends_with("at") || name.ends_with("at2"), "not by a handle: {line}");
            calls += 1;
            let args: Vec<&str> = args.split(", ").collect();
            let pairs = if name.starts_with("rename") { 2 } else { 1 };
            for pair in args.chunks(2).take(pairs) {
                let [handle, name] = pair else { panic!("half a pair: {line}") };
                let dir = handle.split_once('<').filter(|(number, _)| number.parse::<u32>().is_ok());
                let dir =
                    dir.and_then(|(_, path)| path.strip_suffix('>')).unwrap_or_else(|| panic!("no handle: {line}"));
                assert!(roots.iter().any(|root| Path::new(dir).starts_with(root)), "not beneath {roots:?}: {line}");
                let name = name.trim_matches('"');
                assert!(!name.contains('/') && !matches!(name, "" | "." | ".."), "no plain name: {line}");
            }
        }
        calls
    }
}
