//! Seeded randomness: the same seed gives the same data, on every machine and with every compiler.

use std::time::SystemTime;

/// xorshift64*, after Marsaglia and Vigna: small, fast, good enough for data and schedules.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        // The state must not be zero; an odd multiplier spreads small seeds.
        Rng((seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xD134_2543_DE82_EF95) | 1)
    }

    /// For what must differ between processes and needs no repetition.
    pub fn from_clock() -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().map(|d| d.as_nanos() as u64).unwrap_or_default();
        Rng::new(now ^ (u64::from(std::process::id()) << 40))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// 0 ≤ result < `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The high half is the better one of xorshift64*.
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    pub fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from(*self.pick(b"0123456789abcdef"))).collect()
    }

    pub fn uid(&mut self) -> String {
        let mut hex = |n| self.hex(n);
        format!("{}-{}-4{}-a{}-{}", hex(8), hex(4), hex(3), hex(3), hex(12))
    }
}

/// The seed of this run: REFLOAT_SEED, or the clock under `./dev soak`, or 1. Printed, so that a failure can be
/// repeated.
pub fn seed() -> u64 {
    let seed = match std::env::var("REFLOAT_SEED") {
        Ok(text) => text.parse().expect("REFLOAT_SEED is a number"),
        Err(_) if super::line::soak() => Rng::from_clock().next(),
        Err(_) => 1,
    };
    eprintln!("seed {seed} (repeat with REFLOAT_SEED={seed})");
    seed
}
