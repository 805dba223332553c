//! Non-preemptive fixed priorities on one CPU: worst-case response times.

use shiftwork_model::Span;

use super::{TooLate, span, too_much};
use crate::exact::whole;
use crate::response::as_spans;
use crate::{NotShown, Outcome, Ranked, Sporadic, Steps};

/// Whether non-preemptive fixed priorities meet all deadlines on one CPU; the first task, in the given order, that
/// may be late if not. Exact for sporadic tasks, and periodic ones of unknown offsets, if no priorities are equal.
/// Equal priorities count as more urgent both ways, which is safe and may be too strict.
///
/// # Assumes
/// As [`np_fp_response_times()`].
///
/// # Cost
/// As [`np_fp_response_times()`].
///
/// # Source
/// As [`np_fp_response_times()`].
pub fn np_fp_rta(tasks: &[Ranked], steps: &mut Steps) -> Outcome<TooLate> {
    for (place, ranked) in tasks.iter().enumerate() {
        let deadline = ranked.task.deadline_ns();
        match Level::of(tasks, place).response(deadline, steps) {
            None => return Outcome::StepLimit,
            Some(response) if response > deadline => {
                let response = span(response);
                return Outcome::Fail(TooLate { place, response });
            }
            Some(_) => {}
        }
    }
    Outcome::Pass(())
}

/// The worst-case response times under non-preemptive fixed priorities on one CPU, in the order of the tasks,
/// whether or not they are within the deadlines. Exact as [`np_fp_rta()`] is. Fails if U > 1, with the first task
/// that is too much.
///
/// The longest responses are in the busy period of the priority that begins when the task and all more urgent ones
/// are released, with the longest less urgent job begun one unit of time before: time is whole, so B = C - 1 of it is
/// left. From there on, job q of the task (from 0) begins at the least s with
///
/// > s = B + q C_i + sum over more urgent k of (floor(s / T_k) + 1) C_k
///
/// as a job that is released at s takes the CPU before it does, and ends C_i later. The busy period with q + 1 jobs
/// of the task ends at the least w with w = B + (q + 1) C_i + sum of ceil(w / T_k) C_k; another job of the task
/// belongs to it if w > (q + 1) T_i. That the response of the first job is in time is not enough, whatever the
/// deadlines: its end may leave more urgent jobs behind that delay the next.
///
/// # Assumes
/// Sporadic tasks, independent, no self-suspension, arbitrary deadlines. The jobs of a task run one after the
/// other. A CPU that becomes free takes a job after all completions and arrivals of the instant.
///
/// # Cost
/// One step per more urgent task and iteration, for each job of the task in the longest busy period;
/// pseudo-polynomial.
///
/// # Source
/// L. George, N. Rivierre, M. Spuri, "Preemptive and Non-Preemptive Real-Time Uni-Processor Scheduling", INRIA
/// RR-2966, 1996, and R. Davis, A. Burns, R. Bril, J. Lukkien, "Controller Area Network (CAN) schedulability
/// analysis: Refuted, revisited and revised", Real-Time Systems 35, 2007, in whole time.
pub fn np_fp_response_times(tasks: &[Ranked], steps: &mut Steps) -> Outcome<NotShown, Vec<Span>> {
    let plain: Vec<Sporadic> = tasks.iter().map(|ranked| ranked.task).collect();
    if let Some(misfit) = too_much(&plain, whole()) {
        return Outcome::Fail(misfit);
    }
    let places = 0..tasks.len();
    let worst = places.map(|place| Level::of(tasks, place).response(u128::MAX, steps));
    match worst.collect::<Option<Vec<u128>>>() {
        None => Outcome::StepLimit,
        Some(worst) => match as_spans(worst.into_iter()) {
            Ok(worst) => Outcome::Pass(worst),
            Err(misfit) => Outcome::Fail(misfit),
        },
    }
}

/// Whether the task at this place is in time, whatever the others are, as [`np_fp_rta()`] decides it; `None` when out of
/// steps.
pub(crate) fn np_fp_in_time(tasks: &[Ranked], place: usize, steps: &mut Steps) -> Option<bool> {
    let deadline = tasks[place].task.deadline_ns();
    let response = Level::of(tasks, place).response(deadline, steps)?;
    Some(response <= deadline)
}

/// What a task meets at its priority.
struct Level {
    own: Sporadic,
    /// Those that go first when the CPU becomes free.
    urgent: Vec<Sporadic>,
    /// What may be left of a less urgent job.
    blocking: u128,
}

impl Level {
    fn of(tasks: &[Ranked], place: usize) -> Self {
        let Ranked {
            task: own,
            priority,
        } = tasks[place];
        let others = tasks
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != place);
        let (urgent, rest): (Vec<&Ranked>, Vec<&Ranked>) = others
            .map(|(_, ranked)| ranked)
            .partition(|ranked| ranked.priority <= priority);
        let longest = rest.iter().map(|ranked| ranked.task.cost_ns()).max();
        Self {
            own,
            urgent: urgent.iter().map(|ranked| ranked.task).collect(),
            blocking: longest.map_or(0, |cost| cost.saturating_sub(1)),
        }
    }

    /// The worst response time, or one above `limit` as soon as there is one; `None` when out of steps.
    fn response(&self, limit: u128, steps: &mut Steps) -> Option<u128> {
        let own = &self.own;
        if !own.is_possible() || !self.urgent.iter().all(Sporadic::is_possible) {
            return Some(u128::MAX);
        }
        let (mut worst, mut released) = (0, 0);
        // What the CPU has to do before the job, beside more urgent work.
        let mut before = self.blocking;
        let mut start = before;
        loop {
            loop {
                let response = (start + own.cost_ns()).saturating_sub(released);
                if response > limit {
                    return Some(response);
                }
                // Those that are released up to now, and at this instant.
                let next = self.busy(before, |period| start / period + 1, steps)?;
                if next <= start {
                    break;
                }
                start = next;
            }
            let finish = start + own.cost_ns();
            worst = worst.max(finish - released);
            before = before.checked_add(own.cost_ns())?;
            released += own.period_ns();
            let mut end = finish;
            loop {
                let next = self.busy(before, |period| end.div_ceil(period), steps)?;
                if next <= end {
                    break;
                }
                end = next;
            }
            if end <= released {
                return Some(worst);
            }
            start = finish;
        }
    }

    /// So much work, and so many jobs of each more urgent task.
    fn busy(&self, work: u128, jobs: impl Fn(u128) -> u128, steps: &mut Steps) -> Option<u128> {
        steps.take(self.urgent.len() + 1)?;
        self.urgent.iter().try_fold(work, |sum, task| {
            sum.checked_add(jobs(task.period_ns()).checked_mul(task.cost_ns())?)
        })
    }
}
