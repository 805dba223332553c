//! Statistics of spans in constant memory.

use shiftwork_model::Span;

/// Statistics of a span-valued quantity over completed jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanStatistics {
    /// The shortest.
    pub min_ns: u64,
    /// The mean, rounded to the nearest nanosecond.
    pub mean_ns: u64,
    /// The shortest span that at least 99% do not exceed, to three digits.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// A sum and a maximum, exact.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    sum_ns: u128,
    max_ns: u64,
}

impl Total {
    #[inline]
    pub fn add(&mut self, span: Span) {
        self.sum_ns += u128::from(span.as_ns());
        self.max_ns = self.max_ns.max(span.as_ns());
    }

    /// The sum, saturating.
    pub fn sum_ns(&self) -> u64 {
        u64::try_from(self.sum_ns).unwrap_or(u64::MAX)
    }

    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The mean of `count` spans, rounded to the nearest; zero for none.
    pub fn mean_ns(&self, count: u64) -> u64 {
        let count = u128::from(count);
        let mean = (self.sum_ns + count / 2).checked_div(count).unwrap_or(0);
        u64::try_from(mean).expect("a mean is not above the largest of its terms, which fit")
    }
}

/// The distribution of spans, for percentiles to three digits, in constant memory.
#[derive(Clone, Debug)]
pub struct Distribution {
    total: Total,
    min_ns: u64,
    counts: Option<Box<Counts>>,
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            total: Total::default(),
            min_ns: u64::MAX,
            counts: None,
        }
    }
}

impl Distribution {
    /// Adds one.
    #[inline]
    pub fn add(&mut self, span: Span) {
        self.total.add(span);
        self.min_ns = self.min_ns.min(span.as_ns());
        match &mut self.counts {
            Some(counts) => counts.add(span.as_ns()),
            None => self.add_first(span.as_ns()),
        }
    }

    #[cold]
    fn add_first(&mut self, value_ns: u64) {
        self.counts.insert(Box::default()).add(value_ns);
    }

    /// The sum of all spans; as much as fits.
    pub fn sum_ns(&self) -> u64 {
        self.total.sum_ns()
    }

    /// The mean of `count` spans, which is how many were added, rounded to the nearest nanosecond; zero of none.
    pub fn mean_ns(&self, count: u64) -> u64 {
        self.total.mean_ns(count)
    }

    /// The longest; zero of none.
    pub const fn max_ns(&self) -> u64 {
        self.total.max_ns()
    }

    /// Of `count` spans, which is how many were added; `None` if there was none.
    pub fn statistics(&self, count: u64) -> Option<SpanStatistics> {
        Some(SpanStatistics {
            min_ns: self.min_ns,
            mean_ns: self.total.mean_ns(count),
            p99_ns: self.ranked_ns(count - count / 100)?,
            max_ns: self.total.max_ns,
        })
    }

    /// The span of this rank among those added, to three digits; the shortest has rank 1. `None` if
    /// there was none.
    pub fn ranked_ns(&self, rank: u64) -> Option<u64> {
        let counts = self.counts.as_ref()?;
        Some(counts.ranked_ns(rank).clamp(self.min_ns, self.total.max_ns))
    }
}

/// How many spans of which length there were, to three digits.
///
/// Spans below [`SLOTS`] ns are counted one by one, longer ones in [`SLOTS`] equal slots per octave
/// (power of two), so that the middle of a slot is within 0.1% of every span in it. An octave takes
/// 4 KB and is allocated when the first span falls into it: response times of one task rarely
/// spread over more than a few. The `hdrhistogram` crate was measured first; in the hot loop of a
/// simulation it costs several times as much, and at 1 ns it needs 8 KB for every octave up to the
/// largest span, used or not.
#[derive(Clone, Debug)]
struct Counts {
    octaves: [Option<Box<[u64; SLOTS]>>; OCTAVES],
}

const SLOTS: usize = 1 << SLOTS_LOG;
const SLOTS_LOG: u32 = 9;

/// One for the spans below [`SLOTS`], and one for each higher bit.
const OCTAVES: usize = (64 - SLOTS_LOG + 1) as usize;

