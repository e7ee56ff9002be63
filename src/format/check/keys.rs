//! The newest row of each user key, by fingerprint: 24 bytes a key, however long the keys are.
//!
//! A fingerprint is the first 96 bits of the key's SHA-256, so that not even chosen keys collide. The table
//! is split so that growing one part never doubles the memory of all.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

pub const SHARDS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u32; 3]);

impl Fingerprint {
    pub fn of(key: &[u8]) -> Fingerprint {
        let digest = Sha256::digest(key);
        let word = |at: usize| u32::from_le_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
        Fingerprint([word(0), word(4), word(8)])
    }

    pub fn shard(self) -> usize {
        self.0[0] as usize % SHARDS
    }
}

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Already uniform: the second and third word are the hash.
        state.write_u64(u64::from(self.0[1]) << 32 | u64::from(self.0[2]));
    }
}

/// Hashes what is uniform already.
#[derive(Default)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

/// The newest row seen so far. Version 0 is a tombstone; versions above `u32::MAX` are kept as that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packed {
    main: [u32; 2],
    version: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    pub main: u64,
    pub version: u32,
}

impl Newest {
    pub fn tombstone(self) -> bool {
        self.version == 0
    }
}

impl From<Packed> for Newest {
    fn from(p: Packed) -> Self {
        Newest { main: u64::from(p.main[0]) << 32 | u64::from(p.main[1]), version: p.version }
    }
}

/// How a row stands to what was known of its key before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    First,
    /// Newer than the one known before.
    Newer(Newest),
    /// Older than one that is already known.
    Older(Newest),
    /// The same key twice in one main revision.
    Twice,
}

#[derive(Default)]
pub struct Keys {
    shards: Vec<HashMap<Fingerprint, Packed, BuildHasherDefault<AsIs>>>,
}

impl Keys {
    pub fn new() -> Keys {
        Keys { shards: (0..SHARDS).map(|_| HashMap::default()).collect() }
    }

    pub fn see(&mut self, key: Fingerprint, main: u64, version: u32) -> Seen {
        let packed = Packed { main: [(main >> 32) as u32, main as u32], version };
        match self.shards[key.shard()].entry(key) {
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(packed);
                Seen::First
            }
            std::collections::hash_map::Entry::Occupied(mut taken) => {
                let known = Newest::from(*taken.get());
                match main.cmp(&known.main) {
                    std::cmp::Ordering::Greater => {
                        taken.insert(packed);
                        Seen::Newer(known)
                    }
                    std::cmp::Ordering::Less => Seen::Older(known),
                    std::cmp::Ordering::Equal => Seen::Twice,
                }
            }
        }
    }

    pub fn newest(&self, key: Fingerprint) -> Option<Newest> {
        self.shards[key.shard()].get(&key).map(|p| Newest::from(*p))
    }

    /// Keys whose newest row is not a tombstone.
    pub fn live(&self) -> u64 {
        self.shards.iter().flat_map(|s| s.values()).filter(|p| p.version != 0).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest_in_any_order() {
        let mut keys = Keys::new();
        let key = Fingerprint::of(b"/registry/a");
        assert_eq!(keys.see(key, 1 << 40, 1), Seen::First);
        assert_eq!(keys.see(key, 5, 1), Seen::Older(Newest { main: 1 << 40, version: 1 }));
        assert_eq!(keys.see(key, 1 << 40, 2), Seen::Twice);
        assert_eq!(keys.live(), 1);
        assert_eq!(keys.see(key, (1 << 40) + 1, 0), Seen::Newer(Newest { main: 1 << 40, version: 1 }));
        assert_eq!((keys.live(), keys.newest(key).map(|n| n.tombstone())), (0, Some(true)));
    }

    #[test]
    fn an_entry_takes_24_bytes() {
        assert_eq!(std::mem::size_of::<(Fingerprint, Packed)>(), 24);
    }
}
