//! Global EDF, soft: the tardiness of every task beyond its own cost is bounded by one number.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::Span;

use super::{as_spans, cpus_needed, demand, utilization};
use crate::filter::{Interval, RATIO, ratio};
use crate::{NotShown, Outcome, Sporadic, Steps};

/// Bounds on the response times under global EDF, in the order of the tasks, rounded up: T + C + x for
/// m CPUs, with
///
/// > x = max(0, (the L largest C - the least C) / (m - the L - 1 largest u)), L = ceil(U) - 1
///
/// and on one CPU T, as EDF is optimal there. A job that is tardy is so by the bound minus T at most.
/// Fails if U > m, with the first task that is too much.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, implicit deadlines (a task with D other
/// than T, or C > T, is not shown).
///
/// # Cost
/// O(n) and one step per task, with floats whose error is bounded; where x is too close to a whole
/// number to round it, exact fractions, whose size is that of the least common multiple of the
/// periods.
///
/// # Source
/// U. Devi, J. Anderson, "Tardiness Bounds under Global EDF Scheduling on a Multiprocessor", RTSS 2005,
/// in the form of Corollary 4.11 of U. Devi, "Soft Real-Time Scheduling on Multiprocessors", PhD thesis,
/// University of North Carolina, 2006. L - 1 counts as 0 where U <= 1. On one CPU: C. Liu, J. Layland,
/// "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment", JACM 20(1), 1973.
pub fn devi_anderson(
    tasks: &[Sporadic],
    cpus: usize,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    bounds(tasks, cpus, steps, |costs, needed| {
        if cpus == 1 {
            return as_spans(tasks.iter().map(Sporadic::period_ns));
        }
        let levels = needed - 1;
        let work = costs.largest(levels).saturating_sub(costs.least());
        let x = quotient(tasks, cpus, work, levels.saturating_sub(1));
        let bound = |task: &Sporadic| (task.period_ns() + task.cost_ns()).saturating_add(x);
        as_spans(tasks.iter().map(bound))
    })
}

/// The same under global non-preemptive EDF, for task k: T_k + C_k + (N + x W - C_k) / m, with c_1 >= c_2 >= .. the
/// costs, c_min the least of them, L = ceil(U) - 1, W the sum of the L largest u, and
///
/// > N = max(c_1 + .. + c_m, c_1 + .. + c_L + (U - L) c_m + c_1 + .. + c_(m - L - 1)), c_m = 0 if n < m
/// > x = max(0, (N - c_min) / (m - W))
///
/// The published bound T + C + x has only c_1 + .. + c_L + c_1 + .. + c_(m - L - 1) for N, and the L - 1 largest u. It is
/// too small: with C, T of 1, 2 and twice 100, 1000 on two CPUs (L = 0) its x is 49.5, but if the long ones start
/// first, a job of the short one that comes then is 98 late, not at most 50.5.
///
/// # Proof
/// All bounds are at most T + C + x, as N - C_k <= x (m - W). Let d be the deadline of a job J of k, let all more urgent
/// jobs keep their bounds, and let *due* be the jobs with deadlines up to d. The *lag* at a time is what an ideal
/// schedule, which runs each task at its rate u, has done of due jobs more than the real one, summed over all tasks.
/// The lag of a task is at most C + x u, and is above 0 only if it has an unfinished due job. *Blockers* are jobs that
/// are due after d; none begins while a due job waits for a CPU.
///
/// *1.* Let t be the last time up to d before which no due job waits and not all CPUs run due jobs, or the beginning.
/// From t to d all CPUs run due jobs or blockers that began before t, m per time, while the ideal schedule does
/// at most U of due jobs. So what is left at d of due jobs and of these blockers is at most the lag and the blockers at t.
/// That is at most N + x W:
///
/// - *At most L due jobs run just before t.* They and the blockers are of m tasks at most, and only they lag:
///   c_1 + .. + c_m + x W.
/// - *More do.* Let t_2 be the last time before t just before which at most L ran, or the beginning. From t_2 to t the
///   lag does not grow, as L + 1 >= U; at t there are m - L - 1 blockers at most. If no due job waits just before t_2,
///   the lag at t_2 is at most c_1 + .. + c_L + x W.
/// - *One does.* Let t_3 be the last time before t_2 before which none waits and not all CPUs run due jobs. From t_3 to
///   t_2 no blocker begins and all CPUs are busy, so the number of blockers only falls, from some r on; it is m - L or
///   more until t_2, so r = m - L + a with a >= 0. At t_3 at most m - r = L - a tasks P lag, by the sum of their
///   C + x u. From there on the lag grows at rate U - (m - the number of blockers that are left), so by the
///   a shortest rests of blockers and U - L times the next one, b, at most. That one and those after it, together m - L
///   tasks Q, cost b or more, and none of all these tasks is in P. If b <= c_m, or there are less than L tasks in P and
///   among the a shortest, the sum is at most c_1 + .. + c_L + (U - L) c_m + x W at once. Else one of these L costs
///   y <= c_m < b; as U - L <= 1, y + (U - L) b <= b + (U - L) y, which is at most the cost of one in Q and
///   (U - L) c_m.
///
/// *2.* If J has begun by d, it ends by d + C_k. Else all CPUs run due jobs or these blockers until J begins, at
/// d + (N + x W - c) / m at the latest with c <= C_k its work; unless it only waited for the job of k before it, and begins when
/// that ends. For if some CPU runs or takes anything else after d, no due job waits, at most m - 1 tasks have due
/// jobs, each of these runs, and each next job of such a task takes the CPU of the one before. The job before ended by
/// its bound, so J ends by that and C_k, which is earlier than its own.
///
/// # Assumes
/// As [`devi_anderson()`], but jobs run to their end once they have begun.
///
/// # Cost
/// As [`devi_anderson()`].
///
/// # Source
/// After U. Devi, J. Anderson, RTSS 2005. The bound and its proof are ours, not refereed.
pub fn devi_anderson_non_preemptive(
    tasks: &[Sporadic],
    cpus: usize,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    bounds(tasks, cpus, steps, |costs, needed| {
        let left = backlog(tasks, cpus, needed - 1, costs);
        // Between whole numbers the quotient rounds up as that of what is left, rounded up.
        let start = |task: &Sporadic| left.saturating_sub(task.cost_ns()).div_ceil(cpus as u128);
        let bound =
            |task: &Sporadic| (task.period_ns() + task.cost_ns()).saturating_add(start(task));
        as_spans(tasks.iter().map(bound))
    })
}

