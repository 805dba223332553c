//! Whether the CPUs can be shared such that every task gets its rate, within its affinity and never
//! on two CPUs at once.
//!
//! [`flow`] answers for any affinities, [`laminar`] faster for nested ones, [`Groups::shortage`]
//! chooses between them. All are exact. For implicit deadlines the answer at supply 1 *is*
//! feasibility; [`feasibility`] says what it means for others.

mod any_affinities;
mod by_priority;
mod divisor;
mod family;
mod feasibility;
pub mod flow;
mod interference;
pub mod laminar;
mod laminar_tardiness;
mod loss;
mod nested_density;
pub(crate) mod parts;
mod reduction;
mod speedup;
mod spl;
mod waiting_levels;

pub use any_affinities::any_affinities;
pub use by_priority::Bound;
pub use feasibility::{Feasibility, Feasible, feasibility};
pub use laminar_tardiness::{Unavailable, laminar_tardiness, laminar_tardiness_beside};
pub use loss::{AffinityLoss, Bottleneck, Widening, affinity_loss};
pub use nested_density::nested_density;
pub(crate) use reduction::reduction_in_time;
pub use reduction::{reduction, reduction_edf, reduction_fp};
pub use speedup::speedup_factor;
pub use spl::{Rounding, TooMuch, spl};
pub(crate) use waiting_levels::waiting_levels_in_time;
pub use waiting_levels::{
    waiting_levels_edf, waiting_levels_edf_with_suspensions, waiting_levels_fp,
    waiting_levels_fp_with_suspensions,
};

use std::collections::BTreeMap;

use shiftwork_model::{CpuSet, Share, TaskId};

use crate::Witness;
use crate::exact::{Demand, Rate};

/// The tasks that share one affinity: to everything in this module they are one demand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    demand: Demand,
    members: Vec<TaskId>,
}

impl Group {
    /// What they need together.
    pub const fn demand(&self) -> &Demand {
        &self.demand
    }

    /// The tasks of the group, in the order in which they were added.
    pub fn members(&self) -> &[TaskId] {
        &self.members
    }
}

/// Tasks by affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(BTreeMap<CpuSet, Group>);

/// A set of groups that need more than all CPUs that any of them may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The affinities of the groups, ascending.
    pub masks: Vec<CpuSet>,
    /// Their union.
    pub cpus: CpuSet,
}

/// Which algorithm answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Maximum flow.
    Flow,
    /// Sums over the tree of nested affinities.
    Laminar,
}

impl By {
    /// The name in JSON: `flow` or `laminar`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Laminar => "laminar",
        }
    }
}

impl Groups {
    /// Adds a task. `cpus` may be empty; such a group fits nowhere.
    pub fn add(&mut self, task: TaskId, cpus: CpuSet, rate: Rate) {
        let group = self.0.entry(cpus).or_default();
        group.demand.add(rate);
        group.members.push(task);
    }

    /// Takes out a task that was added with these CPUs and this rate; one that was not changes
    /// nothing.
    pub fn remove(&mut self, task: TaskId, cpus: &CpuSet, rate: Rate) {
        let Some(group) = self.0.get_mut(cpus) else {
            return;
        };
        let Some(place) = group.members.iter().position(|&member| member == task) else {
            return;
        };
        group.members.remove(place);
        group.demand.remove(rate);
        if group.members.is_empty() {
            self.0.remove(cpus);
        }
    }

    /// The groups by affinity.
    pub fn iter(&self) -> impl Iterator<Item = (&CpuSet, &Group)> + Clone {
        self.0.iter()
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Groups that need more than their CPUs supply, `None` if all tasks fit; and the algorithm
    /// used.
    ///
    /// That no single task exceeds one CPU is not looked at here.
    ///
    /// # Cost
    /// Linear in the sum of the sizes of the affinities if they are nested; else see [`flow`].
    pub fn shortage(&self, supply: Share) -> (Option<Crowd>, By) {
        match laminar::Tree::new(self) {
            Some(tree) => (tree.shortage(supply), By::Laminar),
            None => (flow::shortage(self, supply), By::Flow),
        }
    }

    /// The groups whose affinities lie within these CPUs.
    pub fn within(&self, cpus: &CpuSet) -> Self {
        let inside = self.0.iter().filter(|(mask, _)| mask.is_subset(cpus));
        Self(inside.map(|(mask, group)| (*mask, group.clone())).collect())
    }

    /// The crowd as a witness, on as few of its CPUs as show the same.
    pub(crate) fn witness(&self, crowd: &Crowd, supply: Share) -> Witness {
        let crowd = flow::tightened(self, crowd.clone(), supply);
        let groups = crowd.masks.iter().filter_map(|mask| self.0.get(mask));
        let mut tasks: Vec<TaskId> = groups
            .clone()
            .flat_map(|group| group.members.iter().copied())
            .collect();
        tasks.sort_unstable();
        let mut needed = Demand::default();
        groups.for_each(|group| needed.merge(&group.demand));
        Witness::Crowd {
            tasks,
            cpus: Box::new(crowd.cpus),
            needed,
            supply,
        }
    }
}
