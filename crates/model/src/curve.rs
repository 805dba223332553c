//! Arrival curves: how close the arrivals of a task may be, for any number of them.

use core::fmt;

use alloc::vec::Vec;

use crate::time::Span;

/// The least distances between arrivals of a task: the *minimum-distance function* of its arrivals, and its
/// pseudo-inverse, how many arrivals a window of some length holds at most.
///
/// `distance(g)` is the least time from an arrival to the g-th after it. It is given for g = 1, 2, .. up to some length, and
/// goes on beyond as the largest function that follows: `distance(g)` is the maximum of `distance(a) + distance(g - a)`
/// over all a.
///
/// Invariant: the distances that are given are above zero and *super-additive*, that is `distance(a + b)` is at least
/// `distance(a) + distance(b)`; so they ascend. From some number of gaps on,
/// `distance(g) = distance(g - block) + distance(block)`.
#[derive(Clone, PartialEq, Eq)]
pub struct ArrivalCurve {
    /// As they were given, from one gap on.
    distances: Vec<Span>,
    /// The distance of 0, 1, 2, .. gaps in nanoseconds, until the blocks repeat.
    table: Vec<u128>,
    /// The number of gaps, among those that are given, with the longest mean.
    block: usize,
}

/// Why distances are not those of an arrival curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveError {
    /// There are none, or more than [`ArrivalCurve::LENGTH_MAX`].
    Length(usize),
    /// The distance of two arrivals is zero.
    Zero,
    /// Shorter distances together are longer than this one.
    TooShort {
        /// Of so many arrivals.
        arrivals: usize,
        /// The least time from the first to the last of them, as given.
        distance: Span,
        /// What follows from the distances of fewer arrivals.
        least: Span,
    },
}

impl fmt::Display for CurveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(
                f,
                "{length} distances; an arrival curve has 1 to {}",
                ArrivalCurve::LENGTH_MAX
            ),
            Self::Zero => f.write_str("a distance of zero; arrivals are some time apart"),
            Self::TooShort {
                arrivals,
                distance,
                least,
            } => write!(
                f,
                "{distance} for {arrivals} arrivals; by the distances before it they are at least {least} apart"
            ),
        }
    }
}

/// Shown as the distances that were given.
impl fmt::Debug for ArrivalCurve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.distances).finish()
    }
}

impl ArrivalCurve {
    /// The most distances that a curve may be given.
    pub const LENGTH_MAX: usize = 256;

    /// The curve with these distances: the g-th, from 1, is the least time from an arrival to the g-th after it.
    ///
    /// # Errors
    /// If they are none, too many, zero or not super-additive.
    ///
    /// # Cost
    /// For each of up to n * n gaps, n steps, where n distances are given: as many as it takes until blocks repeat.
    pub fn new(distances: Vec<Span>) -> Result<Self, CurveError> {
        let length = distances.len();
        if length == 0 || length > Self::LENGTH_MAX {
            return Err(CurveError::Length(length));
        }
        let given = |gaps: usize| u128::from(distances[gaps - 1].as_ns());
        if given(1) == 0 {
            return Err(CurveError::Zero);
        }
        let mut table = alloc::vec![0, given(1)];
        for gaps in 2..=length {
            let least = closure(&table, gaps, gaps - 1);
            if given(gaps) < least {
                return Err(CurveError::TooShort {
                    arrivals: gaps + 1,
                    distance: distances[gaps - 1],
                    least: Span::from_ns(u64::try_from(least).unwrap_or(u64::MAX)),
                });
            }
            table.push(given(gaps));
        }
        let block = longest_mean(&table);
        // Of distances beyond, the last as many as were given; if all of them end with a block, those after them do.
        let mut in_blocks = 0;
        while in_blocks < length {
            let gaps = table.len();
            table.push(closure(&table, gaps, length));
            let is_block = table[gaps] == table[gaps - block] + table[block];
            in_blocks = if is_block { in_blocks + 1 } else { 0 };
        }
        Ok(Self {
            distances,
            table,
            block,
        })
    }

    /// The distances as they were given.
    pub fn distances(&self) -> &[Span] {
        &self.distances
    }

    /// The least time from an arrival to the next: the period of sporadic tasks that may do all that the curve allows.
    pub fn shortest(&self) -> Span {
        self.distances[0]
    }

    /// The least time, in nanoseconds, from an arrival to the one that comes so many gaps later.
    pub fn distance_ns(&self, gaps: u128) -> u128 {
        let last = (self.table.len() - 1) as u128;
        let blocks = gaps.saturating_sub(last).div_ceil(self.block as u128);
        // At most the last entry of the table.
        let within = (gaps - blocks * self.block as u128) as usize;
        blocks
            .saturating_mul(self.table[self.block])
            .saturating_add(self.table[within])
    }

