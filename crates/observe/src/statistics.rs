//! Costs of jobs, and the distances between them.

use shiftwork_model::Span;

use crate::jobs::Job;

/// A percentage of jobs, 1 to 100: how many of them a cost has to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile(u8);

impl Percentile {
    /// The maximum.
    pub const MAX: Self = Self(100);

    /// `None` outside 1 to 100.
    pub const fn new(percent: u8) -> Option<Self> {
        match percent {
            1..=100 => Some(Self(percent)),
            _ => None,
        }
    }

    /// 1 to 100.
    pub const fn percent(self) -> u8 {
        self.0
    }

    /// The smallest value that this percentage of the ascending values does not exceed; zero if there are none.
    fn of(self, ascending: &[Span]) -> Span {
        let rank = (ascending.len() * usize::from(self.0)).div_ceil(100);
        let value = rank.checked_sub(1).and_then(|index| ascending.get(index));
        value.copied().unwrap_or(Span::ZERO)
    }
}

/// CPU time of the jobs of a thread; all zero without jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Costs {
    /// Half of the jobs need no more.
    pub p50: Span,
    /// 99% of the jobs need no more.
    pub p99: Span,
    /// No job needed more.
    pub max: Span,
    /// The percentage of the jobs that was asked for needs no more.
    pub chosen: Span,
}

impl Costs {
    pub(crate) fn of(jobs: &[Job], percentile: Percentile) -> Self {
        let costs = ascending(jobs.iter().map(|job| job.cost));
        Self {
            p50: Percentile(50).of(&costs),
            p99: Percentile(99).of(&costs),
            max: Percentile::MAX.of(&costs),
            chosen: percentile.of(&costs),
        }
    }
}

/// Times from one wake-up of a thread to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distances {
    /// The least.
    pub min: Span,
    /// The median.
    pub median: Span,
    /// The mean of those that differ from the median by a tenth of it at most.
    pub regular: Span,
    /// How many percent of all these are.
    pub regular_percent: u8,
}

impl Distances {
    /// `None` if no two jobs follow one another.
    pub(crate) fn of(jobs: &[Job]) -> Option<Self> {
        let consecutive = jobs
            .windows(2)
            .filter(|pair| pair[1].number == pair[0].number + 1);
        let distances =
            ascending(consecutive.map(|pair| pair[1].released.late_since(pair[0].released)));
        let (min, median) = (*distances.first()?, Percentile(50).of(&distances));
        let is_regular = |it: &&Span| it.as_ns().abs_diff(median.as_ns()) <= median.as_ns() / 10;
        let regular: Vec<Span> = distances.iter().filter(is_regular).copied().collect();
        let sum: u128 = regular.iter().map(|it| u128::from(it.as_ns())).sum();
        let mean = sum / regular.len().max(1) as u128;
        Some(Self {
            min,
            median,
            regular: Span::from_ns(u64::try_from(mean).unwrap_or(u64::MAX)),
            regular_percent: u8::try_from(regular.len() * 100 / distances.len()).unwrap_or(100),
        })
    }
}

fn ascending(values: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut values: Vec<Span> = values.collect();
    values.sort_unstable();
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Waker;
    use shiftwork_model::Instant;

    fn jobs(releases_us: &[u64]) -> Vec<Job> {
        let job = |(index, &at): (usize, &u64)| Job {
            number: index as u64 + 1,
            released: Instant::from_ns(at * 1_000),
            completed: Instant::from_ns(at * 1_000 + 10),
            cost: Span::from_us(at % 7),
            waker: Waker::Interrupt,
            origin: None,
            suspensions: 0,
            continued: 0,
        };
        releases_us.iter().enumerate().map(job).collect()
    }

    #[test]
    fn percentile_is_the_smallest_value_that_covers_so_many() {
        let values: Vec<Span> = (1..=200).map(Span::from_us).collect();
        for (percent, expected) in [(1, 2), (50, 100), (99, 198), (100, 200)] {
            let found = Percentile::new(percent).unwrap().of(&values);
            assert_eq!(found, Span::from_us(expected), "{percent}");
        }
        assert_eq!(Percentile(50).of(&values[..1]), Span::from_us(1));
        assert_eq!(Percentile::MAX.of(&[]), Span::ZERO);
        assert_eq!((Percentile::new(0), Percentile::new(101)), (None, None));
    }

    #[test]
    fn distances_have_a_regular_mean_beside_a_skipped_release() {
        let mut releases: Vec<u64> = (0..20).map(|k| k * 1_000 + k % 2).collect();
        releases.remove(10);
        let found = Distances::of(&jobs(&releases)).unwrap();
        assert_eq!(found.min, Span::from_us(999));
        // 18 distances, of which one is twice as long.
        assert_eq!(found.regular_percent, 94);
        assert!(found.regular.as_ns().abs_diff(1_000_000) < 200, "{found:?}");
        assert_eq!(Distances::of(&jobs(&[5])), None);
    }

    #[test]
    fn no_distance_is_taken_where_jobs_are_missing() {
        let mut jobs = jobs(&[0, 100, 200, 900, 1_000]);
        jobs[3].number = 7;
        jobs[4].number = 8;
        let found = Distances::of(&jobs).unwrap();
        assert_eq!(
            (found.min, found.regular_percent),
            (Span::from_us(100), 100)
        );
    }
}
