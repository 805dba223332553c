//! What samples amount to: means, quantiles, and how sure that is.
//!
//! Samples come in batches, one for each round of a calibration. Rounds are spread over all of its time, so
//! what changes slowly (other guests of the host, temperature) differs between batches as it would between
//! calibrations, and their means say honestly how well a mean is known; single samples, of which each is like
//! the one before it, would not.

/// The batches of one quantity, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    all: Vec<Vec<i64>>,
    /// How many samples found no room on their way.
    pub lost: u64,
}

/// A value with the ends of its 95% confidence interval, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The value.
    pub value: i64,
    /// The lower end.
    pub low: i64,
    /// The upper end.
    pub high: i64,
}

impl Interval {
    /// Whether two of them have something in common: where the quantity has not changed, they do but for one
    /// time in about 180 if they are equally wide, and one in 20 if one of them has no width.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// What the samples of one quantity amount to, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many samples there are.
    pub samples: usize,
    /// In how many batches.
    pub batches: usize,
    /// How many are left out as outliers: the largest, at most 1% of all.
    pub dropped: usize,
    /// The least.
    pub min: i64,
    /// Of those that are not left out; its interval is that of the means of the batches.
    pub mean: Interval,
    /// The median of the means of the batches: a round in which others took the CPUs does not move it.
    pub typical: i64,
    /// Of all; the interval supposes no distribution.
    pub median: Interval,
    /// Of all; the interval supposes no distribution. A high end beyond all samples is the largest.
    pub p99: Interval,
    /// The largest of those that are not left out.
    pub worst: i64,
    /// The largest of all.
    pub max: i64,
}

/// One sample of so many may be left out at the top.
///
/// # Source
/// B. Brandenburg, J. Calandrino, J. Anderson, "On the Scalability of Real-Time Scheduling Algorithms on
/// Multicore Platforms: A Case Study", RTSS 2008: interrupts of other devices cannot be kept out of
/// measurements from user space, so the worst 1% are taken to be theirs.
const ONE_OF: usize = 100;

impl Batches {
    /// Adds what one round measured; an empty batch says nothing and is left out.
    pub fn push(&mut self, batch: Vec<i64>) {
        if !batch.is_empty() {
            self.all.push(batch);
        }
    }

    /// All samples, ascending.
    pub fn sorted(&self) -> Vec<i64> {
        let mut all: Vec<i64> = self.all.iter().flatten().copied().collect();
        all.sort_unstable();
        all
    }

    /// What they amount to; `None` without any sample. O(n log n) steps.
    pub fn summary(&self) -> Option<Summary> {
        let sorted = self.sorted();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        // Equal samples are kept or dropped together, so that the order of samples does not matter.
        let worst = sorted[sorted.len() - 1 - sorted.len() / ONE_OF];
        let kept = sorted.partition_point(|&ns| ns <= worst);
        Some(Summary {
            samples: sorted.len(),
            batches: self.all.len(),
            dropped: sorted.len() - kept,
            min,
            mean: self.mean(worst),
            typical: self.typical(worst),
            median: quantile(&sorted, 0.5),
            p99: quantile(&sorted, 0.99),
            worst,
            max,
        })
    }

    /// The mean of each batch, of its samples up to `worst`, in the order of the rounds. A batch without such a
    /// sample has none.
    pub fn means(&self, worst: i64) -> Vec<i64> {
        let mean = |batch: &Vec<i64>| {
            let kept = || batch.iter().filter(|&&ns| ns <= worst);
            let sum: i128 = kept().map(|&ns| i128::from(ns)).sum();
            let count = kept().count() as i128;
            // Between the least and the largest sample, so it fits; half a nanosecond is lost at most.
            (count > 0).then(|| ((2 * sum + count).div_euclid(2 * count)) as i64)
        };
        self.all.iter().filter_map(mean).collect()
    }

