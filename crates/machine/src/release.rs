//! When the jobs of a task are released.

use shiftwork_model::{Arrival, Instant, RandomStream, Span, Task, TaskId};

/// The `cell` of [`RandomStream::new`] for release gaps.
const GAPS: u64 = 0x6761_7073;

/// The releases of one task, in order.
///
/// A clone yields the same releases as the original. A machine can therefore keep a second pattern that
/// lags behind the first, and need not store the pending releases.
#[derive(Clone, Debug)]
pub struct ReleasePattern {
    next: Instant,
    kind: Kind,
    /// Random gaps are whole multiples of this.
    unit: Span,
}

#[derive(Clone, Debug)]
enum Kind {
    Periodic,
    Sporadic(RandomStream),
    /// Number of the task's instants that have passed.
    Listed(usize),
}

impl ReleasePattern {
    /// The releases of a task that enters at `entry`.
    ///
    /// Periodic and sporadic tasks first release at `entry` or at their offset, whichever is later.
    /// Listed instants are instants of the run (counted from the offset): those before `entry` are
    /// skipped. The gaps of sporadic tasks depend on the seed and the task's index alone.
    pub fn new(task: &Task, id: TaskId, seed: u64, entry: Instant) -> Self {
        let mut pattern = Self {
            next: Instant::ZERO,
            kind: match task.arrival {
                Arrival::Periodic => Kind::Periodic,
                Arrival::Sporadic => {
                    Kind::Sporadic(RandomStream::new(seed, GAPS, id.index() as u64))
                }
                Arrival::Releases(_) => Kind::Listed(0),
            },
            unit: Span::from_ns(1),
        };
        pattern.restart(task, entry);
        pattern
    }

    /// Rounds random gaps to multiples of `unit`, which must not be zero. Without this call the unit is one
    /// nanosecond.
    #[must_use]
    pub const fn in_units(self, unit: Span) -> Self {
        Self { unit, ..self }
    }

    /// Restarts the pattern for a task that enters again at `entry`. The random stream continues, so that
    /// the gaps differ from those after the first entry.
    pub fn restart(&mut self, task: &Task, entry: Instant) {
        match (&mut self.kind, &task.arrival) {
            (Kind::Listed(behind), Arrival::Releases(instants)) => {
                *behind = instants.partition_point(|&at| shifted(at, task.offset) < entry);
                self.next = listed(instants, *behind, task.offset);
            }
            _ => self.next = entry.max(Instant::ZERO + task.offset),
        }
    }

    /// The next release; [`Instant::NEVER`] if there is none.
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Advances past the next release. `period` is the minimum separation after that release; listed
    /// instants do not depend on it.
    pub fn advance(&mut self, task: &Task, period: Span) {
        match (&mut self.kind, &task.arrival) {
            (Kind::Listed(behind), Arrival::Releases(instants)) => {
                *behind += 1;
                self.next = listed(instants, *behind, task.offset);
            }
            (Kind::Sporadic(stream), _) => {
                let longest = period.saturating_sub(Span::from_ns(1));
                let more = stream.span_in_units(self.unit, Span::ZERO, longest);
                self.next = self.next + period + more;
            }
            _ => self.next += period,
        }
    }
}

fn shifted(at: Instant, offset: Span) -> Instant {
    at + offset
}

fn listed(instants: &[Instant], behind: usize, offset: Span) -> Instant {
    instants
        .get(behind)
        .map_or(Instant::NEVER, |&at| shifted(at, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{Affinity, CpuId};

    fn task(arrival: Arrival, offset: u64) -> Task {
        let cpu = Affinity::pinned(CpuId::from_index(0));
        let mut task = Task::periodic("t", Span::from_ns(1), Span::from_ns(10), cpu);
        task.arrival = arrival;
        task.offset = Span::from_ns(offset);
        task
    }

    fn first(task: &Task, seed: u64, entry: u64, count: usize) -> Vec<u64> {
        let entry = Instant::from_ns(entry);
        let mut pattern = ReleasePattern::new(task, TaskId::from_index(0), seed, entry);
        (0..count)
            .map(|_| {
                let next = pattern.next();
                pattern.advance(task, task.period);
                next.as_ns()
            })
            .collect()
    }

    #[test]
    fn periodic_task_releases_from_the_later_of_offset_and_entry() {
        assert_eq!(first(&task(Arrival::Periodic, 3), 1, 0, 3), [3, 13, 23]);
        assert_eq!(first(&task(Arrival::Periodic, 3), 1, 20, 2), [20, 30]);
    }

    #[test]
    fn sporadic_gaps_are_at_least_a_period_and_less_than_two() {
        let releases = first(&task(Arrival::Sporadic, 0), 5, 0, 2_000);
        let gaps: Vec<u64> = releases.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(releases[0], 0);
        assert_eq!(
            (gaps.iter().min(), gaps.iter().max()),
            (Some(&10), Some(&19))
        );
        assert_eq!(releases, first(&task(Arrival::Sporadic, 0), 5, 0, 2_000));
        assert_ne!(releases, first(&task(Arrival::Sporadic, 0), 6, 0, 2_000));
    }

    #[test]
    fn listed_releases_are_relative_to_the_offset_and_finite() {
        let instants = [0, 15, 40].map(Instant::from_ns).to_vec();
        let task = task(Arrival::Releases(instants), 2);
        let never = Instant::NEVER.as_ns();
        assert_eq!(first(&task, 1, 0, 5), [2, 17, 42, never, never]);
        assert_eq!(first(&task, 1, 17, 2), [17, 42]);
        assert_eq!(first(&task, 1, 18, 2), [42, never]);
    }

    #[test]
    fn clone_yields_the_same_releases() {
        let task = task(Arrival::Sporadic, 0);
        let mut lead = ReleasePattern::new(&task, TaskId::from_index(3), 9, Instant::ZERO);
        let mut lag = lead.clone();
        let seen: Vec<Instant> = (0..50)
            .map(|_| {
                lead.advance(&task, task.period);
                lead.next()
            })
            .collect();
        for (step, &expected) in seen.iter().enumerate() {
            lag.advance(&task, task.period);
            assert_eq!(lag.next(), expected, "step {step}");
        }
    }
}
