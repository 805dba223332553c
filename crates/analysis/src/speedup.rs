//! Deadlines under EDF with nested affinities, because slower CPUs would do for another scheduler.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::{CpuSet, Order, Priority, Share, TaskId};

use crate::affinity::parts::{Part, parts};
use crate::affinity::{Bound, Groups, speedup_factor};
use crate::exact::Rate;
use crate::packing::{Heuristic, Onto, pack};
use crate::{NotShown, Outcome, Placed, Ranked, Steps};

/// Whether every task meets its deadlines under EDF with the strong invariant (`hpa-edf`,
/// `strong-edf`) and nested affinities, because another scheduler meets them on CPUs of speed 1/s, s the
/// [`speedup_factor`] of the affinities. It does if the densities C / min(D, T) fit the CPUs, or if first fit
/// by decreasing utilization finds a CPU for each task on which EDF meets all deadlines (exact).
///
/// CPUs that no task connects are looked at by themselves. 1/s is rounded down to a billionth. Sufficient, not exact.
///
/// Fails with a task that is none, that is too much for such a CPU, whose affinity overlaps another one without nesting,
/// or for which no CPU is found.
///
/// # Assumes
/// Sporadic tasks with arbitrary deadlines, independent, preemptive, no self-suspension. Jobs of a task run one after
/// the other.
///
/// # Cost
/// One step per task, then that of [`pack`] onto the CPUs.
///
/// # Source
/// Theorem 2 of `docs/theory/strong-edf.md`, not refereed; instead of V. Bonifaci, B. Brandenburg, G. D'Angelo, A.
/// Marchetti-Spaccamela, ECRTS 2016, Theorem IV.8, which is for two levels and whose factor is nowhere smaller.
pub fn speedup(tasks: &[Placed], steps: &mut Steps) -> Outcome<NotShown> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    let misfit = |placed: &Placed| !placed.task.is_possible() || placed.cpus.is_empty();
    if let Some(place) = tasks.iter().position(misfit) {
        return Outcome::Fail(NotShown { place });
    }
    let masks: Vec<CpuSet> = tasks.iter().map(|placed| placed.cpus).collect();
    for part in parts(&masks) {
        match part_is_schedulable(tasks, &part, steps) {
            Outcome::Pass(()) => {}
            other => return other,
        }
    }
    Outcome::Pass(())
}

fn part_is_schedulable(tasks: &[Placed], part: &Part, steps: &mut Steps) -> Outcome<NotShown> {
    let masks: Vec<CpuSet> = part
        .members
        .iter()
        .map(|&place| tasks[place].cpus)
        .collect();
    let Some(factor) = speedup_factor(&masks) else {
        return Outcome::Fail(NotShown {
            place: part.members[0],
        });
    };
    let supply = supply(&factor);
    if densities_fit(tasks, part, supply) {
        return Outcome::Pass(());
    }
    let bound: Vec<Bound> = part
        .members
        .iter()
        .map(|&place| Bound {
            ranked: Ranked {
                task: tasks[place].task,
                priority: Priority::LEAST_URGENT,
            },
            cpus: tasks[place].cpus,
        })
        .collect();
    let singles: Vec<CpuSet> = part.cpus.iter().map(CpuSet::single).collect();
    let onto = Onto {
        groups: &singles,
        order: Order::Edf,
        supply,
    };
    match pack(&bound, &onto, Heuristic::FFD, steps) {
        Outcome::Pass(_) => Outcome::Pass(()),
        Outcome::Fail(NotShown { place }) => Outcome::Fail(NotShown {
            place: part.members[place],
        }),
        Outcome::StepLimit => Outcome::StepLimit,
    }
}

/// The speed of CPUs on which what is feasible is schedulable by EDF on those that there are.
fn supply(factor: &Ratio<BigInt>) -> Share {
    let billionths = factor.recip() * BigInt::from(Share::WHOLE);
    let billionths = u32::try_from(billionths.to_integer()).ok();
    let share = billionths.and_then(Share::from_billionths);
    share.expect("no factor is below 1")
}

/// Whether the densities of the tasks fit CPUs of this speed, so that a fluid schedule meets all deadlines.
fn densities_fit(tasks: &[Placed], part: &Part, supply: Share) -> bool {
    let mut groups = Groups::default();
    for &place in &part.members {
        let task = &tasks[place].task;
        match Rate::new(task.cost, task.deadline.min(task.period)) {
            Some(rate) if !rate.exceeds(supply) => {
                groups.add(TaskId::from_index(place), tasks[place].cpus, rate);
            }
            _ => return false,
        }
    }
    groups.shortage(supply).0.is_none()
}
