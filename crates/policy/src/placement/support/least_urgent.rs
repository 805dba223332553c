//! Which of the running jobs is the least urgent.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::hint::select_unpredictable;

use super::tournament::Tournament;

/// What each of a number of places runs, and which of that is the least urgent.
#[derive(Clone, Debug)]
pub(crate) enum LeastUrgent<K> {
    Few(Vec<K>),
    Many(Tournament<Reverse<K>>),
}

impl<K: Ord + Copy> LeastUrgent<K> {
    /// `idle` comes before every job's key. Up to `few` places it is faster to look at all of them
    /// when a victim is wanted than to keep a tournament up to date at every switch.
    pub fn new(places: usize, few: usize, idle: K) -> Self {
        if places <= few {
            Self::Few(alloc::vec![idle; places])
        } else {
            Self::Many(Tournament::new(places, Reverse(idle)))
        }
    }

    /// The place runs a job of this key from now on.
    ///
    /// A function gives the key, so that each variant has its own and `Few` writes it where it
    /// belongs: one key for both would pass through memory, written in parts and read as a whole,
    /// for which processors wait.
    #[inline(always)]
    pub fn set(&mut self, place: usize, key: impl Fn() -> K) {
        match self {
            Self::Few(keys) => keys[place] = key(),
            Self::Many(tournament) => {
                tournament.set(place, Reverse(key()));
            }
        }
    }

    /// The key of the least urgent job anywhere.
    #[inline]
    pub fn key(&self) -> K {
        match self {
            Self::Few(keys) => last_of(keys),
            Self::Many(tournament) => tournament.winner().0,
        }
    }

    /// The key of the least urgent job at the places `first..last`, which must not be empty.
    #[inline]
    pub fn key_in(&self, first: usize, last: usize) -> K {
        match self {
            Self::Few(keys) => last_of(&keys[first..last]),
            Self::Many(tournament) => tournament.winner_in(first, last).0,
        }
    }
}

/// Chooses between references: whole keys would go through memory at every step.
#[inline]
fn last_of<K: Ord + Copy>(keys: &[K]) -> K {
    let later = |a, b| select_unpredictable(b > a, b, a);
    *keys.iter().reduce(later).expect("there is a place")
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    #[test]
    fn few_and_many_places_agree_with_a_plain_maximum() {
        let mut random = RandomStream::new(1, 0, 0);
        for places in [1, 2, 16, 17, 100] {
            let mut least = LeastUrgent::new(places, 16, 0);
            let mut plain = alloc::vec![0; places];
            for step in 0..300 {
                let place = random.below(places as u64) as usize;
                plain[place] = random.below(1000);
                least.set(place, || plain[place]);
                let first = random.below(places as u64) as usize;
                let last = first + 1 + random.below((places - first) as u64) as usize;
                let expected = plain[first..last].iter().max().copied();
                assert_eq!(
                    Some(least.key_in(first, last)),
                    expected,
                    "{places}, step {step}"
                );
            }
        }
    }
}
