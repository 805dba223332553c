//! Packing under overheads: the charge of a task depends on the tasks that share its CPUs.

use std::cmp::Reverse;

use shiftwork_model::{
    Affinity, Alignment, CpuSet, Overheads, PolicyTraits, TaskSet, Utilization, WindowSource,
    groups_within, pack, pack_weights,
};

use super::charged::{Bins, Load};
use crate::Sporadic;
use crate::affinity::parts::distinct;
use crate::filter::ratio;
use crate::overheads::Structure;
use crate::policy::pfair;

/// The CPUs of each task under a partitioned or clustered policy, so that what the tasks of each of
/// `parts` (disjoint sets of CPUs) need fits there *with these overheads*; as the policy itself packs them if no
/// such packing is found. `None` if an affinity holds none of the parts.
///
/// First fit, decreasing by utilization without overheads: tasks whose affinity holds exactly one part go there
/// first. A part takes a task if, with what all its tasks are charged then,
///
/// - each costs no more than its period and the utilizations are no more than its CPUs, or, in whole quanta,
///   the weights: under EDF with implicit deadlines on one CPU that is exact;
/// - on one CPU, or in whole quanta, the same holds of densities, unless no packing is found that way.
///
/// Whether deadlines are met on several CPUs is for tests to say. Bound as this says, the policy packs the tasks the
/// same way: there is but one part for each.
///
/// # Assumes
/// As [`inflate`](crate::overheads::inflate).
///
/// # Cost
/// O(n log n + n g) for n tasks and g parts, in floats whose error is bounded. Where these leave a doubt overheads are
/// charged to the tasks of a part, which is linear in their number; so it is for every part that takes a task if
/// releases are charged to quanta, or a CPU is dedicated to them.
pub fn pack_under(
    set: &TaskSet,
    policy: &PolicyTraits,
    parts: &[CpuSet],
    (structure, overheads): (&Structure, &Overheads),
) -> Option<Vec<Affinity>> {
    let (of, masks) = distinct(set.tasks.iter().map(|task| task.affinity.cpus()));
    let affinities = masks.into_iter().map(|cpus| Affinity::new(*cpus));
    let choices = affinities.map(|affinity| Some(groups_within(parts, &affinity?)));
    let choices: Vec<Vec<usize>> = choices.collect::<Option<_>>()?;
    if choices.iter().any(Vec::is_empty) {
        return None;
    }
    let tasks: Vec<Sporadic> = set.tasks.iter().map(Sporadic::from).collect();
    let is_implicit = tasks.iter().all(|task| task.deadline >= task.period);
    let sources: &[WindowSource] = match is_implicit && pfair(policy).is_none() {
        true => &[WindowSource::Period],
        false => &[WindowSource::Deadline, WindowSource::Period],
    };
    let choices = Choices { of, choices };
    let found = sources.iter().find_map(|&source| {
        let load = Load {
            set,
            tasks: &tasks,
            policy,
            structure,
            overheads,
            source,
        };
        first_fit(&tasks, Bins::new(load, parts), &choices)
    });
    let part_of = found.or_else(|| plain(set, policy, parts))?;
    let affinities = parts.iter().map(|cpus| Affinity::new(*cpus));
    let affinities: Vec<Option<Affinity>> = affinities.collect();
    part_of.into_iter().map(|part| affinities[part]).collect()
}

/// The parts within the affinity of each task.
struct Choices {
    /// By task.
    of: Vec<usize>,
    choices: Vec<Vec<usize>>,
}

impl Choices {
    fn of(&self, task: usize) -> &[usize] {
        &self.choices[self.of[task]]
    }
}

/// The part of each task; `None` if some task finds none.
fn first_fit(tasks: &[Sporadic], mut bins: Bins<'_>, choices: &Choices) -> Option<Vec<usize>> {
    let count = choices.of.len();
    let (mut order, mut movable): (Vec<usize>, Vec<usize>) =
        (0..count).partition(|&task| choices.of(task).len() < 2);
    sort_decreasing(&mut movable, tasks);
    order.append(&mut movable);
    let mut part_of = vec![0; count];
    for task in order {
        let mut open = choices.of(task).iter();
        let part = *open.find(|&&part| bins.takes(part, task))?;
        bins.put(part, task);
        part_of[task] = part;
    }
    Some(part_of)
}

/// By decreasing utilization; equal ones by index. The places are ascending.
fn sort_decreasing(places: &mut Vec<usize>, tasks: &[Sporadic]) {
    let exactly = |&place: &usize| {
        let task = &tasks[place];
        (Reverse(Utilization::new(task.cost, task.period)), place)
    };
    // Whole numbers up to this are floats, whose quotients are in the order of the fractions.
    let is_long = |&place: &usize| {
        let task = &tasks[place];
        task.cost.max(task.period).as_ns() >> f64::MANTISSA_DIGITS > 0 || task.period.is_zero()
    };
    if places.iter().any(is_long) {
        places.sort_by_key(exactly);
        return;
    }
    // Utilization and rank in one word: such keys are sorted fastest.
    let rank_bits = usize::BITS - places.len().leading_zeros();
    let coarse = |place: usize| {
        let task = &tasks[place];
        let rate = ratio(task.cost.as_ns(), task.period.as_ns());
        !rate.to_bits() >> rank_bits << rank_bits
    };
    let keys = places.iter().zip(0_u64..);
    let mut keys: Vec<u64> = keys.map(|(&place, rank)| coarse(place) | rank).collect();
    keys.sort_unstable();
    let place_of = |&key: &u64| places[(key & ((1 << rank_bits) - 1)) as usize];
    let mut sorted: Vec<usize> = keys.iter().map(place_of).collect();
    // Those with the same word may still differ.
    sorted
        .chunk_by_mut(|&a, &b| coarse(a) == coarse(b))
        .filter(|run| run.len() > 1)
        .for_each(|run| run.sort_by_key(exactly));
    *places = sorted;
}

/// As the policy packs by itself.
fn plain(set: &TaskSet, policy: &PolicyTraits, parts: &[CpuSet]) -> Option<Vec<usize>> {
    let packing = match pfair(policy) {
        Some(alignment) => pack_weights(set, parts, alignment == Alignment::Staggered),
        None => pack(set, parts),
    };
    packing.group_of.into_iter().collect()
}