    /// The most gaps between arrivals, of which the first and the last are at most this far apart: the largest number whose
    /// distance is not above it.
    pub fn gaps_within(&self, length_ns: u128) -> u128 {
        let last = self.table.len() - 1;
        let block_ns = self.table[self.block];
        let blocks = match length_ns.checked_sub(self.table[last]) {
            Some(beyond) => beyond / block_ns + 1,
            None => 0,
        };
        let within = length_ns - blocks * block_ns;
        // The table ascends, and its first entry is zero.
        let gaps = self.table.partition_point(|&distance| distance <= within) - 1;
        gaps as u128 + blocks * self.block as u128
    }

    /// How many gaps come in which time in the long run if all arrivals are as early as possible: the number of gaps with
    /// the longest mean.
    pub fn block(&self) -> (u64, Span) {
        (self.block as u64, self.distances[self.block - 1])
    }

    /// The mean distance of arrivals in the long run if all are as early as possible, rounded up: arrivals that are always
    /// this far apart keep to the curve.
    pub fn mean(&self) -> Span {
        let (gaps, length) = self.block();
        Span::from_ns(length.as_ns().div_ceil(gaps))
    }

    /// So much work every so often, in the long run, if each arrival brings so much.
    pub fn long_run(&self, cost: Span) -> (Span, Span) {
        let (gaps, length) = self.block();
        match cost.checked_mul(gaps) {
            Some(work) => (work, length),
            // Centuries of work: rounding the mean down by a nanosecond changes nothing.
            None => (cost, Span::from_ns((length.as_ns() / gaps).max(1))),
        }
    }

    /// The longest time from an arrival to the earliest instant at which the curve allows the next, whatever the arrivals
    /// before it.
    pub fn longest_gap(&self) -> Span {
        let given = &self.table[..=self.distances.len()];
        let gaps = given.windows(2).map(|pair| pair[1] - pair[0]);
        // No longer than a distance that was given.
        Span::from_ns(gaps.max().unwrap_or(0) as u64)
    }

    /// The same curve with all times multiplied; `None` if one is then longer than a file may name.
    pub fn scaled(&self, times: impl Fn(Span) -> Option<Span>) -> Option<Self> {
        let distances: Option<Vec<Span>> = self.distances.iter().copied().map(times).collect();
        Self::new(distances?).ok()
    }
}

/// What follows for so many gaps from the distances of fewer, of which those of up to `length` gaps are combined with the
/// rest.
fn closure(table: &[u128], gaps: usize, length: usize) -> u128 {
    let splits = (1..=length).map(|first| table[first] + table[gaps - first]);
    splits.max().unwrap_or(0)
}

