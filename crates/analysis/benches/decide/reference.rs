//! How long SchedCAT takes for the same, from how long it takes for each test at one or two numbers of tasks.

use shiftwork_analysis::global_edf::{bar, bcl, gfb, load, rta};
use shiftwork_analysis::overheads::{Structure, inflate};
use shiftwork_analysis::verdicts::Criterion;
use shiftwork_analysis::{Outcome, Sporadic, Steps};
use shiftwork_model::{Affinity, CpuSet, Overheads, PolicyTraits, Preemption, TaskSet};

/// Seconds for so many tasks.
struct Cost {
    /// With 70 tasks of utilizations in [0.1, 0.4].
    at_70: f64,
    /// With 600 tasks of utilizations in [0.001, 0.1]; if it was not measured, as if linear.
    at_600: Option<f64>,
}

const GFB: Cost = once(1.0 / 35_600.0);
const BCL: Cost = once(1.0 / 25_000.0);
const LOAD: Cost = once(1.0 / 26_300.0);
const FFD: Cost = once(1.0 / 11_600.0);
const DEVI_ANDERSON: Cost = once(1.0 / 17_000.0);
const BAR: Cost = twice(1.0 / 1_180.0, 1.0 / 0.18);
const RTA: Cost = twice(1.0 / 36.0, 1.0 / 8.4);

const fn once(at_70: f64) -> Cost {
    Cost {
        at_70,
        at_600: None,
    }
}

const fn twice(at_70: f64, at_600: f64) -> Cost {
    Cost {
        at_70,
        at_600: Some(at_600),
    }
}

impl Cost {
    /// Between and above the two by the power of n through both; below 70 by that power or linearly, whichever is
    /// less, so that nothing is charged that was not seen.
    fn at(&self, tasks: usize) -> f64 {
        let n = tasks as f64 / 70.0;
        let power = match self.at_600 {
            Some(at_600) => (at_600 / self.at_70).ln() / (600.0_f64 / 70.0).ln(),
            None => 1.0,
        };
        let power = if tasks < 70 { power.max(1.0) } else { power };
        self.at_70 * n.powf(power)
    }
}

/// The tests of global EDF that were timed, in the order in which they cost least; SchedCAT stops at the first that
/// passes. Its FF-DBF is left out, as it is unless asked for: it takes 60 ms.
const TESTS: [(Cost, Passes); 5] = [
    (GFB, |tasks, cpus| {
        passes(gfb(tasks, cpus, &mut Steps::ordinary()))
    }),
    (LOAD, |tasks, cpus| {
        passes(load(tasks, cpus, &mut Steps::ordinary()))
    }),
    (BCL, |tasks, cpus| {
        passes(bcl(tasks, cpus, &mut Steps::ordinary()))
    }),
    (BAR, |tasks, cpus| {
        passes(bar(tasks, cpus, &mut Steps::ordinary()))
    }),
    (RTA, |tasks, cpus| {
        passes(rta(tasks, cpus, &mut Steps::ordinary()))
    }),
];

/// Whether a test passes for these tasks on so many CPUs.
type Passes = fn(&[Sporadic], usize) -> bool;

fn passes<Failure, Proof>(outcome: Outcome<Failure, Proof>) -> bool {
    matches!(outcome, Outcome::Pass(_))
}

/// Seconds for charging overheads, with the copy of each task that this needs, as it changes them in place: 93 us and
/// 491 us with 70 tasks.
pub fn charging(set: &TaskSet) -> f64 {
    8.3e-6 * set.tasks.len() as f64
}

/// Seconds for packing and testing; drawing and charging overheads are free. Sums over the tasks (whether the demand
/// fits, the weights of Pfair) count as GFB, the cheapest that was timed.
pub fn seconds(
    set: &TaskSet,
    bound: &[Affinity],
    (policy, structure, overheads): (&PolicyTraits, &Structure, &Overheads),
    criterion: Criterion,
) -> f64 {
    let cpus: Vec<CpuSet> = bound.iter().map(|affinity| *affinity.cpus()).collect();
    let mut parts = cpus.clone();
    parts.sort_unstable();
    parts.dedup();
    let is_packed = parts
        .first()
        .is_some_and(|part| part.len() < set.platform.cpus);
    let packing = if is_packed {
        FFD.at(set.tasks.len())
    } else {
        0.0
    };
    let inflated = inflate(set, (policy, structure), &cpus, overheads).unwrap();
    let mut seconds = packing;
    for part in parts {
        let members = inflated.iter().filter(|one| one.cpus == part);
        let tasks: Option<Vec<Sporadic>> = members.clone().map(|one| one.task).collect();
        let count = members.count();
        let Some(tasks) = tasks else {
            continue;
        };
        // Task sets that exceed the capacity are not tested.
        let utilization = |task: &Sporadic| task.cost.as_ns() as f64 / task.period.as_ns() as f64;
        let alone = tasks.iter().map(utilization).fold(0.0, f64::max);
        let is_lost = alone > 1.0 || tasks.iter().map(utilization).sum::<f64>() > part.len() as f64;
        let is_tested = part.len() > 1 && criterion == Criterion::Hard && !is_lost;
        match policy.preemption {
            Preemption::Pfair(_) => seconds += GFB.at(count),
            Preemption::Never if is_tested => seconds += DEVI_ANDERSON.at(count),
            _ if is_tested => {
                for (cost, test) in &TESTS {
                    seconds += cost.at(count);
                    if test(&tasks, part.len()) {
                        break;
                    }
                }
            }
            _ => seconds += GFB.at(count),
        }
    }
    seconds
}
