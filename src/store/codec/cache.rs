//! A few decoded frames, for reads that come back to the same place.

use std::collections::VecDeque;
use std::sync::Arc;

/// A lookup goes through all entries, so there are few.
const ENTRIES: usize = 64;

/// The most recently used frames, bounded in bytes and number.
#[derive(Debug)]
pub struct Cache {
    /// Most recent first.
    frames: VecDeque<(usize, Arc<Vec<u8>>)>,
    bytes: usize,
    limit: usize,
}

impl Cache {
    /// `limit` in bytes; one frame is kept whatever its size.
    pub fn new(limit: usize) -> Cache {
        Cache { frames: VecDeque::new(), bytes: 0, limit }
    }

    pub fn get(&mut self, frame: usize) -> Option<Arc<Vec<u8>>> {
        let at = self.frames.iter().position(|(f, _)| *f == frame)?;
        let entry = self.frames.remove(at)?;
        let plain = Arc::clone(&entry.1);
        self.frames.push_front(entry);
        Some(plain)
    }

    /// Puts a frame in; gives a buffer that went out, for the next decoding.
    pub fn put(&mut self, frame: usize, plain: Arc<Vec<u8>>) -> Option<Vec<u8>> {
        if self.get(frame).is_some() {
            return None;
        }
        self.bytes += plain.len();
        self.frames.push_front((frame, plain));
        let mut spare = None;
        while self.frames.len() > 1 && (self.bytes > self.limit || self.frames.len() > ENTRIES) {
            if let Some((_, old)) = self.frames.pop_back() {
                self.bytes -= old.len();
                spare = Arc::try_unwrap(old).ok().or(spare);
            }
        }
        spare
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_recent_within_its_limit() {
        let mut cache = Cache::new(10);
        let frame = |n: usize| Arc::new(vec![0; n]);
        cache.put(1, frame(4));
        cache.put(2, frame(4));
        assert!(cache.get(1).is_some());
        assert_eq!(cache.put(3, frame(4)).map(|b| b.len()), Some(4));
        assert!(cache.get(2).is_none() && cache.get(1).is_some() && cache.get(3).is_some());
        cache.put(4, frame(100));
        assert_eq!((cache.frames.len(), cache.bytes), (1, 100));
        for i in 0..200 {
            cache.put(i, frame(0));
        }
        assert!(cache.frames.len() <= ENTRIES);
    }
}