    fn typical(&self, worst: i64) -> i64 {
        let mut means = self.means(worst);
        means.sort_unstable();
        // The two in the middle, or twice the same.
        i64::midpoint(means[(means.len() - 1) / 2], means[means.len() / 2])
    }

    /// Of the samples up to `worst`.
    ///
    /// The estimator of a ratio from clusters of unequal size (W. Cochran, "Sampling Techniques", section
    /// 6.3), with Student's distribution for few clusters. One batch alone says nothing of how sure it is:
    /// the interval then spans all samples.
    fn mean(&self, worst: i64) -> Interval {
        let sums: Vec<(f64, f64)> = self
            .all
            .iter()
            .map(|batch| {
                let kept = || batch.iter().filter(|&&ns| ns <= worst);
                (kept().map(|&ns| ns as f64).sum(), kept().count() as f64)
            })
            .filter(|&(_, count)| count > 0.0)
            .collect();
        let total: f64 = sums.iter().map(|&(_, count)| count).sum();
        let mean = sums.iter().map(|&(sum, _)| sum).sum::<f64>() / total;
        let clusters = sums.len() as f64;
        if sums.len() < 2 {
            let all = || self.all.iter().flatten().copied();
            return Interval {
                value: mean.round() as i64,
                low: all().min().unwrap_or(0),
                high: all().max().unwrap_or(0),
            };
        }
        let squares: f64 = sums
            .iter()
            .map(|&(sum, count)| (sum - count * mean).powi(2))
            .sum();
        let deviation = (squares * clusters / (clusters - 1.0)).sqrt() / total;
        let half = student(sums.len() - 1) * deviation;
        Interval {
            value: mean.round() as i64,
            low: (mean - half).floor() as i64,
            high: (mean + half).ceil() as i64,
        }
    }
}

/// The least sample that at least this share of all does not exceed, and the two samples between which the
/// true one lies: the number of samples below it has a binomial distribution, whatever theirs is.
fn quantile(sorted: &[i64], share: f64) -> Interval {
    const NORMAL: f64 = 1.96;
    let count = sorted.len() as f64;
    let ranked = |rank: f64| {
        let index = (rank as usize).clamp(1, sorted.len()) - 1;
        sorted[index]
    };
    let half = NORMAL * (count * share * (1.0 - share)).sqrt();
    Interval {
        value: ranked((count * share).ceil()),
        low: ranked((count * share - half).floor().max(1.0)),
        high: ranked((count * share + half).ceil() + 1.0),
    }
}

/// The 97.5% quantile of Student's distribution with so many degrees of freedom.
fn student(freedom: usize) -> f64 {
    const FEW: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    // Beyond the table the first terms of its expansion are exact to three digits.
    let expanded = || 1.960 + 2.372 / freedom as f64 + 2.8 / (freedom as f64).powi(2);
    freedom
        .checked_sub(1)
        .and_then(|index| FEW.get(index).copied())
        .unwrap_or_else(expanded)
}

#[cfg(test)]
mod tests {
    use shiftwork_model::RandomStream;

    use super::*;

    fn batches(all: &[&[i64]]) -> Batches {
        let mut batches = Batches::default();
        all.iter().for_each(|batch| batches.push(batch.to_vec()));
        batches
    }

    #[test]
    fn the_top_percent_is_left_out_and_the_maximum_is_kept() {
        let all: Vec<i64> = (1..=200).collect();
        let it = batches(&[&all[..100], &all[100..]]).summary().unwrap();
        assert_eq!((it.samples, it.dropped, it.batches), (200, 2, 2));
        assert_eq!((it.min, it.worst, it.max), (1, 198, 200));
        // (1 + 198) / 2, rounded.
        assert_eq!(it.mean.value, 100);
        assert_eq!((it.median.value, it.p99.value), (100, 198));
        assert_eq!(batches(&[&[], &[]]).summary(), None);
    }