/// The number of gaps with the longest mean, the least of equals.
fn longest_mean(table: &[u128]) -> usize {
    (2..table.len()).fold(1, |best, gaps| {
        // Distances have 62 bits and numbers of gaps 9.
        let is_longer = table[gaps] * best as u128 > table[best] * gaps as u128;
        if is_longer { gaps } else { best }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;
    use alloc::string::ToString;

    fn curve(distances: &[u64]) -> Result<ArrivalCurve, CurveError> {
        ArrivalCurve::new(distances.iter().copied().map(Span::from_ns).collect())
    }

    /// The definition: the earliest arrivals, each as soon as all that was given of it and those before allows. Wide
    /// windows are sums of narrow ones, so the n-th arrival is at the distance of n gaps.
    fn earliest(distances: &[u64], count: usize) -> Vec<u64> {
        let mut at: Vec<u64> = alloc::vec![0];
        while at.len() < count {
            let allowed = distances
                .iter()
                .enumerate()
                .filter_map(|(place, distance)| {
                    let before = at.len().checked_sub(place + 1)?;
                    Some(at[before] + distance)
                });
            at.push(allowed.max().unwrap());
        }
        at
    }

    /// Super-additive distances by the seed.
    fn random(seed: u64) -> Vec<u64> {
        let mut stream = RandomStream::new(seed, 201, 0);
        let length = 1 + stream.below(7) as usize;
        let mut distances: Vec<u64> = Vec::new();
        for gaps in 1..=length {
            let follows = (1..gaps).map(|first| distances[first - 1] + distances[gaps - first - 1]);
            let least = follows.max().unwrap_or(1);
            distances.push(least + stream.below(2) * stream.below(30));
        }
        distances
    }

    #[test]
    fn distances_are_those_of_the_earliest_arrivals_and_gaps_are_their_inverse() {
        let mut before_blocks = 0;
        for seed in 0..2_000 {
            let distances = random(seed);
            let curve = curve(&distances).unwrap();
            let at = earliest(&distances, 120);
            for (gaps, &expected) in at.iter().enumerate() {
                let found = curve.distance_ns(gaps as u128);
                assert_eq!(
                    found,
                    u128::from(expected),
                    "seed {seed}: {distances:?} {gaps}"
                );
            }
            // All windows of the earliest arrivals, of which the last begins well before the end.
            for length in 0..at[100].min(400) {
                let fit = |first: usize| {
                    let origin = at[first];
                    let near = at[first..].iter();
                    near.take_while(move |&&it| it - origin <= length).count()
                };
                let most = (0..10).map(|first| fit(first) - 1).max().unwrap();
                let gaps = curve.gaps_within(length.into());
                assert_eq!(gaps, most as u128, "seed {seed}: {distances:?} {length}");
            }
            before_blocks += usize::from(curve.table.len() > 2 * distances.len() + 1);
        }
        assert!(before_blocks > 10, "{before_blocks}");
    }

    #[test]
    fn arrivals_at_the_mean_distance_keep_to_the_curve_and_closer_ones_do_not() {
        for seed in 0..500 {
            let distances = random(seed);
            let curve = curve(&distances).unwrap();
            let mean = u128::from(curve.mean().as_ns());
            let keeps = |apart: u128| (1..=300).all(|gaps| gaps * apart >= curve.distance_ns(gaps));
            assert!(keeps(mean), "seed {seed}: {distances:?}");
            assert!(mean == 1 || !keeps(mean - 1), "seed {seed}: {distances:?}");
        }
    }

    #[test]
    fn longest_gap_is_that_of_arrivals_as_early_as_allowed_after_any() {
        for seed in 0..500 {
            let mut stream = RandomStream::new(seed, 202, 0);
            let distances = random(seed);
            let longest = curve(&distances).unwrap().longest_gap().as_ns();
            let mut at: Vec<u64> = alloc::vec![0];
            for _ in 0..60 {
                let allowed = distances.iter().zip(at.iter().rev());
                let next = allowed
                    .map(|(distance, before)| before + distance)
                    .max()
                    .unwrap();
                assert!(
                    next - at[at.len() - 1] <= longest,
                    "seed {seed}: {distances:?} {at:?}"
                );
                at.push(next + stream.below(2) * stream.below(20));
            }
            let dense = earliest(&distances, distances.len() + 1);
            assert!(dense.windows(2).any(|pair| pair[1] - pair[0] == longest));
        }
    }

    #[test]
    fn one_distance_is_a_period() {
        let curve = curve(&[10]).unwrap();
        assert_eq!(
            [0, 9, 10, 25].map(|length| curve.gaps_within(length)),
            [0, 0, 1, 2]
        );
        assert_eq!(
            (curve.mean(), curve.longest_gap()),
            (Span::from_ns(10), Span::from_ns(10))
        );
        assert_eq!(curve.distance_ns(1 << 70), 10 << 70);
        assert_eq!(curve.gaps_within(10 << 70), 1 << 70);
    }

    #[test]
    fn block_is_the_one_with_the_longest_mean_and_not_the_last() {
        let curve = curve(&[10, 100, 110]).unwrap();
        assert_eq!(curve.block(), (2, Span::from_ns(100)));
        assert_eq!(curve.distance_ns(4), 200);
        assert_eq!(curve.distance_ns(5), 210);
    }

    #[test]
    fn longest_distances_and_lists_are_taken() {
        let many: Vec<Span> = (1..=256)
            .map(|gaps| Span::from_ns(gaps * (1 << 53)))
            .collect();
        assert_eq!(ArrivalCurve::new(many).unwrap().block().0, 1);
        let most = Span::MAX.as_ns();
        let curve = curve(&[1, most]).unwrap();
        assert_eq!(curve.distance_ns(u128::MAX), u128::MAX);
        assert!(curve.gaps_within(u128::MAX) > 1 << 60);
    }

    #[test]
    fn what_is_no_curve_is_refused_with_the_reason() {
        for (distances, message) in [
            (&[][..], "0 distances; an arrival curve has 1 to 256"),
            (
                &[0, 5][..],
                "a distance of zero; arrivals are some time apart",
            ),
            (
                &[4, 4][..],
                "4ns for 3 arrivals; by the distances before it they are at least 8ns apart",
            ),
            (
                &[1, 10, 10][..],
                "10ns for 4 arrivals; by the distances before it they are at least 11ns apart",
            ),
        ] {
            assert_eq!(curve(distances).unwrap_err().to_string(), message);
        }
    }
}
