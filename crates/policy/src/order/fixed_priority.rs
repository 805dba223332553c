use shiftwork_model::{Instant, Job, Order, Priority, TaskId};

use super::{JobOrder, Ranking};

/// Smaller priority number first; equal priorities by becoming ready, then by task.
#[derive(Clone, Copy, Debug)]
pub struct FixedPriority;

impl Ranking for FixedPriority {
    type Key = (Priority, Instant, TaskId);

    const FIRST: Self::Key = (
        Priority::NON_PREEMPTIVE,
        Instant::ZERO,
        TaskId::from_index(0),
    );
    const LAST: Self::Key = (Priority::LEAST_URGENT, Instant::NEVER, TaskId::LAST);

    fn task(key: &Self::Key) -> TaskId {
        key.2
    }
}

impl JobOrder for FixedPriority {
    const ORDER: Order = Order::FixedPriority;

    fn key(job: &Job) -> Self::Key {
        (job.priority, job.ready, job.task)
    }
}
