//! Which job of a CPU is boosted, before all that are not: with FMLP+ the one that requested first, and with MPCP the one of the
//! most urgent remote ceiling (Rajkumar 1990).

use shiftwork_model::{CpuId, Protocol, ResourceId};

use super::Definition;

impl Definition<'_> {
    /// Whether the job is boosted and no other one of its CPU precedes it.
    pub(super) fn is_boosted(&self, task: usize) -> bool {
        let beside = (0..self.jobs.len()).filter(|&other| self.bound(other) == self.bound(task));
        let first = beside.filter_map(|other| self.boost(other)).min();
        first.is_some() && first == self.boost(task)
    }

    /// Whether tasks on several CPUs use the mutex.
    pub(super) fn is_global(&self, mutex: ResourceId) -> bool {
        let mut users = self.users(mutex);
        let first = users.next();
        users.any(|user| Some(self.bound(user)) != first.map(|first| self.bound(first)))
    }

    /// The least first, of the mutexes that the job holds. Those of FMLP+ precede, by the number of the request. Then come ceilings, and
    /// of equal ones the earliest lock.
    fn boost(&self, task: usize) -> Option<(u64, usize)> {
        let job = self.jobs[task].first()?;
        let by = |&(mutex, _): &(ResourceId, u64)| {
            let is_lock = |lock: &(u64, usize, usize, bool)| {
                (lock.1, lock.2, lock.3) == (task, mutex.index(), true)
            };
            match self.set.resources[mutex.index()].protocol {
                Protocol::Fmlp => Some((0, job.request as usize)),
                Protocol::Mpcp => {
                    let elsewhere = |&user: &usize| self.bound(user) != self.bound(task);
                    let users = self.users(mutex).filter(elsewhere);
                    let ceiling = users.map(|user| self.priorities[user]).min()?;
                    Some((ceiling, self.locks.iter().rposition(is_lock)?))
                }
                _ => None,
            }
        };
        job.held.iter().filter_map(by).min()
    }

    fn users(&self, mutex: ResourceId) -> impl Iterator<Item = usize> {
        (0..self.jobs.len()).filter(move |&task| self.set.tasks[task].locks_one(mutex))
    }

    fn bound(&self, task: usize) -> Option<CpuId> {
        self.set.tasks[task].only_cpu()
    }
}
