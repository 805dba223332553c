//! How tests are asked: in which unit of time, and those that are not asked as they are.

use shiftwork_model::{CpuSet, Order, Span};

use super::case::{Case, Shape, density};
use crate::affinity::{
    Groups, waiting_levels_edf, waiting_levels_edf_with_suspensions, waiting_levels_fp,
    waiting_levels_fp_with_suspensions,
};
use crate::exact::whole;
use crate::global_edf::rta;
use crate::global_fp::bertogna_cirinei;
use crate::packing::{Heuristic, Onto, pack};
use crate::response::{demand_fits, gel_with_points};
use crate::uniprocessor::{
    BlockedInterval, Overfull, Suspending, TooLate, edf_rta, edf_rta_with_suspensions,
    edf_with_suspensions, fp_response_times, fp_rta, fp_rta_with_suspensions, np_edf, np_fp_rta,
    qpa,
};
use crate::{Outcome, Sporadic, Steps, Witness};

/// A question to a test.
pub(super) type Ask = fn(&Case, &mut Steps) -> Shown;

/// What a test has shown.
pub(super) enum Shown {
    /// It passes; with bounds on the response times, in the order of the tasks, if it has any.
    Pass(Option<Vec<Span>>),
    /// It fails; with what shows that no test can pass, if the test is exact here.
    Fail(Option<Witness>),
    /// It gave up.
    StepLimit,
}

impl Shown {
    /// What is shown where time was counted in whole ticks. An exact test that fails for tasks with rounded
    /// times does not show that the tasks themselves are late.
    fn of_ticks(self, tick: Span, is_whole: bool) -> Self {
        let in_ns = |ticks: &mut Span| {
            let ns = ticks.checked_mul(tick.as_ns());
            *ticks = ns.unwrap_or(Span::MAX);
        };
        match self {
            // What does not fit is no bound.
            Self::Pass(Some(bounds)) => {
                let bounds = bounds.iter().map(|ticks| ticks.checked_mul(tick.as_ns()));
                Self::Pass(bounds.collect())
            }
            Self::Fail(Some(mut witness)) if is_whole => {
                witness.spans().into_iter().flatten().for_each(in_ns);
                Self::Fail(Some(witness))
            }
            Self::Fail(_) => Self::Fail(None),
            other => other,
        }
    }
}

/// Asks about the case, in whole ticks if the task set counts in them. That matters to tests whose formulas
/// have "one more" or whole parts of quotients; and bounds are then whole ticks.
pub(super) fn ask(run: Ask, case: &Case, steps: &mut Steps) -> Shown {
    match case.in_ticks() {
        None => run(case, steps),
        Some((in_ticks, is_whole)) => run(&in_ticks, steps).of_ticks(case.terms.tick, is_whole),
    }
}

/// Whether the demand fits. Where affinities differ, a task with a deadline before the end of its period
/// is one with the deadline as its period that comes less often.
pub(super) fn ask_fit(case: &Case, _: &mut Steps) -> Shown {
    if case.is_global() {
        return match demand_fits(&case.tasks, case.cpus.len()) {
            true => Shown::Pass(None),
            false => Shown::Fail(None),
        };
    }
    let fits = |groups: Groups| groups.shortage(whole()).0.is_none();
    // Any task alone must fit, too: a job runs on one CPU at a time.
    let each = |task| density(task).is_some_and(|rate| !rate.exceeds_one());
    match case.tasks.iter().all(each) && case.groups(density).is_some_and(fits) {
        true => Shown::Pass(None),
        false => Shown::Fail(None),
    }
}

