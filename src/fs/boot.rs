//! Time since boot: what no step of the wall clock changes.

use std::time::Duration;

/// Which boot, and how long ago, suspended time included (CLOCK_BOOTTIME).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootTime {
    /// The kernel's random id of this boot.
    pub boot_id: String,
    pub since: Duration,
}

impl BootTime {
    /// `None` where `/proc` does not tell.
    pub fn now() -> Option<BootTime> {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
        let since = uptime.split_whitespace().next()?.parse().ok()?;
        Some(BootTime { boot_id, since: Duration::try_from_secs_f64(since).ok()? })
    }
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
}
