//! The lines of etcd that refloat supports, and where their programs are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::run::{Output, Run};

/// A minor release of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    /// 3.4.23, Debian's package; there is no etcdutl, etcdctl does its work.
    V34,
    V35,
    V36,
    V37,
}

impl Line {
    pub const ALL: [Line; 4] = [Line::V34, Line::V35, Line::V36, Line::V37];

    /// The lines that a test must cover in full: the main one, or all under `./dev soak`.
    pub fn in_full() -> Vec<Line> {
        if soak() { Line::ALL.to_vec() } else { vec![Line::V36] }
    }

    pub fn version(self) -> &'static str {
        match self {
            Line::V34 => "3.4.23",
            Line::V35 => "3.5.34",
            Line::V36 => "3.6.16",
            Line::V37 => "3.7.3",
        }
    }

    pub fn etcd_program(self) -> PathBuf {
        self.program("etcd")
    }

    pub fn etcdctl_program(self) -> PathBuf {
        self.program("etcdctl")
    }

    /// The offline tool: etcdutl, and etcdctl for 3.4.
    pub fn etcdutl_program(self) -> PathBuf {
        self.program(if self == Line::V34 { "etcdctl" } else { "etcdutl" })
    }

    /// Runs the offline tool of this line.
    #[track_caller]
    pub fn etcdutl(self, args: &[&str]) -> Output {
        self.ctl(self.etcdutl_program()).args(args).run()
    }

    /// One of etcd's tools, told to speak the v3 API where that is not the only one.
    pub(super) fn ctl(self, program: PathBuf) -> Run {
        let run = Run::new(program);
        if self == Line::V34 { run.env("ETCDCTL_API", "3") } else { run }
    }

    fn program(self, name: &str) -> PathBuf {
        demand(directory().join(format!("etcd-{}", self.version())).join(name))
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "etcd {}", self.version())
    }
}

/// Runs bbolt's own command: its checker is an oracle.
#[track_caller]
pub fn bbolt(args: &[&str]) -> Output {
    Run::new(demand(directory().join("bbolt/bbolt"))).args(args).run()
}

/// Whether this is `./dev soak`: all lines in full, long tests included.
pub fn soak() -> bool {
    std::env::var_os("REFLOAT_SOAK").is_some_and(|v| v == "1")
}

/// A program of another product that `prepare` makes, such as `haproxy-2.6/haproxy`.
pub fn product(path: &str) -> PathBuf {
    demand(directory().join(path))
}

fn demand(program: PathBuf) -> PathBuf {
    assert!(program.is_file(), "the bed is not prepared, {} is missing: run ./dev bed", program.display());
    program
}

/// REFLOAT_BED, which `./dev` sets; otherwise `prepare` is asked, the one place that knows the rule.
fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        if let Some(set) = std::env::var_os("REFLOAT_BED") {
            return set.into();
        }
        let prepare = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bed/prepare");
        let said = Command::new(&prepare).arg("--where").output();
        let said = said.unwrap_or_else(|e| panic!("cannot run {}: {e}", prepare.display()));
        assert!(said.status.success(), "where is the bed? {}", String::from_utf8_lossy(&said.stderr));
        PathBuf::from(String::from_utf8_lossy(&said.stdout).trim())
    })
}
