//! The next instant of many clocks.

use core::hint::select_unpredictable;

use shiftwork_model::Instant;

/// For each of a fixed number of places the instant at which something happens there, and at any
/// time the first of them: a tournament tree.
///
/// Invariant: `nodes[k]` for `k >= 1` is the smaller of `nodes[2k]` and `nodes[2k + 1]`; the places
/// are the nodes from `leaves` on. An entry has the instant in the upper and the place in the lower
/// half, so that one comparison ranks by instant, then by place, and a walk up the tree has no
/// branch to mispredict.
pub(crate) struct Timeline {
    nodes: Box<[u128]>,
    leaves: usize,
}

impl Timeline {
    /// `places` places at which nothing ever happens.
    pub(crate) fn new(places: usize) -> Self {
        let leaves = places.next_power_of_two();
        let mut timeline = Self {
            nodes: vec![u128::MAX; 2 * leaves].into(),
            leaves,
        };
        for place in 0..places {
            timeline.set(place, Instant::NEVER);
        }
        timeline
    }

    /// The earliest instant, [`Instant::NEVER`] if there is none.
    pub(crate) fn first(&self) -> Instant {
        instant(self.nodes[1])
    }

    /// The place of the earliest instant; of several the lowest.
    pub(crate) fn first_place(&self) -> usize {
        self.nodes[1] as u64 as usize
    }

    /// When something happens at `place`.
    pub(crate) fn at(&self, place: usize) -> Instant {
        instant(self.nodes[self.leaves + place])
    }

    /// From now on something happens at `place` at that instant, and at no other.
    ///
    /// Not inlined and without a loop: inside a loop the compiler would turn the choice of a winner
    /// into a branch, and half of those would be mispredicted.
    #[inline(never)]
    pub(crate) fn set(&mut self, place: usize, at: Instant) {
        let mut winner = u128::from(at.as_ns()) << 64 | place as u128;
        let mut node = self.leaves + place;
        let nodes = &mut *self.nodes;
        nodes[node] = winner;
        macro_rules! climb {
            ($($level:literal)*) => {$(
                if node <= 1 {
                    return;
                }
                winner = smaller(winner, nodes[node ^ 1]);
                node >>= 1;
                nodes[node] = winner;
                let _: u8 = $level;
            )*};
        }
        climb!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
        while node > 1 {
            winner = smaller(winner, nodes[node ^ 1]);
            node >>= 1;
            nodes[node] = winner;
        }
    }
}

fn smaller(a: u128, b: u128) -> u128 {
    select_unpredictable(b < a, b, a)
}

fn instant(entry: u128) -> Instant {
    Instant::from_ns((entry >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    #[test]
    fn the_first_is_the_smallest_and_of_equals_the_lowest() {
        for places in [1, 2, 3, 7, 64, 65] {
            let mut stream = RandomStream::new(1, 0, places as u64);
            let mut timeline = Timeline::new(places);
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
                let found = (timeline.first(), timeline.first_place(), timeline.at(place));
                assert_eq!(
                    found,
                    (plain[first], first, at),
                    "{places} places, step {step}"
                );
            }
        }
    }
}
