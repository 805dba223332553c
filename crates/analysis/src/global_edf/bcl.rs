use crate::{NotShown, Outcome, Sporadic, Steps};

use super::divisor::Divisor;
use super::{Deadlines, misfit, outcome};

/// Whether global EDF is shown to meet all deadlines: for no task k can the others run, on all CPUs
/// at once, for more of the interval from a release of k to its deadline than k can spare.
///
/// For every k, the sum over all others of min(w_i, D_k - C_k) is below m (D_k - C_k), or equal to it
/// while some w_i is above zero and at most D_k - C_k. Here w_i is the most that jobs of i with a
/// deadline in the interval run in it, if they meet their deadlines: with N = floor((D_k - D_i)/T_i)
/// + 1, it is N C_i + min(C_i, max(0, D_k - N T_i)).
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; constrained deadlines.
///
/// # Cost
/// O(n²), one step per pair. Integers throughout.
///
/// # Source
/// M. Bertogna, M. Cirinei, G. Lipari, "Improved Schedulability Analysis of EDF on Multiprocessor
/// Platforms", ECRTS 2005, Theorem 7, with both cases of its condition. A task without slack (C = D)
/// is in neither.
pub fn bcl(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown> {
    if let Some(misfit) = misfit(tasks, cpus, Deadlines::Constrained) {
        return Outcome::Fail(misfit);
    }
    outcome(verdict(tasks, cpus, steps))
}

fn verdict(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Option<Result<(), NotShown>> {
    let others: Vec<Other> = tasks.iter().map(Other::new).collect();
    for (place, task) in tasks.iter().enumerate() {
        steps.take(tasks.len())?;
        let [cost, deadline] = [task.cost, task.deadline].map(|span| span.as_ns());
        let spare = deadline - cost;
        let (before, after) = (&others[..place], &others[place + 1..]);
        let (mut sum, mut some_whole) = (0, false);
        for other in before.iter().chain(after) {
            let work = other.work_before(deadline);
            sum += u128::from(work.min(spare));
            some_whole |= 0 < work && work <= spare;
        }
        let room = u128::from(spare).saturating_mul(cpus as u128);
        if !(sum < room || sum == room && some_whole) {
            return Some(Err(NotShown { place }));
        }
    }
    Some(Ok(()))
}

/// A task that may be in the way.
struct Other {
    cost: u64,
    deadline: u64,
    period: Divisor,
}

impl Other {
    fn new(task: &Sporadic) -> Self {
        Self {
            cost: task.cost.as_ns(),
            deadline: task.deadline.as_ns(),
            period: Divisor::new(task.period.as_ns()),
        }
    }

    /// The most that it runs in an interval of this length in jobs that are due in it.
    #[inline]
    fn work_before(&self, length: u64) -> u64 {
        // D_i <= T_i, so before the first deadline N is 0.
        if length < self.deadline {
            return self.cost.min(length);
        }
        let jobs = self.period.split(length - self.deadline).0 + 1;
        let rest = length.saturating_sub(jobs * self.period.by());
        jobs * self.cost + self.cost.min(rest)
    }
}
