//! Who is first among a fixed number of seats whose values change.

/// A tournament among seats: each match keeps the smaller value, the root the smallest.
///
/// The matches are a complete binary tree in an array; match `i` was played by the winners of `2 i` and
/// `2 i + 1`, and seat `s` is entry `seats + s`. Changing a seat plays the matches up to the root again,
/// O(log n); the first is known at once.
#[derive(Debug)]
pub(crate) struct Tournament<V> {
    seats: Box<[Option<V>]>,
    /// The seat that won; entry 0 is unused. An odd seat out meets nobody.
    winners: Box<[usize]>,
}

impl<V: Ord + Copy> Tournament<V> {
    /// For a number of seats that is at least one; all are empty.
    pub(crate) fn new(seats: usize) -> Self {
        let mut winners: Box<[_]> = (0..2 * seats)
            .map(|entry| entry.saturating_sub(seats))
            .collect();
        for entry in (1..seats).rev() {
            winners[entry] = winners[2 * entry];
        }
        Self {
            seats: vec![None; seats].into(),
            winners,
        }
    }

    /// Puts a value on a seat, or empties it.
    pub(crate) fn set(&mut self, seat: usize, value: Option<V>) {
        self.seats[seat] = value;
        let mut entry = (self.seats.len() + seat) / 2;
        while entry > 0 {
            let [left, right] = [2 * entry, 2 * entry + 1].map(|played| self.winners[played]);
            self.winners[entry] = if self.beats(right, left) { right } else { left };
            entry /= 2;
        }
    }

    /// The smallest value and its seat; `None` if all are empty.
    pub(crate) fn first(&self) -> Option<(usize, V)> {
        let seat = self.winners[1];
        Some((seat, self.seats[seat]?))
    }

    fn beats(&self, one: usize, other: usize) -> bool {
        match (self.seats[one], self.seats[other]) {
            (Some(one), Some(other)) => one < other,
            (one, _) => one.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_the_smallest_of_all_seats() {
        let mut state = 1_u64;
        for seats in 1..20 {
            let mut tournament = Tournament::new(seats);
            let mut values = vec![None; seats];
            for step in 0..200 {
                assert_eq!(
                    tournament.first().map(|(_, value)| value),
                    values.iter().flatten().min().copied(),
                    "{seats} seats, step {step}"
                );
                if let Some((seat, value)) = tournament.first() {
                    assert_eq!(values[seat], Some(value));
                }
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let seat = (state >> 33) as usize % seats;
                let value = (state >> 50) % 50;
                values[seat] = (value > 15).then_some(value);
                tournament.set(seat, values[seat]);
            }
        }
    }
}
