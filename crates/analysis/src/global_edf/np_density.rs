use shiftwork_model::Span;

use super::{Deadlines, gfb, misfit};
use crate::{NotShown, Outcome, Sporadic, Steps};

/// Whether non-preemptive global EDF is shown to meet all deadlines: with B_i the largest C_j - 1 of all tasks with
/// D_j > D_i + 1, or 0, and delta_i = C_i / (D_i - B_i),
///
/// > sum of delta_i <= m - (m - 1) max delta_i, and C_i <= D_i - B_i for all i
///
/// Let d be the first deadline that is missed; *due* are the jobs with deadlines up to d. Compare with a schedule O on
/// any number of CPUs that runs each due job of i at the constant rate C_i / (D_i - B_i) from B_i after its release on,
/// so that it ends at its deadline; at d O is ahead. Whenever O is ahead in all at a time t up to d, it is so in a task
/// i. Let j be the first unfinished job of i at t, released at r; it is ready from r on, since the job before was in
/// time, and t is at most its deadline. As O has begun it, t > r + B_i. While j waits, no job that is not due begins;
/// one that runs has begun before r and is due after d, so D > D_i + 1 and it is over at r + B_i. So from r + B_i to t,
/// a length of l, all m CPUs run due jobs while j waits, and one does while j runs, which it does for y < delta_i l:
/// at least m l - (m - 1) y is done, and by O at most l times the sum of all delta. By the condition O is then ahead
/// at r + B_i, too. That goes on to times at which nothing is released, where O is not ahead.
///
/// # Assumes
/// Sporadic tasks, independent, no self-suspension; constrained deadlines. CPUs that become free take jobs after all
/// completions and arrivals of the instant, and time is whole.
///
/// # Cost
/// O(n log n), one step per task.
///
/// # Source
/// S. Baruah, "The Non-preemptive Scheduling of Periodic Tasks upon Multiprocessors", Real-Time Systems 32, 2006, which
/// has the largest C of all tasks instead of B_i and implicit deadlines; the argument is the one above.
pub fn np_density(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown> {
    if let Some(misfit) = misfit(tasks, cpus, Deadlines::Constrained) {
        return Outcome::Fail(misfit);
    }
    let mut order: Vec<&Sporadic> = tasks.iter().collect();
    order.sort_unstable_by_key(|task| task.deadline);
    // For each in this order, the largest cost from it on.
    let mut largest: Vec<Span> = order.iter().map(|task| task.cost).collect();
    for place in (1..largest.len()).rev() {
        largest[place - 1] = largest[place - 1].max(largest[place]);
    }
    let unit = Span::from_ns(1);
    let shortened = |task: &Sporadic| {
        let first = order.partition_point(|other| other.deadline <= task.deadline + unit);
        let blocking = largest.get(first).map_or(Span::ZERO, |cost| *cost - unit);
        let window = task.deadline.saturating_sub(blocking);
        Sporadic {
            deadline: window,
            period: window,
            ..*task
        }
    };
    let shortened: Vec<Sporadic> = tasks.iter().map(shortened).collect();
    gfb(&shortened, cpus, steps)
}
