//! A task set: everything that one task-set file says.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::affinity::{Affinity, AffinityKind};
use crate::chain::Chain;
use crate::cpu::{CpuId, CpuSet};
use crate::linux::{Lagging, Repairs};
use crate::resource::Resource;
use crate::task::{Priority, Task, TaskId};
use crate::time::{Instant, Span};

/// An exact share of something, 0 to 1, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// One whole, in billionths.
    pub const WHOLE: u32 = 1_000_000_000;
    /// Linux keeps 5% of each CPU for everything that is not real-time.
    pub const DEFAULT_RESERVE: Self = Self(50_000_000);

    /// `billionths` / 10^9; `None` above 1.
    pub const fn from_billionths(billionths: u32) -> Option<Self> {
        if billionths <= Self::WHOLE {
            Some(Self(billionths))
        } else {
            None
        }
    }

    /// The share in billionths.
    pub const fn billionths(self) -> u32 {
        self.0
    }

    /// This share of `span`, rounded down.
    pub const fn of(self, span: Span) -> Span {
        Span::from_ns((span.as_ns() as u128 * self.0 as u128 / Self::WHOLE as u128) as u64)
    }
}

/// Written as a decimal fraction without trailing zeros: `0.05`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = alloc::format!("{}.{:09}", self.0 / Self::WHOLE, self.0 % Self::WHOLE);
        let text = text.trim_end_matches('0');
        f.pad(
            text.strip_suffix('.')
                .map_or(text, |_| &text[..text.len() - 1]),
        )
    }
}

/// How the CPUs' speed is chosen (only the `dl-*` policies model anything but `Fixed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Frequency {
    /// Always full speed.
    #[default]
    Fixed,
    /// Scaled by the active utilization.
    GrubPa,
}

/// The CPUs and how they hang together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Number of CPUs; they are numbered from 0.
    pub cpus: usize,
    /// Named sets, usable as affinities.
    pub sets: BTreeMap<String, CpuSet>,
    /// Disjoint and covering all CPUs; empty means one cluster of all.
    pub clusters: Vec<CpuSet>,
    /// Groups of CPUs that share a cache, in any order; two CPUs are as close as the smallest group
    /// that holds both. Empty if nothing is known.
    pub caches: Vec<CpuSet>,
    /// Speed of each CPU in billionths of the fastest; empty if all are alike.
    pub capacities: Vec<Share>,
    /// How speed is chosen.
    pub frequency: Frequency,
    /// What time is counted in. All times of tasks and changes are whole multiples of it, and so are the
    /// instants at which CPUs change what they run, as far as nothing finer interferes (overheads, slower
    /// CPUs). A nanosecond where nothing else is said; never zero.
    pub tick_unit: Span,
}

impl Platform {
    /// `cpus` equal CPUs of which nothing else is known.
    pub fn uniform(cpus: usize) -> Self {
        Self {
            cpus,
            sets: BTreeMap::new(),
            clusters: Vec::new(),
            caches: Vec::new(),
            capacities: Vec::new(),
            frequency: Frequency::Fixed,
            tick_unit: Span::from_ns(1),
        }
    }

    /// All CPUs as a set.
    pub fn all(&self) -> CpuSet {
        CpuSet::first(self.cpus)
    }

    /// The clusters; if the file names none, one of all CPUs.
    pub fn clusters_or_one(&self) -> Vec<CpuSet> {
        if self.clusters.is_empty() {
            alloc::vec![self.all()]
        } else {
            self.clusters.clone()
        }
    }

    /// The other CPUs in the smallest cache group that `cpu` shares with any other CPU; empty if
    /// nothing is known.
    pub fn cache_mates(&self, cpu: CpuId) -> CpuSet {
        self.caches
            .iter()
            .filter(|group| group.contains(cpu) && group.len() > 1)
            .min_by_key(|group| group.len())
            .map_or(CpuSet::EMPTY, |group| *group - CpuSet::single(cpu))
    }

