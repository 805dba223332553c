//! When jobs lock mutexes that they have on another CPU, and where they are boosted.

use shiftwork_model::{Affinity, Instant, ResourceId, TaskId};

use super::mutex::Mutex;
use super::{MutexMachine, Mutexes};

impl Mutexes {
    /// Passes a mutex of the CPU on which this one is served to the most urgent job that waits for one there, if it may lock it.
    pub(super) fn hand_over_served(
        &mut self,
        machine: &mut impl MutexMachine,
        now: Instant,
        resource: ResourceId,
    ) {
        let served_on = self.mutexes[resource.index()].served_on;
        let mutexes = self.mutexes.iter().enumerate();
        let there = mutexes.filter(|(_, mutex)| mutex.served_on == served_on);
        let waiters = there.flat_map(|(index, mutex)| {
            let with = move |&task| (task, ResourceId::from_index(index));
            mutex.waiters.iter().map(with)
        });
        let next = waiters.min_by_key(|(task, _): &(TaskId, ResourceId)| {
            let held = &self.tasks[task.index()];
            (held.priority, held.request)
        });
        if let Some((next, resource)) = next
            && self.may_lock(next, resource)
        {
            self.give(machine, now, next, resource);
        }
    }

    /// Whether the task's job may lock the mutex if no other job holds it: with DPCP if its priority is more urgent than the ceilings of
    /// all mutexes that are locked on the CPU where it is served.
    pub(super) fn may_lock(&self, task: TaskId, resource: ResourceId) -> bool {
        let served_on = &self.mutexes[resource.index()].served_on;
        if served_on.is_none() {
            return true;
        }
        let locked = |mutex: &&Mutex| {
            let by_another = mutex.holder.is_some_and(|holder| holder != task);
            by_another && mutex.served_on == *served_on
        };
        let ceilings = self.mutexes.iter().filter(locked);
        let mut ceilings = ceilings.filter_map(|mutex| mutex.ceiling);
        let own = self.tasks[task.index()].priority;
        ceilings.all(|(ceiling, _)| own < ceiling)
    }

    /// The CPU on which the task's job is boosted.
    pub(super) fn boosted_on<'a>(
        &'a self,
        machine: &'a impl MutexMachine,
        task: TaskId,
    ) -> &'a Affinity {
        let held = self.tasks[task.index()].mutexes.iter();
        let mut mutexes = held.map(|(resource, _)| &self.mutexes[resource.index()]);
        let served_on = mutexes.find_map(|mutex| mutex.served_on.as_ref());
        served_on.unwrap_or_else(|| machine.own_affinity(task))
    }
}
