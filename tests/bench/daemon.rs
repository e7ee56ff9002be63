//! What the daemon costs while nothing happens: memory, processor and wake-ups over five minutes with the defaults, after
//! its first snapshot.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::bed::process::{Process, bound_to_us};
use crate::bed::{Cluster, Fill, Line, Refloat};
use crate::refloat_program;

const MEASURED: Duration = Duration::from_secs(300);

pub fn idle() {
    println!("\n## the daemon, idle");
    let cluster = Cluster::start(Line::V36);
    Fill::new(&cluster).kubernetes(2_000);
    let refloat = Refloat::new(&cluster);
    let mut command = bound_to_us(refloat_program());
    command.arg("--config").arg(refloat.config_file()).arg("daemon").stdin(Stdio::null());
    // As the unit has it.
    for (name, value) in
        [("MALLOC_ARENA_MAX", "2"), ("MALLOC_TRIM_THRESHOLD_", "131072"), ("MALLOC_MMAP_THRESHOLD_", "131072")]
    {
        command.env(name, value);
    }
    let daemon = Process::start(command);
    let asked = |args: &[&str]| {
        let config = refloat.config_file().display().to_string();
        let output = std::process::Command::new(refloat_program()).args(["--config", &config]).args(args).output();
        String::from_utf8_lossy(&output.expect("run refloat").stdout).into_owned()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !asked(&["jobs", "list"]).contains("prune store local  succeeded") {
        assert!(Instant::now() < deadline, "no snapshot: {}", asked(&["status"]));
        std::thread::sleep(Duration::from_millis(200));
    }
    let pid = daemon.pid();
    let (cpu, wakes) = (ticks(pid), switches(pid));
    std::thread::sleep(MEASURED);
    let (cpu, wakes) = (ticks(pid) - cpu, switches(pid) - wakes);
    let seconds = MEASURED.as_secs_f64();
    let kib = |name: &str| memory(pid, name) as f64 / 1024.0;
    println!(
        "RSS {:.1} MiB (target 16), of it anonymous {:.1} MiB; peak {:.1} MiB",
        kib("VmRSS:"),
        kib("RssAnon:"),
        kib("VmHWM:")
    );
    // A tick is 10 ms.
    println!("processor {:.3} % of a core (target 0.1)", cpu as f64 / seconds);
    println!("wake-ups {:.2} a second over {} threads", wakes as f64 / seconds, threads(pid).len());
}

fn threads(pid: u32) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the daemon runs");
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Of all threads: how often one went to sleep by itself, which is how often one was woken.
fn switches(pid: u32) -> u64 {
    let each = threads(pid).into_iter().filter_map(|thread| {
        let status = std::fs::read_to_string(thread.join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse::<u64>().ok()
    });
    each.sum()
}

fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the daemon runs");
    let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    let fields: Vec<&str> = rest.split(' ').collect();
    let tick = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    tick(11) + tick(12)
}

/// In KiB.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the daemon runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}
