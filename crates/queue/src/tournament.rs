//! The minimum of a fixed number of slots whose values change.

/// A tournament tree over slots: each node is the slot with the smaller value of its children, the root that with
/// the smallest.
///
/// The nodes are a complete binary tree in an array; the children of node `i` are `2 i` and `2 i + 1`, and slot `s`
/// is node `slots + s`. Changing a slot updates the nodes up to the root, O(log n); the minimum is at the root.
#[derive(Debug)]
pub(crate) struct Tournament<V> {
    slots: Box<[Option<V>]>,
    /// The slot with the smaller value; entry 0 is unused.
    winners: Box<[usize]>,
}

impl<V: Ord + Copy> Tournament<V> {
    /// `slots` empty slots, at least one.
    pub(crate) fn new(slots: usize) -> Self {
        let mut winners: Box<[_]> = (0..2 * slots)
            .map(|entry| entry.saturating_sub(slots))
            .collect();
        for entry in (1..slots).rev() {
            winners[entry] = winners[2 * entry];
        }
        Self {
            slots: vec![None; slots].into(),
            winners,
        }
    }

    /// Sets the value of a slot, or empties it.
    pub(crate) fn set(&mut self, slot: usize, value: Option<V>) {
        self.slots[slot] = value;
        let mut entry = (self.slots.len() + slot) / 2;
        while entry > 0 {
            let [left, right] = [2 * entry, 2 * entry + 1].map(|played| self.winners[played]);
            self.winners[entry] = if self.beats(right, left) { right } else { left };
            entry /= 2;
        }
    }

    /// The smallest value and its slot; `None` if all are empty.
    pub(crate) fn first(&self) -> Option<(usize, V)> {
        let slot = self.winners[1];
        Some((slot, self.slots[slot]?))
    }

    fn beats(&self, one: usize, other: usize) -> bool {
        match (self.slots[one], self.slots[other]) {
            (Some(one), Some(other)) => one < other,
            (one, _) => one.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_is_the_smallest_value_of_all_slots() {
        let mut state = 1_u64;
        for slots in 1..20 {
            let mut tournament = Tournament::new(slots);
            let mut values = vec![None; slots];
            for step in 0..200 {
                assert_eq!(
                    tournament.first().map(|(_, value)| value),
                    values.iter().flatten().min().copied(),
                    "{slots} slots, step {step}"
                );
                if let Some((slot, value)) = tournament.first() {
                    assert_eq!(values[slot], Some(value));
                }
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let slot = (state >> 33) as usize % slots;
                let value = (state >> 50) % 50;
                values[slot] = (value > 15).then_some(value);
                tournament.set(slot, values[slot]);
            }
        }
    }
}
