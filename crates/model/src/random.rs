//! Random streams. Every stream is keyed, so that a result never depends on the order in which
//! streams are used, nor on how many threads use them.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use crate::time::Span;

/// A stream of random numbers that is the same on every machine for the same key.
///
/// The generator is PCG XSL RR 128/64; the transforms are our own, since those of general random
/// libraries may change from release to release.
#[derive(Clone, Debug)]
pub struct RandomStream(Pcg64);

impl RandomStream {
    /// The stream for `seed`, refined by `cell` and `index` (of a study cell and a task set, or of
    /// what a stream is for and a task).
    pub fn new(seed: u64, cell: u64, index: u64) -> Self {
        let mut key = [0; 32];
        let mut state = 0;
        for (part, bytes) in [seed, cell, index, 0x5357]
            .into_iter()
            .zip(key.chunks_exact_mut(8))
        {
            state = mix(state ^ mix(part));
            bytes.copy_from_slice(&state.to_le_bytes());
        }
        Self(Pcg64::from_seed(key))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..bound`, without bias (Lemire 2019).
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Uniform in `[0, 1)`, a multiple of 2^-53. For generators, never for verdicts.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number of nanoseconds, uniform in the closed range.
    ///
    /// # Panics
    /// If `shortest` is longer than `longest`.
    pub fn span(&mut self, shortest: Span, longest: Span) -> Span {
        self.span_in_units(Span::from_ns(1), shortest, longest)
    }

    /// `shortest` and a whole number of units more, uniform in the closed range.
    ///
    /// # Panics
    /// If `shortest` is longer than `longest`, or the unit is zero.
    pub fn span_in_units(&mut self, unit: Span, shortest: Span, longest: Span) -> Span {
        assert!(shortest <= longest, "a range runs upwards");
        let units = (longest - shortest).as_ns() / unit.as_ns();
        shortest + Span::from_ns(self.below(units + 1) * unit.as_ns())
    }

    /// Puts the items into a uniformly random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// The finalizer of SplitMix64: every bit of the input affects every bit of the output.
const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_for_ever() {
        let mut stream = RandomStream::new(1, 2, 3);
        let drawn = [stream.bits(), stream.bits(), stream.below(1000)];
        assert_eq!(
            drawn,
            [17_845_936_179_847_543_515, 1_858_682_946_623_182_516, 714]
        );
    }

    #[test]
    fn streams_with_different_keys_differ() {
        let first = |seed, cell, index| RandomStream::new(seed, cell, index).bits();
        assert_ne!(first(1, 0, 0), first(0, 1, 0));
        assert_ne!(first(0, 1, 0), first(0, 0, 1));
    }

    #[test]
    fn small_ranges_are_covered_evenly() {
        let mut stream = RandomStream::new(7, 0, 0);
        let mut seen = [0; 6];
        for _ in 0..6_000 {
            seen[stream.below(6) as usize] += 1;
        }
        assert!(
            seen.iter().all(|&count| (850..1150).contains(&count)),
            "{seen:?}"
        );
    }
}
