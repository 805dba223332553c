//! Fixed priorities on one CPU: worst-case response times.

use shiftwork_model::{Share, Span};

use super::{span, time_for};
use crate::{Outcome, Ranked, Sporadic, Steps};

/// A task that may finish after its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLate {
    /// Its place among the tasks.
    pub place: usize,
    /// A response time above the deadline that the analysis reached; the worst is no shorter.
    pub response: Span,
}

/// Whether fixed priorities meet all deadlines on one CPU of this supply; the first task, in the
/// given order, that may be late if not. Exact for sporadic tasks with distinct priorities at supply
/// 1; below 1, exact for a CPU that is slower by that factor. Equal priorities count as more urgent
/// both ways, which is safe and may be too strict.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, no release jitter.
///
/// # Cost
/// One step per more urgent task and iteration; pseudo-polynomial.
///
/// # Source
/// M. Joseph, P. Pandya, "Finding Response Times in a Real-Time System", The Computer Journal 29(5),
/// 1986; for deadlines beyond the period every job of the busy period is looked at, as in
/// J. Lehoczky, "Fixed Priority Scheduling of Periodic Task Sets with Arbitrary Deadlines", RTSS 1990.
pub fn fp_rta(tasks: &[Ranked], supply: Share, steps: &mut Steps) -> Outcome<TooLate> {
    for place in 0..tasks.len() {
        let own = &tasks[place];
        let others = tasks.iter().enumerate();
        let urgent: Vec<Sporadic> = others
            .filter(|&(other, task)| other != place && task.priority <= own.priority)
            .map(|(_, task)| task.task)
            .collect();
        match response(&own.task, &urgent, supply, steps) {
            None => return Outcome::StepLimit,
            Some(response) if response > own.task.deadline_ns() => {
                let response = span(response);
                return Outcome::Fail(TooLate { place, response });
            }
            Some(_) => {}
        }
    }
    Outcome::Pass(())
}

/// The worst response time, or one above the deadline as soon as there is one; `None` when out of
/// steps.
fn response(own: &Sporadic, urgent: &[Sporadic], supply: Share, steps: &mut Steps) -> Option<u128> {
    if !own.is_possible() || !urgent.iter().all(Sporadic::is_possible) || supply.billionths() == 0 {
        return Some(u128::MAX);
    }
    let mut worst = 0;
    let mut released = 0;
    let mut finish = time_for(own.cost_ns(), supply)?;
    // Job by job, until one finishes before the next is released.
    for job in 1u128.. {
        let owed = job.checked_mul(own.cost_ns())?;
        loop {
            if finish - released > own.deadline_ns() {
                return Some(finish - released);
            }
            steps.take(urgent.len() + 1)?;
            let work = urgent.iter().try_fold(owed, |sum, task| {
                let jobs = finish.div_ceil(task.period_ns());
                sum.checked_add(jobs.checked_mul(task.cost_ns())?)
            })?;
            let next = time_for(work, supply)?;
            if next <= finish {
                break;
            }
            finish = next;
        }
        worst = worst.max(finish - released);
        released += own.period_ns();
        if finish <= released {
            return Some(worst);
        }
    }
    None
}
