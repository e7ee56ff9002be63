//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;

use super::rng::Rng;

/// Below the range from which the kernel takes ports for outgoing connections, so that a port stays free while
/// a member is restarted.
const FIRST: u16 = 12_000;
const LAST: u16 = 32_000;

/// A port that nobody listens on and that this process has not given out before. Another process may still take
/// it before it is used: whoever starts a server on it checks that the listener is its own and tries again.
pub fn free() -> u16 {
    static GIVEN: Mutex<Vec<u16>> = Mutex::new(Vec::new());
    let mut given = GIVEN.lock().expect("no panic under this lock");
    // Other test processes must not walk the same way, so this is not the seed of the run.
    let mut rng = Rng::from_clock();
    for _ in 0..10_000 {
        let port = FIRST + (rng.below(u64::from(LAST - FIRST)) as u16);
        if !given.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            given.push(port);
            return port;
        }
    }
    panic!("no free port between {FIRST} and {LAST}");
}
