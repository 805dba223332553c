//! What mutexes do, executed step by step: every rank is computed anew at each step that might change it, and all mutexes and
//! tasks are looked at.

use shiftwork_machine::{Handed, MutexMachine, Rank, Request};
use shiftwork_model::{
    Affinity, CpuId, Instant, Order, PolicyTraits, Priority, Protocol, ResourceId, Span, TaskId,
    TaskSet,
};

/// The lowest of a CPU is boosted: by its ceiling, then by its number.
pub(crate) type Boost = (Priority, u64);

pub(crate) const NO_BOOST: Boost = (Priority::LEAST_URGENT, u64::MAX);

const LEAST: Rank = Rank {
    priority: Priority::LEAST_URGENT,
    deadline: Instant::NEVER,
};

/// A mutex.
pub(crate) struct Mutex {
    pub(crate) protocol: Protocol,
    pub(crate) ceiling: Option<(Priority, Span)>,
    remote_ceilings: Vec<(TaskId, Priority)>,
    pub(crate) served_on: Option<Affinity>,
    pub(crate) holder: Option<TaskId>,
    pub(crate) waiters: Vec<TaskId>,
    /// With OMLP, how many jobs may be in the queue, one of which holds the mutex.
    room: usize,
}

impl Mutex {
    pub(crate) fn boost_of(&self, task: TaskId) -> Option<Priority> {
        let mut remote = self.remote_ceilings.iter();
        match self.protocol {
            Protocol::Fmlp => Some(Priority::NON_PREEMPTIVE),
            Protocol::Dpcp(_) => self.served_on.and(self.ceiling).map(|it| it.0),
            Protocol::Mpcp => remote.find(|(user, _)| *user == task).map(|it| it.1),
            _ => None,
        }
    }
}

/// A task.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) own: Option<Rank>,
    pub(crate) mutexes: Vec<(ResourceId, Option<Rank>)>,
    pub(crate) awaited: Option<ResourceId>,
    request: u64,
    /// With OMLP, its number in the queue of the mutex that it waits for.
    joined: Option<u64>,
    priority: Priority,
    pub(crate) cpus: Option<Affinity>,
    pub(crate) kept: Option<CpuId>,
    pub(crate) boosted_by: Boost,
}

/// All mutexes of a run.
pub(crate) struct Definition {
    pub(crate) mutexes: Vec<Mutex>,
    pub(crate) tasks: Vec<Held>,
    free: Vec<ResourceId>,
    pub(crate) boosted: Vec<TaskId>,
    numbers: u64,
    pub(crate) order: Order,
    pub(crate) shifts: bool,
}

impl Definition {
    pub(crate) fn new(set: &TaskSet, traits: &PolicyTraits) -> Self {
        let mutex = |index| {
            let id = ResourceId::from_index(index);
            Mutex {
                protocol: set.resources[index].protocol,
                ceiling: set.ceiling(id, traits.order),
                remote_ceilings: set.remote_ceilings(id),
                served_on: set.served_on(id).map(Affinity::pinned),
                holder: None,
                waiters: Vec::new(),
                room: (0..set.platform.cpus)
                    .filter_map(CpuId::new)
                    .filter(|cpu| {
                        let mut tasks = set.tasks.iter();
                        tasks.any(|it| it.locks_one(id) && it.affinity.cpus().contains(*cpu))
                    })
                    .count(),
            }
        };
        let held = |priority| Held {
            own: None,
            mutexes: Vec::new(),
            awaited: None,
            request: 0,
            joined: None,
            priority,
            cpus: None,
            kept: None,
            boosted_by: NO_BOOST,
        };
        Self {
            mutexes: (0..set.resources.len()).map(mutex).collect(),
            tasks: set.priorities().into_iter().map(held).collect(),
            free: Vec::new(),
            boosted: Vec::new(),
            numbers: 0,
            order: traits.order,
            shifts: traits.placement.shifts(),
        }
    }

    pub(crate) fn holds(&self, task: TaskId, resource: ResourceId) -> bool {
        self.mutexes[resource.index()].holder == Some(task)
    }

    pub(crate) fn waits(&self, task: TaskId) -> bool {
        self.tasks[task.index()].awaited.is_some()
    }

    pub(crate) fn involves(&self, task: TaskId) -> bool {
        self.waits(task) || !self.tasks[task.index()].mutexes.is_empty()
    }

