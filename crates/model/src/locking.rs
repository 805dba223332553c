//! How the tasks of a set lock mutexes: what each holds meanwhile, and whether they may wait for each other for ever.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::cpu::{CpuId, CpuSet};
use crate::policy_traits::Order;
use crate::resource::{Protocol, ResourceId};
use crate::task::{Phase, Priority, TaskId};
use crate::taskset::TaskSet;
use crate::time::Span;

/// A task locks a mutex while it holds another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NestedLock {
    /// The task.
    pub task: TaskId,
    /// The mutex that it holds.
    pub held: ResourceId,
    /// The mutex that it locks.
    pub locked: ResourceId,
}

impl TaskSet {
    /// Whether a job may come to use other CPUs than its task while it holds a mutex.
    pub fn lends_cpus(&self) -> bool {
        let mut resources = self.resources.iter().enumerate();
        resources.any(|(index, resource)| {
            let id = ResourceId::from_index(index);
            let mut users = self.tasks.iter().filter(|task| task.locks_one(id));
            if self.served_on(id).is_some() {
                return true;
            }
            let first = users.next().map(|task| &task.affinity);
            resource.protocol.lends_cpus() && users.any(|task| first != Some(&task.affinity))
        })
    }

    /// The CPU on which jobs have the mutex, if that is not the one of all tasks that use it; `None` if jobs have it where they are.
    pub fn served_on(&self, resource: ResourceId) -> Option<CpuId> {
        let Protocol::Dpcp(cpu) = self.resources[resource.index()].protocol else {
            return None;
        };
        let mut users = self.tasks.iter().filter(|task| task.locks_one(resource));
        users
            .any(|task| task.only_cpu() != Some(cpu))
            .then_some(cpu)
    }

    /// The most urgent priority, and the shortest relative deadline by this order, of the tasks that use the mutex; `None` if
    /// none does.
    pub fn ceiling(&self, resource: ResourceId, order: Order) -> Option<(Priority, Span)> {
        let priorities = self.priorities();
        let users = self.iter().filter(|(_, task)| task.locks_one(resource));
        let own = users.map(|(id, task)| {
            let cpus = self.platform.cpus;
            let relative = order.relative_deadline(task.cost, task.deadline, cpus);
            (priorities[id.index()], relative)
        });
        own.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)))
    }

    /// The tasks that use the mutex, each with the most urgent priority of those of them that are bound to other CPUs than it; without
    /// those that share their CPU with all of them.
    pub fn remote_ceilings(&self, resource: ResourceId) -> Vec<(TaskId, Priority)> {
        let priorities = self.priorities();
        let users = || self.iter().filter(|(_, task)| task.locks_one(resource));
        let ceiling = |cpu: Option<CpuId>| {
            let others = users().filter(|(_, task)| task.only_cpu() != cpu);
            others.map(|(id, _)| priorities[id.index()]).min()
        };
        let by_cpu: BTreeMap<Option<CpuId>, Option<Priority>> = users()
            .map(|(_, task)| task.only_cpu())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .map(|cpu| (cpu, ceiling(cpu)))
            .collect();
        users()
            .filter_map(|(id, task)| Some((id, by_cpu[&task.only_cpu()]?)))
            .collect()
    }

    /// How many jobs that wait for the mutex are served first come, first served, which all are with some protocols and none with
    /// others; with OMLP one for each CPU that the tasks that use it may use, but for the job that holds it.
    pub fn first_come(&self, resource: ResourceId) -> usize {
        match self.resources[resource.index()].protocol {
            Protocol::Spin | Protocol::Fmlp => usize::MAX,
            Protocol::Omlp => {
                let users = self.tasks.iter().filter(|task| task.locks_one(resource));
                let cpus = users.fold(CpuSet::EMPTY, |all, task| all | *task.affinity.cpus());
                cpus.len().saturating_sub(1)
            }
            _ => 0,
        }
    }

    /// All nested locks, each once, in the order of tasks.
    pub fn nested_locks(&self) -> Vec<NestedLock> {
        let mut all = BTreeSet::new();
        for (task, of) in self.iter() {
            let mut open: Vec<ResourceId> = Vec::new();
            for phase in of.phases() {
                match *phase {
                    Phase::Lock(locked) => {
                        all.extend(open.iter().map(|&held| NestedLock { task, held, locked }));
                        open.push(locked);
                    }
                    Phase::Unlock(id) => open.retain(|other| *other != id),
                    Phase::Run(_) | Phase::Sleep(_) | Phase::Trigger(_) => {}
                }
            }
        }
        all.into_iter().collect()
    }

    /// Nested locks by which tasks might wait for each other for ever: each task for the next, and the last for the first;
    /// no two of them hold a mutex in common, which would keep them apart. `None` if none ever do. That is sufficient,
    /// and in rare cases not necessary, since it does not matter here what a job has to lock before.
    ///
    /// # Source
    /// K. Havelund, "Using runtime analysis to guide model checking of Java programs", SPIN 2000: cycles of lock graphs
    /// with guard locks.
    ///
    /// # Cost
    /// The square of the number of nested locks if mutexes are locked in one order. Otherwise at most 100,000 steps of a
    /// search; where these do not suffice, tasks that hold mutexes in common count too.
    pub fn deadlock(&self) -> Option<Vec<NestedLock>> {
        let mut requests = requests(self);
        // Only requests on a circle of mutexes matter.
        loop {
            let before = requests.len();
            let all = requests.clone();
            requests.retain(|one| all.iter().any(|next| next.held.contains(&one.locked)));
            if requests.len() == before {
                break;
            }
        }
        let mut search = Search {
            requests: &requests,
            steps: STEPS,
        };
        for (index, first) in requests.iter().enumerate() {
            if let Some(cycle) = search.close(&mut alloc::vec![first], index) {
                return Some(cycle);
            }
        }
        None
    }
}

