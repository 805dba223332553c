//! Fixed priorities on one CPU: worst-case response times.

use shiftwork_model::{ArrivalCurve, Priority, Share, Span};

use super::{span, time_for, too_much};
use crate::arrivals::Arriving;
use crate::exact::whole;
use crate::response::as_spans;
use crate::{NotShown, Outcome, Ranked, Sporadic, Steps};

/// A task that may finish after its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLate {
    /// Its place among the tasks.
    pub place: usize,
    /// A response time above the deadline that the analysis reached; the worst is no shorter.
    pub response: Span,
}

/// A task whose jobs become ready some time after they have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithJitter<'a> {
    /// The task and its priority. Its period separates arrivals; its deadline counts from them.
    pub ranked: Ranked,
    /// The curve that arrivals keep to; `None` if nothing but the period separates them.
    pub curve: Option<&'a ArrivalCurve>,
    /// The longest from an arrival until the job is ready. Zero and beyond the period are allowed.
    pub jitter: Span,
}

impl From<Ranked> for WithJitter<'_> {
    /// Jobs are ready when they arrive, a period or more apart.
    fn from(ranked: Ranked) -> Self {
        Self {
            ranked,
            curve: None,
            jitter: Span::ZERO,
        }
    }
}

/// Whether fixed priorities meet all deadlines on one CPU of this supply; the first task, in the
/// given order, that may be late if not. Exact for sporadic tasks with distinct priorities at supply
/// 1; below 1, exact for a CPU that is slower by that factor. Equal priorities count as more urgent
/// both ways, which is safe and may be too strict.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, no release jitter (see
/// [`fp_rta_with_jitter`]).
///
/// # Cost
/// One step per more urgent task and iteration; pseudo-polynomial.
///
/// # Source
/// M. Joseph, P. Pandya, "Finding Response Times in a Real-Time System", The Computer Journal 29(5),
/// 1986; for deadlines beyond the period every job of the busy period is looked at, as in
/// J. Lehoczky, "Fixed Priority Scheduling of Periodic Task Sets with Arbitrary Deadlines", RTSS 1990.
pub fn fp_rta(tasks: &[Ranked], supply: Share, steps: &mut Steps) -> Outcome<TooLate> {
    let tasks: Vec<WithJitter<'_>> = tasks.iter().copied().map(WithJitter::from).collect();
    fp_rta_with_jitter(&tasks, supply, steps)
}

/// The same where jobs become ready up to a jitter after they have arrived, and arrivals keep to curves. Response times
/// count from the arrival.
///
/// # Assumes
/// As [`fp_rta()`], but for the jitter and the curves. The jobs of a task become ready in the order of their arrival.
///
/// # Cost
/// As [`fp_rta()`]. With jitter a CPU that is used up entirely may be busy without end, so that only
/// the steps end the search.
///
/// # Source
/// N. Audsley, A. Burns, M. Richardson, K. Tindell, A. Wellings, "Applying new scheduling theory to
/// static priority pre-emptive scheduling", Software Engineering Journal 8(5), 1993; for deadlines or
/// jitters beyond the period K. Tindell, A. Burns, A. Wellings, "An Extendible Approach for Analyzing
/// Fixed Priority Hard Real-Time Tasks", Real-Time Systems 6(2), 1994; for curves the same recurrence with the number of
/// releases in a window that they allow: K. Richter, "Compositional Scheduling Analysis Using Standard Event Models", PhD
/// thesis, TU Braunschweig 2005. `docs/theory/curves.md` has the proof.
pub fn fp_rta_with_jitter(
    tasks: &[WithJitter<'_>],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<TooLate> {
    for (place, own) in tasks.iter().enumerate() {
        let urgent = urgent(tasks, place);
        match response(own, &urgent, supply, own.task().deadline_ns(), steps) {
            None => return Outcome::StepLimit,
            Some([response, _]) if response > own.task().deadline_ns() => {
                let response = span(response);
                return Outcome::Fail(TooLate { place, response });
            }
            Some(_) => {}
        }
    }
    Outcome::Pass(())
}

/// A worst-case response time of a task with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// From the arrival of a job on.
    pub from_arrival: Span,
    /// From when it became ready on.
    pub from_ready: Span,
}

