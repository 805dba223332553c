//! Orders by laxity: the time until a job has to run without a break to complete by its deadline.

use core::fmt::Debug;

use shiftwork_model::{Instant, Job, Order, Span, TaskId};

/// How a ready job stands at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laxity {
    /// The instant.
    pub now: Instant,
    /// The latest start of the job. It stays while the job waits, and moves with the time while the job runs.
    pub latest_start: Instant,
    /// Whether the job runs.
    pub runs: bool,
}

/// Ranks jobs by their laxity at an instant.
pub(crate) trait LaxityOrder: Send {
    /// What is compared; the keys of two different tasks are never equal.
    type Key: Ord + Copy + Debug;

    /// What it is called.
    const ORDER: Order;

    /// The job's key.
    fn key(job: &Job, laxity: Laxity) -> Self::Key;

    /// The next instant after `now` at which the running jobs may have to change although nothing happens
    /// until then, or an earlier one; `last_running` is the last of the latest starts of the running jobs,
    /// and `waiting` are those of the jobs that wait for them.
    fn next_decision(
        at: (Instant, Span),
        last_running: Instant,
        waiting: impl Iterator<Item = Instant>,
    ) -> Instant;
}

/// Earliest deadline first, and before all others the jobs whose laxity is zero or less; among equals the one
/// that became ready first, then by task.
///
/// A job has no more laxity from its latest start on. Only waiting jobs reach that, and then they run until they
/// complete, unless there are more of them than CPUs: then the earliest deadlines of them come first.
///
/// # Source
/// S. Cho, S.-K. Lee, S. Ahn, K.-J. Lin, "Efficient Real-Time Scheduling Algorithms for Multiprocessor Systems",
/// IEICE Transactions on Communications E85-B(12), 2002.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZeroLaxity;

impl LaxityOrder for ZeroLaxity {
    type Key = (bool, Instant, Instant, TaskId);

    const ORDER: Order = Order::ZeroLaxity;

    fn key(job: &Job, laxity: Laxity) -> Self::Key {
        let has_laxity = laxity.latest_start > laxity.now;
        (has_laxity, job.deadline, job.ready, job.task)
    }

    fn next_decision(
        (now, _): (Instant, Span),
        _: Instant,
        waiting: impl Iterator<Item = Instant>,
    ) -> Instant {
        let later = waiting.filter(|&start| start > now);
        later.min().unwrap_or(Instant::NEVER)
    }
}

/// Least laxity first; of equal laxities the job that runs, then the one that became ready first, then by task.
///
/// The laxity of a waiting job falls, that of a running one does not. If a job were preempted as soon as its
/// laxity is above that of another one, both would take turns without end. So laxities are compared when the
/// ready jobs change, and at the multiples of the quantum.
///
/// # Source
/// M. Dertouzos, A. Mok, "Multiprocessor On-Line Scheduling of Hard-Real-Time Tasks", IEEE Transactions on
/// Software Engineering 15(12), 1989, where time is discrete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeastLaxity;

impl LaxityOrder for LeastLaxity {
    type Key = (Instant, bool, Instant, TaskId);

    const ORDER: Order = Order::LeastLaxity;

    fn key(job: &Job, laxity: Laxity) -> Self::Key {
        (laxity.latest_start, !laxity.runs, job.ready, job.task)
    }

    fn next_decision(
        (now, quantum): (Instant, Span),
        last_running: Instant,
        waiting: impl Iterator<Item = Instant>,
    ) -> Instant {
        let Some(first) = waiting.min() else {
            return Instant::NEVER;
        };
        // A running job has more laxity than a waiting one only after this time.
        let until = first.late_since(last_running).as_ns().saturating_add(1);
        let quantum = quantum.as_ns().max(1);
        let quanta = now.as_ns().saturating_add(until).div_ceil(quantum);
        let at = quanta.checked_mul(quantum);
        at.map_or(Instant::NEVER, Instant::from_ns)
    }
}
