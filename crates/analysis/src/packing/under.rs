//! Packing where scheduling costs something: what is charged to a task depends on who shares its CPUs.

use std::cmp::Reverse;

use shiftwork_model::{
    Affinity, CpuSet, Overheads, Slots, TaskSet, WindowSource, groups_within, pack, pack_weights,
    weights_fit,
};

use crate::Sporadic;
use crate::exact::{Demand, Rate, fit, whole};
use crate::overheads::{Members, Structure, inflate_part};
use crate::verdicts::Rule;

/// The CPUs of each task under a partitioned or clustered policy of this rule, so that what the tasks of each of
/// `parts` (disjoint sets of CPUs) need fits there *with these overheads*; as the policy itself packs them if no
/// such packing is found. `None` if an affinity holds none of the parts.
///
/// First fit, decreasing by utilization, as the policies: tasks whose affinity holds exactly one part go there
/// first. A part takes a task if, with what all its tasks are charged then,
///
/// - each costs no more than its period and the utilizations are no more than its CPUs, or, in whole quanta,
///   the weights: under EDF with implicit deadlines on one CPU that is exact;
/// - on one CPU or in whole quanta the same holds of densities, unless no packing is found that way.
///
/// Bound as this says, the tasks are packed the same way by the policy: there is but one part for each.
///
/// # Assumes
/// As [`inflate`](crate::overheads::inflate).
pub fn pack_under(
    set: &TaskSet,
    rule: Rule,
    parts: &[CpuSet],
    (structure, overheads): (&Structure, &Overheads),
) -> Option<Vec<Affinity>> {
    let choices = set
        .tasks
        .iter()
        .map(|task| groups_within(parts, &task.affinity));
    let choices: Vec<Vec<usize>> = choices.collect();
    if choices.iter().any(Vec::is_empty) {
        return None;
    }
    let is_implicit = set.tasks.iter().all(|task| task.deadline >= task.period);
    let packing = Packing {
        set,
        rule,
        parts,
        price: (structure, overheads),
        choices,
    };
    let in_quanta = matches!(rule, Rule::Pfair { .. });
    let sources: &[WindowSource] = match is_implicit && !in_quanta {
        true => &[WindowSource::Period],
        false => &[WindowSource::Deadline, WindowSource::Period],
    };
    let found = sources.iter().find_map(|&source| packing.first_fit(source));
    let part_of = found.or_else(|| packing.plain())?;
    part_of
        .into_iter()
        .map(|part| Affinity::new(parts[part]))
        .collect()
}

struct Packing<'a> {
    set: &'a TaskSet,
    rule: Rule,
    parts: &'a [CpuSet],
    price: (&'a Structure, &'a Overheads),
    /// By task: the parts within its affinity.
    choices: Vec<Vec<usize>>,
}

impl Packing<'_> {
    /// The part of each task; `None` if some task finds none.
    fn first_fit(&self, source: WindowSource) -> Option<Vec<usize>> {
        let (mut order, mut movable): (Vec<usize>, Vec<usize>) =
            (0..self.choices.len()).partition(|&task| self.choices[task].len() < 2);
        movable.sort_by_key(|&task| Reverse(self.set.tasks[task].utilization()));
        order.append(&mut movable);
        let mut bins: Vec<Vec<Sporadic>> = vec![Vec::new(); self.parts.len()];
        let mut part_of = vec![0; self.choices.len()];
        for task in order {
            part_of[task] = *self.choices[task].iter().find(|&&part| {
                bins[part].push((&self.set.tasks[task]).into());
                let members = Members {
                    cpus: &self.parts[part],
                    tasks: &bins[part],
                };
                let fits = self.fits(&members, source);
                if !fits {
                    bins[part].pop();
                }
                fits
            })?;
        }
        Some(part_of)
    }

    /// Whether what the members need fits with the overheads.
    fn fits(&self, members: &Members<'_>, source: WindowSource) -> bool {
        let (structure, overheads) = self.price;
        let inflated = inflate_part(self.set, (self.rule, structure), members, overheads);
        let tasks: Option<Vec<Sporadic>> = inflated.into_iter().map(|one| one.task).collect();
        tasks.is_some_and(|tasks| match self.rule {
            Rule::Pfair { staggered } => {
                let cpus = members.cpus.len();
                let slots = Slots::of(self.set, if staggered { cpus } else { 1 });
                let weight =
                    |task: &Sporadic| slots.weight([task.cost, task.period, task.deadline], source);
                weights_fit(tasks.iter().map(weight), members.cpus)
            }
            _ => demand_fits(&tasks, members.cpus.len(), source),
        })
    }

    /// As the policy packs by itself.
    fn plain(&self) -> Option<Vec<usize>> {
        let packing = match self.rule {
            Rule::Pfair { staggered } => pack_weights(self.set, self.parts, staggered),
            _ => pack(self.set, self.parts),
        };
        packing.group_of.into_iter().collect()
    }
}

fn demand_fits(tasks: &[Sporadic], cpus: usize, source: WindowSource) -> bool {
    let by_density = source == WindowSource::Deadline && cpus == 1;
    let mut demand = Demand::default();
    for task in tasks {
        let window = match by_density {
            true => task.deadline.min(task.period),
            false => task.period,
        };
        match Rate::new(task.cost, window).filter(|rate| !rate.exceeds_one()) {
            Some(rate) => demand.add(rate),
            None => return false,
        }
    }
    fit([&demand], cpus, whole())
}