/// Under EDF on one CPU, every job of a set that passes completes by its deadline. Where tasks suspend themselves, it is enough
/// that those that compute meanwhile are in time, or that one of the two tests of tasks that suspend themselves passes.
pub(super) fn ask_qpa(case: &Case, steps: &mut Steps) -> Shown {
    let Shape::One(cpu) = case.shape else {
        return Shown::Fail(None);
    };
    if let Some(suspending) = case.suspending() {
        let computing = qpa(&case.tasks, whole(), &mut steps.set_aside(2));
        return match computing {
            Outcome::Pass(()) => Shown::Pass(None),
            _ => ask_suspending_edf(case, &suspending, steps),
        };
    }
    match qpa(&case.tasks, whole(), steps) {
        Outcome::Pass(()) => Shown::Pass(None),
        Outcome::StepLimit => Shown::StepLimit,
        Outcome::Fail(overfull) => Shown::Fail(Some(Witness::Interval {
            cpu,
            length: overfull.length,
            demand: overfull.demand,
        })),
    }
}

/// By bounds on the responses, where these are in time, else by the demand, which takes deadlines beyond periods, too.
fn ask_suspending_edf(case: &Case, tasks: &[Suspending], steps: &mut Steps) -> Shown {
    let found = edf_rta_with_suspensions(tasks, &mut steps.set_aside(2));
    let gave_up = found == Outcome::StepLimit;
    if let Outcome::Pass(bounds) = found
        && are_in_time(case, &bounds)
    {
        return Shown::Pass(None);
    }
    match edf_with_suspensions(tasks, steps) {
        Outcome::Fail(_) if gave_up => Shown::StepLimit,
        found => without_bounds(found),
    }
}

fn are_in_time(case: &Case, bounds: &[Span]) -> bool {
    let mut all = case.tasks.iter().zip(bounds);
    all.all(|(task, bound)| *bound <= task.deadline)
}

/// The response times under EDF on one CPU. Where tasks suspend themselves these are bounds, each the best of the two ways.
pub(super) fn ask_edf_times(case: &Case, steps: &mut Steps) -> Shown {
    let Some(suspending) = case.suspending() else {
        return with_bounds(edf_rta(&case.tasks, whole(), steps));
    };
    let computing = edf_rta(&case.tasks, whole(), &mut steps.set_aside(2));
    let suspended = edf_rta_with_suspensions(&suspending, steps);
    least_bounds(with_bounds(computing), with_bounds(suspended))
}

/// Under fixed priorities on one CPU. Where tasks suspend themselves, it is enough that those that compute meanwhile are in
/// time, or that a test of tasks that suspend themselves passes.
pub(super) fn ask_fp_rta(case: &Case, steps: &mut Steps) -> Shown {
    let Some(suspending) = case.suspending() else {
        return in_time_by_priority(case, fp_rta(&case.ranked(), whole(), steps));
    };
    let computing = fp_rta(&case.ranked(), whole(), &mut steps.set_aside(2));
    match computing {
        Outcome::Pass(()) => Shown::Pass(None),
        _ => with_bounds(fp_rta_with_suspensions(&suspending, steps)),
    }
}

/// The response times under fixed priorities on one CPU. Where tasks suspend themselves these are bounds, each the best of the
/// two ways.
pub(super) fn ask_fp_times(case: &Case, steps: &mut Steps) -> Shown {
    let Some(suspending) = case.suspending() else {
        return with_bounds(fp_response_times(&case.ranked(), whole(), steps));
    };
    let computing = fp_response_times(&case.ranked(), whole(), &mut steps.set_aside(2));
    let suspended = fp_rta_with_suspensions(&suspending, steps);
    least_bounds(with_bounds(computing), with_bounds(suspended))
}

/// Under strong EDF. Where tasks suspend themselves, bounds are the best of two ways: of tasks that compute meanwhile, and of
/// what they execute alone.
pub(super) fn ask_waiting_levels_edf(case: &Case, steps: &mut Steps) -> Shown {
    let computing = |case: &Case, steps: &mut Steps| {
        with_bounds(waiting_levels_edf(&case.placed(), whole(), steps))
    };
    least_of_two(case, steps, computing, suspending_edf)
}