/// The worst-case response times of tasks with jitter, in their order, whether or not they are within the deadlines. Bounds
/// as those of [`fp_response_times`], and with the same failure.
///
/// # Assumes
/// As [`fp_rta_with_jitter`].
///
/// # Cost
/// As [`fp_response_times`]; with jitter a CPU that is used up entirely may be busy without end.
pub(crate) fn fp_responses_with_jitter(
    tasks: &[WithJitter<'_>],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Response>> {
    if let Some(misfit) = too_much(tasks, supply) {
        return Outcome::Fail(misfit);
    }
    let mut worst = Vec::new();
    for (place, own) in tasks.iter().enumerate() {
        let urgent = urgent(tasks, place);
        let Some(found) = response(own, &urgent, supply, u128::MAX, steps) else {
            return Outcome::StepLimit;
        };
        match as_spans(found.into_iter()).as_deref() {
            Ok(&[from_arrival, from_ready]) => worst.push(Response {
                from_arrival,
                from_ready,
            }),
            _ => return Outcome::Fail(NotShown { place }),
        }
    }
    Outcome::Pass(worst)
}

/// The worst-case response times under fixed priorities on one CPU of this supply, in the order of the
/// tasks, whether or not they are within the deadlines. Exact for sporadic tasks with distinct priorities at
/// supply 1; below 1, exact for a CPU that is slower by that factor, rounded up. Equal priorities count as
/// more urgent both ways, so that the response is then a bound. Fails if U exceeds the supply, with the first
/// task that is too much.
///
/// # Assumes
/// As [`fp_rta()`]. The jobs of a task run one after the other.
///
/// # Cost
/// One step per more urgent task and iteration, for each job of the task in the longest interval in which
/// the CPU runs nothing less urgent; pseudo-polynomial. At U = supply that may be as long as the least common
/// multiple of the periods.
///
/// # Source
/// J. Lehoczky, "Fixed Priority Scheduling of Periodic Task Sets with Arbitrary Deadlines", RTSS 1990.
pub fn fp_response_times(
    tasks: &[Ranked],
    supply: Share,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    let plain: Vec<Sporadic> = tasks.iter().map(|ranked| ranked.task).collect();
    if let Some(misfit) = too_much(&plain, supply) {
        return Outcome::Fail(misfit);
    }
    let tasks: Vec<WithJitter<'_>> = tasks.iter().copied().map(WithJitter::from).collect();
    let worst = tasks.iter().enumerate().map(|(place, own)| {
        let urgent = urgent(&tasks, place);
        response(own, &urgent, supply, u128::MAX, steps).map(|[worst, _]| worst)
    });
    match worst.collect::<Option<Vec<u128>>>() {
        None => Outcome::StepLimit,
        Some(worst) => match as_spans(worst.into_iter()) {
            Ok(worst) => Outcome::Pass(worst),
            Err(misfit) => Outcome::Fail(misfit),
        },
    }
}

/// The worst-case response time of a task on one CPU, where these may preempt it, as [`fp_response_times`] bounds it; `None` where it
/// is not bounded, or when out of steps.
pub(crate) fn fp_response_time(
    own: Sporadic,
    urgent: &[Sporadic],
    steps: &mut Steps,
) -> Option<Span> {
    let all: Vec<Sporadic> = urgent.iter().copied().chain([own]).collect();
    if too_much(&all, whole()).is_some() {
        return None;
    }
    let priority = Priority::MOST_URGENT;
    let with_jitter = |task: Sporadic| WithJitter::from(Ranked { task, priority });
    let urgent: Vec<WithJitter<'_>> = urgent.iter().copied().map(with_jitter).collect();
    let [worst, _] = response(&with_jitter(own), &urgent, whole(), u128::MAX, steps)?;
    u64::try_from(worst).ok().map(Span::from_ns)
}

/// Whether the task at this place is in time, whatever the others are, as [`fp_rta()`] decides it; `None` when out of
/// steps.
pub(crate) fn fp_in_time(tasks: &[Ranked], place: usize, steps: &mut Steps) -> Option<bool> {
    let tasks: Vec<WithJitter<'_>> = tasks.iter().copied().map(WithJitter::from).collect();
    let deadline = tasks[place].task().deadline_ns();
    let urgent = urgent(&tasks, place);
    let [response, _] = response(&tasks[place], &urgent, whole(), deadline, steps)?;
    Some(response <= deadline)
}

/// The tasks that may preempt the one at this place.
fn urgent<'a>(tasks: &[WithJitter<'a>], place: usize) -> Vec<WithJitter<'a>> {
    let own = tasks[place].ranked.priority;
    let others = tasks.iter().enumerate();
    let urgent = others.filter(|&(other, task)| other != place && task.ranked.priority <= own);
    urgent.map(|(_, task)| *task).collect()
}

impl Arriving for WithJitter<'_> {
    fn task(&self) -> &Sporadic {
        &self.ranked.task
    }

    fn curve(&self) -> Option<&ArrivalCurve> {
        self.curve
    }

    fn jitter(&self) -> Span {
        self.jitter
    }
}

/// The worst response time, from the arrival of a job on and from when it is ready; or from the arrival on one above
/// `limit` as soon as there is one. `None` when out of steps.
fn response(
    own: &WithJitter<'_>,
    urgent: &[WithJitter<'_>],
    supply: Share,
    limit: u128,
    steps: &mut Steps,
) -> Option<[u128; 2]> {
    let possible = |one: &WithJitter<'_>| one.task().is_possible();
    if !possible(own) || !urgent.iter().all(possible) || supply.billionths() == 0 {
        return Some([u128::MAX; 2]);
    }
    let (task, arrivals) = (own.task(), own.arrivals());
    let jitter = u128::from(own.jitter.as_ns());
    let preempting: Vec<_> = urgent
        .iter()
        .map(|one| (one.arrivals(), one.task().cost_ns()))
        .collect();
    let mut worst = [0; 2];
    // Relative to when the first job became ready, after waiting for the whole jitter: the arrival
    // of the current job, if the first had arrived when it became ready, and its finishing time.
    let mut arrived = 0;
    let mut finish = time_for(task.cost_ns(), supply)?;
    // Job by job, until one finishes before the next may be ready.
    for job in 1u128.. {
        let owed = job.checked_mul(task.cost_ns())?;
        loop {
            let response = finish + jitter - arrived;
            if response > limit {
                return Some([response; 2]);
            }
            steps.take(urgent.len() + 1)?;
            let work = preempting.iter().try_fold(owed, |sum, (arrivals, cost)| {
                let jobs = arrivals.released_within(finish);
                sum.checked_add(jobs.checked_mul(*cost)?)
            })?;
            let next = time_for(work, supply)?;
            if next <= finish {
                break;
            }
            finish = next;
        }
        // The job became ready in that time, and not before it arrived.
        let from_ready = finish - arrived.saturating_sub(jitter);
        worst = [
            worst[0].max(finish + jitter - arrived),
            worst[1].max(from_ready),
        ];
        arrived = arrivals.distance(job);
        if finish + jitter <= arrived {
            return Some(worst);
        }
    }
    None
}
