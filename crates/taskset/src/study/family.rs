//! Families of task sets: the tables `[tasks]` and `[[family]]`.

mod keys;
mod read;

use shiftwork_model::Span;

use crate::generate::{Deadlines, Distribution, Options, Periods, Shape, Utilizations};

pub(super) use keys::{KEYS, SHARED_KEYS};
pub(super) use read::{names, read};

/// Task sets that are drawn alike, but for their load and the number of CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// For people and curves; no other family has it.
    pub name: String,
    /// On how many CPUs; a row of cells for each.
    pub cpus: Vec<usize>,
    /// The loads; a cell for each.
    pub loads: Vec<Load>,
    /// How many CPUs are in a cluster, the last perhaps fewer; `None` if all are in one.
    pub cluster: Option<usize>,
    /// How utilizations are drawn.
    pub draw: Draw,
    /// How periods are drawn.
    pub periods: Periods,
    /// How deadlines are drawn.
    pub deadlines: Deadlines,
    /// What affinities look like.
    pub shape: Shape,
    /// No cost is below this.
    pub min_cost: Span,
    /// Whether sets are drawn again until their affinities leave room for every task.
    pub feasible: bool,
    /// Whether bounds on tardiness are looked for where tardiness is bounded, which takes longer.
    pub tardiness: bool,
}

/// A total utilization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// In thousandths of a CPU.
    Cap(u32),
    /// In thousandths of the platform.
    Share(u32),
}

/// How the utilizations of tasks are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// One by one, until the next would exceed the load.
    UntilCap(Distribution),
    /// So many, the load shared by Stafford's method.
    RandFixedSum(Count),
    /// So many, the load shared by UUniFast, drawn again if one uses more than a CPU.
    UUniFastDiscard(Count),
}

/// How many tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Tasks(usize),
    /// So many for each CPU.
    PerCpu(usize),
}

impl Load {
    /// In thousandths of a CPU, rounded down.
    pub fn cap(self, cpus: usize) -> u64 {
        match self {
            Self::Cap(thousandths) => u64::from(thousandths),
            Self::Share(thousandths) => u64::from(thousandths) * cpus as u64,
        }
    }
}

impl Family {
    /// What to draw for the cell with so many CPUs and this load.
    pub fn options(&self, cpus: usize, load: Load) -> Options {
        let total = load.cap(cpus) as f64 / 1_000.0;
        let number = |count| match count {
            Count::Tasks(tasks) => tasks,
            Count::PerCpu(tasks) => tasks * cpus,
        };
        Options {
            cpus,
            utilizations: match self.draw {
                Draw::UntilCap(distribution) => Utilizations::UntilCap {
                    distribution,
                    cap: total,
                },
                Draw::RandFixedSum(count) => Utilizations::RandFixedSum {
                    tasks: number(count),
                    total,
                },
                Draw::UUniFastDiscard(count) => Utilizations::UUniFastDiscard {
                    tasks: number(count),
                    total,
                },
            },
            periods: self.periods,
            deadlines: self.deadlines,
            shape: self.shape,
            min_cost: self.min_cost,
            feasible: self.feasible,
            ..Options::default()
        }
    }
}