/// Under strong fixed priorities, likewise.
pub(super) fn ask_waiting_levels_fp(case: &Case, steps: &mut Steps) -> Shown {
    let computing = |case: &Case, steps: &mut Steps| {
        with_bounds(waiting_levels_fp(&case.bound(), whole(), steps))
    };
    least_of_two(case, steps, computing, suspending_fp)
}

/// Under global EDF. Where all tasks may use all CPUs, these are the one level at which a task waits.
pub(super) fn ask_rta(case: &Case, steps: &mut Steps) -> Shown {
    let computing =
        |case: &Case, steps: &mut Steps| with_bounds(rta(&case.tasks, case.cpus.len(), steps));
    least_of_two(case, steps, computing, suspending_edf)
}

/// Under global fixed priorities, likewise.
pub(super) fn ask_bertogna_cirinei(case: &Case, steps: &mut Steps) -> Shown {
    let computing = |case: &Case, steps: &mut Steps| {
        with_bounds(bertogna_cirinei(&case.ranked(), case.cpus.len(), steps))
    };
    least_of_two(case, steps, computing, suspending_fp)
}

fn suspending_edf(case: &Case, suspensions: &[Span], steps: &mut Steps) -> Shown {
    let tasks = case.placed();
    with_bounds(waiting_levels_edf_with_suspensions(
        &tasks,
        suspensions,
        whole(),
        steps,
    ))
}

fn suspending_fp(case: &Case, suspensions: &[Span], steps: &mut Steps) -> Shown {
    let tasks = case.bound();
    with_bounds(waiting_levels_fp_with_suspensions(
        &tasks,
        suspensions,
        whole(),
        steps,
    ))
}

/// What is shown of the tasks if they compute while they are suspended; and where some are, by the second test, of what they
/// execute alone.
fn least_of_two(
    case: &Case,
    steps: &mut Steps,
    computing: fn(&Case, &mut Steps) -> Shown,
    suspending: fn(&Case, &[Span], &mut Steps) -> Shown,
) -> Shown {
    match case.executing() {
        None => computing(case, steps),
        Some((executing, suspensions)) => {
            let computing = computing(case, &mut steps.set_aside(2));
            least_bounds(computing, suspending(&executing, &suspensions, steps))
        }
    }
}

/// What two tests show together that each have bounds if they pass.
fn least_bounds(one: Shown, other: Shown) -> Shown {
    match (one, other) {
        (Shown::Pass(Some(one)), Shown::Pass(Some(other))) => {
            let least = one.into_iter().zip(other);
            Shown::Pass(Some(least.map(|(one, other)| one.min(other)).collect()))
        }
        (shown @ Shown::Pass(_), _) | (_, shown) => shown,
    }
}

pub(super) fn ask_np_fp_rta(case: &Case, steps: &mut Steps) -> Shown {
    in_time_by_priority(case, np_fp_rta(&case.ranked(), steps))
}

/// What a test of fixed priorities on one CPU shows that is exact if all priorities differ.
fn in_time_by_priority(case: &Case, outcome: Outcome<TooLate>) -> Shown {
    let Shape::One(cpu) = case.shape else {
        return Shown::Fail(None);
    };
    match outcome {
        Outcome::Pass(()) => Shown::Pass(None),
        Outcome::StepLimit => Shown::StepLimit,
        Outcome::Fail(late) => {
            // Equals are taken to be more urgent both ways, which is safe and not exact.
            let is_exact = case.priorities_differ();
            Shown::Fail(is_exact.then_some(Witness::Late {
                task: case.ids[late.place],
                cpu,
                response: late.response,
                deadline: case.tasks[late.place].deadline,
            }))
        }
    }
}

