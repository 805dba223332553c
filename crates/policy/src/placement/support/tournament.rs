//! A tournament over a fixed number of slots: the smallest entry, kept up to date in O(log n)
//! per change without allocation.

use alloc::vec;
use alloc::vec::Vec;

/// The smallest of a fixed number of slots, and of any range of them.
///
/// An implicit binary tree: slot `i` is `nodes[leaves + i]`, and every inner node holds the smaller
/// of its two children, so `nodes[1]` is the winner.
///
/// ```text
///            1:min(2,3)
///        2:min(4,5)  3:min(6,7)
///       4    5      6    7       <- slots 0..4
/// ```
#[derive(Clone, Debug)]
pub struct Tournament<K> {
    nodes: Vec<K>,
    leaves: usize,
}

impl<K: Ord + Copy> Tournament<K> {
    /// A tournament of `slots` slots that all hold `empty`, which should lose against everything.
    pub fn new(slots: usize, empty: K) -> Self {
        let leaves = slots.next_power_of_two();
        Self {
            nodes: vec![empty; 2 * leaves],
            leaves,
        }
    }

    /// The smallest value of all slots.
    #[inline]
    pub fn winner(&self) -> K {
        self.nodes[1]
    }

    /// Puts a value into a slot. Returns whether the winner changed.
    #[inline]
    pub fn set(&mut self, slot: usize, value: K) -> bool {
        let mut node = self.leaves + slot;
        if self.nodes[node] == value {
            return false;
        }
        self.nodes[node] = value;
        while node > 1 {
            let smaller = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == smaller {
                return false;
            }
            self.nodes[node] = smaller;
        }
        true
    }

    /// The smallest value in the slots `first..last`, which must not be empty.
    pub fn winner_in(&self, first: usize, last: usize) -> K {
        let (mut low, mut high) = (self.leaves + first, self.leaves + last);
        let mut best = self.nodes[low];
        while low < high {
            if low & 1 == 1 {
                best = best.min(self.nodes[low]);
                low += 1;
            }
            if high & 1 == 1 {
                high -= 1;
                best = best.min(self.nodes[high]);
            }
            low /= 2;
            high /= 2;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    #[test]
    fn the_winner_of_every_range_is_its_smallest_value() {
        let mut random = RandomStream::new(1, 0, 0);
        for slots in [1, 2, 3, 7, 8, 24] {
            let mut tournament = Tournament::new(slots, u64::MAX);
            let mut plain = vec![u64::MAX; slots];
            for step in 0..200 {
                let slot = random.below(slots as u64) as usize;
                plain[slot] = random.below(50);
                let before = tournament.winner();
                let changed = tournament.set(slot, plain[slot]);
                assert_eq!(
                    changed,
                    before != tournament.winner(),
                    "slots {slots}, step {step}"
                );
                for first in 0..slots {
                    for last in first + 1..=slots {
                        let smallest = plain[first..last].iter().min().copied();
                        assert_eq!(Some(tournament.winner_in(first, last)), smallest);
                    }
                }
            }
        }
    }
}
