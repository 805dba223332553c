//! The definition, executed: unit by unit of time, every execution time of every job.

use std::collections::BTreeSet;

use shiftwork_model::{Affinity, CpuSet, Order, TaskSet};

/// A unit of time in ns. Priority points are then whole ns for up to three CPUs.
pub const UNIT: u64 = 6;

/// A pending job; times are in units.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    task: usize,
    /// How long ago it was released.
    age: u64,
    /// How long ago it became ready; `None`: an earlier job of its task is not complete.
    ready_for: Option<u64>,
    left: u64,
}

/// The pending jobs, by task and then by release.
type State = Vec<Pending>;

#[derive(Debug)]
struct Definition {
    cost: u64,
    period: u64,
    deadline: u64,
    offset: u64,
    cpus: CpuSet,
    priority: u64,
    /// From the release to the instant by which jobs are ranked, in units times CPUs.
    point: u64,
}

/// All schedules of a set whose jobs execute for whole units, one unit at least.
pub struct Oracle {
    tasks: Vec<Definition>,
    order: Order,
    cpus: usize,
    hyperperiod: u64,
}

impl Oracle {
    pub fn new(set: &TaskSet, order: Order, packing: Option<Vec<Affinity>>) -> Self {
        let own = || set.tasks.iter().map(|task| task.affinity).collect();
        let bound: Vec<Affinity> = packing.unwrap_or_else(own);
        let m = set.platform.cpus as u64;
        let units = |span: shiftwork_model::Span| {
            assert_eq!(span.as_ns() % UNIT, 0);
            span.as_ns() / UNIT
        };
        let priorities = set.priorities();
        let task = |index: usize| {
            let task = &set.tasks[index];
            let (cost, deadline) = (units(task.cost), units(task.deadline));
            Definition {
                cost,
                period: units(task.period),
                deadline,
                offset: units(task.offset),
                cpus: *bound[index].cpus(),
                priority: u64::from(priorities[index].number()),
                point: match order {
                    Order::FairLateness => (m * deadline).saturating_sub((m - 1) * cost),
                    _ => m * deadline,
                },
            }
        };
        let tasks: Vec<Definition> = (0..set.tasks.len()).map(task).collect();
        let hyperperiod = (1..)
            .find(|&time| tasks.iter().all(|task| time % task.period == 0))
            .unwrap();
        Self {
            tasks,
            order,
            cpus: set.platform.cpus,
            hyperperiod,
        }
    }

    /// Whether some job misses its deadline with some execution times, and when; `None`: none ever does.
    pub fn any_miss(&self) -> Option<u64> {
        self.explore(&|cost| (1..=cost).collect())
    }

    /// The same if all jobs execute for their whole costs.
    pub fn miss_with_full_costs(&self) -> Option<u64> {
        self.explore(&|cost| vec![cost])
    }

    /// All states that can be reached, until none is new at the instants k hyperperiods after the last offset.
    fn explore(&self, costs: &dyn Fn(u64) -> Vec<u64>) -> Option<u64> {
        let last = self.tasks.iter().map(|task| task.offset).max().unwrap_or(0);
        let mut states = BTreeSet::from([State::new()]);
        let mut known = BTreeSet::new();
        for now in 0.. {
            if now >= last && (now - last).is_multiple_of(self.hyperperiod) {
                let new: BTreeSet<State> = states.difference(&known).cloned().collect();
                if new.is_empty() {
                    return None;
                }
                known.extend(new.iter().cloned());
                states = new;
            }
            let released: BTreeSet<State> = states
                .iter()
                .flat_map(|state| self.released(state, now, costs))
                .collect();
            states.clear();
            for state in released {
                match self.executed(state) {
                    Some(state) => states.insert(state),
                    None => return Some(now + 1),
                };
            }
        }
        None
    }

    /// The state after the releases of an instant, for each of the costs of each job.
    fn released(&self, state: &State, now: u64, costs: &dyn Fn(u64) -> Vec<u64>) -> Vec<State> {
        let mut states = vec![state.clone()];
        for (index, task) in self.tasks.iter().enumerate() {
            if now < task.offset || !(now - task.offset).is_multiple_of(task.period) {
                continue;
            }
            let is_behind = state.iter().any(|job| job.task == index);
            let with = |left| {
                let job = Pending {
                    task: index,
                    age: 0,
                    ready_for: (!is_behind).then_some(0),
                    left,
                };
                let add = move |state: &State| [&state[..], std::slice::from_ref(&job)].concat();
                states.iter().map(add).collect::<Vec<_>>()
            };
            states = costs(task.cost).into_iter().flat_map(with).collect();
        }
        states
    }

    /// The state a unit of time later; `None` if a job is not complete at its deadline then.
    fn executed(&self, mut state: State) -> Option<State> {
        for index in self.running(&state) {
            state[index].left -= 1;
        }
        let done = |job: &Pending| job.left == 0;
        let completed: Vec<usize> = state
            .iter()
            .filter(|job| done(job))
            .map(|job| job.task)
            .collect();
        state.retain(|job| !done(job));
        for job in &mut state {
            job.age += 1;
            job.ready_for = job.ready_for.map(|time| time + 1);
            if job.age >= self.tasks[job.task].deadline {
                return None;
            }
        }
        for task in completed {
            if let Some(next) = state.iter_mut().find(|job| job.task == task) {
                next.ready_for = Some(0);
            }
        }
        state.sort_by_key(|job| (job.task, std::cmp::Reverse(job.age)));
        Some(state)
    }

    /// The most urgent first, each kept if all that are kept can run at the same time.
    fn running(&self, state: &State) -> Vec<usize> {
        let is_ready = |&index: &usize| state[index].ready_for.is_some();
        let mut ready: Vec<usize> = (0..state.len()).filter(is_ready).collect();
        ready.sort_by_key(|&index| self.rank(&state[index]));
        let mut kept = Vec::new();
        for index in ready {
            kept.push(index);
            let cpus: Vec<CpuSet> = kept
                .iter()
                .map(|&index: &usize| self.tasks[state[index].task].cpus)
                .collect();
            if !fit(&cpus, CpuSet::first(self.cpus)) {
                kept.pop();
            }
        }
        kept
    }

    /// The order of ranks is that of urgency: by deadline, priority point or priority, then by becoming ready, then
    /// by task.
    fn rank(&self, job: &Pending) -> (i64, i64, usize) {
        let task = &self.tasks[job.task];
        let urgency = match self.order {
            Order::FixedPriority => task.priority as i64,
            _ => task.point as i64 - (job.age * self.cpus as u64) as i64,
        };
        let ready = -(job.ready_for.unwrap_or(0) as i64);
        (urgency, ready, job.task)
    }
}

/// Whether each of these jobs can have a CPU of its own of those that are free, by trying all assignments.
fn fit(jobs: &[CpuSet], free: CpuSet) -> bool {
    let Some((&job, others)) = jobs.split_first() else {
        return true;
    };
    let cpus = job.iter().filter(|cpu| free.contains(*cpu));
    cpus.into_iter()
        .any(|cpu| fit(others, free - CpuSet::single(cpu)))
}
