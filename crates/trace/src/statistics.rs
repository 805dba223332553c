//! Statistics of spans in constant memory.

use hdrhistogram::Histogram;
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

/// Spans of which the 99th percentile to three digits will be asked for.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
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
    #[inline]
    pub fn add(&mut self, span: Span) {
        self.total.add(span);
        self.min_ns = self.min_ns.min(span.as_ns());
        self.counts
            .get_or_insert_with(|| Box::new(Counts::new(span.as_ns())))
            .add(span.as_ns());
    }

    /// `None` if there was no span.
    pub fn statistics(&self) -> Option<SpanStatistics> {
        let counts = self.counts.as_ref()?;
        Some(SpanStatistics {
            min_ns: self.min_ns,
            mean_ns: self.total.mean_ns(counts.histogram.len()),
            p99_ns: counts
                .quantile_ns(0.99)
                .clamp(self.min_ns, self.total.max_ns),
            max_ns: self.total.max_ns,
        })
    }
}

/// A histogram whose resolution follows the values.
///
/// An HDR histogram that resolves nanoseconds takes 8 KB for every power of two between 1 us and
/// its largest value, so a thousand tasks would take hundreds of megabytes. This one starts at a
/// coarser unit that still gives three digits, and is rebuilt in the rare case that a much smaller
/// value comes.
///
/// Invariant: every value is at least [`UNITS_LEAST`] units, or the unit is 1 ns.
#[derive(Clone, Debug)]
struct Counts {
    least_ns: u64,
    histogram: Histogram<u64>,
}

/// With a resolution of one unit, this many units are known to three digits.
const UNITS_LEAST: u64 = 1 << 10;

impl Counts {
    /// Room for values around `first_ns`; those down to an eighth of it need no rebuilding.
    fn new(first_ns: u64) -> Self {
        let unit_ns = (first_ns / (8 * UNITS_LEAST))
            .checked_ilog2()
            .map_or(1, |log| 1 << log);
        let mut histogram =
            Histogram::new_with_bounds(unit_ns, unit_ns.saturating_mul(2048 * 8), 3).expect(
                "the lower bound is at least 1, the upper one more than twice that, 3 digits",
            );
        histogram.auto(true);
        Self {
            least_ns: if unit_ns == 1 {
                0
            } else {
                unit_ns * UNITS_LEAST
            },
            histogram,
        }
    }

    #[inline]
    fn add(&mut self, value_ns: u64) {
        if value_ns < self.least_ns {
            self.rebuild(value_ns);
        }
        self.histogram
            .record(value_ns)
            .expect("a histogram that resizes itself takes every value");
    }

    /// Moves to a finer unit. The values so far keep their three digits.
    #[cold]
    fn rebuild(&mut self, value_ns: u64) {
        let mut finer = Self::new(value_ns);
        for step in self.histogram.iter_recorded() {
            finer
                .histogram
                .record_n(step.value_iterated_to(), step.count_at_value())
                .expect("a histogram that resizes itself takes every value");
        }
        *self = finer;
    }

    fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile)
    }
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
        distribution.statistics().unwrap()
    }

    #[test]
    fn there_are_no_statistics_of_nothing() {
        assert_eq!(Distribution::default().statistics(), None);
    }

    #[test]
    fn the_mean_is_rounded_to_the_nearest() {
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
            // Half a unit in the third digit, twice: values may have been moved once.
            let error = found.p99_ns.abs_diff(p99);
            assert!(
                error <= p99 / 500,
                "seed {seed}: {} for {p99}",
                found.p99_ns
            );
        }
    }

    #[test]
    fn the_size_depends_on_the_spread_of_the_values_only() {
        let mut distribution = Distribution::default();
        for ns in 1_000_000_000..1_000_100_000 {
            distribution.add(Span::from_ns(ns));
        }
        let counts = distribution.counts.unwrap();
        assert!(counts.histogram.distinct_values() <= 8 * 1024);
    }
}
