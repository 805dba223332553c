use crate::filter::Interval;
use crate::{NotShown, Outcome, Sporadic, Steps};

use shiftwork_model::Span;

use super::divisor::Divisor;
use super::{Deadlines, compare_utilization, densest, misfit, outcome, utilization};

/// Whether global EDF is shown to meet all deadlines: no task k could be kept from running in an
/// interval that begins A_k before its release, when some CPU last idled, and ends at its deadline.
///
/// U < m, and for every k and every L = A_k + D_k at which some job is due, the sum of all I1_i and of
/// the m - 1 largest I2_i - I1_i is at most m (L - C_k). I1_i = min(dbf_i(L), L - C_k + 1) is of a
/// task without a job carried into the interval, I2_i = min(floor(L/T_i) C_i + min(C_i, L mod T_i),
/// L - C_k + 1) of one with; of k itself they are cut at A_k, after C_k is taken off.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; constrained deadlines.
///
/// # Cost
/// One step per task and interval that is looked at; pseudo-polynomial. Integers decide, floats only
/// bound the intervals.
///
/// # Source
/// S. Baruah, "Techniques for Multiprocessor Global Schedulability Analysis", RTSS 2007, Theorem 2
/// and its bound on A_k. What is summed grows with L, so that a sum that is small enough for a
/// shorter interval clears all down to that one, as in F. Zhang, A. Burns, "Schedulability Analysis
/// for Real-Time Systems with EDF Scheduling", IEEE TC 58(9), 2009; and without the cuts it is the
/// same for all k, which clears most.
pub fn bar(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown> {
    if let Some(misfit) = misfit(tasks, cpus, Deadlines::Constrained) {
        return Outcome::Fail(misfit);
    }
    outcome(verdict(tasks, cpus, steps))
}

fn verdict(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Option<Result<(), NotShown>> {
    if tasks.is_empty() {
        return Some(Ok(()));
    }
    steps.take(tasks.len())?;
    let idle = match utilization(tasks).below(Interval::of(cpus as u128)) {
        Some(idle) => idle,
        None => compare_utilization(tasks, (cpus as i128, 1), steps)?.is_lt(),
    };
    if !idle {
        return Some(Err(densest(tasks)));
    }
    let longest = longest(tasks, cpus)?;
    Scan::new(tasks, cpus).run(longest, steps)
}

/// A length of interval that none which violates the condition exceeds; `None` if there is no saying
/// so below [`Span::MAX`].
///
/// As dbf_i(L) <= u_i (L + T_i - D_i) and a carried-in job adds no more than C_i, a violation means
/// (m - U) L < (sum of the m - 1 largest C) + sum of u_i (T_i - D_i) + (m - 1) C_k.
fn longest(tasks: &[Sporadic], cpus: usize) -> Option<u64> {
    let mut costs: Vec<u64> = tasks.iter().map(|task| task.cost.as_ns()).collect();
    let carried_in = largest(&mut costs, cpus - 1);
    let gaps = Interval::sum_over(tasks, 6, |task| {
        let gap = (task.period - task.deadline).as_ns() as f64;
        task.cost.as_ns() as f64 / task.period.as_ns() as f64 * gap
    });
    let cost = tasks.iter().map(Sporadic::cost_ns).max().unwrap_or(0);
    let others = Interval::of(cpus as u128 - 1) * Interval::of(cost);
    let idle = Interval::of(cpus as u128) - utilization(tasks);
    let longest = ((Interval::of(carried_in) + gaps + others) / idle).high();
    (longest < Span::MAX.as_ns() as f64).then(|| longest.ceil() as u64)
}

/// The sum of the so many largest numbers, which are left in any order.
fn largest(numbers: &mut [u64], count: usize) -> u128 {
    let sum = |numbers: &[u64]| numbers.iter().map(|&number| u128::from(number)).sum();
    if count == 0 {
        return 0;
    }
    if count >= numbers.len() {
        return sum(numbers);
    }
    numbers.select_nth_unstable_by(count - 1, |one, other| other.cmp(one));
    sum(&numbers[..count])
}

struct Entry {
    cost: u64,
    deadline: u64,
    period: Divisor,
}

impl Entry {
    /// What is due in an interval of this length without a job carried in, and how much more with
    /// one.
    #[inline]
    fn demand(&self, length: u64) -> (u64, u64) {
        let (jobs, rest) = self.period.split(length);
        // One job more is due; then a job carried in changes nothing.
        if rest >= self.deadline {
            return ((jobs + 1) * self.cost, 0);
        }
        (jobs * self.cost, self.cost.min(rest))
    }
}

/// The tasks, and those that are not shown yet.
struct Scan {
    entries: Vec<Entry>,
    cpus: u128,
    /// Places of those not shown.
    open: Vec<usize>,
    differences: Vec<u64>,
}

impl Scan {
    fn new(tasks: &[Sporadic], cpus: usize) -> Self {
        let entry = |task: &Sporadic| Entry {
            cost: task.cost.as_ns(),
            deadline: task.deadline.as_ns(),
            period: Divisor::new(task.period.as_ns()),
        };
        Self {
            entries: tasks.iter().map(entry).collect(),
            cpus: cpus as u128,
            open: (0..tasks.len()).collect(),
            differences: Vec::with_capacity(tasks.len()),
        }
    }

    /// Looks at all intervals from the longest down, for all tasks at once.
    fn run(mut self, longest: u64, steps: &mut Steps) -> Option<Result<(), NotShown>> {
        let mut length = self.step_up_to(longest, steps)?;
        while let Some(place) = self.costliest(length) {
            steps.take(2 * self.entries.len())?;
            // Uncut, what is summed for k is this less C_k.
            let demand = self.demand(length);
            let others = (self.cpus - 1) * u128::from(self.entries[place].cost);
            let room = self.cpus * u128::from(length);
            if demand + others > room {
                if !self.holds_up_to(place, length, steps)? {
                    return Some(Err(NotShown { place }));
                }
                self.open.retain(|&open| open != place);
                continue;
            }
            // What is cleared here is cleared for all lengths above this.
            let cleared = ((demand + others) / self.cpus) as u64;
            length = self.step_up_to(cleared.min(length - 1), steps)?;
        }
        Some(Ok(()))
    }

    /// The costliest of the tasks not shown that have an interval of this length.
    fn costliest(&self, length: u64) -> Option<usize> {
        let open = self.open.iter().copied();
        open.filter(|&place| self.entries[place].deadline <= length)
            .max_by_key(|&place| self.entries[place].cost)
    }

    /// The greatest length up to this one at which some job is due; 0 if there is none.
    fn step_up_to(&self, length: u64, steps: &mut Steps) -> Option<u64> {
        steps.take(self.entries.len())?;
        let due = self.entries.iter().filter_map(|entry| {
            let after_first = length.checked_sub(entry.deadline)?;
            Some(length - entry.period.split(after_first).1)
        });
        Some(due.max().unwrap_or(0))
    }

    /// The sum for any task, uncut and with C_k.
    fn demand(&mut self, length: u64) -> u128 {
        self.differences.clear();
        let mut sum = 0;
        for entry in &self.entries {
            let (demand, more) = entry.demand(length);
            sum += u128::from(demand);
            self.differences.push(more);
        }
        sum + largest(&mut self.differences, self.cpus as usize - 1)
    }

    /// Whether the condition holds for a task at all lengths up to this one.
    fn holds_up_to(&mut self, place: usize, length: u64, steps: &mut Steps) -> Option<bool> {
        let (cost, deadline) = (self.entries[place].cost, self.entries[place].deadline);
        let mut length = length;
        while length >= deadline {
            steps.take(2 * self.entries.len())?;
            let demand = self.cut_demand(place, length);
            if demand > self.cpus * u128::from(length - cost) {
                return Some(false);
            }
            let cleared = cost + (demand / self.cpus) as u64;
            length = self.step_up_to(cleared.min(length - 1), steps)?;
        }
        Some(true)
    }

    /// The sum for the task at a place.
    fn cut_demand(&mut self, place: usize, length: u64) -> u128 {
        let cost = self.entries[place].cost;
        let most = length - cost + 1;
        self.differences.clear();
        let mut sum = 0;
        for (other, entry) in self.entries.iter().enumerate() {
            let (demand, more) = entry.demand(length);
            // C <= D <= T: what k itself runs before its job in question never exceeds A_k.
            let (off, cut) = match other == place {
                true => (cost, u64::MAX),
                false => (0, most),
            };
            let without = (demand - off).min(cut);
            let with = (demand + more - off).min(cut);
            sum += u128::from(without);
            self.differences.push(with - without);
        }
        sum + largest(&mut self.differences, self.cpus as usize - 1)
    }
}
