//! Entries for the heap of `std`, a max-heap, ordered so that the smallest key is on top.

use std::cmp::{Ordering, Reverse};

/// Ordered by the key alone, the smaller key being the larger entry. Moving it follows no pointer.
#[derive(Debug)]
pub(super) struct Entry<K, C> {
    key: Reverse<K>,
    pub(super) content: C,
}

impl<K: Copy, C> Entry<K, C> {
    pub(super) fn new(key: K, content: C) -> Self {
        Self {
            key: Reverse(key),
            content,
        }
    }

    pub(super) fn key(&self) -> K {
        self.key.0
    }

    pub(super) fn set_key(&mut self, key: K) {
        self.key = Reverse(key);
    }
}

impl<K: Ord, C> PartialEq for Entry<K, C> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<K: Ord, C> Eq for Entry<K, C> {}

impl<K: Ord, C> PartialOrd for Entry<K, C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, C> Ord for Entry<K, C> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}
