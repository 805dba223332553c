use shiftwork_model::{Instant, Job, Order, TaskId};

use super::{JobOrder, Ranking};

/// Earliest deadline first; equal deadlines by becoming ready, then by task.
#[derive(Clone, Copy, Debug)]
pub struct Edf;

impl Ranking for Edf {
    type Key = (Instant, Instant, TaskId);

    const FIRST: Self::Key = (Instant::ZERO, Instant::ZERO, TaskId::from_index(0));
    const LAST: Self::Key = (Instant::NEVER, Instant::NEVER, TaskId::LAST);

    fn task(key: &Self::Key) -> TaskId {
        key.2
    }
}

impl JobOrder for Edf {
    const ORDER: Order = Order::Edf;

    fn key(job: &Job) -> Self::Key {
        (job.deadline, job.ready, job.task)
    }
}