    /// How far a migration between two CPUs goes: 0 for the same CPU, then the rank of the smallest
    /// group size among the `caches` that holds both, then one more than the ranks there are.
    pub fn cache_distance(&self, a: CpuId, b: CpuId) -> usize {
        if a == b {
            return 0;
        }
        let mut sizes: Vec<usize> = self.caches.iter().map(CpuSet::len).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let shared = |group: &&CpuSet| group.contains(a) && group.contains(b);
        let smallest = self.caches.iter().filter(shared).map(CpuSet::len).min();
        match smallest {
            Some(size) => 1 + sizes.partition_point(|&other| other < size),
            None => 1 + sizes.len(),
        }
    }
}

/// What the file says about the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerOptions {
    /// The policy to use where the command line names none.
    pub policy: Option<String>,
    /// The share of each CPU kept for everything that is not real-time.
    pub reserve: Share,
    /// Whether background work that has waited a second gets `reserve` of it, when simulated.
    pub reserve_server: bool,
    /// Tick period, for quantum-driven policies and for tick overheads; see
    /// [`quantum_or_default`](Self::quantum_or_default).
    pub quantum: Option<Span>,
    /// Whether under Pfair policies a job may run as soon as it is released, and not only within its
    /// windows (ERfair).
    pub early_release: bool,
    /// Path of the overhead file, relative to the task-set file.
    pub overheads: Option<String>,
    /// Which repairs `dl-sp` has; `None`: all. `dl-linux` has none.
    pub repairs: Option<Repairs>,
    /// What the `dl-*` policies do about a server that lags.
    pub lagging: Lagging,
}

impl SchedulerOptions {
    /// The quantum where none is named, or none that is any.
    pub const QUANTUM: Span = Span::from_ms(1);

    /// The quantum of quantum-driven policies: the one that is named, or a millisecond; never zero.
    pub fn quantum_or_default(&self) -> Span {
        let named = self.quantum.filter(|quantum| !quantum.is_zero());
        named.unwrap_or(Self::QUANTUM)
    }
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            policy: None,
            reserve: Share::DEFAULT_RESERVE,
            reserve_server: false,
            quantum: None,
            early_release: false,
            overheads: None,
            repairs: None,
            lagging: Lagging::Grid,
        }
    }
}

/// A change that happens at a fixed time of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// When.
    pub at: Instant,
    /// What.
    pub change: Change,
}

/// What an action changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The task starts to release jobs. A task whose first action is this is absent before.
    Enter(TaskId),
    /// The task leaves; its unfinished jobs are dropped.
    Leave(TaskId),
    /// New parameters, for jobs released from now on; `None` keeps the old value.
    SetAttributes {
        /// The task.
        task: TaskId,
        /// The new cost.
        cost: Option<Span>,
        /// The new period.
        period: Option<Span>,
        /// The new relative deadline.
        deadline: Option<Span>,
    },
    /// A new affinity.
    SetAffinity(TaskId, Affinity),
    /// A new fixed priority.
    SetPriority(TaskId, Priority),
    /// The task moves to this cluster (index into the clusters).
    Move(TaskId, usize),
    /// New clusters.
    SetClusters(Vec<CpuSet>),
    /// The CPU goes away.
    CpuOffline(CpuId),
    /// The CPU comes back.
    CpuOnline(CpuId),
    /// A new reserve.
    SetReserve(Share),
}

/// Everything that one task-set file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSet {
    /// For people.
    pub name: String,
    /// The CPUs.
    pub platform: Platform,
    /// Scheduler options.
    pub scheduler: SchedulerOptions,
    /// The tasks; [`TaskId`] is the index here.
    pub tasks: Vec<Task>,
    /// The mutexes; [`ResourceId`](crate::ResourceId) is the index here.
    pub resources: Vec<Resource>,
    /// Cause-effect chains of these tasks, in the file's order.
    pub chains: Vec<Chain>,
    /// Timed changes, by time; at one instant in the file's order.
    pub actions: Vec<Action>,
}

