//! By what jobs are scheduled, and where, by the protocols of the mutexes that they hold.

use shiftwork_model::{Affinity, TaskId};

use super::{MutexMachine, Mutexes, Rank};

impl Mutexes {
    /// What the task's job is scheduled by now and where, by the protocols of the mutexes that it holds. Returns whether any
    /// of that has changed.
    ///
    /// CPUs are gained before the rank changes and lost after it: a job that is raised need not take the CPU of another
    /// one first, nor one that is lowered.
    pub(super) fn renew(
        &mut self,
        machine: &mut impl MutexMachine,
        task: TaskId,
        has_ended: bool,
    ) -> bool {
        if !self.changes_cpus {
            return self.renew_rank(machine, task);
        }
        let cpus = self.cpus_by_protocols(machine, task);
        let Some(cpus) = cpus.filter(|_| !has_ended) else {
            return self.renew_rank(machine, task);
        };
        match self.cpus_of(machine, task).cpus().is_subset(cpus.cpus()) {
            true => {
                self.renew_cpus(machine, task);
                self.renew_rank(machine, task);
            }
            false => {
                self.renew_rank(machine, task);
                self.renew_cpus(machine, task);
            }
        }
        true
    }

    /// Where the task's job may run from now on.
    pub(super) fn renew_cpus(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        if !self.changes_cpus {
            return;
        }
        let Some(affinity) = self.cpus_by_protocols(machine, task) else {
            return;
        };
        let is_own = affinity == *machine.own_affinity(task);
        self.held(task).cpus = Some(affinity).filter(|_| !is_own);
        machine.set_affinity(task, &affinity);
    }

    /// The CPUs that the task's job may use by the protocols of the mutexes that it holds, one of which may change them; `None` if
    /// these are the same as so far.
    fn cpus_by_protocols(&self, machine: &impl MutexMachine, task: TaskId) -> Option<Affinity> {
        let held = &self.tasks[task.index()];
        let present = self.cpus_of(machine, task);
        let mutexes = held.mutexes.iter();
        let mutexes = mutexes.map(|(resource, _)| &self.mutexes[resource.index()]);
        let served_on = mutexes.clone().find_map(|mutex| mutex.served_on);
        let serves = || self.mutexes.iter().any(|mutex| mutex.served_on.is_some());
        if let Some(kept) = held.kept.filter(|_| self.shifts || serves()) {
            return Some(Affinity::pinned(kept)).filter(|cpus| cpus != present);
        }
        if served_on.is_some() {
            return served_on.filter(|cpus| cpus != present);
        }
        let lent = mutexes.filter(|mutex| mutex.protocol.lends_cpus());
        let own = *machine.own_affinity(task).cpus();
        let waiters = lent.flat_map(|mutex| &mutex.waiters);
        let all = waiters.fold(own, |all, waiter| {
            all | *self.cpus_of(machine, *waiter).cpus()
        });
        Affinity::new(all).filter(|cpus| cpus != present)
    }

    /// The CPUs that the task's job may use now.
    fn cpus_of<'a>(&'a self, machine: &'a impl MutexMachine, task: TaskId) -> &'a Affinity {
        let by_protocols = self.tasks[task.index()].cpus.as_ref();
        by_protocols.unwrap_or_else(|| machine.own_affinity(task))
    }

    /// What the task's job is scheduled by now, by the protocols of the mutexes that it holds. Returns whether that has
    /// changed.
    fn renew_rank(&mut self, machine: &mut impl MutexMachine, task: TaskId) -> bool {
        let held = &self.tasks[task.index()];
        let Some(own) = held.own else { return false };
        let mut rank = own;
        for (resource, ceiling) in &held.mutexes {
            if let Some(ceiling) = *ceiling {
                rank = rank.raised_to(ceiling, self.order);
            }
            let mutex = &self.mutexes[resource.index()];
            // Nearly always there are none.
            for waiter in &mutex.waiters {
                if mutex.protocol.inherits() {
                    rank = rank.raised_to(machine.rank(*waiter), self.order);
                }
            }
        }
        if held.kept.is_some() || self.is_boosted(machine, task) {
            rank = rank.raised_to(Rank::NON_PREEMPTIVE, self.order);
        } else if held.mutexes.is_empty() {
            self.held(task).own = None;
        }
        if rank == machine.rank(task) {
            return false;
        }
        machine.set_rank(task, rank);
        true
    }

    /// Whether the task's job is the one of its CPU that is scheduled before all others: the first of those that hold a mutex that
    /// boosts. The next one follows when it unlocks.
    fn is_boosted(&self, machine: &impl MutexMachine, task: TaskId) -> bool {
        if !self.boosted.contains(&task) {
            return false;
        }
        let boost = |task: TaskId| self.tasks[task.index()].boosted_by;
        let mut others = self.boosted.iter().filter(|other| **other != task);
        others.all(|other| {
            boost(task) < boost(*other)
                || self.boosted_on(machine, task) != self.boosted_on(machine, *other)
        })
    }

    /// By what the other jobs are scheduled now that hold mutexes that boost.
    pub(super) fn renew_boosted(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        for at in 0..self.boosted.len() {
            let other = self.boosted[at];
            if other != task {
                self.renew_rank(machine, other);
            }
        }
    }
}
