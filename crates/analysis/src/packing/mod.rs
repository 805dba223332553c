//! Which CPU, or cluster of CPUs, each task gets, so that all fit.
//!
//! [`pack`] is packing by one of the heuristics of the literature; [`assign`] searches for an
//! assignment of tasks to CPUs. Both respect affinities and analyse a single CPU exactly: by
//! processor demand under EDF, by response times under fixed priorities.

mod assign;
mod bin;
mod charged;
mod search;
mod under;

pub use assign::{Assignment, assign};
pub use shiftwork_model::{Fit, Heuristic};
pub use under::pack_under;

use std::cmp::Reverse;

use shiftwork_model::{CpuSet, Order, Parcel, Share, Utilization, pack_by};

use crate::affinity::Bound;
use crate::exact::whole;
use crate::policy::ranks_by_deadline;
use crate::{NotShown, Outcome, Steps};
use bin::Bin;

/// Where tasks are packed, and how they will be scheduled there.
#[derive(Clone, Copy, Debug)]
pub struct Onto<'a> {
    /// Disjoint sets of CPUs; each task gets one that lies within its affinity.
    pub groups: &'a [CpuSet],
    /// The order in which the jobs of one group run. Under EDF priorities do not matter.
    pub order: Order,
    /// What each CPU supplies.
    pub supply: Share,
}

/// Packs every task onto a group that can take it; the group of each task, in the order of the tasks.
///
/// Tasks whose affinity holds exactly one group go there first, the others in the order of the
/// heuristic, each onto that group of its affinity that the heuristic chooses among those that can
/// take it: on a single CPU if all deadlines there are met (exact), on several if the utilizations fit
/// (whether deadlines are met there is for the tests of global scheduling to say). Fails with the
/// first task that no group can take.
///
/// With utilizations alone in question this is the packing that `p-edf` and `c-edf` run with
/// ([`shiftwork_model::pack`]). With deadlines before the end of the period, under fixed priorities
/// or with a supply below 1 it is not: then it shows that there is a packing, and tasks must be bound
/// as it says.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, any deadlines.
///
/// # Cost
/// For n tasks and g groups O(n log n + n g) where utilizations alone are in question; else a test of
/// one CPU for up to n g of them, unless the densities there fit. Best and worst fit then compare
/// loads to a part in 2^63 per task, utilizations alone exactly.
///
/// # Source
/// First, best and worst fit, decreasing or not, as in D. Johnson, "Near-Optimal Bin Packing
/// Algorithms", MIT 1973; with exact tests per CPU as in S. Baruah, N. Fisher, "The Partitioned
/// Multiprocessor Scheduling of Sporadic Task Systems", RTSS 2005.
pub fn pack(
    tasks: &[Bound],
    onto: &Onto<'_>,
    heuristic: Heuristic,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<usize>> {
    if let Some(place) = tasks
        .iter()
        .position(|task| !task.ranked.task.is_possible())
    {
        return Outcome::Fail(NotShown { place });
    }
    let implicit = |bound: &Bound| bound.ranked.task.deadline >= bound.ranked.task.period;
    let utilization_decides = ranks_by_deadline(onto.order) && tasks.iter().all(implicit);
    let packed = match utilization_decides && onto.supply == whole() {
        true => by_utilization(tasks, onto, heuristic, steps),
        false => by_test(tasks, onto, heuristic, steps),
    };
    match packed {
        None => Outcome::StepLimit,
        Some(Ok(groups)) => Outcome::Pass(groups),
        Some(Err(place)) => Outcome::Fail(NotShown { place }),
    }
}

fn by_utilization(
    tasks: &[Bound],
    onto: &Onto<'_>,
    heuristic: Heuristic,
    steps: &mut Steps,
) -> Option<Result<Vec<usize>, usize>> {
    steps.take(tasks.len() * onto.groups.len())?;
    let parcel = |bound: &Bound| Utilization::new(bound.ranked.task.cost, bound.ranked.task.period);
    let parcels = tasks.iter().filter_map(|bound| {
        Some(Parcel {
            utilization: parcel(bound)?,
            cpus: &bound.cpus,
        })
    });
    let packing = pack_by(heuristic, parcels, onto.groups);
    if let Some(place) = packing.group_of.iter().position(Option::is_none) {
        return Some(Err(place));
    }
    Some(match packing.overflowed.first() {
        Some(&place) => Err(place),
        None => Ok(packing.group_of.into_iter().flatten().collect()),
    })
}

fn by_test(
    tasks: &[Bound],
    onto: &Onto<'_>,
    heuristic: Heuristic,
    steps: &mut Steps,
) -> Option<Result<Vec<usize>, usize>> {
    let mut bins: Vec<Bin> = onto
        .groups
        .iter()
        .map(|cpus| Bin::new(cpus, onto))
        .collect();
    let mut group_of = vec![usize::MAX; tasks.len()];
    let candidates = |place: usize| -> Vec<usize> {
        let within = |&group: &usize| onto.groups[group].is_subset(&tasks[place].cpus);
        (0..onto.groups.len()).filter(within).collect()
    };
    for place in in_order(tasks, heuristic, |place| candidates(place).len()) {
        let mut open = candidates(place);
        match heuristic.fit {
            Fit::First => {}
            Fit::Best => open.sort_by_key(|&group| bins[group].room()),
            Fit::Worst => open.sort_by_key(|&group| Reverse(bins[group].room())),
        }
        let mut taken = false;
        for group in open {
            if bins[group].takes(&tasks[place].ranked, steps)? {
                bins[group].put(&tasks[place].ranked);
                group_of[place] = group;
                taken = true;
                break;
            }
        }
        if !taken {
            return Some(Err(place));
        }
    }
    Some(Ok(group_of))
}

/// Those with one choice first, then as the heuristic says.
fn in_order(tasks: &[Bound], heuristic: Heuristic, choices: impl Fn(usize) -> usize) -> Vec<usize> {
    let (mut order, mut movable): (Vec<usize>, Vec<usize>) =
        (0..tasks.len()).partition(|&place| choices(place) < 2);
    if heuristic.decreasing {
        let utilization = |place: usize| {
            let task = &tasks[place].ranked.task;
            Utilization::new(task.cost, task.period)
        };
        movable.sort_by_key(|&place| Reverse(utilization(place)));
    }
    order.append(&mut movable);
    order
}
