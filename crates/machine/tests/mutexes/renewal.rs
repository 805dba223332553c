//! By what jobs are scheduled, and where: the part of the definition that says what holding and waiting mean.

use shiftwork_machine::{MutexMachine, Rank};
use shiftwork_model::{Affinity, Instant, Priority, TaskId};

use crate::definition::{Definition, Mutex};

impl Definition {
    /// Returns whether anything has changed.
    pub(crate) fn renew(
        &mut self,
        machine: &mut impl MutexMachine,
        task: TaskId,
        has_ended: bool,
    ) -> bool {
        let cpus = self.cpus_by_protocols(machine, task);
        if has_ended || cpus == *self.cpus_of(machine, task) {
            return self.renew_rank(machine, task);
        }
        // CPUs are gained before the rank changes, and lost after it.
        if self.cpus_of(machine, task).cpus().is_subset(cpus.cpus()) {
            self.renew_cpus(machine, task);
            self.renew_rank(machine, task);
        } else {
            self.renew_rank(machine, task);
            self.renew_cpus(machine, task);
        }
        true
    }

    pub(crate) fn renew_cpus(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        let cpus = self.cpus_by_protocols(machine, task);
        if cpus != *self.cpus_of(machine, task) {
            let is_own = cpus == *machine.own_affinity(task);
            self.held(task).cpus = Some(cpus).filter(|_| !is_own);
            machine.set_affinity(task, &cpus);
        }
    }

    fn held_mutexes(&self, task: TaskId) -> impl Iterator<Item = &Mutex> {
        let held = self.tasks[task.index()].mutexes.iter();
        held.map(|(resource, _)| &self.mutexes[resource.index()])
    }

    fn cpus_by_protocols(&self, machine: &impl MutexMachine, task: TaskId) -> Affinity {
        let serves = self.mutexes.iter().any(|mutex| mutex.served_on.is_some());
        if let Some(kept) = self.tasks[task.index()].kept
            && (self.shifts || serves)
        {
            return Affinity::pinned(kept);
        }
        if let Some(served_on) = self.held_mutexes(task).find_map(|mutex| mutex.served_on) {
            return served_on;
        }
        let lent = self
            .held_mutexes(task)
            .filter(|mutex| mutex.protocol.lends_cpus());
        let own = *machine.own_affinity(task).cpus();
        let all = lent
            .flat_map(|mutex| &mutex.waiters)
            .fold(own, |all, waiter| {
                all | *self.cpus_of(machine, *waiter).cpus()
            });
        Affinity::new(all).expect("the task's own CPUs are among them")
    }

    fn cpus_of<'a>(&'a self, machine: &'a impl MutexMachine, task: TaskId) -> &'a Affinity {
        let by_protocols = self.tasks[task.index()].cpus.as_ref();
        by_protocols.unwrap_or_else(|| machine.own_affinity(task))
    }

    fn renew_rank(&mut self, machine: &mut impl MutexMachine, task: TaskId) -> bool {
        let before = machine.rank(task);
        let held = &self.tasks[task.index()];
        let Some(own) = held.own else { return false };
        let ceilings = held.mutexes.iter().filter_map(|(_, ceiling)| *ceiling);
        let waiters = self
            .held_mutexes(task)
            .filter(|mutex| mutex.protocol.inherits())
            .flat_map(|mutex| &mutex.waiters)
            .map(|waiter| machine.rank(*waiter));
        let is_first = held.kept.is_some() || self.is_boosted(machine, task);
        let first = is_first.then_some(Rank {
            priority: Priority::NON_PREEMPTIVE,
            deadline: Instant::ZERO,
        });
        let others = ceilings.chain(waiters).chain(first);
        let rank = others.fold(own, |rank, other| match self.order.is_by_priority() {
            true => Rank {
                priority: rank.priority.min(other.priority),
                ..rank
            },
            false => Rank {
                deadline: rank.deadline.min(other.deadline),
                ..rank
            },
        });
        if !is_first && held.mutexes.is_empty() {
            self.held(task).own = None;
        }
        if rank != before {
            machine.set_rank(task, rank);
        }
        rank != before
    }

    /// Whether the task's job is the first of those of its CPU that hold a mutex that boosts.
    fn is_boosted(&self, machine: &impl MutexMachine, task: TaskId) -> bool {
        let boost = |task: TaskId| self.tasks[task.index()].boosted_by;
        let on = |task: TaskId| {
            let served_on = self.held_mutexes(task).find_map(|mutex| mutex.served_on);
            served_on.unwrap_or(*machine.own_affinity(task))
        };
        let precedes = |other: TaskId| boost(task) < boost(other) || on(task) != on(other);
        let mut others = self.boosted.iter().filter(|other| **other != task);
        self.boosted.contains(&task) && others.all(|other| precedes(*other))
    }

    pub(crate) fn renew_boosted(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        for other in self.boosted.clone() {
            if other != task {
                self.renew_rank(machine, other);
            }
        }
    }
}
