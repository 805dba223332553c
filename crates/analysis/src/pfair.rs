//! Whether Pfair schedules meet all deadlines once costs are whole quanta.
//!
//! PD2 needs no more than that no task and not all together need more than there is; what remains is
//! what is lost to quanta: costs are rounded up and periods down, a job that comes within a quantum
//! waits for the next, and staggered quanta end later on some CPUs than on others.

use shiftwork_model::{Slots, Span, TaskSet, Weight, WindowSource};

use crate::response::{as_spans, cpus_needed};
use crate::{NotShown, Outcome, Sporadic, Steps};

/// How time is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quanta {
    /// The length of a quantum; nothing is shown if it is zero.
    pub quantum: Span,
    /// Whether the quanta of CPU k begin k/m of a quantum later (S-PD2).
    pub staggered: bool,
    /// Whether all jobs are released where quanta begin: periodic tasks with a period of whole quanta,
    /// started so. A task with another period is treated as if it were not.
    pub aligned: bool,
}

impl Quanta {
    /// As the task set says, or of a millisecond.
    pub fn of(set: &TaskSet, staggered: bool) -> Self {
        let Slots {
            quantum, aligned, ..
        } = Slots::of(set, 1);
        Self {
            quantum,
            staggered,
            aligned,
        }
    }

    /// Whether releases of a task with this period are seen at once.
    pub(crate) const fn sees_at_once(&self, period: Span) -> bool {
        slots(self, 1).sees_at_once(period)
    }

    /// How much later a quantum begins on the last of so many CPUs than on the first, in nanoseconds,
    /// rounded up: (m - 1) / m of it where they are staggered.
    pub fn stagger_latency_ns(&self, cpus: usize) -> u128 {
        let parts = u128::from(self.staggered) * (cpus as u128).saturating_sub(1);
        (parts * u128::from(self.quantum.as_ns())).div_ceil(cpus.max(1) as u128)
    }
}

/// Whether PD2, or S-PD2, meets all deadlines; the first task that is too much if not.
///
/// For aligned tasks with implicit deadlines that are not staggered, exact for schedules in whole
/// quanta: no other meets all deadlines if this fails. Otherwise sufficient only. A deadline before
/// the end of the period counts as the period, in the utilization as well (that is, as density).
///
/// # Assumes
/// Sporadic tasks, independent, no self-suspension; arbitrary deadlines.
///
/// # Cost
/// One step per task; exact integers where floats with a bounded error leave a doubt.
///
/// # Source
/// J. Anderson, A. Srinivasan, "Mixed Pfair/ERfair Scheduling of Asynchronous Periodic Tasks", Journal
/// of Computer and System Sciences 68(1), 2004: PD2 is optimal; for sporadic tasks A. Srinivasan,
/// J. Anderson, "Optimal Rate-based Scheduling on Multiprocessors", STOC 2002. What staggering costs:
/// P. Holman, J. Anderson, "Adapting Pfair Scheduling for Symmetric Multiprocessors", Journal of
/// Embedded Computing 1(4), 2005. Periods and deadlines shrink by a quantum for releases within one,
/// and by (m-1)/m of a quantum for staggering, as in B. Brandenburg, J. Calandrino, J. Anderson, "On the
/// Scalability of Real-Time Scheduling Algorithms on Multicore Platforms", RTSS 2008; here only the
/// deadline does, which is the same for implicit ones: at least floor(T / Q) quanta lie between the
/// quanta at which two jobs are first seen.
pub fn pfair(
    tasks: &[Sporadic],
    cpus: usize,
    quanta: &Quanta,
    steps: &mut Steps,
) -> Outcome<NotShown> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    match cpus_needed(
        &all_in_quanta(tasks, cpus, quanta, WindowSource::Deadline),
        cpus,
    ) {
        Ok(_) => Outcome::Pass(()),
        Err(not_shown) => Outcome::Fail(not_shown),
    }
}

/// Bounds on the response times under PD2 or S-PD2, in the order of the tasks, if deadlines may be
/// missed: the period in whole quanta and what releases within a quantum and staggering add to it. So
/// nothing of the utilization is lost to these, and with implicit deadlines a job is tardy by less
/// than one quantum for each of both.
///
/// # Assumes
/// As [`pfair`]; deadlines do not matter.
///
/// # Cost
/// As [`pfair`].
///
/// # Source
/// As [`pfair`].
pub fn pfair_responses(
    tasks: &[Sporadic],
    cpus: usize,
    quanta: &Quanta,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    let quantized = all_in_quanta(tasks, cpus, quanta, WindowSource::Period);
    let quantum = u128::from(quanta.quantum.as_ns());
    let bounds = tasks.iter().zip(&quantized).map(|(task, quantized)| {
        // A release is at least a nanosecond after the beginning of the quantum that it misses.
        let at_once = quanta.sees_at_once(task.period);
        let unseen = u128::from(!at_once) * quantum.saturating_sub(1);
        quantized.period_ns() * quantum + unseen + quanta.stagger_latency_ns(cpus)
    });
    match cpus_needed(&quantized, cpus).and_then(|_| as_spans(bounds)) {
        Ok(bounds) => Outcome::Pass(bounds),
        Err(not_shown) => Outcome::Fail(not_shown),
    }
}

/// How time is divided, as tasks see it.
pub(crate) const fn slots(quanta: &Quanta, cpus: usize) -> Slots {
    Slots {
        quantum: quanta.quantum,
        staggered_over: if quanta.staggered { cpus } else { 1 },
        aligned: quanta.aligned,
    }
}

/// All tasks as they are in quanta.
fn all_in_quanta(
    tasks: &[Sporadic],
    cpus: usize,
    quanta: &Quanta,
    source: WindowSource,
) -> Vec<Sporadic> {
    let slots = slots(quanta, cpus);
    let in_quanta = |task| in_quanta(task, &slots, source);
    tasks.iter().map(in_quanta).collect()
}

/// The task as it is in quanta, with an implicit deadline; one that no test shows if there is none.
fn in_quanta(task: &Sporadic, slots: &Slots, source: WindowSource) -> Sporadic {
    let weight = match task.is_possible() {
        false => Weight {
            quanta: 0,
            slots: 0,
        },
        true => slots.weight([task.cost, task.period, task.deadline], source),
    };
    let [cost, period] = [weight.quanta, weight.slots].map(Span::from_ns);
    Sporadic {
        cost,
        period,
        deadline: period,
    }
}