impl TaskSet {
    /// A set of these tasks on `cpus` equal CPUs.
    pub fn new(name: &str, cpus: usize, tasks: Vec<Task>) -> Self {
        Self {
            name: name.into(),
            platform: Platform::uniform(cpus),
            scheduler: SchedulerOptions::default(),
            tasks,
            resources: Vec::new(),
            chains: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// The first task that locks a mutex.
    pub fn first_locking(&self) -> Option<&Task> {
        self.tasks.iter().find(|task| task.locks())
    }

    /// The tasks with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.tasks
            .iter()
            .enumerate()
            .map(|(index, task)| (TaskId::from_index(index), task))
    }

    /// The task with this name.
    pub fn find(&self, name: &str) -> Option<TaskId> {
        self.iter()
            .find(|(_, task)| task.name == name)
            .map(|(id, _)| id)
    }

    /// What the affinities look like together.
    pub fn affinity_kind(&self) -> AffinityKind {
        AffinityKind::of(
            &self.platform.all(),
            self.tasks.iter().map(|task| &task.affinity),
        )
    }

    /// The fixed priority of every task. Those that name none follow after the least urgent that
    /// does, in deadline-monotonic order (equal deadlines by index), all different.
    pub fn priorities(&self) -> alloc::vec::Vec<Priority> {
        let explicit = self.tasks.iter().filter_map(|task| task.priority).max();
        let mut by_deadline: Vec<usize> = (0..self.tasks.len())
            .filter(|&i| self.tasks[i].priority.is_none())
            .collect();
        by_deadline.sort_by_key(|&i| (self.tasks[i].deadline, i));
        let mut priorities: Vec<Priority> = self
            .tasks
            .iter()
            .map(|task| task.priority.unwrap_or(Priority::LEAST_URGENT))
            .collect();
        let first = explicit.map_or(0, Priority::number);
        for (rank, &i) in by_deadline.iter().enumerate() {
            let number = u32::try_from(rank + 1)
                .ok()
                .and_then(|rank| first.checked_add(rank));
            priorities[i] = number
                .and_then(Priority::new)
                .unwrap_or(Priority::LEAST_URGENT);
        }
        priorities
    }

    /// Whether the task is absent until an action lets it enter.
    pub fn enters_later(&self, task: TaskId) -> bool {
        self.actions
            .iter()
            .find_map(|action| match action.change {
                Change::Enter(id) if id == task => Some(true),
                Change::Leave(id) if id == task => Some(false),
                _ => None,
            })
            .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn task(name: &str, deadline_ms: u64, priority: Option<u32>) -> Task {
        let all = Affinity::new(CpuSet::first(2)).unwrap();
        let period = Span::from_ms(deadline_ms);
        let mut task = Task::periodic(name, Span::from_us(1), period, all);
        task.priority = priority.map(|number| Priority::new(number).unwrap());
        task
    }

    #[test]
    fn priorities_default_to_deadline_monotonic_and_differ() {
        let tasks = alloc::vec![
            task("a", 20, None),
            task("b", 10, None),
            task("c", 20, None)
        ];
        let numbers: Vec<u32> = TaskSet::new("", 2, tasks)
            .priorities()
            .into_iter()
            .map(Priority::number)
            .collect();
        assert_eq!(numbers, [2, 1, 3]);
    }

    #[test]
    fn tasks_without_a_priority_follow_those_with_one() {
        let tasks = alloc::vec![task("a", 20, None), task("b", 10, Some(7))];
        let numbers: Vec<u32> = TaskSet::new("", 2, tasks)
            .priorities()
            .into_iter()
            .map(Priority::number)
            .collect();
        assert_eq!(numbers, [8, 7]);
    }

    #[test]
    fn cache_distance_ranks_group_sizes() {
        let mut platform = Platform::uniform(8);
        platform.caches = ["0,1", "2,3", "0-3", "4-7"]
            .iter()
            .map(|list| list.parse().unwrap())
            .collect();
        let distance = |a, b| platform.cache_distance(CpuId::from_index(a), CpuId::from_index(b));
        assert_eq!(
            [
                distance(0, 0),
                distance(0, 1),
                distance(1, 2),
                distance(0, 4)
            ],
            [0, 1, 2, 3]
        );
        assert_eq!(platform.cache_mates(CpuId::from_index(0)).to_string(), "1");
        assert_eq!(
            platform.cache_mates(CpuId::from_index(4)).to_string(),
            "5-7"
        );
    }

    #[test]
    fn shares_are_written_exactly() {
        assert_eq!(Share::DEFAULT_RESERVE.to_string(), "0.05");
        assert_eq!(
            Share::from_billionths(Share::WHOLE).unwrap().to_string(),
            "1"
        );
        assert_eq!(
            Share::DEFAULT_RESERVE.of(Span::from_s(1)),
            Span::from_ms(50)
        );
    }
}
