//! Two million small keys: the live HashKV is not called, everything is verified all the same, memory is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::bed::{Cluster, Fill, Liar, Line, Refloat};

const KEYS: u64 = 2_000_000;
/// Design §21: bytes of resident memory for a take and for a verify.
const BOUND: u64 = (64 << 20) + 56 * KEYS;

#[test]
fn two_million_keys_are_verified_in_bounded_memory_without_a_live_hash() {
    let cluster = Cluster::start(Line::V36);
    let fill = Fill::new(&cluster);
    fill.small(KEYS);
    // The liar is honest here; it counts what the member is asked.
    let liar = Liar::start(cluster.node(0).client_url());
    let refloat = Refloat::new(liar.url().as_str());

    let peak = Peak::default();
    let watch = peak.watcher();
    let taken = refloat.command(&["-o", "json", "snapshot", "take"]).timeout(LONG).meanwhile(watch).run().json();
    let snapshot = &taken["snapshot"];
    assert_eq!(snapshot["state"], "verified");
    assert_eq!(snapshot["keys"], KEYS);
    assert_eq!(liar.calls("HashKV"), 0);
    let agreement = snapshot["agreement"].as_array().expect("a list");
    assert!(agreement.iter().all(|a| a["result"] == "skipped"), "{agreement:?}");
    assert!(agreement[0]["reason"].as_str().is_some_and(|why| why.contains("would block")), "{agreement:?}");
    assert!(peak.bytes() <= BOUND, "take had {} bytes resident, the bound is {BOUND}", peak.bytes());

    let peak = Peak::default();
    let watch = peak.watcher();
    refloat.command(&["snapshot", "verify", "latest"]).timeout(LONG).meanwhile(watch).run().ok();
    assert!(peak.bytes() <= BOUND, "verify had {} bytes resident, the bound is {BOUND}", peak.bytes());

    // Asked for by the test itself, not by refloat: the offline hash is the live one.
    let live = fill.hash_kv(snapshot["revision"].as_i64().expect("a revision"));
    assert_eq!(snapshot["hash_kv"]["hash"], live.hash);
}

const LONG: Duration = Duration::from_secs(300);

/// The high-water mark of a process's resident memory, read until it is gone.
#[derive(Default)]
pub struct Peak(Arc<AtomicU64>);

impl Peak {
    pub fn watcher(&self) -> impl FnOnce(u32) + Send + 'static {
        let peak = Arc::clone(&self.0);
        move |pid| {
            while let Some(bytes) = high_water(pid) {
                peak.fetch_max(bytes, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    pub fn bytes(&self) -> u64 {
        let bytes = self.0.load(Ordering::Relaxed);
        assert!(bytes > 1 << 20, "memory was not measured");
        bytes
    }
}

fn high_water(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