    #[test]
    fn one_round_that_is_unlike_the_others_does_not_move_what_is_typical() {
        let found = |all: &[&[i64]]| {
            let it = batches(all).summary().unwrap();
            (it.typical, it.mean.value)
        };
        assert_eq!(found(&[&[10], &[12, 14], &[1_000, 3_000]]), (13, 807));
        assert_eq!(found(&[&[10], &[20], &[30], &[9_000]]), (25, 2_265));
        assert_eq!(found(&[&[-7]]), (-7, -7));
        assert_eq!(found(&[&[4], &[6]]), (5, 5));
        assert_eq!(batches(&[&[1, 2], &[-1, -2], &[9]]).means(5), [2, -1]);
    }

    #[test]
    fn equals_of_the_worst_sample_are_all_kept() {
        let it = batches(&[&[7; 300]]).summary().unwrap();
        assert_eq!((it.dropped, it.worst, it.mean.value), (0, 7, 7));
    }

    #[test]
    fn batches_that_differ_make_the_interval_wide_and_equal_ones_narrow() {
        // By hand: means 0 and 10 of equal size, deviation 5, times 12.706.
        let it = batches(&[&[0, 0], &[10, 10]]).summary().unwrap();
        assert_eq!((it.mean.value, it.mean.low, it.mean.high), (5, -59, 69));
        let it = batches(&[&[0, 10], &[0, 10]]).summary().unwrap();
        assert_eq!((it.mean.low, it.mean.high), (5, 5));
        let it = batches(&[&[0, 10]]).summary().unwrap();
        assert_eq!((it.mean.low, it.mean.high), (0, 10));
    }

    /// How many of 1000 calibrations have the truth in their interval, where every round has a mood of its
    /// own and samples are skewed, as real ones are.
    fn covered(rounds: usize, mood: i64, find: impl Fn(&Summary) -> Interval, truth: i64) -> usize {
        let is_covered = |seed: u64| {
            let mut random = RandomStream::new(seed, 0, 0);
            let mut batches = Batches::default();
            for _ in 0..rounds {
                let shift = random.below(2 * mood as u64 + 1) as i64 - mood;
                let mut one = || 10_000 + shift + (random.unit() * 1_000.0) as i64;
                batches.push((0..60).map(|_| one()).collect());
            }
            let found = find(&batches.summary().unwrap());
            (found.low..=found.high).contains(&truth)
        };
        (1..=1_000).filter(|&seed| is_covered(seed)).count()
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        // Of 990 of 1000 uniform samples: the outliers take 5 from the mean, and few more with moods.
        for (rounds, mood) in [(5, 0), (12, 0), (5, 300), (12, 300)] {
            let covered = covered(rounds, mood, |it| it.mean, 10_494);
            assert!(
                (925..=980).contains(&covered),
                "{rounds}, {mood}: {covered}"
            );
        }
        let medians = covered(12, 0, |it| it.median, 10_500);
        assert!((930..=990).contains(&medians), "{medians}");
        let p99 = covered(12, 0, |it| it.p99, 10_990);
        assert!((930..=1_000).contains(&p99), "{p99}");
    }

    #[test]
    fn students_quantiles_fall_to_the_normal_one() {
        let all: Vec<f64> = (1..200).map(student).collect();
        assert!(all.is_sorted_by(|left, right| left > right));
        assert!((1.96..1.98).contains(&all[198]));
    }

    #[test]
    fn intervals_overlap_if_they_share_a_nanosecond() {
        let of = |low, high| Interval {
            value: low,
            low,
            high,
        };
        assert!(of(1, 5).overlaps(&of(5, 9)) && of(5, 9).overlaps(&of(1, 5)));
        assert!(of(1, 9).overlaps(&of(3, 4)));
        assert!(!of(1, 4).overlaps(&of(5, 9)) && !of(5, 9).overlaps(&of(1, 4)));
    }
}
