//! The pending jobs of one task, in little memory.

use std::collections::VecDeque;

use shiftwork_model::Instant;

/// A pending job: released and not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its number.
    pub number: u64,
    /// When it was released.
    pub release: Instant,
    /// When it is due.
    pub deadline: Instant,
}

/// Consecutive jobs that were released at equal distances and have equal relative deadlines.
///
/// Arithmetic wraps, so that even deadlines before their releases (in a broken record) are preserved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    number: u64,
    release_ns: u64,
    separation_ns: u64,
    relative_deadline_ns: u64,
    count: u64,
}

impl Run {
    const fn one(job: Pending) -> Self {
        Self {
            number: job.number,
            release_ns: job.release.as_ns(),
            separation_ns: 0,
            relative_deadline_ns: job.deadline.as_ns().wrapping_sub(job.release.as_ns()),
            count: 1,
        }
    }

    const fn job(&self, index: u64) -> Pending {
        let release_ns = self
            .release_ns
            .wrapping_add(index.wrapping_mul(self.separation_ns));
        Pending {
            number: self.number.wrapping_add(index),
            release: Instant::from_ns(release_ns),
            deadline: Instant::from_ns(release_ns.wrapping_add(self.relative_deadline_ns)),
        }
    }

    /// Adds the job if it continues the run. Returns whether it does.
    fn extend(&mut self, job: Pending) -> bool {
        let mut longer = *self;
        if self.count == 1 {
            longer.separation_ns = job.release.as_ns().wrapping_sub(self.release_ns);
        }
        let continues = longer.job(self.count) == job;
        if continues {
            longer.count += 1;
            *self = longer;
        }
        continues
    }

    /// Number of jobs.
    pub const fn len(self) -> u64 {
        self.count
    }

    /// The jobs of the run, the oldest first.
    pub fn jobs(self) -> impl Iterator<Item = Pending> {
        (0..self.count).map(move |index| self.job(index))
    }

    /// Number of jobs of the run that fulfil `condition`, which is true for all jobs up to some job and
    /// false after it. Logarithmic in the length of the run.
    pub fn count_while(self, condition: impl Fn(Pending) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if condition(self.job(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The pending jobs of one task, the oldest first.
///
/// Invariant: `first` is the oldest run, empty only if there is no pending job; `rest` holds the
/// younger runs, none of them empty. A task that releases periodically needs one run however far
/// it falls behind, so memory does not grow with the horizon.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    first: Run,
    rest: VecDeque<Run>,
}

impl Backlog {
    /// Adds a job, released no earlier than those before it.
    #[inline]
    pub fn push(&mut self, job: Pending) {
        if self.first.count == 0 {
            self.first = Run::one(job);
        } else {
            self.push_behind(job);
        }
    }

    fn push_behind(&mut self, job: Pending) {
        let last = self.rest.back_mut().unwrap_or(&mut self.first);
        if !last.extend(job) {
            self.rest.push_back(Run::one(job));
        }
    }

    /// The oldest job.
    #[inline]
    pub fn front(&self) -> Option<Pending> {
        (self.first.count > 0).then(|| self.first.job(0))
    }

    /// Removes the oldest job if it has this number; otherwise changes nothing.
    #[inline]
    pub fn pop(&mut self, number: u64) -> Option<Pending> {
        let job = self.front().filter(|job| job.number == number)?;
        self.first.count -= 1;
        if self.first.count > 0 {
            let next = self.first.job(1);
            self.first.number = next.number;
            self.first.release_ns = next.release.as_ns();
        } else if !self.rest.is_empty() {
            self.first = self.rest.pop_front().unwrap_or_default();
        }
        Some(job)
    }

    /// Removes all jobs, as runs.
    pub fn drain(&mut self) -> impl Iterator<Item = Run> + use<> {
        let first = std::mem::take(&mut self.first);
        let rest = std::mem::take(&mut self.rest);
        std::iter::once(first)
            .filter(|run| run.count > 0)
            .chain(rest)
    }

    #[cfg(test)]
    fn runs(&self) -> usize {
        usize::from(self.first.count > 0) + self.rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    fn pending(number: u64, release: u64, deadline: u64) -> Pending {
        Pending {
            number,
            release: Instant::from_ns(release),
            deadline: Instant::from_ns(deadline),
        }
    }

    #[test]
    fn periodic_backlog_of_any_length_is_one_run() {
        let mut backlog = Backlog::default();
        for k in 0..10_000 {
            backlog.push(pending(k + 1, 10 * k, 10 * k + 7));
        }
        assert_eq!(backlog.runs(), 1);
        assert_eq!(backlog.pop(1), Some(pending(1, 0, 7)));
        backlog.push(pending(10_001, 100_000, 100_007));
        assert_eq!(backlog.runs(), 1);
        let run = backlog.drain().next().unwrap();
        assert_eq!(
            run.count_while(|job| job.deadline <= Instant::from_ns(17)),
            1
        );
        assert_eq!(run.count_while(|_| true), 10_000);
    }

    #[test]
    fn backlog_preserves_jobs_at_any_distances() {
        for seed in 1..=200 {
            let mut random = RandomStream::new(seed, 0, 0);
            let (mut backlog, mut plain) = (Backlog::default(), VecDeque::new());
            let (mut release, mut number) = (0, 0);
            for step in 0..300 {
                if random.below(5) < 3 {
                    number += 1;
                    release += [10, 10, 10, random.below(20)][random.below(4) as usize];
                    let job = pending(
                        number,
                        release,
                        release + [7, 9][random.below(8) as usize / 7],
                    );
                    backlog.push(job);
                    plain.push_back(job);
                } else {
                    let expected = plain.pop_front();
                    let oldest = expected.map_or(0, |job: Pending| job.number);
                    assert_eq!(backlog.pop(oldest + 1), None, "seed {seed}, step {step}");
                    assert_eq!(backlog.pop(oldest), expected, "seed {seed}, step {step}");
                }
                assert_eq!(
                    backlog.front(),
                    plain.front().copied(),
                    "seed {seed}, step {step}"
                );
            }
            let rest: Vec<Pending> = backlog.drain().flat_map(Run::jobs).collect();
            assert_eq!(rest, Vec::from(plain), "seed {seed}");
            assert_eq!(backlog.front(), None);
        }
    }
}
