//! A bit set over positions that answers "the first one in this range" without looking at every
//! word.

use shiftwork_model::CPUS_MAX;

const WORDS: usize = CPUS_MAX / 64;

/// Positions `0..CPUS_MAX`. Bit w of `summary` says whether `words[w]` has any bit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RangeBits {
    words: [u64; WORDS],
    summary: u64,
}

impl RangeBits {
    #[inline]
    pub fn insert(&mut self, position: usize) {
        self.words[position / 64] |= 1 << (position % 64);
        self.summary |= 1 << (position / 64);
    }

    #[inline]
    pub fn remove(&mut self, position: usize) {
        let word = &mut self.words[position / 64];
        *word &= !(1 << (position % 64));
        if *word == 0 {
            self.summary &= !(1 << (position / 64));
        }
    }

    #[inline]
    pub fn contains(&self, position: usize) -> bool {
        self.words[position / 64] >> (position % 64) & 1 == 1
    }

    /// The first position of the set in `first..last`, which must not be empty.
    #[inline]
    pub fn first_in(&self, first: usize, last: usize) -> Option<usize> {
        let (low, high) = (first / 64, (last - 1) / 64);
        let head = self.words[low] & (!0 << (first % 64));
        let position = if head != 0 {
            low * 64 + head.trailing_zeros() as usize
        } else {
            let later = self.summary & !((2u64 << low) - 1);
            if later == 0 || later.trailing_zeros() as usize > high {
                return None;
            }
            let word = later.trailing_zeros() as usize;
            word * 64 + self.words[word].trailing_zeros() as usize
        };
        (position < last).then_some(position)
    }

    /// The first position in both sets and in `first..last`, which must not be empty.
    pub fn first_in_both(&self, other: &Self, first: usize, last: usize) -> Option<usize> {
        let mut words = self.summary & other.summary;
        while words != 0 {
            let word = words.trailing_zeros() as usize;
            words &= words - 1;
            let mut both = self.words[word] & other.words[word];
            if word == first / 64 {
                both &= !0 << (first % 64);
            }
            if both == 0 || word < first / 64 {
                continue;
            }
            let position = word * 64 + both.trailing_zeros() as usize;
            return (position < last).then_some(position);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    #[test]
    fn ranges_are_searched_as_bit_by_bit() {
        for seed in 1..=30 {
            let mut random = RandomStream::new(seed, 0, 0);
            let (mut bits, mut other) = (RangeBits::default(), RangeBits::default());
            for step in 0..400 {
                let position = random.below(CPUS_MAX as u64) as usize;
                match random.below(3) {
                    0 => bits.insert(position),
                    1 => other.insert(position),
                    _ => bits.remove(position),
                }
                let first = random.below(CPUS_MAX as u64) as usize;
                let last = first + 1 + random.below((CPUS_MAX - first) as u64) as usize;
                let expected = (first..last).find(|&p| bits.contains(p));
                assert_eq!(
                    bits.first_in(first, last),
                    expected,
                    "seed {seed}, step {step}"
                );
                let expected = (first..last).find(|&p| bits.contains(p) && other.contains(p));
                let found = bits.first_in_both(&other, first, last);
                assert_eq!(found, expected, "seed {seed}, step {step}");
            }
        }
    }
}
