use num_bigint::BigInt;

use crate::filter::Interval;
use crate::{NotShown, Outcome, Sporadic, Steps};

use super::{Deadlines, fractions, misfit, outcome};

/// Whether global EDF is shown to meet all deadlines: for no task k could the others demand enough
/// of the interval before a deadline of k to keep it from running.
///
/// For every k, with l = C_k/D_k, the sum over all i of min(1, b_i) is at most m - (m - 1) l, where
/// b_i = u_i (1 + (T_i - D_i)/D_k), and (C_i - l T_i)/D_k more if u_i > l.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; constrained deadlines.
///
/// # Cost
/// O(n²), one step per pair; more for a task for which both sides agree to about ten digits.
///
/// # Source
/// T. Baker, "Multiprocessor EDF and Deadline Monotonic Schedulability Analysis", RTSS 2003,
/// Theorem 15. Equality passes.
pub fn bak(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown> {
    if let Some(misfit) = misfit(tasks, cpus, Deadlines::Constrained) {
        return Outcome::Fail(misfit);
    }
    let all = Terms::new(tasks);
    outcome(verdict(tasks, &all, cpus, steps))
}

fn verdict(
    tasks: &[Sporadic],
    all: &Terms,
    cpus: usize,
    steps: &mut Steps,
) -> Option<Result<(), NotShown>> {
    for (place, task) in tasks.iter().enumerate() {
        steps.take(tasks.len())?;
        let holds = match all.hold_nearly(task, cpus) {
            Some(holds) => holds,
            None => hold_exactly(tasks, task, cpus, steps)?,
        };
        if !holds {
            return Some(Err(NotShown { place }));
        }
    }
    Some(Ok(()))
}

/// What of b_i does not depend on k: everything is multiplied by D_k.
struct Term {
    /// u_i.
    share: f64,
    /// u_i (T_i - D_i).
    carried: f64,
    cost: f64,
    period: f64,
}

/// Those of all tasks, and sums of them that bound the error.
struct Terms {
    terms: Vec<Term>,
    shares: f64,
    lengths: f64,
    periods: f64,
}

impl Terms {
    fn new(tasks: &[Sporadic]) -> Self {
        let term = |task: &Sporadic| {
            let [cost, period] = [task.cost, task.period].map(|span| span.as_ns() as f64);
            let slack = (task.period - task.deadline).as_ns() as f64;
            Term {
                share: cost / period,
                carried: cost / period * slack,
                cost,
                period,
            }
        };
        let terms: Vec<Term> = tasks.iter().map(term).collect();
        let sum = |of: fn(&Term) -> f64| terms.iter().map(of).sum();
        Self {
            shares: sum(|term| term.share),
            lengths: sum(|term| term.carried + term.cost),
            periods: sum(|term| term.period),
            terms,
        }
    }

    /// Whether the condition holds for a task, `None` if that is a close question.
    fn hold_nearly(&self, task: &Sporadic, cpus: usize) -> Option<bool> {
        let deadline = task.deadline.as_ns() as f64;
        let l = task.cost.as_ns() as f64 / deadline;
        // Both cases are one, since u_i > l means C_i > l T_i.
        let demand = self.terms.iter().map(|term| {
            let more = term.cost - l * term.period;
            let more = if more > 0.0 { more } else { 0.0 };
            let demand = term.share * deadline + term.carried + more;
            if demand < deadline { demand } else { deadline }
        });
        let demand: f64 = demand.sum();
        // No term has more than ten roundings, each relative to something below u_i D_k +
        // u_i (T_i - D_i) + C_i + l T_i, and the sum has one more for each of them.
        let size = self.shares * deadline + self.lengths + l * self.periods;
        let error = size * (self.terms.len() as f64 + 16.0) * f64::EPSILON;
        let bound = Interval::of(cpus as u128) * Interval::of(task.deadline_ns())
            - Interval::of(cpus as u128 - 1) * Interval::of(task.cost_ns());
        let bound = (bound.low() - error, bound.high() + error);
        if demand <= bound.0 {
            return Some(true);
        }
        (demand > bound.1).then_some(false)
    }
}

/// Whether the condition holds for a task. D_k times everything: with d = D_k and l = C_k/d, the sum
/// of min(d, (C_i (d + T_i - D_i) + max(0, C_i T_i - l T_i²)) / T_i) is at most m d - (m - 1) C_k.
fn hold_exactly(
    tasks: &[Sporadic],
    task: &Sporadic,
    cpus: usize,
    steps: &mut Steps,
) -> Option<bool> {
    let (cost, deadline) = (
        BigInt::from(task.cost_ns()),
        BigInt::from(task.deadline_ns()),
    );
    // d² m is the scale of everything that is not divided by T_i.
    let parts = tasks.iter().map(|other| {
        let [c, t, d] = [other.cost_ns(), other.period_ns(), other.deadline_ns()].map(BigInt::from);
        let least = &c * (&deadline + &t - d) * &deadline;
        let more = (&c * &deadline - &cost * &t).max(BigInt::ZERO) * &t;
        let most = &deadline * &deadline * &t;
        ((least + more).min(most), other.period.as_ns())
    });
    let cpus = BigInt::from(cpus);
    let bound: BigInt = (&cpus * &deadline - (&cpus - 1) * &cost) * &deadline;
    let parts = parts.chain([(-bound, 1)]);
    fractions::compare(parts, (0, 1), steps).map(std::cmp::Ordering::is_le)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{RandomStream, Span};

    #[test]
    fn integers_decide_as_floats_do_where_these_decide() {
        let (mut yes, mut no) = (0, 0);
        for seed in 0..2_000 {
            let mut stream = RandomStream::new(seed, 61, 1);
            let count = 1 + stream.below(8);
            let tasks: Vec<Sporadic> = (0..count)
                .map(|_| {
                    let period = 1 + stream.below(40);
                    let cost = 1 + stream.below(period.div_ceil(2));
                    let deadline = cost + stream.below(period - cost + 1);
                    Sporadic {
                        cost: Span::from_ns(cost),
                        period: Span::from_ns(period),
                        deadline: Span::from_ns(deadline),
                    }
                })
                .collect();
            let cpus = 1 + stream.below(4) as usize;
            let all = Terms::new(&tasks);
            for task in &tasks {
                let exactly = hold_exactly(&tasks, task, cpus, &mut Steps::ordinary());
                let nearly = all.hold_nearly(task, cpus);
                assert!(nearly.is_none() || nearly == exactly, "seed {seed}");
                match exactly {
                    Some(true) => yes += 1,
                    _ => no += 1,
                }
            }
        }
        assert!(yes > 500 && no > 500, "{yes} {no}");
    }
}
