//! Speed and cost side by side with etcd's own tools (`./dev bench`): the same member, the same disk, in turns.
//!
//! Wall times are compared as ratios of medians, because machines differ and disks are noisy. Memory is the
//! peak resident set of the process. What each figure means: docs/benchmarks.md.

// A benchmark starts processes and removes what they made; refloat itself must not (clippy.toml).
#![allow(clippy::disallowed_methods)]

#[path = "../bed/mod.rs"]
mod bed;
mod daemon;
mod measure;
mod retention;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bed::{Cluster, Fill, Line, Refloat};
use measure::{Run, Series, timed};

/// Turns of each pair.
const TURNS: usize = 3;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let all = wanted.is_empty();
    println!("# {} cores, etcd {}, {} turns each, medians (minimum to maximum)", cores(), Line::V36.version(), TURNS);
    if all || wanted.iter().any(|w| w == "retention") {
        retention::plan();
    }
    if all || wanted.iter().any(|w| w == "daemon") {
        daemon::idle();
    }
    if all || wanted.iter().any(|w| w == "large") {
        database("2 GB, 500,000 keys of 3.8 KB", &|fill| fill.large(500_000, 3_800));
    }
    if all || wanted.iter().any(|w| w == "small") {
        database("2,000,000 small keys", &|fill| fill.small(2_000_000));
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

fn refloat_program() -> PathBuf {
    std::env::var_os("REFLOAT_BIN").expect("REFLOAT_BIN, set by ./dev bench").into()
}

/// All comparisons on one database.
fn database(name: &str, fill: &dyn Fn(&Fill)) {
    println!("\n## {name}");
    let cluster = Cluster::builder(Line::V36).args(["--quota-backend-bytes=8589934592"]).start();
    let filler = Fill::new(&cluster);
    fill(&filler);
    let refloat = Refloat::new(&cluster);
    let bench = Bench { cluster, refloat, scratch: tempfile::tempdir().expect("a temporary directory") };
    let plain = bench.takes();
    bench.verifies(&plain);
    bench.writer(&filler);
}

struct Bench {
    cluster: Cluster,
    refloat: Refloat,
    scratch: tempfile::TempDir,
}

impl Bench {
    fn etcdctl_save(&self, to: &Path) -> Run {
        let url = self.cluster.node(0).client_url();
        let to = to.display().to_string();
        timed(&Line::V36.etcdctl_program(), &["--endpoints", url, "--command-timeout=600s", "snapshot", "save", &to])
    }

    fn refloat(&self, args: &[&str]) -> Run {
        let config = self.refloat.config_file().display().to_string();
        let args: Vec<&str> = ["-q", "--config", &config].iter().chain(args).copied().collect();
        timed(&refloat_program(), &args)
    }

    /// As a timer unit would run it (docs/operating.md).
    fn refloat_as_a_unit(&self, args: &[&str]) -> Run {
        let (config, program) = (self.refloat.config_file(), refloat_program());
        let (config, program) = (config.display().to_string(), program.display().to_string());
        let args: Vec<&str> = ["-n", "10", &program, "-q", "--config", &config].iter().chain(args).copied().collect();
        timed(Path::new("nice"), &args)
    }

    /// `take` does what `etcdctl snapshot save` does, and verifies, compresses and publishes. Gives a plain file.
    fn takes(&self) -> PathBuf {
        let plain = self.scratch.path().join("plain.db");
        let (mut save, mut take) = (Series::default(), Series::default());
        for turn in 0..TURNS {
            let _ = std::fs::remove_file(&plain);
            settle();
            save.add(self.etcdctl_save(&plain));
            settle();
            take.add(self.refloat(&["snapshot", "take"]));
            eprintln!("take: turn {} of {TURNS}", turn + 1);
        }
        let stored = stored_bytes(&self.refloat.store()) / TURNS as u64;
        let size = std::fs::metadata(&plain).map_or(0, |m| m.len());
        println!("database {size} bytes, stored {stored} bytes ({:.2} of it)", stored as f64 / size as f64);
        plain_write(&self.scratch.path().join("written"), size).print("plain write and fsync of as many bytes", None);
        save.print("etcdctl snapshot save", None);
        take.print("refloat snapshot take", Some(&save));
        plain
    }

    fn verifies(&self, plain: &Path) {
        let file = plain.display().to_string();
        let (mut status, mut stored, mut file_check) = (Series::default(), Series::default(), Series::default());
        for turn in 0..TURNS {
            status.add(timed(&Line::V36.etcdutl_program(), &["snapshot", "status", &file]));
            stored.add(self.refloat(&["snapshot", "verify", "latest"]));
            file_check.add(self.refloat(&["snapshot", "verify", &file]));
            eprintln!("verify: turn {} of {TURNS}", turn + 1);
        }
        status.print("etcdutl snapshot status (plain file)", None);
        stored.print("refloat snapshot verify (stored object)", Some(&status));
        file_check.print("refloat snapshot verify (plain file)", Some(&status));
    }

    /// What a steady writer of the same member feels.
    fn writer(&self, filler: &Fill) {
        let plain = self.scratch.path().join("writer.db");
        let during = |work: &mut dyn FnMut()| {
            settle();
            let writer = filler.writer();
            work();
            writer.stop()
        };
        let (mut alone, mut save, mut take, mut unit) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for turn in 0..TURNS {
            alone.push(during(&mut || std::thread::sleep(Duration::from_secs(10))).p99);
            save.push(during(&mut || _ = self.etcdctl_save(&plain)).p99);
            let _ = std::fs::remove_file(&plain);
            take.push(during(&mut || _ = self.refloat(&["snapshot", "take"])).p99);
            unit.push(during(&mut || _ = self.refloat_as_a_unit(&["snapshot", "take"])).p99);
            eprintln!("writer: turn {} of {TURNS}", turn + 1);
        }
        let median = |all: &mut Vec<Duration>| {
            all.sort();
            all[all.len() / 2].as_secs_f64() * 1000.0
        };
        let alone = median(&mut alone);
        println!("writer p99: alone {alone:.1} ms");
        for (name, p99) in
            [("etcdctl", median(&mut save)), ("refloat", median(&mut take)), ("refloat, Nice=10", median(&mut unit))]
        {
            println!("  during {name:18} {p99:5.1} ms, {:+.0} %", (p99 / alone - 1.0) * 100.0);
        }
    }
}

/// What the disk alone takes: this decides how far `etcdctl` waits for it, which writes three times as much.
fn plain_write(to: &Path, bytes: u64) -> Series {
    let mut series = Series::default();
    for _ in 0..TURNS {
        settle();
        let count = format!("count={}", bytes >> 20);
        let to_arg = format!("of={}", to.display());
        series.add(timed(Path::new("dd"), &["if=/dev/zero", &to_arg, "bs=1M", &count, "conv=fsync", "status=none"]));
        let _ = std::fs::remove_file(to);
    }
    series
}

/// Lets the disk come to rest, so that no turn pays for the one before it.
fn settle() {
    let _ = std::process::Command::new("sync").status();
}

fn stored_bytes(store: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(store) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => stored_bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}
