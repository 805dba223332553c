//! What scheduling itself costs on some machine under some policy.

use alloc::vec::Vec;

use crate::time::Span;

/// A cost that grows linearly with the number of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinearCost {
    /// For no task at all.
    pub base: Span,
    /// More for each task.
    pub per_task: Span,
}

impl LinearCost {
    /// The cost with this many tasks. Saturates.
    pub fn at(&self, tasks: usize) -> Span {
        self.base + Span::from_ns(self.per_task.as_ns().saturating_mul(tasks as u64))
    }
}

/// The overheads of one policy, for one use (worst case or average).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// Handling the release of a job.
    pub release: LinearCost,
    /// Deciding what to run.
    pub schedule: LinearCost,
    /// Switching from one job to another.
    pub switch: LinearCost,
    /// A timer tick.
    pub tick: LinearCost,
    /// Time from requesting a reschedule on another CPU until that CPU does so.
    pub ipi: LinearCost,
    /// How long inserting a job keeps (a part of) the ready queue locked, or inserting all that are
    /// released together where queues can be merged. Beside [`release`](Self::release).
    pub enqueue: LinearCost,
    /// How long taking out the most urgent job keeps (a part of) the ready queue locked. Beside
    /// [`schedule`](Self::schedule).
    pub dequeue: LinearCost,
    /// Refilling caches when a preempted job goes on where it was. Empty: nothing.
    pub preemption: Vec<LinearCost>,
    /// Refilling caches after a migration, by cache distance from 1 up; the last entry serves all
    /// that is farther. Empty: nothing.
    pub migration: Vec<LinearCost>,
}

impl Overheads {
    /// The cache cost of going on at this distance (0: the same CPU) with this many tasks.
    pub fn cache_cost(&self, distance: usize, tasks: usize) -> Span {
        let (costs, rank) = match distance {
            0 => (&self.preemption, 0),
            farther => (&self.migration, farther - 1),
        };
        costs
            .get(rank)
            .or(costs.last())
            .map_or(Span::ZERO, |cost| cost.at(tasks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(base: u64) -> LinearCost {
        LinearCost {
            base: Span::from_us(base),
            per_task: Span::from_ns(260),
        }
    }

    #[test]
    fn costs_grow_with_the_tasks_and_the_distance() {
        let overheads = Overheads {
            preemption: alloc::vec![us(1)],
            migration: alloc::vec![us(2), us(3)],
            ..Overheads::default()
        };
        assert_eq!(overheads.cache_cost(0, 10), Span::from_ns(3_600));
        assert_eq!(overheads.cache_cost(1, 0), Span::from_us(2));
        assert_eq!(overheads.cache_cost(7, 0), Span::from_us(3));
        assert_eq!(Overheads::default().cache_cost(3, 5), Span::ZERO);
    }
}