    pub(crate) fn request(
        &mut self,
        machine: &mut impl MutexMachine,
        (now, cpu): (Instant, CpuId),
        task: TaskId,
        resource: ResourceId,
    ) -> Request {
        let protocol = self.mutex(resource).protocol;
        let holder = self.mutex(resource).holder;
        if protocol == Protocol::Fmlp {
            self.boost(task, resource);
        }
        let waits = match holder {
            Some(holder) => holder != task,
            None => !self.may_lock(task, resource),
        };
        if holder.is_none() && !waits {
            self.hold(machine, now, task, resource);
        }
        let spins = waits && protocol == Protocol::Spin;
        if protocol.is_non_preemptive() && (spins || !waits) {
            let own = machine.rank(task);
            self.held(task).own.get_or_insert(own);
            self.held(task).kept.get_or_insert(cpu);
        }
        if !waits {
            self.renew(machine, task, false);
            self.renew_boosted(machine, task);
            return Request::Holds;
        }
        self.mutex(resource).waiters.push(task);
        self.held(task).request = self.numbers;
        self.numbers += 1;
        self.held(task).awaited = Some(resource);
        self.fill_queue(machine, resource);
        if spins {
            machine.spins(task, resource);
            self.renew(machine, task, false);
            return Request::Spins;
        }
        machine.blocked(task, resource);
        self.inherit(machine, task);
        Request::Waits
    }

    fn hold(
        &mut self,
        machine: &mut impl MutexMachine,
        now: Instant,
        task: TaskId,
        resource: ResourceId,
    ) {
        let mutex = self.mutex(resource);
        mutex.holder = Some(task);
        let protocol = mutex.protocol;
        let boosts = mutex.boost_of(task).is_some();
        let has_ceiling = match protocol {
            Protocol::Ceiling => true,
            Protocol::Mpcp | Protocol::Dpcp(_) => !boosts,
            _ => false,
        };
        let ceiling = mutex.ceiling.filter(|_| has_ceiling);
        let ceiling = ceiling.map(|(priority, floor)| Rank {
            priority,
            deadline: now + floor,
        });
        let own = machine.rank(task);
        self.held(task).own.get_or_insert(own);
        self.held(task).mutexes.push((resource, ceiling));
        if protocol != Protocol::Fmlp {
            self.boost(task, resource);
        }
        if boosts && !self.boosted.contains(&task) {
            self.boosted.push(task);
        }
        machine.locked(task, resource);
    }

    fn boost(&mut self, task: TaskId, resource: ResourceId) {
        if let Some(ceiling) = self.mutex(resource).boost_of(task) {
            let boost = (ceiling, self.numbers);
            self.numbers += 1;
            let held = self.held(task);
            held.boosted_by = held.boosted_by.min(boost);
        }
    }

    pub(crate) fn unlock(
        &mut self,
        machine: &mut impl MutexMachine,
        task: TaskId,
        resource: ResourceId,
    ) {
        let held = self.held(task);
        held.mutexes.retain(|(held, _)| *held != resource);
        self.mutex(resource).holder = None;
        self.end_kept_and_boost(task);
        machine.unlocked(task, resource);
        self.free.push(resource);
    }

    /// What mutexes that the task does not hold any more forbade or boosted ends.
    fn end_kept_and_boost(&mut self, task: TaskId) {
        let held = self.tasks[task.index()].mutexes.iter();
        let held = held.map(|(resource, _)| &self.mutexes[resource.index()]);
        let keeps = held.clone().any(|mutex| mutex.protocol.is_non_preemptive());
        let boosts = held.clone().any(|mutex| mutex.boost_of(task).is_some());
        if !keeps {
            self.held(task).kept = None;
        }
        if !boosts {
            self.held(task).boosted_by = NO_BOOST;
            self.boosted.retain(|boosted| *boosted != task);
        }
    }

    pub(crate) fn pass_on(
        &mut self,
        machine: &mut impl MutexMachine,
        now: Instant,
        task: TaskId,
        has_ended: bool,
    ) {
        self.renew_boosted(machine, task);
        self.renew(machine, task, has_ended);
        for resource in std::mem::take(&mut self.free) {
            self.hand_over(machine, now, resource);
        }
    }

    pub(crate) fn end_job(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        self.renew_cpus(machine, task);
    }

    pub(crate) fn lower(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        match self.held(task).own.as_mut() {
            Some(own) => *own = LEAST,
            None => machine.set_rank(task, LEAST),
        }
        self.held(task).boosted_by = NO_BOOST;
        self.renew_boosted(machine, task);
        self.renew(machine, task, false);
        self.inherit(machine, task);
    }

    pub(crate) fn abandon(&mut self, machine: &mut impl MutexMachine, now: Instant, task: TaskId) {
        if let Some(resource) = self.held(task).awaited.take() {
            self.mutex(resource).waiters.retain(|id| *id != task);
            self.held(task).joined = None;
            self.fill_queue(machine, resource);
        }
        while let Some(&(resource, _)) = self.held(task).mutexes.last() {
            self.unlock(machine, task, resource);
        }
        self.end_kept_and_boost(task);
        self.pass_on(machine, now, task, true);
    }