impl Default for Counts {
    fn default() -> Self {
        Self {
            octaves: [const { None }; OCTAVES],
        }
    }
}

impl Counts {
    #[inline]
    fn add(&mut self, value_ns: u64) {
        let octave = (value_ns | (SLOTS as u64 - 1)).ilog2() - (SLOTS_LOG - 1);
        // In octave 0 the slot is the value itself, above it what follows the value's top bit.
        let slot = (value_ns >> octave.saturating_sub(1)) as usize % SLOTS;
        match &mut self.octaves[octave as usize] {
            Some(counts) => counts[slot] += 1,
            None => self.add_first_of(octave as usize, slot),
        }
    }

    /// Apart, so that what comes before saves no registers for the allocation.
    #[cold]
    fn add_first_of(&mut self, octave: usize, slot: usize) {
        let counts = self.octaves[octave].insert(Box::new([0; SLOTS]));
        counts[slot] = 1;
    }

    /// The span of this rank among those counted, to three digits; the shortest has rank 1.
    fn ranked_ns(&self, rank: u64) -> u64 {
        let mut up_to_here = 0;
        for (octave, counts) in self.octaves.iter().enumerate() {
            for (slot, &count) in counts.iter().flat_map(|counts| counts.iter().enumerate()) {
                up_to_here += count;
                if up_to_here >= rank {
                    return middle_ns(octave, slot);
                }
            }
        }
        0
    }
}

/// The middle of a slot.
const fn middle_ns(octave: usize, slot: usize) -> u64 {
    if octave == 0 {
        return slot as u64;
    }
    let width = 1 << (octave - 1);
    (SLOTS + slot) as u64 * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    fn statistics(values: &[u64]) -> SpanStatistics {
        let mut distribution = Distribution::default();
        values
            .iter()
            .for_each(|&ns| distribution.add(Span::from_ns(ns)));
        distribution.statistics(values.len() as u64).unwrap()
    }

    #[test]
    fn statistics_without_spans_are_none() {
        assert_eq!(Distribution::default().statistics(0), None);
    }

    #[test]
    fn mean_is_rounded_to_the_nearest() {
        assert_eq!(statistics(&[1, 2, 2]).mean_ns, 2);
        assert_eq!(statistics(&[1, 1, 2]).mean_ns, 1);
        assert_eq!(statistics(&[u64::MAX, u64::MAX]).mean_ns, u64::MAX);
    }

    #[test]
    fn extremes_are_exact_and_the_percentile_has_three_digits() {
        for seed in 1..=300 {
            let mut random = RandomStream::new(seed, 1, 0);
            let mut values: Vec<u64> = (0..1 + random.below(2_000))
                .map(|_| random.bits() >> random.below(64))
                .collect();
            let found = statistics(&values);
            values.sort_unstable();
            let p99 = values[(values.len() * 99).div_ceil(100) - 1];
            assert_eq!(found.min_ns, values[0], "seed {seed}");
            assert_eq!(found.max_ns, values[values.len() - 1], "seed {seed}");
            let error = found.p99_ns.abs_diff(p99);
            assert!(
                error <= p99 / 1_000,
                "seed {seed}: {} for {p99}",
                found.p99_ns
            );
        }
    }

    #[test]
    fn size_depends_only_on_the_spread_of_the_values() {
        let mut distribution = Distribution::default();
        for ns in 1_000_000_000..1_000_100_000 {
            distribution.add(Span::from_ns(ns));
        }
        let counts = distribution.counts.unwrap();
        assert!(counts.octaves.iter().flatten().count() <= 2);
    }

    #[test]
    fn every_span_has_a_slot_whose_middle_is_near() {
        for bit in 0..64 {
            for value in [
                1u64 << bit,
                (1 << bit) - 1,
                (1 << bit) + ((1 << bit) >> 1),
                u64::MAX,
            ] {
                let mut counts = Counts::default();
                counts.add(value);
                let error = counts.ranked_ns(1).abs_diff(value);
                assert!(error <= value / 1_000, "{value}");
            }
        }
    }
}