/// Under non-preemptive EDF on one CPU.
pub(super) fn ask_np_edf(case: &Case, steps: &mut Steps) -> Shown {
    let Shape::One(cpu) = case.shape else {
        return Shown::Fail(None);
    };
    match np_edf(&case.tasks, steps) {
        Outcome::Pass(()) => Shown::Pass(None),
        Outcome::StepLimit => Shown::StepLimit,
        Outcome::Fail(BlockedInterval { blocker, overfull }) => {
            let Overfull { length, demand } = overfull;
            Shown::Fail(Some(match blocker {
                None => Witness::Interval {
                    cpu,
                    length,
                    demand,
                },
                Some(place) => Witness::Blocked {
                    task: case.ids[place],
                    cpu,
                    length,
                    demand,
                },
            }))
        }
    }
}

/// One of the heuristics, by its place among all of them.
pub(super) fn ask_packing<const HEURISTIC: usize, const BY_PRIORITY: bool>(
    case: &Case,
    steps: &mut Steps,
) -> Shown {
    let singles: Vec<CpuSet> = case.cpus.iter().map(CpuSet::single).collect();
    let onto = Onto {
        groups: &singles,
        order: match BY_PRIORITY {
            true => Order::FixedPriority,
            false => Order::Edf,
        },
        supply: whole(),
    };
    match pack(&case.bound(), &onto, Heuristic::ALL[HEURISTIC], steps) {
        Outcome::Pass(_) => Shown::Pass(None),
        Outcome::Fail(_) => Shown::Fail(None),
        Outcome::StepLimit => Shown::StepLimit,
    }
}

/// The bounds for the priority points of fair lateness. These follow from the times in nanoseconds, which the ticks
/// of the case are multiples of.
pub(super) fn ask_fair_lateness(case: &Case, steps: &mut Steps) -> Shown {
    let (cpus, tick) = (case.cpus.len(), case.terms.tick.as_ns().max(1));
    let in_ns = |ticks: Span| ticks.checked_mul(tick);
    let of = |task: &Sporadic| {
        let [cost, period, deadline] = [task.cost, task.period, task.deadline].map(in_ns);
        Some(Sporadic {
            cost: cost?,
            period: period?,
            deadline: deadline?,
        })
    };
    let Some(tasks) = case.tasks.iter().map(of).collect::<Option<Vec<_>>>() else {
        return Shown::Fail(None);
    };
    let point =
        |task: &Sporadic| Order::FairLateness.relative_deadline(task.cost, task.deadline, cpus);
    match with_bounds(gel_with_points(&tasks, cpus, point, steps)) {
        Shown::Pass(Some(bounds)) => {
            let in_ticks = |bound: Span| Span::from_ns(bound.as_ns().div_ceil(tick));
            Shown::Pass(Some(bounds.into_iter().map(in_ticks).collect()))
        }
        other => other,
    }
}

/// A test that shows no more than that it passes.
pub(super) fn without_bounds<Failure>(outcome: Outcome<Failure>) -> Shown {
    match outcome {
        Outcome::Pass(()) => Shown::Pass(None),
        Outcome::Fail(_) => Shown::Fail(None),
        Outcome::StepLimit => Shown::StepLimit,
    }
}

/// A test whose proof is a bound on each response time.
pub(super) fn with_bounds<Failure>(outcome: Outcome<Failure, Vec<Span>>) -> Shown {
    match outcome {
        Outcome::Pass(bounds) => Shown::Pass(Some(bounds)),
        Outcome::Fail(_) => Shown::Fail(None),
        Outcome::StepLimit => Shown::StepLimit,
    }
}

/// A test that shows that there are bounds, and knows some numbers: a part of which one is missing has none.
pub(super) fn with_known_bounds<Failure>(outcome: Outcome<Failure, Vec<Option<Span>>>) -> Shown {
    match outcome {
        Outcome::Pass(bounds) => Shown::Pass(bounds.into_iter().collect()),
        Outcome::Fail(_) => Shown::Fail(None),
        Outcome::StepLimit => Shown::StepLimit,
    }
}
