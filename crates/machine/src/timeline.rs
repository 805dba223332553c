//! The earliest of many timers.

use core::hint::select_unpredictable;

use shiftwork_model::Instant;

/// The expiry instants of a fixed number of timers, and the earliest of them: a tournament tree of four
/// entries per block. A timer is identified by its *place*, a number from 0.
///
/// Instants after the horizon of the run count as never. An entry therefore has room for the instant and
/// the place in one word, and one comparison ranks by instant, then by place. Where both do not fit into
/// a word (hundreds of days with a thousand timers), every change scans all instants instead.
///
/// Entry `k` of block `b` has the number `4b + k`. Invariant: the places are the entries from number `leaves` on; an earlier
/// entry `e` is the smallest entry of block `e - 2`, and `first`, `first_place` are the instant and the place in the smallest
/// entry of block 1. Block 0 is not used: with it, the entry of a block would take one step more to compute.
pub struct Timeline {
    first: Instant,
    first_place: usize,
    blocks: Box<[[u64; WIDTH]]>,
    leaves: usize,
    /// Number of bits of an entry that hold the place.
    place_bits: u32,
    /// Mask of these bits.
    place_mask: u64,
    /// The instant part of an entry that stands for never.
    never: u64,
    /// The instants themselves if they do not fit the entries, else empty.
    wide: Box<[Instant]>,
}

/// Entries per block, a power of two.
const WIDTH: usize = 4;

/// The first block.
const ROOT: usize = 1;

impl Timeline {
    /// `places` timers, none of them set. Instants after `horizon` count as never.
    pub fn new(places: usize, horizon: Instant) -> Self {
        let (mut leaves, mut capacity) = (ROOT * WIDTH, WIDTH);
        while capacity < places {
            leaves = WIDTH * (leaves - 2);
            capacity *= WIDTH;
        }
        let place_bits = capacity.trailing_zeros();
        let never = u64::MAX >> place_bits;
        let is_wide = horizon.as_ns() >= never;
        let mut timeline = Self {
            first: Instant::NEVER,
            first_place: 0,
            blocks: vec![[u64::MAX; WIDTH]; (leaves + places).div_ceil(WIDTH)].into(),
            leaves,
            place_bits,
            place_mask: capacity as u64 - 1,
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
    pub fn first(&self) -> Instant {
        self.first
    }

    /// The place of the timer that expires first; the lowest of several.
    #[inline]
    pub fn first_place(&self) -> usize {
        self.first_place
    }

    /// Sets the timer of `place` to expire at `at`, and at no other instant.
    ///
    /// Always inline: trees differ in height, and the exit of the loop is predicted well only where each
    /// caller has its own copy of it.
    #[inline(always)]
    pub fn set(&mut self, place: usize, at: Instant) {
        if !self.wide.is_empty() {
            self.set_wide(place, at);
            return;
        }
        let mut winner = at.as_ns().min(self.never) << self.place_bits | place as u64;
        let mut number = self.leaves + place;
        loop {
            let (block, entry) = (number / WIDTH, number % WIDTH);
            let entries = &mut self.blocks[block];
            let other = smallest_other(entries, entry);
            entries[entry] = winner;
            winner = smaller(winner, other);
            if block == ROOT {
                break;
            }
            number = block + 2;
        }
        let first = winner >> self.place_bits;
        self.first = if first == self.never {
            Instant::NEVER
        } else {
            Instant::from_ns(first)
        };
        self.first_place = (winner & self.place_mask) as usize;
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

/// The smallest of the other entries.
///
/// Does not read `entry` itself, so that a caller that has just written it does not wait for the store.
#[inline(always)]
fn smallest_other(entries: &[u64; WIDTH], entry: usize) -> u64 {
    let other = |distance: usize| entries[(entry ^ distance) % WIDTH];
    smaller(smaller(other(1), other(2)), other(3))
}

/// Branch-free: half of the branches would be mispredicted.
#[inline(always)]
fn smaller(a: u64, b: u64) -> u64 {
    select_unpredictable(b < a, b, a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    #[test]
    fn first_is_the_earliest_instant_and_ties_go_to_the_lowest_place() {
        for (places, horizon) in [1, 2, 3, 8, 9, 64, 65, 600]
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