/// What may be left at a deadline under non-preemptive EDF, N + x W, rounded up.
fn backlog(tasks: &[Sporadic], cpus: usize, levels: usize, costs: &mut Costs) -> u128 {
    let of_all = costs.largest(cpus);
    let of_some = costs.largest(levels) + costs.largest(cpus - levels - 1);
    let next = of_all - costs.largest(cpus - 1);
    let least = costs.least();
    let fraction = utilization(tasks) - Interval::of(levels as u128);
    let rates = largest_rates(tasks, levels);
    let with_next = Interval::of(of_some) + fraction * Interval::of(next);
    let work = with_next.at_least(Interval::of(of_all));
    let beyond = (work - Interval::of(least)).at_least(Interval::of(0));
    let left = work + rates * (beyond / (Interval::of(cpus as u128) - rates));
    left.ceil().map_or_else(
        || {
            let whole = |n: u128| Ratio::from(BigInt::from(n));
            let fraction = demand(tasks).to_fraction() - whole(levels as u128);
            let rates = exact_largest_rates(tasks, levels);
            let work = whole(of_all).max(whole(of_some) + fraction * whole(next));
            let beyond = (&work - whole(least)).max(whole(0));
            let left = work + &rates * beyond / (whole(cpus as u128) - rates);
            u128::try_from(left.ceil().to_integer()).unwrap_or(u128::MAX)
        },
        u128::from,
    )
}

/// Asks for bounds given the costs and U, rounded up, if there are tasks and they are such that there may be bounds.
fn bounds(
    tasks: &[Sporadic],
    cpus: usize,
    steps: &mut Steps,
    bounds: impl FnOnce(&mut Costs, usize) -> Result<Vec<Span>, NotShown>,
) -> Outcome<NotShown, Vec<Span>> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    if tasks.is_empty() {
        return Outcome::Pass(Vec::new());
    }
    if let Some(place) = tasks.iter().position(|task| task.deadline != task.period) {
        return Outcome::Fail(NotShown { place });
    }
    let mut costs = Costs(tasks.iter().map(|task| task.cost.as_ns()).collect());
    let result = cpus_needed(tasks, cpus).and_then(|needed| bounds(&mut costs, needed));
    match result {
        Ok(bounds) => Outcome::Pass(bounds),
        Err(not_shown) => Outcome::Fail(not_shown),
    }
}

/// The costs of the tasks, at least one, in any order.
struct Costs(Vec<u64>);

impl Costs {
    /// The sum of the `count` largest, or of all if there are fewer.
    fn largest(&mut self, count: usize) -> u128 {
        let count = count.min(self.0.len());
        if 0 < count && count < self.0.len() {
            self.0.select_nth_unstable_by(count - 1, |a, b| b.cmp(a));
        }
        self.0[..count].iter().map(|&cost| u128::from(cost)).sum()
    }

    fn least(&self) -> u128 {
        self.0.iter().min().copied().unwrap_or(0).into()
    }
}

/// This much work by the CPUs less so many of the largest utilizations, rounded up.
fn quotient(tasks: &[Sporadic], cpus: usize, work: u128, rates: usize) -> u128 {
    if work == 0 {
        return 0;
    }
    let x = Interval::of(work) / (Interval::of(cpus as u128) - largest_rates(tasks, rates));
    x.ceil().map_or_else(
        || {
            let left = Ratio::from(BigInt::from(cpus)) - exact_largest_rates(tasks, rates);
            let x = Ratio::from(BigInt::from(work)) / left;
            u128::try_from(x.ceil().to_integer()).unwrap_or(u128::MAX)
        },
        u128::from,
    )
}

/// The sum of so many of the largest utilizations, nearly.
fn largest_rates(tasks: &[Sporadic], count: usize) -> Interval {
    let mut rates: Vec<f64> = tasks
        .iter()
        .map(|task| ratio(task.cost.as_ns(), task.period.as_ns()))
        .collect();
    let count = count.min(rates.len());
    if 0 < count && count < rates.len() {
        rates.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a));
    }
    // The largest of the floats need not be those of the fractions, but their sums differ by no more
    // than the floats do.
    Interval::sum_over(&rates[..count], RATIO, |&rate| rate)
}

/// The same by fractions.
fn exact_largest_rates(tasks: &[Sporadic], count: usize) -> Ratio<BigInt> {
    let mut by_rate: Vec<&Sporadic> = tasks.iter().collect();
    by_rate
        .sort_unstable_by(|a, b| (b.cost_ns() * a.period_ns()).cmp(&(a.cost_ns() * b.period_ns())));
    demand(by_rate.into_iter().take(count)).to_fraction()
}
