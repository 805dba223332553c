//! How much of each set of CPUs is reserved and free: an expensive question, which is answered from a copy of the table.

use std::collections::BTreeMap;

use shiftwork_analysis::admission::{Admitted, Claim, Guarantee};
use shiftwork_model::{CpuSet, Priority, Span, TaskId};

use super::ReservationTable;
use crate::quotas::share_ppm;

/// Maximum number of sets of CPUs whose capacity is computed.
const SETS_MAX: usize = 128;

/// Period for which the free share is computed; the share is the same for every period.
const PERIOD: Span = Span::from_ms(100);

/// Capacity of a set of CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Sum of the utilizations reserved within it, in CPUs.
    pub reserved: f64,
    /// Largest utilization of a further task with this affinity that would be admitted.
    pub free: f64,
}

/// What the capacities follow from.
#[derive(Clone, Debug)]
pub struct CapacityQuestion {
    /// The table's [version](ReservationTable::version).
    pub version: u64,
    admission: Admitted,
    /// Utilizations in millionths of a CPU, by affinity: of the tasks that are served, and zero for the others.
    shares: BTreeMap<Vec<usize>, (CpuSet, u64)>,
    tasks: usize,
    /// Whether all deadlines are guaranteed.
    is_hard: bool,
    /// A number that no task has.
    unused: TaskId,
}

impl CapacityQuestion {
    /// The capacity of each set of CPUs that a reservation names, and of all CPUs; of many sets only the first.
    ///
    /// # Cost
    /// For each set up to 64 admission tests of all tasks.
    pub fn answer(mut self) -> Vec<Capacity> {
        let sets: Vec<CpuSet> = self.shares.values().map(|(cpus, _)| *cpus).collect();
        sets.into_iter().map(|cpus| self.of(cpus)).collect()
    }

    /// A measure of the cost of [`answer`](Self::answer).
    pub fn size(&self) -> usize {
        // Tests of windows compare each task with all others.
        let by_task = if self.is_hard { self.tasks } else { 1 };
        self.tasks * by_task * self.shares.len()
    }

    fn of(&mut self, cpus: CpuSet) -> Capacity {
        let within = self.shares.values().filter(|(it, _)| it.is_subset(&cpus));
        let reserved: u64 = within.map(|(_, share)| share).sum();
        let claim = Claim {
            task: self.unused,
            name: String::new(),
            cost: PERIOD,
            period: PERIOD,
            deadline: PERIOD,
            priority: Priority::LEAST_URGENT,
            cpus: cpus & *self.admission.online(),
        };
        let free = self.admission.largest_cost(&claim).unwrap_or(Span::ZERO);
        Capacity {
            cpus,
            reserved: reserved as f64 / 1e6,
            free: free.as_ns() as f64 / PERIOD.as_ns() as f64,
        }
    }
}

impl ReservationTable {
    /// Changes whenever a capacity may have changed.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The question for the present capacities.
    pub fn capacity_question(&self) -> CapacityQuestion {
        let order = |cpus: &CpuSet| cpus.iter().map(|cpu| cpu.index()).collect::<Vec<usize>>();
        let all = self.rules.cpus;
        let mut shares = BTreeMap::new();
        for (_, reserved) in self.tasks() {
            let it = &reserved.reservation;
            let (_, share) = shares.entry(order(&it.cpus)).or_insert((it.cpus, 0));
            *share += if reserved.is_served { share_ppm(it) } else { 0 };
        }
        while shares.len() >= SETS_MAX {
            shares.pop_last();
        }
        shares.entry(order(&all)).or_insert((all, 0));
        CapacityQuestion {
            version: self.version,
            admission: self.admission.clone(),
            shares,
            tasks: self.tasks.len(),
            is_hard: self.rules.guarantee == Guarantee::Hard,
            unused: TaskId::from_index(self.rules.tasks_max),
        }
    }
}
