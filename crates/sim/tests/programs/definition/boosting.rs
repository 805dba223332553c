//! Which job of a CPU is boosted, before all that are not: with FMLP+ the one that requested first, with MPCP the one of the most
//! urgent remote ceiling (Rajkumar 1990), and with DPCP, on the CPU of the mutex, the one of the most urgent ceiling; and when a job
//! locks one with that (Rajkumar, Sha and Lehoczky 1988).

use shiftwork_model::{CpuId, Protocol, ResourceId};

use super::Definition;

impl Definition<'_> {
    /// Whether the job is boosted and no other one of its CPU precedes it.
    pub(super) fn is_boosted(&self, task: usize) -> bool {
        let on = |task: usize| self.served(task).or(self.bound(task));
        let beside = (0..self.jobs.len()).filter(|&other| on(other) == on(task));
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
                Protocol::Dpcp(_) => {
                    self.served_on(mutex)?;
                    Some((self.ceiling(mutex), self.locks.iter().rposition(is_lock)?))
                }
                _ => None,
            }
        };
        job.held.iter().filter_map(by).min()
    }

    /// The CPU on which a job has the mutex with DPCP, unless all users are bound to that.
    pub(super) fn served_on(&self, mutex: ResourceId) -> Option<CpuId> {
        match self.set.resources[mutex.index()].protocol {
            Protocol::Dpcp(cpu) => {
                let is_local = self.users(mutex).all(|user| self.bound(user) == Some(cpu));
                Some(cpu).filter(|_| !is_local)
            }
            _ => None,
        }
    }

    /// The CPU on which the job executes, if that is the one of a mutex that it has.
    pub(super) fn served(&self, task: usize) -> Option<CpuId> {
        let mut held = self.jobs[task].first()?.held.iter();
        held.find_map(|(mutex, _)| self.served_on(*mutex))
    }

    fn ceiling(&self, mutex: ResourceId) -> u64 {
        self.users(mutex)
            .map(|user| self.priorities[user])
            .min()
            .unwrap()
    }

    /// Whether the job may lock the mutex, which no other one has: with DPCP if it is more urgent than the ceilings of all mutexes of
    /// that CPU that others have.
    pub(super) fn may_lock(&self, task: usize, mutex: ResourceId) -> bool {
        let Some(cpu) = self.served_on(mutex) else {
            return true;
        };
        let others = (0..self.jobs.len()).filter(|&other| other != task);
        let held = others.filter_map(|other| Some(&self.jobs[other].first()?.held));
        let mut there = held
            .flatten()
            .filter(|(held, _)| self.served_on(*held) == Some(cpu));
        there.all(|(held, _)| self.priorities[task] < self.ceiling(*held))
    }

    /// The job that gets a mutex of the CPU on which this one is served, which has been unlocked, and which one.
    pub(super) fn next_served(&self, mutex: ResourceId) -> Option<(usize, ResourceId)> {
        let cpu = self.served_on(mutex)?;
        let there = self
            .waiters
            .iter()
            .filter(|(id, _)| self.served_on(**id) == Some(cpu));
        let waiting = there.flat_map(|(id, tasks)| tasks.iter().map(|&task| (task, *id)));
        let first =
            waiting.min_by_key(|&(task, _)| (self.priorities[task], self.jobs[task][0].request));
        first.filter(|&(task, mutex)| self.may_lock(task, mutex))
    }

    fn users(&self, mutex: ResourceId) -> impl Iterator<Item = usize> {
        (0..self.jobs.len()).filter(move |&task| self.set.tasks[task].locks_one(mutex))
    }

    fn bound(&self, task: usize) -> Option<CpuId> {
        self.set.tasks[task].only_cpu()
    }
}
