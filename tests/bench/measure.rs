//! Wall time and peak memory of one process, and how series of them compare.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One run of a program that must succeed.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub wall: Duration,
    /// Bytes.
    pub peak: u64,
}

/// Runs a program to its end. Memory is the kernel's own high-water mark, read until the process is gone.
pub fn timed(program: &Path, args: &[&str]) -> Run {
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("start {}: {e}", program.display()));
    let mut peak = 0;
    let status = loop {
        peak = peak.max(high_water(child.id()).unwrap_or(0));
        match child.try_wait().expect("wait for a child") {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let wall = started.elapsed();
    assert!(status.success(), "{} {args:?}: {status}", program.display());
    Run { wall, peak }
}

fn high_water(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

#[derive(Debug, Default)]
pub struct Series {
    runs: Vec<Run>,
}

impl Series {
    pub fn add(&mut self, run: Run) {
        self.runs.push(run);
    }

    fn walls(&self) -> Vec<f64> {
        let mut walls: Vec<f64> = self.runs.iter().map(|r| r.wall.as_secs_f64()).collect();
        walls.sort_by(f64::total_cmp);
        walls
    }

    fn median(&self) -> f64 {
        let walls = self.walls();
        walls[walls.len() / 2]
    }

    pub fn print(&self, name: &str, against: Option<&Series>) {
        let walls = self.walls();
        let peak = self.runs.iter().map(|r| r.peak).max().unwrap_or(0) as f64 / (1 << 20) as f64;
        let ratio = against.map(|other| format!(", {:.2} ×", self.median() / other.median())).unwrap_or_default();
        let (low, high) = (walls[0], walls[walls.len() - 1]);
        println!("{name:42} {:6.2} s ({low:.2} to {high:.2}), peak RSS {peak:.0} MiB{ratio}", self.median());
    }
}