/// Steps of a search for a deadlock.
const STEPS: u64 = 100_000;

/// A task locks a mutex while it holds others, at least one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    task: TaskId,
    held: BTreeSet<ResourceId>,
    locked: ResourceId,
}

fn requests(set: &TaskSet) -> Vec<Request> {
    let mut all = BTreeSet::new();
    for (task, of) in set.iter() {
        let mut open = BTreeSet::new();
        for phase in of.phases() {
            match *phase {
                Phase::Lock(locked) => {
                    if !open.is_empty() {
                        let held = open.clone();
                        all.insert(Request { task, held, locked });
                    }
                    open.insert(locked);
                }
                Phase::Unlock(id) => drop(open.remove(&id)),
                Phase::Run(_) | Phase::Sleep(_) | Phase::Trigger(_) => {}
            }
        }
    }
    all.into_iter().collect()
}

struct Search<'a> {
    requests: &'a [Request],
    steps: u64,
}

impl<'a> Search<'a> {
    /// Extends the path to a circle, by requests after the one at `first`, at which it begins: each locks what the next
    /// holds.
    fn close(&mut self, path: &mut Vec<&'a Request>, first: usize) -> Option<Vec<NestedLock>> {
        self.steps = self.steps.saturating_sub(1);
        let last = path[path.len() - 1];
        if path.len() > 1 && path[0].held.contains(&last.locked) {
            return Some(nested(path));
        }
        for next in &self.requests[first + 1..] {
            let is_apart = |other: &&Request| {
                let has_common = self.steps > 0 && !other.held.is_disjoint(&next.held);
                other.task != next.task && !has_common
            };
            if next.held.contains(&last.locked) && path.iter().all(is_apart) {
                path.push(next);
                if let Some(cycle) = self.close(path, first) {
                    return Some(cycle);
                }
                path.pop();
            }
        }
        None
    }
}

