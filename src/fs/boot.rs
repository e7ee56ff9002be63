//! Time since boot: what no step of the wall clock changes.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Which boot, and how long ago, suspended time included (CLOCK_BOOTTIME).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootTime {
    /// The kernel's random id of this boot, 32 hex digits in five groups.
    pub boot_id: String,
    pub since: Duration,
}

impl BootTime {
    /// `None` where nobody tells which boot this is.
    pub fn now() -> Option<BootTime> {
        // The unit hides all of /proc but processes (ProcSubset=pid), and says it in the environment instead.
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let boot_id = grouped(&boot_id.or_else(|| std::env::var("REFLOAT_BOOT_ID").ok())?)?;
        let since = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?);
        Some(BootTime { boot_id, since })
    }
}

/// The kernel writes the id in groups, systemd in one: `None` for what is neither.
fn grouped(id: &str) -> Option<String> {
    let digits: String = id.trim().chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Some(parts.join("-").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_within_one_boot() {
        let (first, second) = (BootTime::now().unwrap(), BootTime::now().unwrap());
        assert_eq!((first.boot_id.len(), &first.boot_id), (36, &second.boot_id));
        assert!(second.since >= first.since && !first.since.is_zero());
    }

    #[test]
    fn the_kernel_and_systemd_name_the_same_boot_alike() {
        let kernel = "0c15f1d5-3f29-4a14-9a6e-8f1a5b1c2d3e\n";
        assert_eq!(grouped(kernel), grouped("0c15f1d53f294a149a6e8f1a5b1c2d3e"));
        assert_eq!(grouped(kernel).as_deref(), Some(kernel.trim()));
        for other in ["", "%b", "0c15f1d5", "zz15f1d53f294a149a6e8f1a5b1c2d3e"] {
            assert_eq!(grouped(other), None, "{other}");
        }
    }
}