    fn hand_over(&mut self, machine: &mut impl MutexMachine, now: Instant, resource: ResourceId) {
        if let Some(served_on) = self.mutex(resource).served_on {
            return self.hand_over_served(machine, now, &served_on);
        }
        let mutex = &self.mutexes[resource.index()];
        let urgency = |id: &&TaskId| {
            let Rank { priority, deadline } = machine.rank(**id);
            self.order.rank(deadline, priority)
        };
        let joined = |id: &&TaskId| self.tasks[id.index()].joined;
        let in_queue = mutex.waiters.iter().filter(|id| joined(id).is_some());
        let next = match mutex.protocol {
            Protocol::Spin | Protocol::Fmlp => mutex.waiters.first(),
            Protocol::Omlp if mutex.room > 1 => in_queue.min_by_key(joined),
            _ => mutex.waiters.iter().min_by_key(urgency),
        };
        if let Some(&next) = next {
            self.give(machine, now, next, resource);
            self.fill_queue(machine, resource);
        }
    }

    /// With OMLP, while the queue of a mutex that is held has room, the most urgent job that waits joins it.
    fn fill_queue(&mut self, machine: &mut impl MutexMachine, resource: ResourceId) {
        let mutex = &self.mutexes[resource.index()];
        if mutex.protocol != Protocol::Omlp {
            return;
        }
        let is_outside = |id: &&TaskId| self.tasks[id.index()].joined.is_none();
        let inside = mutex.waiters.iter().filter(|id| !is_outside(id)).count();
        let urgency = |id: &&TaskId| {
            let Rank { priority, deadline } = machine.rank(**id);
            self.order.rank(deadline, priority)
        };
        let outside = mutex.waiters.iter().filter(is_outside);
        if inside + 1 < mutex.room
            && let Some(&next) = outside.min_by_key(urgency)
        {
            let number = self.numbers;
            self.numbers += 1;
            self.held(next).joined = Some(number);
            self.fill_queue(machine, resource);
        }
    }

    /// With DPCP the most urgent of all jobs that wait for a mutex of the CPU is next.
    fn hand_over_served(
        &mut self,
        machine: &mut impl MutexMachine,
        now: Instant,
        served_on: &Affinity,
    ) {
        let there = |held: &Held| {
            let awaited = held.awaited?;
            let is_there = self.mutexes[awaited.index()].served_on == Some(*served_on);
            is_there.then_some((held.priority, held.request, awaited))
        };
        let tasks = self.tasks.iter().enumerate();
        let waiting = tasks.filter_map(|(index, held)| Some((there(held)?, index)));
        if let Some(((_, _, awaited), index)) = waiting.min()
            && self.may_lock(TaskId::from_index(index), awaited)
        {
            self.give(machine, now, TaskId::from_index(index), awaited);
        }
    }

    fn may_lock(&self, task: TaskId, resource: ResourceId) -> bool {
        let Some(served_on) = self.mutexes[resource.index()].served_on else {
            return true;
        };
        let own = self.tasks[task.index()].priority;
        self.mutexes.iter().all(|mutex| {
            let is_there = mutex.served_on == Some(served_on);
            let by_another = mutex.holder.is_some_and(|holder| holder != task);
            !is_there || !by_another || mutex.ceiling.is_none_or(|(ceiling, _)| own < ceiling)
        })
    }

    fn give(
        &mut self,
        machine: &mut impl MutexMachine,
        now: Instant,
        next: TaskId,
        resource: ResourceId,
    ) {
        self.mutex(resource).waiters.retain(|id| *id != next);
        self.held(next).awaited = None;
        self.held(next).joined = None;
        self.hold(machine, now, next, resource);
        let protocol = self.mutex(resource).protocol;
        let spun = protocol == Protocol::Spin;
        let goes_on = spun || !protocol.is_non_preemptive();
        machine.handed_over(next, Handed { spun, goes_on });
        self.renew(machine, next, false);
        self.renew_boosted(machine, next);
        if !spun {
            machine.becomes_ready(next);
        }
    }

    fn inherit(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        let mut waiter = task;
        while let Some(resource) = self.held(waiter).awaited
            && let Some(holder) = self.mutex(resource).holder
            && self.renew(machine, holder, false)
        {
            waiter = holder;
        }
    }

    pub(crate) fn mutex(&mut self, resource: ResourceId) -> &mut Mutex {
        &mut self.mutexes[resource.index()]
    }

    pub(crate) fn held(&mut self, task: TaskId) -> &mut Held {
        &mut self.tasks[task.index()]
    }
}