/// The circle with the one mutex that each holds and the one before it locks.
fn nested(cycle: &[&Request]) -> Vec<NestedLock> {
    let before = cycle.iter().cycle().skip(cycle.len() - 1);
    let locks = cycle.iter().zip(before).map(|(at, before)| NestedLock {
        task: at.task,
        held: before.locked,
        locked: at.locked,
    });
    locks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::Affinity;
    use crate::random::RandomStream;
    use crate::resource::Resource;
    use crate::task::{Task, Work};
    use crate::time::Span;

    /// The mutexes that a job locks (`true`) and unlocks.
    type Steps = Vec<(bool, usize)>;

    fn random(random: &mut RandomStream, mutexes: u64) -> Steps {
        let mut steps = Vec::new();
        let mut held: Vec<usize> = Vec::new();
        for _ in 0..random.below(7) {
            let mutex = random.below(mutexes) as usize;
            match held.iter().position(|other| *other == mutex) {
                Some(at) => drop(held.remove(at)),
                None => held.push(mutex),
            }
            steps.push((held.contains(&mutex), mutex));
        }
        steps.extend(held.into_iter().map(|mutex| (false, mutex)));
        steps
    }

    fn set(tasks: &[Steps], mutexes: usize) -> TaskSet {
        let task = |steps: &Steps| {
            let cpu = Affinity::pinned(CpuId::from_index(0));
            let mut task = Task::periodic("t", Span::from_ns(1), Span::from_ns(9), cpu);
            let phase = |&(locks, mutex): &(bool, usize)| match locks {
                true => Phase::Lock(ResourceId::from_index(mutex)),
                false => Phase::Unlock(ResourceId::from_index(mutex)),
            };
            task.work = Work::Phases(steps.iter().map(phase).collect());
            task
        };
        let mut set = TaskSet::new("", 1, tasks.iter().map(task).collect());
        set.resources = (0..mutexes)
            .map(|_| Resource {
                name: "r".into(),
                protocol: Protocol::None,
            })
            .collect();
        set
    }

    /// Whether some jobs, one of each task, may come to where none of those that are not complete can go on.
    fn can_block_for_ever(tasks: &[Steps]) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = alloc::vec![alloc::vec![0; tasks.len()]];
        while let Some(at) = open.pop() {
            if !seen.insert(at.clone()) {
                continue;
            }
            let mut held = BTreeSet::new();
            for (steps, &done) in tasks.iter().zip(&at) {
                let mut own = BTreeSet::new();
                for &(locks, mutex) in &steps[..done] {
                    match locks {
                        true => own.insert(mutex),
                        false => own.remove(&mutex),
                    };
                }
                held.extend(own);
            }
            let can_go_on = |task: usize| {
                let next = tasks[task].get(at[task]);
                next.is_some_and(|&(locks, mutex)| !locks || !held.contains(&mutex))
            };
            let able: Vec<usize> = (0..tasks.len()).filter(|&task| can_go_on(task)).collect();
            let is_over = tasks
                .iter()
                .zip(&at)
                .all(|(steps, &done)| done == steps.len());
            if able.is_empty() && !is_over {
                return true;
            }
            open.extend(able.into_iter().map(|task| {
                let mut next = at.clone();
                next[task] += 1;
                next
            }));
        }
        false
    }

    #[test]
    fn deadlock_is_found_where_jobs_can_block_for_ever() {
        let (mut blocked, mut cautious) = (0, 0);
        for seed in 0..20_000 {
            let mut stream = RandomStream::new(seed, 17, 0);
            let mutexes = 2 + stream.below(2);
            let tasks: Vec<Steps> = (0..2 + stream.below(2))
                .map(|_| random(&mut stream, mutexes))
                .collect();
            let found = set(&tasks, mutexes as usize).deadlock();
            let is_real = can_block_for_ever(&tasks);
            assert!(!is_real || found.is_some(), "seed {seed}: {tasks:?}");
            let Some(cycle) = found else { continue };
            for (edge, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
                assert_eq!(edge.locked, next.held, "seed {seed}: {cycle:?}");
            }
            blocked += u32::from(is_real);
            cautious += u32::from(!is_real);
        }
        // Two nested locks may never be there at the same time, as when both tasks lock a third mutex around them.
        assert!(
            blocked > 1_000 && cautious < blocked / 5,
            "{blocked} {cautious}"
        );
    }
}
