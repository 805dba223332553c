//! The next instant of many clocks.

use core::hint::select_unpredictable;

use shiftwork_model::Instant;

/// For each of a fixed number of places the instant at which something happens there, and at any
/// time the first of them: a tournament tree.
///
/// Instants after the horizon of the run count as never. That leaves room for the place beside the
/// instant in one word, so that one comparison ranks by instant, then by place. Where it does not
/// (hundreds of days at a thousand places), every change looks at all places instead.
///
/// Invariant: `nodes[k]` for `k >= 1` is the smaller of `nodes[2k]` and `nodes[2k + 1]`, the places
/// are the nodes from `leaves` on, and `first`, `first_place` are what the smallest says.
pub(crate) struct Timeline {
    first: Instant,
    first_place: usize,
    nodes: Box<[u64]>,
    leaves: usize,
    /// How many bits of a node say the place.
    place_bits: u32,
    /// In place of the instant: never.
    never: u64,
    /// The instants themselves if they do not fit the nodes, else empty.
    wide: Box<[Instant]>,
}

impl Timeline {
    /// `places` places at which nothing ever happens. Nothing after `horizon` matters.
    pub(crate) fn new(places: usize, horizon: Instant) -> Self {
        let leaves = places.next_power_of_two();
        let place_bits = leaves.trailing_zeros();
        let never = u64::MAX >> place_bits;
        let is_wide = horizon.as_ns() >= never;
        let mut timeline = Self {
            first: Instant::NEVER,
            first_place: 0,
            nodes: vec![u64::MAX; 2 * leaves].into(),
            leaves,
            place_bits,
            never,
            wide: vec![Instant::NEVER; if is_wide { places } else { 0 }].into(),
        };
        for place in 0..places {
            timeline.set(place, Instant::NEVER);
        }
        timeline
    }

    /// The earliest instant, [`Instant::NEVER`] if there is none before or at the horizon.
    #[inline]
    pub(crate) fn first(&self) -> Instant {
        self.first
    }

    /// The place of the earliest instant; of several the lowest.
    #[inline]
    pub(crate) fn first_place(&self) -> usize {
        self.first_place
    }

    /// From now on something happens at `place` at that instant, and at no other.
    ///
    /// Not inlined and without a loop: inside a loop the compiler would turn the choice of a winner
    /// into a branch, and half of those would be mispredicted.
    #[inline(never)]
    pub(crate) fn set(&mut self, place: usize, at: Instant) {
        if !self.wide.is_empty() {
            self.set_wide(place, at);
            return;
        }
        let mut winner = at.as_ns().min(self.never) << self.place_bits | place as u64;
        let mut node = self.leaves + place;
        let nodes = &mut *self.nodes;
        nodes[node] = winner;
        macro_rules! climb {
            ($($level:literal)*) => {$(
                const _: u8 = $level;
                if node > 1 {
                    let other = nodes[node ^ 1];
                    winner = select_unpredictable(other < winner, other, winner);
                    node >>= 1;
                    nodes[node] = winner;
                }
            )*};
        }
        climb!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
        while node > 1 {
            winner = winner.min(nodes[node ^ 1]);
            node >>= 1;
            nodes[node] = winner;
        }
        let first = winner >> self.place_bits;
        self.first = if first == self.never {
            Instant::NEVER
        } else {
            Instant::from_ns(first)
        };
        self.first_place = (winner & (self.leaves as u64 - 1)) as usize;
    }

    #[cold]
    fn set_wide(&mut self, place: usize, at: Instant) {
        self.wide[place] = at;
        let earliest = self
            .wide
            .iter()
            .enumerate()
            .min_by_key(|&(place, at)| (at, place));
        if let Some((place, &at)) = earliest {
            (self.first, self.first_place) = (at, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    #[test]
    fn the_first_is_the_smallest_and_of_equals_the_lowest() {
        for (places, horizon) in [1, 2, 3, 7, 64, 65]
            .into_iter()
            .flat_map(|places| [(places, 100), (places, u64::MAX)])
        {
            let mut stream = RandomStream::new(1, 0, places as u64);
            let mut timeline = Timeline::new(places, Instant::from_ns(horizon));
            let mut plain = vec![Instant::NEVER; places];
            assert_eq!(
                (timeline.first(), timeline.first_place()),
                (Instant::NEVER, 0)
            );
            for step in 0..2_000 {
                let place = stream.below(places as u64) as usize;
                let at = match stream.below(10) {
                    0 => Instant::NEVER,
                    ns => Instant::from_ns(ns),
                };
                timeline.set(place, at);
                plain[place] = at;
                let first = (0..places)
                    .min_by_key(|&place| (plain[place], place))
                    .unwrap();
                let found = (timeline.first(), timeline.first_place());
                assert_eq!(found, (plain[first], first), "{places} places, step {step}");
            }
        }
    }
}
