use shiftwork_model::{Instant, Job, Order, TaskId};

use super::{JobOrder, Ranking};

/// Earliest priority point first; equal points by becoming ready, then by task.
///
/// A priority point is a deadline to schedule by, and machines release jobs with it:
/// [`Order::relative_deadline`] says how long after the release it lies, per task.
///
/// # Source
/// J. Erickson, J. Anderson, B. Ward, "Fair lateness scheduling: reducing maximum lateness in G-EDF-like
/// scheduling", Real-Time Systems 50(1), 2014.
#[derive(Clone, Copy, Debug)]
pub struct FairLateness;

impl Ranking for FairLateness {
    type Key = (Instant, Instant, TaskId);

    const FIRST: Self::Key = (Instant::ZERO, Instant::ZERO, TaskId::from_index(0));
    const LAST: Self::Key = (Instant::NEVER, Instant::NEVER, TaskId::LAST);

    fn task(key: &Self::Key) -> TaskId {
        key.2
    }
}

impl JobOrder for FairLateness {
    const ORDER: Order = Order::FairLateness;

    fn key(job: &Job) -> Self::Key {
        (job.deadline, job.ready, job.task)
    }
}
